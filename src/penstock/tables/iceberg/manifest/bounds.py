"""Bounds as bytes to columns of values: Iceberg's single-value serialization, for many files at once.

| type now | bytes of a bound | written as |
|---|---|---|
| boolean | 1 | itself |
| int, float, date | 4 | itself |
| long, double | 4 or 8 | int, float before the column was widened; itself |
| timestamp | 4 or 8 | date before it was widened; microseconds |
| timestamp_ns | 4 or 8 | the same, nanoseconds: rounded down for a lower bound and up for an upper one |
| decimal(p, s) | 1 to 16 | the unscaled number, big-endian; a narrower precision has the same bytes |
| uuid | 16 | its text, which sorts as its bytes do |
| string, binary, fixed | any | itself, perhaps cut short; an upper bound that was cut has been incremented |

The length decides for every bound on its own, as files of both kinds lie in one manifest. A bound that fits nothing, is
NaN, not UTF-8 or too large for its type is null: unknown. So a strange bound costs pruning and never rows.

>>> from pyiceberg.types import LongType
>>> decode_bounds(pa.array([b"\\x07\\0\\0\\0", b"\\x08\\0\\0\\0\\0\\0\\0\\0", b"?"]), LongType()).to_pylist()
[7, 8, None]

Types that the core does not compare (time, variant, geometry, lists) have no bounds: the answer is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import types
from pyiceberg.types import IcebergType

from penstock.expr.kernels.civil import DAY
from penstock.expr.kernels.decimals import from_unscaled
from penstock.expr.kernels.physical import Numbers, by_distinct, valid, vector
from penstock.expr.kernels.vector import Mask
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_float

_LAST_DAY = np.iinfo(np.int64).max // DAY
_UUID_HYPHENS = (8, 13, 18, 23)


# For each length a bound may have: how its bytes are read, and what is then done with the number.
Widths = Mapping[int, str]
_FIXED: Mapping[str, tuple[pa.DataType, Widths]] = {
    "boolean": (pa.bool_(), {1: "|u1"}),
    "int": (pa.int32(), {4: "<i4"}),
    "long": (pa.int64(), {4: "<i4", 8: "<i8"}),
    "float": (pa.float32(), {4: "<f4"}),
    "double": (pa.float64(), {4: "<f4", 8: "<f8"}),
    "date": (pa.date32(), {4: "<i4"}),
    "timestamp": (TIMESTAMP_NTZ, {4: "days", 8: "<i8"}),
    "timestamptz": (TIMESTAMP, {8: "<i8"}),
    "timestamp_ns": (TIMESTAMP_NTZ, {4: "days", 8: "nanos"}),
    "timestamptz_ns": (TIMESTAMP, {8: "nanos"}),
}


def decode_bounds(values: pa.Array, kind: IcebergType, *, upper: bool | None = None) -> pa.Array | None:
    """Serialized values of one column as an array of its type now; None for types that are not compared.

    `upper` says which way a value that is too fine for the type is rounded; without it, it is unknown.
    """
    match kind:
        case types.StringType():
            return as_text(values)
        case types.BinaryType() | types.FixedType():
            return values
        case types.UUIDType():
            return uuid_text(values)
        case types.DecimalType():
            return decimals(values, pa.decimal128(kind.precision, kind.scale))
    fixed = _FIXED.get(str(kind))
    return None if fixed is None else _numbers(values, *fixed, upper)


def _numbers(values: pa.Array, to: pa.DataType, widths: Widths, upper: bool | None) -> pa.Array:
    """Numbers of fixed width, each read by the length it has."""
    decoded = np.zeros(len(values), to.to_pandas_dtype() if is_float(to) else np.int64)
    known = np.zeros(len(values), np.bool_)
    for width, reading in widths.items():
        rows, raw_bytes = of_length(values, width)
        numbers, fits = _read(raw_bytes, reading, upper)
        decoded[rows] = numbers if fits is None else np.where(fits, numbers, 0)
        known[rows] = True if fits is None else fits
    return vector(decoded, to, known).values


def _read(raw_bytes: npt.NDArray[np.uint8], reading: str, upper: bool | None) -> tuple[Numbers, Mask | None]:
    if reading == "days":
        days = raw_bytes.view("<i4")[:, 0].astype(np.int64)
        fits = np.abs(days) <= _LAST_DAY
        return np.where(fits, days, 0) * DAY, fits
    if reading == "nanos":
        nanos = raw_bytes.view("<i8")[:, 0]
        micros, is_whole = nanos // 1000, nanos % 1000 == 0
        return (micros, is_whole) if upper is None else (micros + (upper & ~is_whole), None)
    numbers = raw_bytes.view(reading)[:, 0]
    return numbers, ~np.isnan(numbers) if reading[1] == "f" else None


def of_length(values: pa.Array, width: int) -> tuple[Any, npt.NDArray[np.uint8]]:
    """The values of just this many bytes: where they are, and their bytes, one row for each."""
    offsets, data = _buffers(values)
    sizes = np.diff(offsets)
    if len(sizes) and (sizes == width).all() and not values.null_count:
        return slice(None), data[offsets[0] : offsets[-1]].reshape(-1, width)
    rows = np.flatnonzero((sizes == width) & valid(values))
    if int(offsets[-1] - offsets[0]) == width * len(rows):  # nothing else lies between them
        return rows, data[offsets[0] : offsets[-1]].reshape(-1, width)
    return rows, data[offsets[:-1][rows][:, None] + np.arange(width)]


def _buffers(values: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    value_offsets = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return value_offsets, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def as_text(values: pa.Array) -> pa.Array:
    """Bytes as text; what is no UTF-8 is null."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return by_distinct(values, pa.string(), bytes.decode).values


def decimals(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Unscaled big-endian numbers of one to sixteen bytes as decimals; null where the type cannot hold them."""
    size = len(values)
    padded = np.zeros((size, 16), np.uint8)
    known = np.zeros(size, np.bool_)
    lengths = np.unique(np.diff(_buffers(values)[0]))
    for width in lengths[(lengths >= 1) & (lengths <= 16)].tolist():
        rows, raw_bytes = of_length(values, width)
        known[rows] = True
        padded[rows, : 16 - width] = np.where(raw_bytes[:, :1] >= 128, np.uint8(255), np.uint8(0))
        padded[rows, 16 - width :] = raw_bytes
    little = np.ascontiguousarray(padded[:, ::-1])
    wide = pa.Array.from_buffers(pa.decimal128(38, to.scale), size, [_validity(known), pa.py_buffer(little)])
    limit = pa.scalar(from_unscaled(10**to.precision - 1, to.scale), wide.type)
    fits = pc.and_(pc.less_equal(wide, limit), pc.greater_equal(wide, pc.negate(limit)))
    return pc.if_else(fits, wide, pa.scalar(None, wide.type)).cast(to)


def uuid_text(values: pa.Array) -> pa.Array:
    """Sixteen bytes as `f79c3e09-677c-4bbd-a479-3f349cb785e7`; anything else is null."""
    size = len(values)
    rows, raw_bytes = of_length(values, 16)
    known = np.zeros(size, np.bool_)
    known[rows] = True
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    nibbles = np.zeros((size, 32), np.uint8)
    nibbles[rows, 0::2], nibbles[rows, 1::2] = digits[raw_bytes >> 4], digits[raw_bytes & 15]
    text = np.full((size, 36), ord("-"), np.uint8)
    text[:, [i for i in range(36) if i not in _UUID_HYPHENS]] = nibbles
    offsets = pa.py_buffer(np.arange(size + 1, dtype=np.int32) * 36)
    return pa.StringArray.from_buffers(size, offsets, pa.py_buffer(text), _validity(known))


def _validity(known: Mask) -> pa.Buffer | None:
    return pa.array(known).buffers()[1] if len(known) else None
