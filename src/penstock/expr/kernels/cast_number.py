"""Casts between numbers and booleans: a value that does not fit fails, as it raises in Spark's ANSI mode.

Spark rounds a decimal HALF_UP (away from zero at a tie) when it loses scale, and cuts it towards zero when it
becomes an integer.

A decimal becomes the double nearest to it. Arrow's own cast multiplies by a power of ten and may be off by
one unit in the last place, so it is used nowhere here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.decimals import NARROW_DIGITS, decimal_vector, rescaled, truncated, unscaled
from penstock.expr.kernels.physical import by_distinct, integer_vector, numbers, valid, vector
from penstock.expr.kernels.vector import Vector, union
from penstock.expr.types import integer_range

_MOST_DIGITS = 19  # of a bigint
_EXACT_DIGITS = 15  # of whole numbers that a double holds


def integer_to_integer(values: pa.Array, to: pa.DataType) -> Vector:
    """Integers, and booleans as 0 and 1; fails outside the range of the target."""
    return integer_vector(numbers(values).astype(np.int64), to, valid(values))


def number_to_float(values: pa.Array, to: pa.DataType) -> Vector:
    """Integers, booleans and floats to `float` or `double`: the nearest value, as in Java."""
    with np.errstate(over="ignore"):
        return vector(numbers(values).astype(to.to_pandas_dtype()), to, valid(values))


def float_to_integer(values: pa.Array, to: pa.DataType) -> Vector:
    """Cut towards zero. Spark's limits are doubles, so 2^63 itself becomes the largest bigint."""
    low, high = integer_range(to)
    doubles = numbers(values).astype(np.float64)
    fits = (np.floor(doubles) <= float(high)) & (np.ceil(doubles) >= float(low))
    kept = np.where(fits, doubles, 0.0)
    top = kept >= 2.0**63
    cut = np.where(top, 0.0, kept).astype(np.int64)
    return vector(np.where(top, np.int64(2**63 - 1), cut), to, valid(values), ~fits)


def number_to_boolean(values: pa.Array, to: pa.DataType) -> Vector:
    """Everything but zero is true, NaN as well."""
    if pa.types.is_decimal(values.type):
        return vector(np.asarray(unscaled(values, 0) != 0, np.bool_), to, valid(values))
    return vector(numbers(values) != 0, to, valid(values))


def whole_to_decimal(values: pa.Array, to: pa.DataType) -> Vector:
    """Integers and booleans to decimals; fails when the digits do not fit."""
    narrow = _MOST_DIGITS + to.scale <= NARROW_DIGITS
    integers = numbers(values).astype(np.int64).astype(np.int64 if narrow else object)
    return decimal_vector(rescaled(integers, 0, to.scale), to, valid(values))


def rescale(values: pa.Array, to: pa.DataType) -> Vector:
    """HALF_UP when scale is lost, failing when digits do not fit."""
    source = values.type
    digits = source.precision + max(to.scale - source.scale, 1)
    return decimal_vector(rescaled(unscaled(values, digits), source.scale, to.scale), to, valid(values))


def decimal_to_integer(values: pa.Array, to: pa.DataType) -> Vector:
    """Cut towards zero; fails outside the range of the target.

    Spark makes a double first of a decimal with more digits than a long holds, except for a bigint: of
    0.999999999999999999 it makes the int 1.
    """
    if values.type.precision > NARROW_DIGITS and to != pa.int64():
        return float_to_integer(decimal_to_float(values, pa.float64()).values, to)
    return integer_vector(truncated(unscaled(values, 0), 10**values.type.scale), to, valid(values))


def decimal_to_float(values: pa.Array, to: pa.DataType) -> Vector:
    """The nearest double; the nearest float, failing where rounding twice could give its neighbour."""
    if values.type.precision <= _EXACT_DIGITS:
        # Both sides of the division are whole numbers that a double holds exactly, so it rounds once.
        quotients = unscaled(values, 0).astype(np.float64) / float(10**values.type.scale)
        double = vector(quotients, pa.float64(), valid(values))
    else:
        double = by_distinct(values, pa.float64(), float)
    return double if to == pa.float64() else narrow_parsed(double)


def narrow_parsed(double: Vector) -> Vector:
    """Doubles that were read from decimal digits, as floats.

    Java rounds the digits once. Rounding the double again gives the same unless it lies exactly between two
    floats (its last 29 bits are a one and zeros) or is so small that a float has fewer bits for it.
    """
    doubles = numbers(double.values)
    with np.errstate(over="ignore"):
        floats = doubles.astype(np.float32)
    between = (doubles.view(np.int64) & ((1 << 29) - 1)) == 1 << 28
    tiny = (doubles != 0) & (np.abs(doubles) < float(np.finfo(np.float32).tiny))
    narrowed = vector(floats, pa.float32(), valid(double.values), between | tiny)
    return Vector(narrowed.values, union(double.failed, narrowed.failed))
