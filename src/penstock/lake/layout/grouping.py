"""The partition of each row, as columns: Iceberg's transforms applied to Arrow, and rows put together by tuple.

Transforms are those of PyIceberg's native core; where that does not know a type, PyIceberg's own, on distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError
from penstock.expr.kernels.civil import DAY
from penstock.expr.kernels.decimals import from_unscaled
from penstock.expr.kernels.physical import numbers, valid, vector
from penstock.lake.layout.coalesce import NAN

_NUMBERS = {pa.date32(): pa.int32(), pa.time64("us"): pa.int64()}


class Groups(NamedTuple):
    """Rows by tuple: the distinct tuples, which of them each row has, and how many rows have it."""

    tuples: list[tuple[Any, ...]]
    of_row: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


def group_rows(arrays: Sequence[pa.Array], rows: int) -> Groups:
    """Rows by the tuple of these columns; no column at all is one group."""
    if not arrays:
        return Groups([()] if rows else [], np.zeros(rows, np.int64), np.array([rows] if rows else [], np.int64))
    arrays = [array.storage if isinstance(array.type, pa.BaseExtensionType) else array for array in arrays]
    codes = np.zeros(rows, np.int64)
    for array in arrays:
        encoded = array.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * max(1, len(encoded.dictionary)) + own, return_inverse=True)[1]
    _, first, of_row, counts = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    picked = pa.array(first)
    columns = [stored(array.take(picked)) for array in arrays]
    return Groups(list(zip(*columns, strict=True)), of_row.astype(np.int64), counts.astype(np.int64))


def partition_arrays(table: pa.Table, schema: Any, spec: Any) -> list[pa.Array]:
    """The values of each field of a spec; the table's columns are those of the schema."""
    kinds = [schema.find_field(f.source_id).field_type for f in spec.fields]
    columns = [_column(table, schema, f.source_id) for f in spec.fields]
    return [transform_array(c, f.transform, kind) for c, f, kind in zip(columns, spec.fields, kinds, strict=True)]


def stored(array: pa.Array) -> list[Any]:
    """Values as a manifest has them: dates and times as numbers."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    values: list[Any] = array.cast(_NUMBERS.get(array.type, array.type)).to_pylist()
    return [NAN if v != v else v for v in values] if pa.types.is_floating(array.type) else values


def _column(table: pa.Table, schema: Any, source_id: int) -> pa.Array:
    first, *rest = path_of(schema, source_id)
    found = table.column(first).combine_chunks()
    for name in rest:
        found = pc.struct_field(found, name)
    return found.storage if isinstance(found.type, pa.BaseExtensionType) else found


def path_of(schema: Any, field_id: int) -> list[str]:
    """The names that lead to a field; a name may have a dot in it, so the text of the path will not do."""
    for field in schema.fields:
        if field.field_id == field_id:
            return [field.name]
        if field.field_type.is_struct:
            below = path_of(field.field_type, field_id)
            if below:
                return [field.name, *below]
    return []


def transform_array(array: pa.Array, transform: Any, kind: Any) -> pa.Array:
    """Values of one of Iceberg's types after a transform."""
    name = str(transform)
    if name == "identity":
        return array
    if name == "void":
        return pa.nulls(len(array), pa.int32())
    if name == "day" and pa.types.is_timestamp(array.type):  # before 1970 the core rounds up a day's last second
        micros = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
        return vector(numbers(micros) // DAY, pa.int32(), valid(micros)).values
    if str(kind) == "uuid" and pa.types.is_string(array.type):  # as Spark has it; Iceberg hashes the bytes
        array = pa.array([None if text is None else UUID(text).bytes for text in array.to_pylist()], pa.binary(16))
    try:
        found = transform.pyarrow_transform(kind)(_aligned(array))
        found = found.cast(pa.int32()) if found.type == pa.date32() else found
    except Exception:  # the core has its own kinds of errors for types that it does not know
        encoded = array.dictionary_encode()
        apply = transform.transform(kind)
        values = [None if value is None else apply(value) for value in stored(encoded.dictionary)]
        found = pa.array(values).take(encoded.indices)
    return _with_digits_of(kind, found, name)


def _with_digits_of(kind: Any, partition: pa.Array, transform: str) -> pa.Array:
    """Truncating a decimal near the lower end of its type may need one digit more, which no manifest can hold."""
    if not pa.types.is_decimal(partition.type):
        return partition
    limit = from_unscaled(10**kind.precision - 1, kind.scale)
    least = pc.min(partition).as_py()
    if least is not None and least < limit.copy_negate():
        what = f"{transform} of a value near the lower end of {kind} does not fit {kind}"
        raise SchemaError(what, hint="filter out those rows, or partition by identity or bucket")
    return partition


def _aligned(array: pa.Array) -> pa.Array:
    """An array as the core takes it: what comes from another process may lie anywhere in memory, and is copied."""
    if all(buffer is None or buffer.address % 16 == 0 for buffer in array.buffers()):
        return array
    return array.take(pa.array(np.arange(len(array))))
