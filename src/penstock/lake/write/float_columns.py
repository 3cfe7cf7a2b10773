"""Counts and bounds of the float columns of one file, for its manifest entry, and which of them hold NaN.

Parquet's minimum and maximum leave NaN out, and Spark, to which NaN is larger than every number, skips row groups by
them: `d > 1e9` would lose the rows with NaN. So a column that holds NaN is written without Parquet's statistics. The
manifest keeps its bounds and its number of NaN, which say everything; they are collected here, on the way.

    d: [1.5, NaN, null, 7.0]   →   nan count 1, null count 1, bounds [1.5, 7.0]

Whether a column has statistics is a property of a whole file. When NaN first appears after the file was begun, the
file is finished, and the slot goes on in another one (`SlotWriter`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types
from pyiceberg.conversions import to_bytes
from pyiceberg.types import NestedField

from penstock.formats.file_format import FileWriter
from penstock.maps.map_entries import entries_of

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import StatisticsCollector

Statistics = dict[str, Any]


@dataclass
class FloatColumn:
    """What was seen of one column, or of one field inside a column."""

    nans: int = 0
    numbers: int = 0  # neither null nor NaN
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, values: pa.ChunkedArray, *, with_bounds: bool) -> None:
        """More values; bounds are needed only where Parquet has none."""
        is_nan = pc.is_nan(values)
        nans = pc.sum(is_nan).as_py() or 0
        self.nans += nans
        self.numbers += len(values) - values.null_count - nans
        if with_bounds:
            ends = pc.min_max(pc.filter(values, pc.invert(is_nan), null_selection_behavior="drop"))
            if ends["min"].is_valid:
                self.low, self.high = min(self.low, ends["min"].as_py()), max(self.high, ends["max"].as_py())


@dataclass
class FloatColumns:
    """The float columns of one file, by field id; those in `bare` are written without Parquet's statistics."""

    bare: frozenset[int]
    by_id: dict[int, FloatColumn] = field(default_factory=dict)

    def add(self, leaves: Sequence[tuple[int, pa.ChunkedArray]]) -> None:
        """The rows of one flush."""
        for field_id, values in leaves:
            self.by_id.setdefault(field_id, FloatColumn()).add(values, with_bounds=field_id in self.bare)

    def complete(self, statistics: Statistics, file: FileWriter, plan: Mapping[int, StatisticsCollector]) -> None:
        """Add what the footer does not say to a manifest entry's statistics."""
        from pyiceberg.io.pyarrow import MetricModeTypes

        statistics["nan_value_counts"] = {field_id: column.nans for field_id, column in self.by_id.items()}
        for field_id in self.bare & self.by_id.keys():
            column, mode = self.by_id[field_id], plan[field_id].mode.type
            if mode == MetricModeTypes.NONE:
                continue
            count = file.value_count(field_id)
            statistics["value_counts"][field_id] = count
            statistics["null_value_counts"][field_id] = count - column.numbers - column.nans
            if column.numbers and mode != MetricModeTypes.COUNTS:
                # A zero bound stands for both zeros, as in Parquet.
                kind = plan[field_id].iceberg_type
                statistics["lower_bounds"][field_id] = to_bytes(kind, column.low or -0.0)
                statistics["upper_bounds"][field_id] = to_bytes(kind, column.high or 0.0)


def leaves_with_nan(leaves: Sequence[tuple[int, pa.ChunkedArray]]) -> frozenset[int]:
    """The ids of the columns that hold NaN."""
    return frozenset(field_id for field_id, values in leaves if pc.any(pc.is_nan(values)).as_py())


def float_leaves(
    fields: Sequence[NestedField], columns: Sequence[pa.ChunkedArray]
) -> list[tuple[int, pa.ChunkedArray]]:
    """The float columns among Iceberg's fields, those inside structs, lists and maps too, with their values."""
    return [leaf for field, column in zip(fields, columns, strict=True) for leaf in _leaves(field, column)]


def _leaves(field: NestedField, values: pa.ChunkedArray) -> Iterator[tuple[int, pa.ChunkedArray]]:
    kind = field.field_type
    match kind:
        case types.FloatType() | types.DoubleType():
            yield field.field_id, values
        case types.StructType():
            for inner, part in zip(kind.fields, values.flatten(), strict=True):
                yield from _leaves(inner, part)
        case types.ListType():
            yield from _leaves(kind.element_field, pc.list_flatten(values))
        case types.MapType():
            entries = [entries_of(chunk) for chunk in values.chunks]
            yield from _leaves(kind.key_field, pa.chunked_array([e.keys for e in entries], values.type.key_type))
            yield from _leaves(kind.value_field, pa.chunked_array([e.items for e in entries], values.type.item_type))
