"""The partition of each row, as columns: Iceberg's transforms applied to Arrow, and rows put together by tuple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from penstock.expr.kernels.physical import row_codes
from penstock.lake.layout.coalesce import NAN
from penstock.maps.sidecar_columns import path_to
from penstock.prune.transforms import transform_of

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
    codes = row_codes(arrays, rows)
    _, first, of_row, counts = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    picked = pa.array(first)
    columns = [stored(array.take(picked)) for array in arrays]
    return Groups(list(zip(*columns, strict=True)), of_row.astype(np.int64), counts.astype(np.int64))


def partition_arrays(table: pa.Table, schema: Schema, spec: PartitionSpec) -> list[pa.Array]:
    """The values of each field of a spec; the table's columns are those of the schema."""
    return [
        transform_of(str(f.transform)).on_array(
            _column(table, schema, f.source_id), schema.find_field(f.source_id).field_type
        )
        for f in spec.fields
    ]


def stored(array: pa.Array) -> list[Any]:
    """Values as a manifest has them: dates and times as numbers."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz)).view(pa.int64())
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    values: list[Any] = array.cast(_NUMBERS.get(array.type, array.type)).to_pylist()
    return [NAN if v != v else v for v in values] if pa.types.is_floating(array.type) else values


def _column(table: pa.Table, schema: Schema, source_id: int) -> pa.Array:
    first, *rest = path_to(schema.fields, source_id) or ()
    column = table.column(first).combine_chunks()
    for name in rest:
        column = pc.struct_field(column, name)
    return column.storage if isinstance(column.type, pa.BaseExtensionType) else column
