"""Iceberg tables for the Spark tests: one query through Spark, through `table.arrow()` and through the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.predicate.bind import bind_text
from penstock.predicate.evaluate import filter_table
from tests.spark.hive_layouts import Read, counted_calls, read_by


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


Query = Callable[[DataFrame], DataFrame]
