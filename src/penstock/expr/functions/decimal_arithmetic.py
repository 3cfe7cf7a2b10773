"""Exact arithmetic of decimals: Spark's result types (`DecimalPrecision`), computed with unlimited integers.

Every result is rounded HALF_UP once, a quotient twice (`quotient`). Rows with more digits than the result type fail.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.decimals import decimal_vector, rescaled, unscaled
from penstock.expr.kernels.physical import Numbers, all_valid
from penstock.expr.kernels.vector import Vector
from penstock.expr.types import MAX_PRECISION

_MINIMUM_ADJUSTED_SCALE = 6
_QUOTIENT_SCALE = 39
_WIDE = 2 * MAX_PRECISION  # more digits than NumPy's integers have


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return _adjusted(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(_MINIMUM_ADJUSTED_SCALE, left.scale + right.precision + 1)
    return _adjusted(left.precision - left.scale + right.scale + scale, scale)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return pa.decimal128(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _adjusted(precision: int, scale: int) -> pa.DataType:
    """Spark gives up scale for whole digits when 38 are not enough, but not below six."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, _MINIMUM_ADJUSTED_SCALE))
    return pa.decimal128(MAX_PRECISION, kept)


def sums(sign: int) -> Callable[[pa.Array, pa.Array], Vector]:
    """A sum, or with sign -1 a difference."""

    def compute(left: pa.Array, right: pa.Array) -> Vector:
        scale = max(left.type.scale, right.type.scale)
        result = sum_type(left.type, right.type)
        digits = max(left.type.precision - left.type.scale, right.type.precision - right.type.scale) + scale + 1
        a = rescaled(unscaled(left, digits), left.type.scale, scale)
        b = rescaled(unscaled(right, digits), right.type.scale, scale)
        return decimal_vector(rescaled(a + sign * b, scale, result.scale), result, all_valid(left, right))

    return compute


def product(left: pa.Array, right: pa.Array) -> Vector:
    digits = left.type.precision + right.type.precision
    result = product_type(left.type, right.type)
    integers = unscaled(left, digits) * unscaled(right, digits)
    scale = left.type.scale + right.type.scale
    return decimal_vector(rescaled(integers, scale, result.scale), result, all_valid(left, right))


def quotient(left: pa.Array, right: pa.Array) -> Vector:
    """Java divides to 39 digits behind the point, HALF_DOWN; Spark then rounds to the scale of the result, HALF_UP."""
    result = quotient_type(left.type, right.type)
    a, b = unscaled(left, _WIDE), unscaled(right, _WIDE)
    dividend = abs(a) * 10 ** (right.type.scale + _QUOTIENT_SCALE)
    divisor = np.where(b == 0, 1, abs(b)) * 10**left.type.scale
    integers = dividend // divisor
    integers = integers + (2 * (dividend - integers * divisor) > divisor).astype(object)
    signed = np.where((a < 0) == (b < 0), integers, -integers)
    zero = np.asarray(b == 0, np.bool_)
    return decimal_vector(rescaled(signed, _QUOTIENT_SCALE, result.scale), result, all_valid(left, right), zero)


def remainder(positive: bool) -> Callable[[pa.Array, pa.Array], Vector]:
    """The exact remainder, with the sign of the dividend; one of a quotient of more than 38 digits is left to Spark."""

    def compute(left: pa.Array, right: pa.Array) -> Vector:
        result = remainder_type(left.type, right.type)
        a = rescaled(unscaled(left, _WIDE), left.type.scale, result.scale)
        b = rescaled(unscaled(right, _WIDE), right.type.scale, result.scale)
        divisor = np.where(b == 0, 1, b)
        failed = np.asarray((b == 0) | (abs(a) // abs(divisor) >= 10**MAX_PRECISION), np.bool_)
        rest = _toward_zero(a, divisor)
        if positive:
            rest = np.where(rest < 0, _toward_zero(rest + divisor, divisor), rest)
        return decimal_vector(rest, result, all_valid(left, right), failed)

    return compute


def _toward_zero(a: Numbers, b: Numbers) -> Numbers:
    rest = abs(a) % abs(b)
    return np.where(a < 0, -rest, rest)
