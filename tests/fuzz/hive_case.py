"""Rows as a Hive layout of some flavour: files of a format, columns united by their names, a table of a metastore."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import penstock
from penstock.expr.types import type_name
from tests.fuzz.file_kinds import STORABLE, FileKind, as_spark_reads, draw_kind
from tests.fuzz.hive_directories import pieces
from tests.fuzz.layout import Layout
from tests.fuzz.metastore_case import table_in_metastore
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows
from tests.fuzz.session import Sessions

NAME = "raw.declared"
FLAVOURS = ("hive", "orc", "united", "csv", "metastore", "json", "avro", "text")
_IN_METASTORE = ("parquet", "orc", "csv", "json")
_NAMED_BY_SQL = ("boolean", "int", "bigint", "string", "date")
PARTITIONABLE = (*_NAMED_BY_SQL, "tinyint", "smallint", "timestamp", "timestamp_ntz", "float", "double")
PARTITIONABLE += ("decimal(9,2)", "decimal(18,6)", "decimal(38,10)", "decimal(38,0)")


def hive_layout(
    rng: Random, rows: Rows, root: Path, zone: str, sessions: Sessions, flavour: str = "hive"
) -> tuple[Layout, Rows]:
    """A layout, and the rows as plain Spark reads them in its files.

    Partition columns are constant in each group, as far as directories can say them.
    """
    kind = draw_kind(rng, _format(rng, flavour, rows))
    keys = _keys(rng, rows, flavour)
    files: dict[str, frozenset[int]] = {}
    folders: dict[tuple[str, ...], Path] = {}
    for number, (levels, part) in enumerate(pieces(rows, keys, zone)):
        if flavour == "text":
            part = part.filter([_is_line(text) for text in part.column(_text_column(rows)).to_pylist()])
        stored = part.drop_columns(keys)
        if flavour == "united":
            stored = _differing(rng, stored) if number else stored
            levels = tuple(rng.sample(levels, len(levels)))
        folder = root / str(len(folders)) if flavour == "metastore" else root.joinpath(*levels)
        if part.num_rows:
            path = kind.write(rng, folders.setdefault(levels, folder), number, stored)
            files[str(path)] = frozenset(part.column(ID).to_pylist())
    columns = [name for name in rows.table.schema.names if name not in keys]
    if kind.format not in ("parquet", "text"):  # a line of text is what it is
        rows = as_spark_reads(sessions.judge, kind, rows, files, columns)
    if flavour == "metastore":
        name = table_in_metastore(sessions, kind, rows.table.schema, keys, folders)
        table: Any = penstock.spark_table(sessions.judged, name)
        lake: Any = penstock.spark_catalog(sessions.judged)
    else:
        by = ", ".join(f"{quote(key)} {type_name(rows.table.schema.field(key).type)}" for key in keys)
        schema = None if flavour == "united" else rows.table.select(columns).schema
        table, name = _declared(rng, root, by, schema, kind, zone), NAME
        lake = penstock.connect(root.with_name("lake of hive"), timezone=zone)
        lake.register(name, table)
    live = frozenset().union(*files.values())
    description = f"{flavour}, {kind}, by {keys}"
    return Layout("hive", table, files, live, description, lake, name, flavour=flavour, operations=["write"]), rows


def _format(rng: Random, flavour: str, rows: Rows) -> str:
    if flavour == "metastore":
        return rng.choice([each for each in _IN_METASTORE if STORABLE[each].issuperset(rows.types.values())])
    return "parquet" if flavour in ("hive", "united") else flavour


def _keys(rng: Random, rows: Rows, flavour: str) -> list[str]:
    if flavour == "text":
        return [name for name in rows.table.schema.names if name != _text_column(rows)]
    possible = _NAMED_BY_SQL if flavour == "metastore" else PARTITIONABLE
    candidates = [name for name, t in rows.types.items() if t in possible]
    return rng.sample(candidates, min(len(candidates), rng.choice([1, 1, 2, 3])))


def _text_column(rows: Rows) -> str:
    return next(name for name, t in rows.types.items() if t == "string")


def _is_line(text: str | None) -> bool:
    return text is not None and "\n" not in text and "\r" not in text


def _declared(rng: Random, root: Path, by: str, schema: pa.Schema | None, kind: FileKind, zone: str) -> Any:
    cache = rng.choice([0, 3600, 3600])
    if schema is None:
        return penstock.hive(root, by, union_by_name=True, timezone=zone, cache_seconds=cache)
    return penstock.hive(root, by, schema, format=kind.format, options=kind.options, timezone=zone, cache_seconds=cache)


def _differing(rng: Random, rows: pa.Table) -> pa.Table:
    """Rows of a later file: without some columns that are all NULL, with narrower integers, in another order."""
    for place, column in reversed([*enumerate(rows.columns)]):
        name = rows.schema.names[place]
        narrow = [t for t in (pa.int16(), pa.int32()) if pa.types.is_integer(column.type) and _fits(column, t)]
        if column.null_count == len(column) and rng.random() < 0.5:
            rows = rows.drop_columns([name])
        elif narrow and rng.random() < 0.3:
            rows = rows.set_column(place, name, column.cast(rng.choice(narrow)))
    return rows.select(rng.sample(rows.schema.names, rows.num_columns))


def _fits(column: pa.ChunkedArray, t: pa.DataType) -> bool:
    largest = 1 << (t.bit_width - 1)
    return column.type.bit_width > t.bit_width and all(
        value is None or -largest <= value < largest for value in column.to_pylist()
    )
