"""A table of the session catalog through Penstock and as Spark's own, which is the judge: `spark.table(name)`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from penstock.spark.catalog.session_catalog import SessionCatalog
from tests.fixtures.spark_settings import settings
from tests.spark.hive_layouts import read_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's own scan is an error where the metastore cannot make a filter of it.
FALLBACK = {"spark.sql.hive.metastorePartitionPruningFallbackOnException": "true"}
_AT_ONCE = 500  # partitions of one statement


class Seen(NamedTuple):
    """What a query did: rows; partitions kept and in all, files and List calls of the plan; files that Spark opened."""

    rows: int
    kept: int
    partitions: int
    files: int
    lists: int
    opened: int


def ask_both(spark: SparkSession, name: str, where: str, judged: str | None = None) -> Seen:
    """Ask both; the rows must be the same, here and in Spark. `judged` says the same in words that Spark can answer."""
    table = penstock.spark_table(spark, name)
    with settings(spark, FALLBACK):
        expected = _texts(spark.table(name).where(judged or where).toArrow().cast(table.schema))
    report = table.plan(where).report
    assert _texts(table.arrow(where)) == expected, f"arrow: {name} {where}"
    rows = _texts(table.dataframe(spark).where(where).toArrow().cast(table.schema))
    assert rows == expected, f"dataframe: {name} {where}"
    query = table.dataframe(spark).where(where)
    query.collect()
    level = report.level("partitions")
    assert level.total == level.kept + sum(level.skipped.values())
    opened = sum(read_by(query).files)
    return Seen(len(rows), level.kept, level.total, report.files.kept, report.list_calls, opened)


def ask_all(spark: SparkSession, name: str, wheres: Sequence[str]) -> dict[str, Seen]:
    """Several filters."""
    return {where: ask_both(spark, name, where) for where in wheres}


def asked(spark: SparkSession, name: str, where: str) -> int:
    """How many calls of the JVM a plan makes."""
    table = penstock.spark_table(spark, name)
    calls: list[Any] = []
    plain = SessionCatalog._ask
    try:
        SessionCatalog._ask = lambda self, *given: (calls.append(given), plain(self, *given))[1]  # type: ignore[method-assign,func-returns-value]
        table.plan(where)
    finally:
        SessionCatalog._ask = plain  # type: ignore[method-assign]
    return len(calls)


def message(spark: SparkSession, name: str, where: str = "TRUE") -> str:
    """What is said of a table that is refused, when it is opened or read."""
    try:
        penstock.spark_table(spark, name).arrow(where)
    except penstock.PenstockError as error:
        return str(error)
    return ""


def run(spark: SparkSession, *statements: str) -> None:
    """Execute statements."""
    for statement in statements:
        spark.sql(statement)


def many_places(spark: SparkSession, name: str, root: Path, count: int) -> None:
    """Partitions by day and number, each with a location that does not tell which one it is, and one row."""
    spark.sql(f"CREATE TABLE {name} (id bigint) USING parquet PARTITIONED BY (dt string, n int) LOCATION '{root}/t'")
    parts = []
    for i in range(count):
        place = root / f"{i % 7}" / f"p{i}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([i], pa.int64())}), place / "f.parquet")
        parts.append(f"PARTITION (dt = '2026-{i // 100 % 12 + 1:02}', n = {i}) LOCATION '{place}'")
    for start in range(0, count, _AT_ONCE):
        spark.sql(f"ALTER TABLE {name} ADD {' '.join(parts[start : start + _AT_ONCE])}")


def _texts(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))
