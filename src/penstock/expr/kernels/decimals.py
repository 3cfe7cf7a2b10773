"""Decimals as unscaled integers, and back: 1.50 as decimal(3,2) is 150.

Python's arithmetic on `Decimal` (`-x`, `abs(x)`, `x.scaleb(n)`) rounds to the 28 digits of its default context, and
Spark's decimals have 38. So nothing is computed with `Decimal`: single values go through `to_unscaled` and
`from_unscaled`, which are exact at any length.

Arrow's own rounding of decimals is not used, because it is wrong for some values: pyarrow 26 gives
9223372036854775806 for `trunc(9223372036854775807.9)`. Here a decimal is a NumPy array of integers: 64-bit
ones while every intermediate result has at most 18 digits, Python's unlimited ones otherwise. Both run the
same code.

>>> rescaled(np.array([150, 249, -250]), 2, 0)
array([ 2,  2, -3])
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.physical import Numbers, valid
from penstock.expr.kernels.vector import Mask, Vector

NARROW_DIGITS = 18
_WORD = 1 << 64


def to_unscaled(value: Decimal | int, scale: int) -> int:
    """The unscaled integer of one number; ValueError for digits beyond the scale.

    >>> to_unscaled(Decimal("-1.5"), 2)
    -150
    """
    numerator, denominator = value.as_integer_ratio()
    integer, rest = divmod(int(numerator * 10**scale), denominator)
    if rest:
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return integer


def from_unscaled(integer: int, scale: int) -> Decimal:
    """The number, with all digits of its scale.

    >>> from_unscaled(-150, 2)
    Decimal('-1.50')
    """
    return Decimal(f"{integer}e{-scale}")


def unscaled(values: pa.Array, digits: int) -> Numbers:
    """The unscaled integers, in a form in which results of up to `digits` digits fit; nulls are zero."""
    words = np.frombuffer(values.buffers()[1] or b"", np.int64)
    words = words[2 * values.offset : 2 * (values.offset + len(values))].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    if values.null_count:
        low, high = np.where(valid(values), low, 0), np.where(valid(values), high, 0)
    if max(digits, values.type.precision) <= NARROW_DIGITS:
        return np.asarray(low)
    wide = high.astype(object) * _WORD + low.view(np.uint64).astype(object)
    return np.asarray(wide, dtype=object)


def rescaled(integers: Numbers, scale: int, to_scale: int) -> Numbers:
    """The same numbers at another scale, rounded HALF_UP: away from zero at a tie."""
    if to_scale >= scale:
        return np.asarray(integers * 10 ** (to_scale - scale))
    return half_up(integers, 10 ** (scale - to_scale))


def half_up(integers: Numbers, unit: int) -> Numbers:
    """How many of a unit, a power of ten, they are, rounded HALF_UP."""
    rounded = (abs(integers) + unit // 2) // unit
    return np.asarray(np.where(integers < 0, -rounded, rounded))


def truncated(integers: Numbers, unit: int) -> Numbers:
    """How many of a unit they are, cut towards zero."""
    whole = abs(integers) // unit
    return np.asarray(np.where(integers < 0, -whole, whole))


def decimal_vector(integers: Numbers, to: pa.DataType, known: Mask, failed: Mask | None = None) -> Vector:
    """A vector of decimals from unscaled integers at the scale of `to`; rows with too many digits fail."""
    wrong = np.asarray(abs(integers) >= 10**to.precision, np.bool_) & known
    if failed is not None:
        wrong |= failed & known
    shown = known & ~wrong
    kept = np.where(shown, integers, 0)
    words = np.empty((len(kept), 2), np.int64)
    if kept.dtype == object:
        words[:, 0] = np.array([x % _WORD for x in kept], np.uint64).view(np.int64)
        words[:, 1] = np.array([x >> 64 for x in kept], np.int64)
    else:
        words[:, 0], words[:, 1] = kept, kept >> 63
    validity = None if shown.all() else pa.py_buffer(np.packbits(shown, bitorder="little").tobytes())
    values = pa.Array.from_buffers(to, len(kept), [validity, pa.py_buffer(words.tobytes())])
    return Vector(values, wrong if wrong.any() else None)
