"""Functions of one number, and those that compare several: rounding, signs, NaN, the greatest and the least.

An answer that does not fit its type fails, as it raises in Spark. `floor` and `ceil` of a double are a
bigint; Spark turns NaN into 0 there and cuts what is too large, which would break the order of the values:
those rows fail. `round` and its kin are known for whole numbers and decimals only, because Spark rounds the digits
that Java prints of a double. Logarithms and powers are left out: Java's last digit is its own.

Functions of nulls (`greatest`, `isnan`) have no law: a bound says nothing of their nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.function import RISING, Constants, Function, Kernel, Law, Signature, falling, rising
from penstock.expr.functions.signatures import BIGINT, DOUBLE, INT, STRING, Types, as_int
from penstock.expr.kernels.decimals import decimal_vector, unscaled
from penstock.expr.kernels.physical import Numbers, all_valid, numbers, valid, vector
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.types import (
    MAX_PRECISION,
    common_type_of,
    decimal_for,
    integer_range,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
)

# Unscaled integers and a power of ten to how many of it they are.
_Rounding = Callable[[Numbers, int], Numbers]
# Scala's BigDecimal rounds to 34 digits when it changes the sign: Spark even raises for -(10^38 - 1).
_ROUNDED_FROM = 10**34


def _same(types: Types, constants: Constants) -> Signature | None:
    if len(types) != 1 or not (is_numeric(types[0]) or types[0] == STRING):
        return None
    t = DOUBLE if types[0] == STRING else types[0]
    return Signature((t,), t)


def _absolute(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return _signed(arrays[0], lambda found: abs(found))


def _negated(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return _signed(arrays[0], lambda found: -found)


def _signed(values: pa.Array, change: Callable[[Numbers], Numbers]) -> Vector:
    t = values.type
    if is_decimal(t):
        found = unscaled(values, 0)
        return decimal_vector(change(found), t, valid(values), np.asarray(abs(found) >= _ROUNDED_FROM, np.bool_))
    found = numbers(values)
    if is_float(t):
        return vector(change(found), t, valid(values))
    # The smallest integer has no opposite; NumPy would wrap around.
    lowest = found == integer_range(t)[0]
    return vector(change(np.where(lowest, 0, found)), t, valid(values), lowest)


def _unchanged(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return Vector(arrays[0])


def _floor_at(found: Numbers, unit: int) -> Numbers:
    return found // unit


def _ceil_at(found: Numbers, unit: int) -> Numbers:
    return -(-found // unit)


def _half_even(found: Numbers, unit: int) -> Numbers:
    whole = found // unit
    twice = 2 * (found - whole * unit)
    return np.asarray(whole + ((twice > unit) | ((twice == unit) & (whole % 2 == 1))).astype(found.dtype))


def _half_up(found: Numbers, unit: int) -> Numbers:
    rounded = (abs(found) + unit // 2) // unit
    return np.asarray(np.where(found < 0, -rounded, rounded))


def _whole(types: Types, constants: Constants) -> Signature | None:
    if len(types) == 2 and not is_float(types[0]):  # with places, whole numbers count as decimals
        return _rounding((decimal_for(types[0]) if is_integer(types[0]) else types[0], types[1]), constants)
    if len(types) != 1 or not is_numeric(types[0]):
        return None
    t = types[0]
    if is_decimal(t):
        result = t if t.scale == 0 else pa.decimal128(t.precision - t.scale + 1, 0)
        return Signature((t,), result)
    return Signature((DOUBLE if is_float(t) else BIGINT,), BIGINT)


def _to_whole(of_double: Callable[[Numbers], Numbers], of_decimal: _Rounding) -> Kernel:
    to_places = _rounder(of_decimal)

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        values = arrays[0]
        t = values.type
        if len(arrays) == 2:
            return to_places(arrays, zone)
        if t == BIGINT:
            return Vector(values)
        if is_decimal(t):
            to = t if t.scale == 0 else pa.decimal128(t.precision - t.scale + 1, 0)
            return decimal_vector(of_decimal(unscaled(values, 0), 10**t.scale), to, valid(values))
        found = of_double(numbers(values))
        outside = ~((found >= -(2.0**63)) & (found < 2.0**63))
        return vector(np.where(outside, 0.0, found).astype(np.int64), BIGINT, valid(values), outside)

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
    given = constants[1]
    return given[0] if given is not None and isinstance(given[0], int) and abs(given[0]) <= MAX_PRECISION else None


def _rounder(mode: _Rounding) -> Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        values = arrays[0]
        t = values.type
        places = int(numbers(arrays[1])[0]) if len(arrays) == 2 and len(values) else 0
        signature = _rounding((t, INT), (None, (places,)))
        assert signature is not None  # the types were accepted before
        to = signature.result
        if is_decimal(t):
            found = unscaled(values, t.precision + 1 if places >= 0 else MAX_PRECISION)
            rounded = mode(found, 10 ** (t.scale - min(places, t.scale)))
            return decimal_vector(rounded * 10 ** max(-places, 0), to, valid(values))
        if places >= 0:
            return Vector(values)
        rounded = mode(numbers(values).astype(object), 10**-places) * 10**-places
        low, high = integer_range(t)
        outside = np.asarray((rounded < low) | (rounded > high), np.bool_)
        return vector(np.where(outside, 0, rounded), t, valid(values), outside)

    return kernel


def _double(types: Types, constants: Constants) -> Signature | None:
    return Signature((DOUBLE,), DOUBLE) if len(types) == 1 and is_numeric(types[0]) else None


def _sign(arrays: Sequence[pa.Array], zone: str) -> Vector:
    found = numbers(arrays[0])
    # Zero keeps its sign, as in Java; `np.sign` loses it.
    return vector(np.where(found == 0, found, np.sign(found)), DOUBLE, valid(arrays[0]))


def _square_root(arrays: Sequence[pa.Array], zone: str) -> Vector:
    with np.errstate(invalid="ignore"):
        return vector(np.sqrt(numbers(arrays[0])), DOUBLE, valid(arrays[0]))


def _nan_test(types: Types, constants: Constants) -> Signature | None:
    return Signature((types[0],), pa.bool_()) if len(types) == 1 and is_float(types[0]) else None


def _is_nan(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return vector(np.isnan(numbers(arrays[0])), pa.bool_(), np.ones(len(arrays[0]), np.bool_))


def _nan_choice(types: Types, constants: Constants) -> Signature | None:
    if len(types) != 2 or not all(is_float(t) for t in types):
        return None
    t = common_type_of(types)
    return None if t is None else Signature((t, t), t)


def _nan_or(arrays: Sequence[pa.Array], zone: str) -> Vector:
    first, second = arrays
    nan = np.isnan(numbers(first))
    found = np.where(nan, numbers(second), numbers(first))
    return vector(found, first.type, valid(first) & (~nan | valid(second)))


def _several(types: Types, constants: Constants) -> Signature | None:
    t = common_type_of(types) if len(types) >= 2 else None
    # Unlike a comparison, these do not read a string as anything else.
    mixed = STRING in types and any(each != STRING and not pa.types.is_null(each) for each in types)
    return None if t is None or mixed or is_nested(t) else Signature((t,) * len(types), t)


def _extreme(beats: Callable[[pa.Array, pa.Array], Mask]) -> Callable[[Sequence[pa.Array], str], Vector]:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        best = arrays[0]
        for values in arrays[1:]:
            better = valid(values) & (~valid(best) | beats(values, best))
            best = pc.if_else(pa.array(better, pa.bool_()), values, best)
        return Vector(best)

    return kernel


def above(left: pa.Array, right: pa.Array) -> Mask:
    """Where left > right in Spark's order: NaN is above everything and equal to itself; false at nulls."""
    if is_float(left.type):
        a, b = numbers(left), numbers(right)
        return np.asarray(((a > b) | (np.isnan(a) & ~np.isnan(b))) & all_valid(left, right), np.bool_)
    if pa.types.is_null(left.type):
        return np.zeros(len(left), np.bool_)
    found = pc.greater(left, right).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _rounding_law(argument: int, constants: Constants) -> Law | None:
    return RISING if argument == 0 else None


NUMBER_FUNCTIONS = (
    Function("abs", _same, _absolute, catalyst=("Abs",)),
    Function("negative", _same, _negated, falling, catalyst=("UnaryMinus",)),
    Function("positive", _same, _unchanged, rising, catalyst=("UnaryPositive",)),
    Function("floor", _whole, _to_whole(np.floor, _floor_at), _rounding_law, catalyst=("Floor", "RoundFloor")),
    Function(
        "ceil",
        _whole,
        _to_whole(np.ceil, _ceil_at),
        _rounding_law,
        aliases=("ceiling",),
        catalyst=("Ceil", "RoundCeil"),
    ),
    Function("round", _rounding, _rounder(_half_up), _rounding_law, catalyst=("Round",)),
    Function("bround", _rounding, _rounder(_half_even), _rounding_law, catalyst=("BRound",)),
    Function("sqrt", _double, _square_root, catalyst=("Sqrt",)),
    Function("sign", _double, _sign, rising, aliases=("signum",), catalyst=("Signum",)),
    Function("isnan", _nan_test, _is_nan, catalyst=("IsNaN",), null_in_null_out=False),
    Function("nanvl", _nan_choice, _nan_or, catalyst=("NaNvl",), null_in_null_out=False),
    Function("greatest", _several, _extreme(above), catalyst=("Greatest",), null_in_null_out=False),
    Function("least", _several, _extreme(lambda a, b: above(b, a)), catalyst=("Least",), null_in_null_out=False),
)
