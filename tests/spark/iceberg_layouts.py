"""Iceberg tables for the Spark tests: one query through Spark, through `table.arrow()` and through the evaluator."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import penstock
from penstock.expr.bind import bind_text
from penstock.expr.kernels.evaluate import filter_table
from tests.spark.hive_layouts import QUESTION, Read, counted_calls, read_by

WHERE = [
    "{} = 5",
    "{} < 3",
    "{} IS NULL",
    "{} IS NOT NULL",
    "{} IN (5, 105)",
    "NOT ({} = 5)",
    "{} > 100",
    "{} <=> NULL",
]
NEEDED_BY_CONNECT = ("grpc", "grpc_status", "google.protobuf", "google.rpc", "pandas", "zstandard")


def opened(root: Path, name: str = "web.t") -> Any:
    """A table of the catalog below a directory, as it is now."""
    return penstock.connect(root).table(name)


@dataclass(frozen=True)
class Compared:
    """What a query read and returned."""

    ids: list[Any]
    files: int
    read: Read
    calls: int


def ask(spark: SparkSession, table: Any, where: str, rows: pa.Table | None = None, *, exact: bool = True) -> Compared:
    """The rows of a filter through Spark; those of `table.arrow()` and of the evaluator must be the same.

    `exact`: so must be the files that are read and planned. Spark keeps an OR over partition columns and others to
    itself.
    """
    query = table.dataframe(spark).where(where)
    with counted_calls() as calls:
        found = query.collect()
    columns = query.columns
    ours = texts(tuple(row) for row in found)
    arrow = table.arrow(where)
    assert columns == arrow.column_names
    assert ours == texts(tuples(arrow)), f"{where}: Spark and table.arrow() differ"
    if rows is not None:
        known = rows.select(columns)
        assert ours == texts(tuples(filter_table(bind_text(where, known.schema), known))), f"{where}: the evaluator"
    files = len(table.plan(where).files)
    if exact:
        assert read_by(query).total == files, f"{where}: read {read_by(query).files}, planned {files}"
    return Compared(sorted(row[0] for row in found if row[0] is not None), files, read_by(query), len(calls))


def ask_all(spark: SparkSession, table: Any, wheres: Sequence[str]) -> None:
    """The rows of several filters, each planned for itself and all read by one job; `table.arrow()` has the same.

    A job takes Spark longer than the few rows of a test table do.
    """
    filtered = [table.dataframe(spark).where(where) for where in wheres]
    numbered = [df.withColumn(QUESTION, F.lit(i)) for i, df in enumerate(filtered)]
    found: list[list[tuple[Any, ...]]] = [[] for _ in wheres]
    for row in reduce(DataFrame.unionAll, numbered).collect():
        found[row[QUESTION]].append(tuple(row)[:-1])
    for where, df, rows in zip(wheres, filtered, found, strict=True):
        arrow = table.arrow(where)
        assert df.columns == arrow.column_names
        assert texts(rows) == texts(tuples(arrow)), f"{where}: Spark and table.arrow() differ"


def tuples(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def texts(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows as text that tells values apart, in order."""
    return sorted(repr([plain(value) for value in row]) for row in rows)


def plain(value: Any) -> Any:
    """A value in one form, whoever returned it."""
    if hasattr(value, "asDict"):
        return plain(dict(zip(value.__fields__, value, strict=True)))
    if isinstance(value, dict):
        return [] if not value else {name: plain(inner) for name, inner in sorted(value.items(), key=repr)}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(v, tuple) and not hasattr(v, "asDict") and len(v) == 2 for v in value)
        return plain(dict(value)) if pairs else [plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return value.normalize()
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value


def same_as_pyiceberg(spark: SparkSession, table: Any) -> None:
    """All rows, as stock PyIceberg reads them."""
    found = texts(tuple(row) for row in table.dataframe(spark).collect())
    assert found == texts(tuples(table.table.scan().to_arrow()))


def small(table: Table) -> Table:
    """Row groups of four rows."""
    with table.transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": "4", "write.parquet.page-row-limit": "4"})
    return table


def numbers(start: int, *names: str, step: int = 100) -> pa.Table:
    """Twelve rows; the columns hold numbers that are far apart."""
    return pa.table({name: pa.array(range(start + i * step, start + i * step + 12)) for i, name in enumerate(names)})


def both_readers(spark: SparkSession, check: Callable[[], None]) -> None:
    """A check with Spark's vectorised reader, which users have, and with the one that reads row by row."""
    for vectorised in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
        try:
            check()
        finally:
            spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def all_filters(spark: SparkSession, root: Path, *columns: str) -> None:
    """Filters of every kind on columns of `numbers`, with both readers."""

    def check() -> None:
        same_as_pyiceberg(spark, opened(root))
        ask_all(spark, opened(root), [where.format(column) for column in columns for where in WHERE])

    both_readers(spark, check)


def has_connect() -> bool:
    """Whether all is installed that Spark Connect needs."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in NEEDED_BY_CONNECT)
    except ModuleNotFoundError:
        return False
