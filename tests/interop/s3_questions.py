"""What the tests of S3 ask of Spark, in the process where it runs."""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import reduce
from typing import Any

import penstock
from penstock.errors import PenstockWarning
from penstock.storage.schemes import open_storage

Rows = list[tuple[Any, ...]]


def ordered(df: Any) -> Rows:
    return sorted((tuple(row) for row in df.collect()), key=repr)


def ours(spark: Any, url: str, columns: str, schema: str, storage: dict[str, str]) -> Any:
    return penstock.hive(url, columns, schema, format="parquet", storage=storage).dataframe(spark)


def query(spark: Any, table: tuple[Any, ...], where: str = "TRUE", select: str = "*") -> Rows:
    return ordered(ours(spark, *table).where(where).selectExpr(*select.split("; ")))


def queries(spark: Any, table: tuple[Any, ...], wheres: list[str]) -> list[Rows]:
    """The rows of several filters, each planned for itself, and all read by one job."""
    return _in_one(ours(spark, *table), wheres)


def plain(spark: Any, table: tuple[Any, ...], where: str = "TRUE", select: str = "*") -> Rows:
    """The same by Spark alone, which finds the files itself."""
    return ordered(_by_spark_alone(spark, table).where(where).selectExpr(*select.split("; ")))


def plain_queries(spark: Any, table: tuple[Any, ...], wheres: list[str]) -> list[Rows]:
    """The same as `queries` by Spark alone."""
    return _in_one(_by_spark_alone(spark, table), wheres)


def _in_one(df: Any, wheres: list[str]) -> list[Rows]:
    arms = [df.where(where).selectExpr("*", f"{i} AS question") for i, where in enumerate(wheres)]
    rows = ordered(reduce(lambda one, other: one.unionAll(other), arms))
    return [[row[:-1] for row in rows if row[-1] == i] for i in range(len(wheres))]


def _by_spark_alone(spark: Any, table: tuple[Any, ...]) -> Any:
    """The options are those that anyone would write."""
    url, columns, schema, storage = table
    options = {
        "fs.s3a.endpoint": storage["s3.endpoint"],
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": storage["s3.access-key-id"],
        "fs.s3a.secret.key": storage["s3.secret-access-key"],
        "fs.s3a.path.style.access": "true",
    }
    read = spark.read.options(**options).schema(f"{schema}, {columns}")
    return read.parquet(url.replace("s3://", "s3a://"))


def join(spark: Any, table: tuple[Any, ...], keys: list[str]) -> Rows:
    """Dynamic pruning: which keys are wanted is known only when the other side has been read."""
    df = ours(spark, *table)
    wanted = spark.createDataFrame([(key, i) for i, key in enumerate(keys)], "key string, i int").where("i >= 0")
    return ordered(df.join(wanted.hint("broadcast"), df.app == wanted.key).select("n", "app", "i"))


def shown(spark: Any, table: tuple[Any, ...]) -> str:
    """All that Spark and Penstock show of a query over a table."""
    opened = penstock.hive(table[0], *table[1:3], format="parquet", storage=table[3])
    df = opened.dataframe(spark).where("app = 'shop'")
    df.collect()
    execution = df._jdf.queryExecution()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for mode in ("simple", "extended", "formatted", "cost", "codegen"):
            df.explain(mode=mode)
    parts = [out.getvalue(), execution.toString(), execution.stringWithStats()]
    parts += [getattr(execution, name)().toJSON() for name in ("logical", "analyzed", "optimizedPlan", "executedPlan")]
    parts += [execution.executedPlan().treeString(), repr(opened), repr(opened.plan()), opened.plan().explain()]
    parts += [str(spark.sparkContext.getConf().getAll()), str(spark.sql("SET -v").collect())]
    settings = spark.sparkContext._jsc.hadoopConfiguration().iterator()
    while settings.hasNext():
        parts.append(str(settings.next()))
    return "\n".join(parts)


def by_connect(spark: Any, table: tuple[Any, ...], where: str) -> tuple[Rows, list[str], str]:
    """The rows through Spark Connect, what was warned of, and what Spark shows of the query."""
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", PenstockWarning)
        df = penstock.hive(*table[:3], format="parquet", storage=table[3]).dataframe(spark, where=where)
    with contextlib.redirect_stdout(out):
        df.explain(mode="extended")
        print(df, df._plan.print(), df._plan.to_proto(spark.client))
    return ordered(df), [str(each.message) for each in warned], out.getvalue()


def failure(spark: Any, table: tuple[Any, ...]) -> str:
    """What Spark says of a file that is gone when it is read."""
    df = ours(spark, *table)
    df.collect()
    storage = open_storage(table[0], table[3])
    for file in df.inputFiles():
        storage.filesystem.delete_file(file.split("://", 1)[1])
    try:
        df.collect()
    except Exception as error:
        return str(error)
    return ""
