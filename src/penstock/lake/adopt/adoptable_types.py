"""The columns of one Parquet file that may be adopted, by its footer; or the reason why it may not.

Readers of Iceberg tables find the columns of such files by their names, and read a value by the table's type.

| refused | because |
|---|---|
| field ids | readers go by them, and they are those of another table |
| sidecars of shredded maps | the table would have to know their keys before it has the file |
| nanoseconds, times of day, unsigned numbers, UUIDs, bytes of fixed length | Iceberg lacks them, or engines disagree |
| timestamps to which pyarrow or pandas has given a zone other than UTC | PyIceberg does not read them |
| INT96 inside of a struct, a list or a map | engines take it for different types |
| columns that differ only in case | Spark and predicates ignore it |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, SchemaError
from penstock.expr.schema import check_names
from penstock.expr.types import TIMESTAMP, normalize, type_name
from penstock.maps.sidecar_footer import read_footer

_FIELD_ID = b"PARQUET:field_id"
_INGEST = "write the rows to a table instead: penstock ingest"
_SIMPLE = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_date32,
)
_ZONES = {None, "UTC", "Etc/UTC", "+00:00", "Z"}  # what PyIceberg takes for UTC, and no zone
_SMALL_INTEGERS = {pa.int8(), pa.int16()}


def columns_of(footer: Any, url: str) -> pa.Schema:
    """The columns of a file with the types that a table has for them; an error that names the file."""
    stored = footer.schema.to_arrow_schema()
    check_names(stored, url)
    if read_footer(footer.metadata, stored.names, url):
        message = f"{url} has keys of maps in columns of their own, which a table cannot take over"
        raise LakeError(message, hint=_INGEST)
    moments = {column.path for column in _columns(footer.schema) if column.physical_type == "INT96"}
    return pa.schema([_adoptable(field, moments, url) for field in stored])


def _columns(schema: Any) -> Iterator[Any]:
    return (schema.column(i) for i in range(len(schema)))


def _adoptable(field: pa.Field, moments: set[str], url: str) -> pa.Field:
    _check_ids(field, field.name, url)
    if field.name in moments:
        return pa.field(field.name, TIMESTAMP)
    if any(path.startswith(f"{field.name}.") for path in moments):
        raise _refused(url, field.name, "has INT96 inside of it")
    _check_type(field.type, field.name, url)
    return pa.field(field.name, wide_type(normalize(field.type)))


def _check_ids(field: pa.Field, path: str, url: str) -> None:
    if _FIELD_ID in (field.metadata or {}):
        message = f"{url} has field ids, by which readers would take {path} for another column"
        raise LakeError(message, hint=f"it was written for another table; {_INGEST}")
    for i in range(field.type.num_fields):
        _check_ids(field.type.field(i), f"{path}.{field.type.field(i).name}", url)


def _check_type(kind: pa.DataType, path: str, url: str) -> None:
    kinds = pa.types
    if kinds.is_dictionary(kind):
        return _check_type(kind.value_type, path, url)
    if kinds.is_null(kind):
        raise _refused(url, path, "has no type: all of its values are NULL")
    if kinds.is_struct(kind) and not kind.num_fields:
        raise _refused(url, path, "is a struct without fields")
    if kinds.is_fixed_size_list(kind) or not (kind.num_fields or _is_simple(kind)):
        raise _refused(url, path, f"is {type_name(kind)}, which tables do not have")
    for i in range(kind.num_fields):
        _check_type(kind.field(i).type, f"{path}.{kind.field(i).name}", url)
    return None


def _is_simple(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) and kind.unit != "ns" and kind.tz in _ZONES
    return is_time or any(is_such(kind) for is_such in _SIMPLE)


def _refused(url: str, path: str, what: str) -> SchemaError:
    return SchemaError(f"{url}: column {path} {what}", hint=_INGEST)


def wide_type(kind: pa.DataType) -> pa.DataType:
    """A type with the integers that Iceberg has in the place of smaller ones."""
    if kind in _SMALL_INTEGERS:
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, wide_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(wide_type(kind.key_type), wide_type(kind.item_type))
    return pa.list_(wide_type(kind.value_type)) if pa.types.is_list(kind) else kind
