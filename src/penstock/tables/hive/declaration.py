"""The declaration of a Hive layout: its partition columns with their types, said once and kept.

`"dt date, app string"` is DDL, `["dt date", "app"]` the same as a list (a name alone is a string), and `"auto"` looks
at one branch of the directories and says what it found. Auto takes a column for a date or a bigint only when the text
it saw is written just as Spark would write that value; everything else is a string, which loses nothing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import pyarrow as pa

from penstock.errors import LayoutError, PenstockWarning, SchemaError
from penstock.expr.kernels.cast import cast
from penstock.expr.schema import as_schema
from penstock.expr.sql_text import quote_name
from penstock.expr.types import is_nested, type_name
from penstock.formats.format_registry import is_hidden
from penstock.storage.storage import Storage
from penstock.tables.hive.directory_names import parse_name

_PLAIN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
PartitionBy = str | Sequence[str]


def partition_columns(partition_by: PartitionBy, storage: Storage) -> tuple[pa.Field, ...]:
    """The declared columns; with "auto", those that one branch shows."""
    if isinstance(partition_by, str) and partition_by.strip().lower() == "auto":
        return _look(storage)
    parts = _split(partition_by) if isinstance(partition_by, str) else partition_by
    if not parts:
        return ()
    columns = tuple(as_schema(", ".join(part if len(part.split()) > 1 else f"{part} string" for part in parts)))
    nested = next((column for column in columns if is_nested(column.type)), None)
    if nested is not None:
        raise SchemaError(f"partition column {nested.name}: a directory cannot hold a {type_name(nested.type)}")
    return columns


def _split(text: str) -> list[str]:
    """At commas, but not at those of `decimal(10, 2)`."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _look(storage: Storage) -> tuple[pa.Field, ...]:
    columns: list[pa.Field] = []
    path = storage.path
    while True:
        entries = storage.entries(path)
        below = (entries.entry(i) for i in entries.in_order() if not is_hidden(entries.names[i]))
        named = ((e.name, parse_name(e.name, storage.url_of(path))) for e in below if e.is_directory)
        first = next(((raw, parsed) for raw, parsed in named if parsed is not None), None)
        if first is None:
            break
        raw, (name, text) = first
        if name.lower() in (column.name.lower() for column in columns):
            place = storage.url_of(f"{path}/{raw}")
            raise LayoutError(f"{place} is a partition of {name!r} inside another one", hint="rename one of the levels")
        columns.append(pa.field(name, _guess(text)))
        path = f"{path}/{raw}"
    if not columns:
        return ()
    message = ", ".join(f"{quote_name(column.name)} {type_name(column.type)}" for column in columns)
    way = f'to be sure, declare it: partition_by="{message}"'
    warnings.warn(f"{storage.url}: partitioned as one branch shows; {way}", PenstockWarning, stacklevel=4)
    return tuple(columns)


def _guess(text: str | None) -> pa.DataType:
    if text is not None and _PLAIN_INTEGER.fullmatch(text):
        return pa.int64()
    plain_date = text is not None and _PLAIN_DATE.fullmatch(text) and cast(pa.array([text]), pa.date32(), "UTC")
    return pa.date32() if plain_date and plain_date.failed is None else pa.string()
