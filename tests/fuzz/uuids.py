"""Columns of uuids, also inside structs, lists and maps: their Iceberg types, and their values as files have them."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from tests.fuzz.values import UUIDS


def iceberg_type(kind: IcebergType, name: str) -> IcebergType:
    """The type of a column of texts that stand for uuids; `name` is its short name, other types are left alone."""
    if name not in UUIDS:
        return kind
    if isinstance(kind, StructType):
        return StructType(*(_changed(f, UUIDType()) if f.name == "u" else f for f in kind.fields))
    if isinstance(kind, ListType):
        return ListType(element_id=kind.element_id, element_type=UUIDType(), element_required=False)
    if isinstance(kind, MapType):
        ids = {"key_id": kind.key_id, "value_id": kind.value_id}
        return MapType(**ids, key_type=kind.key_type, value_type=UUIDType(), value_required=False)
    return UUIDType()


def _changed(field: NestedField, kind: IcebergType) -> NestedField:
    return NestedField(field.field_id, field.name, kind, required=False)


def as_stored(values: pa.Array, t: pa.DataType) -> pa.Array:
    """A column in the type of its file; the text of a uuid becomes its 16 bytes."""
    if isinstance(t, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(t, as_stored(values, t.storage_type))
    if pa.types.is_fixed_size_binary(t) and not pa.types.is_decimal(t):
        return pa.array([None if v is None else uuid.UUID(v).bytes for v in values.to_pylist()], t)
    if not _has_bytes(t):
        return values.cast(t)
    null = values.is_null()
    if pa.types.is_struct(t):
        parts = [as_stored(pc.struct_field(values, [i]), t.field(i).type) for i in range(t.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(t), mask=null)
    offsets = np.concatenate([[0], np.cumsum([len(v) if v is not None else 0 for v in values.to_pylist()])])
    starts = pa.array([None if n else o for o, n in zip(offsets, [*null.to_pylist(), False], strict=True)], pa.int32())
    if pa.types.is_map(t):
        pairs: list[Any] = [pair for entries in values.to_pylist() if entries for pair in entries]
        keys = pa.array([key for key, _ in pairs], pa.string()).cast(t.key_type)
        return pa.MapArray.from_arrays(starts, keys, _texts([value for _, value in pairs], t.item_type), type=t)
    flat = [value for each in values.to_pylist() if each for value in each]
    if pa.types.is_large_list(t):
        return pa.LargeListArray.from_arrays(starts.cast(pa.int64()), _texts(flat, t.value_type), type=t)
    return pa.ListArray.from_arrays(starts, _texts(flat, t.value_type), type=t)


def _texts(values: list[Any], t: pa.DataType) -> pa.Array:
    return as_stored(pa.array(values, pa.string()), t)


def _has_bytes(t: pa.DataType) -> bool:
    if isinstance(t, pa.BaseExtensionType) or (pa.types.is_fixed_size_binary(t) and not pa.types.is_decimal(t)):
        return True
    return any(_has_bytes(t.field(i).type) for i in range(t.num_fields))
