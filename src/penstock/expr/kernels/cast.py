"""The registry of casts: what Spark's `CAST` does in ANSI mode, over whole arrays, and whether it keeps order.

`castable` says which casts are known. That is narrower than what Spark takes: a cast missing here makes an
expression opaque, which costs pruning and never an answer. A known cast gives Spark's exact value or fails
the row. Two casts fail every row on purpose: the text and the decimal digits of a double are whatever Java's
`Double.toString` prints.

>>> cast(pa.array(["12", " 7 ", "x"]), pa.int32(), "UTC").failed
array([False, False,  True])

`cast_law` lets bounds travel through a cast. Casts that only widen, cut or round never swap two values; to and from
strings the order is another one, so those have no law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expr.functions.function import RISING, Law
from penstock.expr.kernels import cast_number as number
from penstock.expr.kernels import cast_text as text
from penstock.expr.kernels import cast_time as time
from penstock.expr.kernels.physical import by_distinct, fail_all
from penstock.expr.kernels.vector import Vector
from penstock.expr.types import TYPE_NAMES, is_decimal, is_float, is_integer, type_name

_Cast = Callable[[pa.Array, pa.DataType, str], Vector]


@dataclass(frozen=True, slots=True)
class _Rule:
    """One cast: its kernel, its law, and whether its failed rows are exactly those for which Spark raises.

    Where they are, TRY_CAST is null for a failed row, and not unknown.
    """

    kernel: _Cast
    law: Law | None = None
    exact_failures: bool = False


def _zoneless(convert: Callable[[pa.Array, pa.DataType], Vector]) -> _Cast:
    return lambda values, to, zone: convert(values, to)


def _each(read: Callable[[Any], Any]) -> _Cast:
    return lambda values, to, zone: by_distinct(values, to, read)


_CLOCK = Law(1, clock=True)
_ALWAYS = Law(1, total=True)
_to_float = _Rule(_zoneless(number.number_to_float), _ALWAYS)
_arrow = _Rule(lambda values, to, zone: Vector(values.cast(to)))
_to_boolean = _Rule(_zoneless(number.number_to_boolean))  # no law: -1, 0, 1 become true, false, true
_CASTS: dict[tuple[str, str], _Rule] = {
    ("boolean", "integer"): _Rule(_zoneless(number.integer_to_integer), RISING),
    ("boolean", "float"): _to_float,
    ("boolean", "decimal"): _Rule(_zoneless(number.whole_to_decimal), RISING),
    ("boolean", "string"): _arrow,
    ("integer", "boolean"): _to_boolean,
    ("integer", "integer"): _Rule(_zoneless(number.integer_to_integer), RISING, True),
    ("integer", "float"): _to_float,
    ("integer", "decimal"): _Rule(_zoneless(number.whole_to_decimal), RISING, True),
    ("integer", "string"): _arrow,
    ("integer", "timestamp"): _Rule(time.seconds_to_timestamp, RISING),
    ("float", "boolean"): _to_boolean,
    ("float", "integer"): _Rule(_zoneless(number.float_to_integer), RISING, True),
    ("float", "float"): _to_float,
    ("float", "decimal"): _Rule(_zoneless(fail_all)),
    ("float", "string"): _Rule(_zoneless(fail_all)),
    ("decimal", "boolean"): _to_boolean,
    ("decimal", "integer"): _Rule(_zoneless(number.decimal_to_integer), RISING, True),
    ("decimal", "float"): _Rule(_zoneless(number.decimal_to_float), _ALWAYS),
    ("decimal", "decimal"): _Rule(_zoneless(number.rescale), RISING, True),
    ("decimal", "string"): _Rule(_each("{:f}".format)),
    ("string", "boolean"): _Rule(_each(text.parse_boolean), None, True),
    ("string", "integer"): _Rule(text.string_to_integer, None, True),
    ("string", "float"): _Rule(text.string_to_float),
    ("string", "decimal"): _Rule(text.string_to_decimal),
    ("string", "binary"): _arrow,
    ("string", "date"): _Rule(text.string_to_date, None, True),
    ("string", "timestamp"): _Rule(text.string_to_timestamp),
    ("string", "timestamp_ntz"): _Rule(text.string_to_timestamp),
    # Spark keeps bytes that are not UTF-8; Arrow strings cannot hold them, so they fail.
    ("binary", "string"): _Rule(_each(bytes.decode)),
    ("date", "string"): _Rule(text.date_to_string),
    ("date", "timestamp"): _Rule(time.date_to_timestamp, _CLOCK),
    ("date", "timestamp_ntz"): _Rule(time.date_to_timestamp, RISING),
    ("timestamp", "integer"): _Rule(time.timestamp_to_seconds, RISING),
    ("timestamp", "string"): _Rule(text.timestamp_to_string),
    ("timestamp", "date"): _Rule(time.timestamp_to_date, _CLOCK),
    ("timestamp", "timestamp_ntz"): _Rule(time.between_timestamps, _CLOCK),
    ("timestamp_ntz", "string"): _Rule(text.timestamp_to_string),
    ("timestamp_ntz", "date"): _Rule(time.timestamp_to_date, RISING),
    ("timestamp_ntz", "timestamp"): _Rule(time.between_timestamps, _CLOCK),
}


def castable(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether the cast is known.

    >>> castable(pa.int32(), pa.date32())
    False
    """
    kinds = _kind(source), _kind(to)
    return source == to or (kinds[0] == "void" and kinds[1] != "") or kinds in _CASTS


def cast(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """The values as Spark casts them in a session with this time zone; ValueError for an unknown cast."""
    source = values.type
    if source == to:
        return Vector(values)
    if not castable(source, to):
        raise ValueError(f"cannot cast {type_name(source)} to {type_name(to)}: Penstock does not know this cast")
    if pa.types.is_null(source):
        return Vector(pa.nulls(len(values), to))
    return _CASTS[_kind(source), _kind(to)].kernel(values, to, zone)


def fails_as_spark(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether a row fails exactly where Spark raises, so that TRY_CAST is null there.

    >>> fails_as_spark(pa.string(), pa.int32()), fails_as_spark(pa.string(), pa.float64())
    (True, False)
    """
    rule = _CASTS.get((_kind(source), _kind(to)))
    return rule is not None and rule.exact_failures


def cast_law(source: pa.DataType, to: pa.DataType) -> Law | None:
    """How the result of a cast moves with its argument; None when nothing is declared.

    >>> cast_law(pa.timestamp("us", tz="UTC"), pa.date32())
    Law(direction=1, clock=True, slack=0, total=False)
    >>> cast_law(pa.string(), pa.int32()) is None
    True
    """
    if source == to:
        return RISING
    rule = _CASTS.get((_kind(source), _kind(to)))
    return None if rule is None else rule.law


def _kind(t: pa.DataType) -> str:
    if is_integer(t):
        return "integer"
    if is_float(t):
        return "float"
    if is_decimal(t):
        return "decimal"
    return TYPE_NAMES.get(t, "")
