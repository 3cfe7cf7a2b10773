"""Statements of Spark SQL that change a managed table, each with the rows that the table must have after it.

New rows come from a view of all rows, a copy without statistics; which of them match a condition is the judge's answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyspark.sql import DataFrame

from penstock.expr.types import type_name
from tests.fuzz.iceberg_file import UNWRITTEN, transformed
from tests.fuzz.literals import literal
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows, physical

_MODE = "spark.sql.sources.partitionOverwriteMode"
_TRANSFORM = re.compile(r"(\w+)\((?:(\d+), )?(\w+)\)")


@dataclass(frozen=True)
class Statements:
    """What statements about one table need: a session, the table's names there, and a view of all rows."""

    spark: Any
    catalog: str
    name: str
    view: str

    def run(self, text: str, mode: str = "static") -> DataFrame:
        """Execute a statement; `mode` says what INSERT OVERWRITE replaces."""
        self.spark.conf.set(_MODE, mode)
        rows: DataFrame = self.spark.sql(text)
        return rows

    @property
    def table(self) -> str:
        return f"{self.catalog}.{self.name}"


def view_of(spark: Any, rows: pa.Table, path: Path, name: str) -> None:
    """A temporary view of rows, which lie in one file that says nothing about them."""
    pq.write_table(rows, path, write_statistics=False, use_dictionary=False)
    ddl = ", ".join(f"{quote(f.name)} {type_name(f.type)}" for f in rows.schema)
    spark.read.schema(ddl).parquet(str(path)).createOrReplaceTempView(name)


@dataclass(frozen=True)
class Step:
    """A statement, the rows that the table has after it, and what it replaces in partitions."""

    text: str
    expected: set[int]
    mode: str = "static"


@dataclass(frozen=True)
class Situation:
    """What a statement is drawn from: the rows, those that live, the table, and a condition with its matching rows."""

    rng: Random
    rows: Rows
    live: frozenset[int]
    sql: Statements
    by: Sequence[str]
    keys: Sequence[Any]
    where: str
    matching: frozenset[int]

    def some(self, ids: Iterable[int], share: float = 0.5) -> list[int]:
        """A share of some rows."""
        known = sorted(ids)
        return self.rng.sample(known, round(len(known) * share))

    def select(self, ids: Sequence[int], columns: Sequence[str] | None = None) -> str:
        """A query of rows of the view."""
        names = ", ".join(map(quote, columns or self.rows.table.schema.names))
        chosen = f"{ID} IN ({', '.join(map(str, ids))})" if ids else "FALSE"
        return f"SELECT {names} FROM {self.sql.view} WHERE {chosen}"


def _insert(now: Situation) -> Step:
    """By position, by name in another order, or with a list of columns."""
    missing = set(range(now.rows.table.num_rows)) - now.live
    ids = now.some(missing, now.rng.choice([0.3, 0.8]))
    shuffled = now.rng.sample(now.rows.table.schema.names, now.rows.table.num_columns)
    form, columns = now.rng.choice(
        [("", None), (" BY NAME", shuffled), (f" ({', '.join(map(quote, shuffled))})", shuffled)]
    )
    return Step(f"INSERT INTO {now.sql.table}{form} {now.select(ids, columns)}", {*now.live, *ids})


def _overwrite(now: Situation) -> Step:
    """One partition that is named, or everything."""
    fitting = [(c, text) for c in now.by if "(" not in c and (text := _constant(now, c)) is not None]
    if not fitting:
        ids = now.some(range(now.rows.table.num_rows), 0.8)
        return Step(f"INSERT OVERWRITE {now.sql.table} {now.select(ids)}", set(ids))
    column, (row, text) = now.rng.choice(fitting)
    values = physical(now.rows.table.column(column))
    same = {i for i, value in enumerate(values) if value == values[row]}
    ids = now.some(same)
    others = [name for name in now.rows.table.schema.names if name != column]
    place = f"{now.sql.table} PARTITION ({quote(column)} = {text})"
    return Step(f"INSERT OVERWRITE {place} {now.select(ids, others)}", {*(now.live - same), *ids})


def _constant(now: Situation, column: str) -> tuple[int, str] | None:
    """A row that lives, and its value of a column as a PARTITION clause may have it."""
    values = now.rows.table.column(column)
    t = values.type
    if not (pa.types.is_integer(t) or pa.types.is_string(t) or pa.types.is_boolean(t) or pa.types.is_date(t)):
        return None
    row = now.rng.choice(sorted(now.live)) if now.live else 0
    text = literal(physical(values.slice(row, 1))[0], t)
    return None if "(" in text and not pa.types.is_string(t) else (row, text)


def dynamic_change(now: Situation) -> tuple[list[int], set[int]]:
    """Rows to be put in the place of their partitions, and the rows that the table has afterwards."""
    known = [i for i in range(now.rows.table.num_rows) if UNWRITTEN not in now.keys[i]]
    ids = now.rng.sample(known, min(len(known), 4))
    replaced = {now.keys[i] for i in ids}
    return ids, {*(i for i in now.live if now.keys[i] not in replaced), *ids}


def _dynamic(now: Situation) -> Step:
    ids, expected = dynamic_change(now)
    return Step(f"INSERT OVERWRITE {now.sql.table} {now.select(ids)}", expected, "dynamic")


def _replace(now: Situation) -> Step:
    ids = now.some(now.matching)
    text = f"INSERT INTO {now.sql.table} REPLACE WHERE {now.where} {now.select(ids)}"
    return Step(text, {*(now.live - now.matching), *ids})


def _delete(now: Situation) -> Step:
    return Step(f"DELETE FROM {now.sql.table} WHERE {now.where}", {*(now.live - now.matching)})


def _delete_by_query(now: Situation) -> Step:
    """What Spark alone can evaluate: a subquery, or a function that Penstock does not know beside a condition."""
    condition = now.rng.choice(
        [
            f"{ID} IN (SELECT {ID} FROM {now.sql.view} WHERE {now.where})",
            f"({now.where}) AND (hash({ID}) IS NOT NULL)",
            f"({now.where}) AND EXISTS (SELECT 1 FROM {now.sql.view} AS other WHERE other.{ID} = 0)",
        ]
    )
    return Step(f"DELETE FROM {now.sql.table} WHERE {condition}", {*(now.live - now.matching)})


def _truncate(now: Situation) -> Step:
    return Step(f"TRUNCATE TABLE {now.sql.table}", set())


def _compact(now: Situation) -> Step:
    return Step(f"CALL {now.sql.catalog}.system.compact(table => '{now.sql.name}')", {*now.live})


STEPS: dict[str, Callable[[Situation], Step]] = {
    "sql insert": _insert,
    "sql overwrite": _overwrite,
    "sql dynamic": _dynamic,
    "sql replace": _replace,
    "sql delete": _delete,
    "sql delete by query": _delete_by_query,
    "sql truncate": _truncate,
    "sql compact": _compact,
}


def partition_keys(rows: Rows, by: Sequence[str], schema: Schema) -> list[Any]:
    """The partition of each row, by PyIceberg's transforms; NaN is one value, and zero has no sign."""
    columns = []
    for text in by:
        match = _TRANSFORM.fullmatch(text)
        column = text if match is None else match[3]
        name = "identity" if match is None else match[1] + (f"[{match[2]}]" if match[2] else "")
        kind = schema.find_field(column).field_type
        function = parse_transform(name).transform(kind)
        keys = [transformed(value, kind, function) for value in physical(rows.table.column(column))]
        columns.append(["NaN" if key != key else 0.0 if key == 0 and isinstance(key, float) else key for key in keys])
    return list(zip(*columns, strict=True)) if by else [()] * rows.table.num_rows
