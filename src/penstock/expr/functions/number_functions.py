"""Functions of one number, and those that compare several: rounding, signs, NaN, the greatest and the least.

An answer that does not fit its type fails, as it raises in Spark. `floor` and `ceil` of a double are a
bigint; Spark turns NaN into 0 there and cuts what is too large, which would break the order of the values:
those rows fail. `round` and `bround` are known for whole numbers and decimals only, because Spark rounds the digits
that Java prints of a double. Logarithms and powers are left out: Java's last digit is its own.

Functions of nulls (`greatest`, `isnan`) have no law: a bound says nothing of their nulls.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.function import Constants, Function, Kernel, Signature, falling, rising, rising_first
from penstock.expr.functions.kernel_shapes import Answer, of_arrays, of_numbers, unchanged
from penstock.expr.functions.signatures import BIGINT, DOUBLE, INT, STRING, Types, as_int, common, unary
from penstock.expr.kernels.compare import compare
from penstock.expr.kernels.decimals import decimal_vector, half_up, unscaled
from penstock.expr.kernels.physical import Numbers, integer_vector, mask_of, numbers, valid, vector
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.types import MAX_PRECISION, decimal_for, is_decimal, is_float, is_integer, is_nested, is_numeric

# Unscaled integers and a power of ten to how many of it they are.
_Rounding = Callable[[Numbers, int], Numbers]
# Scala's BigDecimal rounds to 34 digits when it changes the sign: Spark even raises for -(10^38 - 1).
_ROUNDED_FROM = 10**34


def _signed(change: Callable[[Numbers], Numbers]) -> Kernel:
    def of_integers(integers: Numbers) -> Answer:
        # The smallest integer has no opposite; NumPy would wrap around.
        lowest = integers == np.iinfo(integers.dtype).min
        return change(np.where(lowest, 0, integers)), lowest

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        t = arrays[0].type
        if not is_decimal(t):
            return of_numbers(change if is_float(t) else of_integers)(arrays, zone)
        integers = unscaled(arrays[0], 0)
        rounded = np.asarray(abs(integers) >= _ROUNDED_FROM, np.bool_)
        return decimal_vector(change(integers), t, valid(arrays[0]), rounded)

    return kernel


def _half_even(integers: Numbers, unit: int) -> Numbers:
    whole = integers // unit
    twice = 2 * (integers - whole * unit)
    return np.asarray(whole + ((twice > unit) | ((twice == unit) & (whole % 2 == 1))).astype(integers.dtype))


def _whole(types: Types, constants: Constants) -> Signature | None:
    if len(types) == 2 and not is_float(types[0]):  # with places, whole numbers count as decimals
        return _rounding((decimal_for(types[0]) if is_integer(types[0]) else types[0], types[1]), constants)
    if len(types) != 1 or not is_numeric(types[0]):
        return None
    t = types[0]
    if is_decimal(t):
        return Signature((t,), _whole_decimal(t))
    return Signature((DOUBLE if is_float(t) else BIGINT,), BIGINT)


def _whole_decimal(t: pa.DataType) -> pa.DataType:
    return t if t.scale == 0 else pa.decimal128(t.precision - t.scale + 1, 0)


def _to_whole(of_double: Callable[[Numbers], Numbers], of_decimal: _Rounding) -> Kernel:
    to_places = _rounder(of_decimal)

    def whole(doubles: Numbers) -> Answer:
        doubles = of_double(doubles)
        outside = ~((doubles >= -(2.0**63)) & (doubles < 2.0**63))
        return np.where(outside, 0.0, doubles).astype(np.int64), outside

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        t = arrays[0].type
        if len(arrays) == 2:
            return to_places(arrays, zone)
        if is_decimal(t):
            integers = of_decimal(unscaled(arrays[0], 0), 10**t.scale)
            return decimal_vector(integers, _whole_decimal(t), valid(arrays[0]))
        return Vector(arrays[0]) if t == BIGINT else of_numbers(whole, BIGINT)(arrays, zone)

    return kernel


def _rounding(types: Types, constants: Constants) -> Signature | None:
    places = _places(types, constants)
    t = types[0] if types else pa.null()
    if places is None or not (is_integer(t) or is_decimal(t)):
        return None
    arguments = (t, INT)[: len(types)]
    if is_integer(t):
        return Signature(arguments, t)
    whole = t.precision - t.scale + 1
    if places < 0:
        return Signature(arguments, pa.decimal128(min(max(whole, 1 - places), MAX_PRECISION), 0))
    scale = min(t.scale, places)
    return Signature(arguments, pa.decimal128(min(whole + scale, MAX_PRECISION), scale))


def _places(types: Types, constants: Constants) -> int | None:
    if len(types) == 1:
        return 0
    if len(types) != 2 or not as_int(types[1]):
        return None
    places = None if constants[1] is None else constants[1][0]
    return places if isinstance(places, int) and abs(places) <= MAX_PRECISION else None


def _rounder(mode: _Rounding) -> Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        values = arrays[0]
        t = values.type
        places = int(numbers(arrays[1])[0]) if len(arrays) == 2 and len(values) else 0
        signature = _rounding((t, INT), (None, (places,)))
        assert signature is not None  # the types were accepted before
        to = signature.result
        if is_decimal(t):
            integers = unscaled(values, t.precision + 1 if places >= 0 else MAX_PRECISION)
            rounded = mode(integers, 10 ** (t.scale - min(places, t.scale)))
            return decimal_vector(rounded * 10 ** max(-places, 0), to, valid(values))
        if places >= 0:
            return Vector(values)
        rounded = mode(numbers(values).astype(object), 10**-places) * 10**-places
        return integer_vector(rounded, t, valid(values))

    return kernel


def _sign(doubles: Numbers) -> Numbers:
    return np.where(doubles == 0, doubles, np.sign(doubles))  # zero keeps its sign, as in Java; `np.sign` loses it


def _nan_or(arrays: Sequence[pa.Array], zone: str) -> Vector:
    first, second = arrays
    nan = np.isnan(numbers(first))
    chosen = np.where(nan, numbers(second), numbers(first))
    return vector(chosen, first.type, valid(first) & (~nan | valid(second)))


def _are_ordered(types: Types) -> bool:
    # Unlike a comparison, these do not read a string as anything else.
    mixed = STRING in types and any(t != STRING and not pa.types.is_null(t) for t in types)
    return len(types) >= 2 and not mixed and not any(map(is_nested, types))


def _extreme(beats: Callable[[pa.Array, pa.Array], Mask]) -> Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        best = arrays[0]
        for values in arrays[1:]:
            better = valid(values) & (~valid(best) | beats(values, best))
            best = pc.if_else(pa.array(better, pa.bool_()), values, best)
        return Vector(best)

    return kernel


def above(left: pa.Array, right: pa.Array) -> Mask:
    """Where left > right in Spark's order; false at nulls."""
    return np.zeros(len(left), np.bool_) if pa.types.is_null(left.type) else mask_of(compare(">", left, right))


_same = unary(lambda t: is_numeric(t) or t == STRING, lambda t: DOUBLE if t == STRING else t)
_double = unary(is_numeric, lambda t: DOUBLE)
_nan_choice = common(lambda types: len(types) == 2 and all(map(is_float, types)))
_several = common(_are_ordered)
_floor = _to_whole(np.floor, lambda integers, unit: integers // unit)
_ceil = _to_whole(np.ceil, lambda integers, unit: -(-integers // unit))

NUMBER_FUNCTIONS = (
    Function("abs", _same, _signed(abs), catalyst=("Abs",)),
    Function("negative", _same, _signed(operator.neg), falling, catalyst=("UnaryMinus",)),
    Function("positive", _same, unchanged, rising, catalyst=("UnaryPositive",)),
    Function("floor", _whole, _floor, rising_first, catalyst=("Floor", "RoundFloor")),
    Function("ceil", _whole, _ceil, rising_first, aliases=("ceiling",), catalyst=("Ceil", "RoundCeil")),
    Function("round", _rounding, _rounder(half_up), rising_first, catalyst=("Round",)),
    Function("bround", _rounding, _rounder(_half_even), rising_first, catalyst=("BRound",)),
    Function("sqrt", _double, of_numbers(np.sqrt), catalyst=("Sqrt",)),
    Function("sign", _double, of_numbers(_sign), rising, aliases=("signum",), catalyst=("Signum",)),
    Function(
        "isnan",
        unary(is_float, result=pa.bool_()),
        of_arrays(lambda x: pc.is_nan(x.fill_null(0))),
        catalyst=("IsNaN",),
        null_in_null_out=False,
    ),
    Function("nanvl", _nan_choice, _nan_or, catalyst=("NaNvl",), null_in_null_out=False),
    Function("greatest", _several, _extreme(above), catalyst=("Greatest",), null_in_null_out=False),
    Function("least", _several, _extreme(lambda a, b: above(b, a)), catalyst=("Least",), null_in_null_out=False),
)
