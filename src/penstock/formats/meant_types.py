"""Columns as files of ORC and Avro store them, in the types that Iceberg means by them.

| stored | meant |
|---|---|
| a number of days, of micros | date, time, timestamp |
| timestamp of nanoseconds (ORC) | timestamp of microseconds, the fraction rounded down as Iceberg's reader does |
| bytes of a number, the highest first (Avro) | decimal |
| 16 bytes | uuid |
| list of keys and values (Avro) | map |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.formats.file_format import FIELD_ID


def with_id(name: str, kind: pa.DataType, field_id: Any, nullable: bool = True) -> pa.Field:
    """A field with its id; None for one that has none."""
    metadata: Mapping[bytes, bytes] | None = None if field_id is None else {FIELD_ID: str(field_id).encode()}
    return pa.field(name, kind, nullable, metadata)


def conform_table(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a table, in the order of a schema, in its types; as many rows where it has none."""
    conformed = rows.select([])
    for i, field in enumerate(schema):
        parts = [conform(part, field.type) for part in rows.column(i).chunks]
        conformed = conformed.append_column(field, pa.chunked_array(parts, field.type))
    return conformed


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the type that is meant; both have the same shape, and fields of structs stand in the same order."""
    if array.type == kind and not pa.types.is_nested(kind):
        return array
    if pa.types.is_struct(kind):
        parts = [conform(array.field(i), field.type) for i, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        return _repeated(array, kind, conform(array.values, kind.value_type))
    if pa.types.is_map(kind):
        entries = conform(array.values, pa.struct([kind.key_field, kind.item_field]))
        return _repeated(array, kind, entries)
    return _plain(array, kind)


def _repeated(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or a map over other values of as many rows."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])


def _plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, array.cast(pa.binary(16)))
    if pa.types.is_decimal(kind):
        return _decimals(array, kind)
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(kind) and array.type.unit == "ns":
        return _microseconds(array).view(kind)
    if pa.types.is_integer(array.type) and pa.types.is_temporal(kind):
        return array.view(kind)
    return array.cast(kind)


def _microseconds(array: pa.Array) -> pa.Array:
    numbers = array.view(pa.int64())
    micros = np.floor_divide(numbers.fill_null(0).to_numpy(zero_copy_only=False), 1_000)
    return pa.array(micros, mask=np.asarray(numbers.is_null()))


def _decimals(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals of their bytes in two's complement, the highest first."""
    if pa.types.is_decimal(array.type):
        return array.cast(kind)
    if not pa.types.is_fixed_size_binary(array.type):
        numbers = [None if b is None else int.from_bytes(b, "big", signed=True) for b in array.to_pylist()]
        size = 16
        packed = [b"\0" * size if n is None else n.to_bytes(size, "big", signed=True) for n in numbers]
        array = pa.array([None if n is None else b for n, b in zip(numbers, packed, strict=True)], pa.binary(size))
    size, rows = array.type.byte_width, len(array)
    if size > 16:
        raise ValueError(f"a decimal of {size} bytes")
    filled = array.fill_null(b"\0" * size)
    stored = np.frombuffer(filled.buffers()[1], np.uint8, rows * size, filled.offset * size).reshape(rows, size)
    sign = np.where(stored[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    wide = np.ascontiguousarray(np.concatenate([np.repeat(sign, 16 - size, axis=1), stored], axis=1)[:, ::-1])
    validity = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(wide)])
