"""What a writer may say in a manifest about a file's columns: counts, and bounds that are whole, cut, or missing.

Made from the values themselves, by the rules of the specification: bounds leave NaN out, zero has both signs, texts are
cut to some characters and the upper one is raised after it. Dates beyond Python's years are plain numbers here.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import to_bytes
from pyiceberg.types import BinaryType, DecimalType, NestedField, StringType, StructType, UUIDType
from pyiceberg.utils.truncate import truncate_upper_bound_binary_string, truncate_upper_bound_text_string

from tests.fuzz.rows import physical
from tests.fuzz.values import digits

_CUT = 16


def statistics(rng: Random, fields: Sequence[NestedField], columns: dict[str, pa.ChunkedArray]) -> dict[str, Any]:
    """The arguments of a manifest entry; each column has bounds in one of the modes that writers offer."""
    counts: dict[str, dict[int, Any]] = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    rows = 0
    for field, values in _leaves(fields, columns):
        rows = len(values)
        mode = rng.choice(["cut", "cut", "cut", "whole", "counts", "none"])
        if mode == "none":
            continue
        counts["value_counts"][field.field_id] = len(values)
        counts["null_value_counts"][field.field_id] = values.null_count
        if pa.types.is_floating(values.type) and rng.random() < 0.5:
            counts["nan_value_counts"][field.field_id] = pc.sum(pc.is_nan(values)).as_py() or 0
        lower, upper = (None, None) if mode == "counts" else _bounds(field.field_type, values, mode == "cut")
        if lower is not None:
            counts["lower_bounds"][field.field_id] = lower
        if upper is not None:
            counts["upper_bounds"][field.field_id] = upper
    return {"record_count": rows, "column_sizes": {}, "split_offsets": [4], **counts}


def _leaves(
    fields: Sequence[NestedField], columns: dict[str, pa.ChunkedArray]
) -> Iterator[tuple[NestedField, pa.ChunkedArray]]:
    """The plain columns, and the plain fields of structs."""
    for field in fields:
        values = columns[field.name]
        if isinstance(field.field_type, StructType):
            children = {child.name: pc.struct_field(values, child.name) for child in field.field_type.fields}
            yield from _leaves(field.field_type.fields, children)
        elif field.field_type.is_primitive:
            yield field, values


def _bounds(kind: Any, values: pa.ChunkedArray, cut: bool) -> tuple[bytes | None, bytes | None]:
    known = [_key(v, kind) for v in physical(values) if v is not None and not (isinstance(v, float) and math.isnan(v))]
    if not known:
        return None, None
    lower, upper = min(known), max(known)
    if isinstance(lower, float):
        lower, upper = (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    if isinstance(kind, StringType):
        lower, upper = _texts(known, cut)
    elif isinstance(kind, BinaryType) and cut:
        upper = upper if len(upper) <= _CUT else truncate_upper_bound_binary_string(upper, _CUT)
        lower = lower[:_CUT]
    elif isinstance(kind, DecimalType):
        lower, upper = digits(lower, kind.scale), digits(upper, kind.scale)
    return to_bytes(kind, lower), None if upper is None else to_bytes(kind, upper)


def _texts(known: list[str], cut: bool) -> tuple[str, str | None]:
    lower, upper = min(known, key=str.encode), max(known, key=str.encode)
    if not cut:
        return lower, upper
    return lower[:_CUT], upper if len(upper) <= _CUT else truncate_upper_bound_text_string(upper, _CUT)


def _key(value: Any, kind: Any) -> Any:
    return uuid.UUID(value).bytes if isinstance(kind, UUIDType) else value
