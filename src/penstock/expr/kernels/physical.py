"""Arrow arrays as NumPy arrays or Python lists of physical values, and back.

A date is its days, a timestamp its microseconds, a boolean itself; a decimal of a list is a `Decimal`. Literals and
keys are held in this form. Nulls become zero in NumPy, so every kernel computes over them without harm, and become null
again in Arrow. Rows that failed are null as well, so that a value which must not be read is at least not a plausible
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.types import integer_range, is_float, is_timestamp

Numbers = npt.NDArray[Any]


def _storage(t: pa.DataType) -> pa.DataType:
    """The type of the physical values."""
    if is_timestamp(t):
        return pa.int64()
    return pa.int32() if t == pa.date32() else t


def to_arrow(values: Sequence[Any], t: pa.DataType) -> pa.Array:
    """Physical values as an array.

    >>> to_arrow([0, None], pa.date32()).to_pylist()
    [datetime.date(1970, 1, 1), None]
    """
    if is_float(t):
        values = [None if value is None else float(value) for value in values]
    storage = _storage(t)
    return pa.array(values, t) if storage is t else pa.array(values, storage).view(t)


def from_arrow(values: pa.Array) -> list[Any]:
    """An array as physical values."""
    storage = _storage(values.type)
    return list((values if storage is values.type else values.view(storage)).to_pylist())


def numbers(values: pa.Array) -> Numbers:
    """The physical values; nulls are zero.

    >>> numbers(pa.array([1, None], pa.date32()))
    array([1, 0], dtype=int32)
    """
    stored = values.view(_storage(values.type))
    if stored.null_count:
        stored = stored.fill_null(False if pa.types.is_boolean(stored.type) else 0)
    return np.asarray(stored.to_numpy(zero_copy_only=False))


def mask_of(values: pa.Array) -> Mask:
    """A boolean array as a NumPy mask, null as false."""
    filled = values.fill_null(False) if values.null_count else values
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)


def valid(values: pa.Array) -> Mask:
    """The rows that are not null."""
    return mask_of(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)


def all_valid(*arrays: pa.Array) -> Mask:
    """The rows in which no argument is null."""
    return reduce(np.logical_and, map(valid, arrays))


def row_codes(columns: Sequence[pa.Array], count: int) -> npt.NDArray[np.int64]:
    """A number for each row, the same for rows with the same values; NULL equals NULL, and NaN equals NaN.

    >>> row_codes([pa.array([1, None, 1, None]), pa.array(["a", "a", "b", "a"])], 4)
    array([0, 2, 1, 2])
    """
    codes = np.zeros(count, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        size = max(1, len(encoded.dictionary))
        if codes.max(initial=0) > (1 << 62) // size:
            codes = np.unique(codes, return_inverse=True)[1]
        codes = codes * size + encoded.indices.to_numpy(zero_copy_only=False)
    return codes


def vector(values: Numbers, to: pa.DataType, known: Mask, failed: Mask | None = None) -> Vector:
    """A vector of physical values; rows outside `known` are null, and only rows inside it can fail."""
    wrong = None if failed is None else failed & known
    if wrong is not None and not wrong.any():
        wrong = None
    shown = known if wrong is None else known & ~wrong
    storage = _storage(to)
    typed = values.astype(storage.to_pandas_dtype(), copy=False)
    mask = None if shown.all() else ~shown
    return Vector(pa.array(typed, storage, mask=mask, from_pandas=False).view(to), wrong)


def integer_vector(values: Numbers, to: pa.DataType, known: Mask, failed: Mask | None = None) -> Vector:
    """A vector of integers, dates or timestamps; rows outside of the range of the type fail."""
    low, high = integer_range(_storage(to))
    outside = np.asarray((values < low) | (values > high), np.bool_)
    return vector(np.where(outside, 0, values), to, known, outside if failed is None else outside | failed)


def blank_failed(values: pa.Array, failed: Mask) -> Vector:
    """An Arrow array with its failed rows made null; rows that are null already do not fail."""
    wrong = failed & valid(values)
    if not wrong.any():
        return Vector(values)
    return Vector(pc.if_else(pa.array(wrong), pa.scalar(None, values.type), values), wrong)


def fail_all(values: pa.Array, to: pa.DataType) -> Vector:
    """Every row that is not null fails: Spark has an answer, but not one this package can give exactly."""
    known = valid(values)
    return Vector(pa.nulls(len(values), to), known if known.any() else None)


def by_distinct(values: pa.Array, to: pa.DataType, read: Callable[[Any], Any]) -> Vector:
    """Apply a Python function once for each distinct value; ValueError fails all rows that hold it.

    `read` answers with the physical value, or whatever `pa.array` takes for `to`.
    """
    encoded = values.dictionary_encode()
    results: list[Any] = []
    for item in encoded.dictionary.to_pylist():
        try:
            results.append(read(item))
        except ValueError:
            results.append(None)
    computed = pa.array(results, _storage(to)).view(to).take(encoded.indices)
    failed = valid(values) & ~valid(computed)
    return Vector(computed, failed if failed.any() else None)
