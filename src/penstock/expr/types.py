"""The types of columns and literals: Arrow's, narrowed to those Spark has, and Spark's rules for comparing them.

One type system serves the schema, the literals and the evaluator: Arrow's. `normalize` maps any Arrow type to the
one that stands for Spark's type of the same values (`large_string` → `string`, `timestamp[ns]` → `timestamp[us]`,
dictionaries to their values), so that two equal Spark types are always equal Arrow types.

Values are kept in their *physical* form wherever Penstock holds them as Python objects: a date is the number of
days since 1970-01-01, a timestamp the number of microseconds. Python's own `date` and `datetime` end at year 9999
and know zones only half; integers do neither.

`common_type` answers as Spark 4 in its default ANSI mode does:

>>> common_type(pa.int32(), pa.float32())
DataType(double)
>>> common_type(pa.string(), pa.date32())
DataType(date32[day])
>>> common_type(pa.bool_(), pa.int32()) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MAX_PRECISION = 38

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_NORMAL = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.date64(): pa.date32(),
    pa.large_binary(): pa.binary(), pa.binary_view(): pa.binary(),
}  # fmt: skip
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
TYPE_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    pa.null(): "void",
}


def is_integer(t: pa.DataType) -> bool:
    """Whether `t` is one of Spark's four integer types."""
    return t in _INTEGERS


def is_float(t: pa.DataType) -> bool:
    """Whether `t` is `float` or `double`."""
    return bool(pa.types.is_floating(t))


def is_decimal(t: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(t))


def is_numeric(t: pa.DataType) -> bool:
    return is_integer(t) or is_float(t) or is_decimal(t)


def is_timestamp(t: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(t))


def is_nested(t: pa.DataType) -> bool:
    """Whether `t` holds other types: it can be part of a schema but not be compared."""
    return bool(pa.types.is_nested(t))


def integer_range(t: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type.

    >>> integer_range(pa.int8())
    (-128, 127)
    """
    bits = t.bit_width
    return -(1 << bits - 1), (1 << bits - 1) - 1


def normalize(t: pa.DataType) -> pa.DataType:
    """The type that stands for Spark's type of the same values; types that Spark lacks come back unchanged."""
    kinds = pa.types
    if t in _NORMAL:
        return _NORMAL[t]
    if kinds.is_dictionary(t):
        return normalize(t.value_type)
    if kinds.is_fixed_size_binary(t):
        return pa.binary()
    if kinds.is_timestamp(t):
        return TIMESTAMP if t.tz is not None else TIMESTAMP_NTZ
    if is_decimal(t):
        return pa.decimal128(min(t.precision, MAX_PRECISION), t.scale)
    if kinds.is_struct(t):
        return pa.struct([pa.field(f.name, normalize(f.type), f.nullable) for f in t])
    if kinds.is_map(t):
        return pa.map_(normalize(t.key_type), normalize(t.item_type))
    if kinds.is_list(t) or kinds.is_large_list(t) or kinds.is_fixed_size_list(t):
        return pa.list_(normalize(t.value_type))
    return t


def type_name(t: pa.DataType | None) -> str:
    """The name Spark has for a type, as it is written in DDL.

    >>> type_name(pa.map_(pa.string(), pa.decimal128(10, 2)))
    'map<string,decimal(10,2)>'
    """
    if t is None:
        return "unknown"
    if t in TYPE_NAMES:
        return TYPE_NAMES[t]
    if is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    if pa.types.is_map(t):
        return f"map<{type_name(t.key_type)},{type_name(t.item_type)}>"
    if pa.types.is_list(t):
        return f"array<{type_name(t.value_type)}>"
    if pa.types.is_struct(t):
        plain = {f.name: f.name.isidentifier() and f.name.isascii() for f in t}
        names = (f.name if plain[f.name] else f"`{f.name.replace('`', '``')}`" for f in t)
        return "struct<" + ",".join(f"{name}:{type_name(f.type)}" for name, f in zip(names, t, strict=True)) + ">"
    return str(t)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which Spark (ANSI) compares values of two types; None where it refuses to.

    A decimal wider than 38 digits cannot be held; Spark then cuts digits off, and so the answer here is None too.
    """
    if left == right:
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_null(right):
        return left
    if left == pa.string() or right == pa.string():
        return _string_with(right if left == pa.string() else left)
    if is_numeric(left) and is_numeric(right):
        return _numeric(left, right)
    if is_timestamp(left) and is_timestamp(right):
        return TIMESTAMP
    if pa.types.is_date32(left) and is_timestamp(right):
        return right
    if is_timestamp(left) and pa.types.is_date32(right):
        return left
    return None


def common_type_of(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The common type of several types, folded from the left; None where they have none."""

    def step(common: pa.DataType | None, t: pa.DataType) -> pa.DataType | None:
        return None if common is None else common_type(common, t)

    return reduce(step, types, pa.null())


def decimal_for(t: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer type.

    >>> decimal_for(pa.int32())
    Decimal128Type(decimal128(10, 0))
    """
    return pa.decimal128(_INTEGER_DIGITS[t], 0)


def _string_with(other: pa.DataType) -> pa.DataType | None:
    if is_integer(other):
        return pa.int64()
    if is_float(other) or is_decimal(other):
        return pa.float64()
    return None if is_nested(other) else other


def _numeric(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if is_decimal(left) or is_decimal(right):
        if is_float(left) or is_float(right):
            return pa.float64()
        a = left if is_decimal(left) else decimal_for(left)
        b = right if is_decimal(right) else decimal_for(right)
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else None
    if is_integer(left) and is_integer(right):
        return max(left, right, key=lambda t: t.bit_width)
    # Spark avoids `float` for integers: 16777217 would lose its last digit.
    return pa.float64()
