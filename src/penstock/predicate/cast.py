"""What Spark's `CAST` does in ANSI mode, over whole arrays, and whether it keeps order.

`castable` says which casts are known. That is narrower than what Spark takes: a cast missing here makes an
expression opaque, which costs pruning and never an answer. A known cast gives Spark's exact value or fails
the row. Two casts fail every row on purpose: the text and the decimal digits of a double are whatever Java's
`Double.toString` prints.

>>> cast(pa.array(["12", " 7 ", "x"]), pa.int32(), "UTC").failed
array([False, False,  True])

`cast_direction` lets bounds travel through a cast. Casts that only widen, cut or round never swap two values;
to and from strings the order is another one, so those have no direction. An instant's reading on the clock
falls back where a zone has daylight saving time, and so has a direction only in zones without.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.predicate import cast_number as number
from penstock.predicate import cast_text as text
from penstock.predicate import cast_time as time
from penstock.predicate.physical import fail_all
from penstock.predicate.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_float, is_integer, type_name
from penstock.predicate.vector import Vector
from penstock.predicate.zones import is_fixed

_Cast = Callable[[pa.Array, pa.DataType, str], Vector]
_KINDS = {
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
    pa.null(): "void",
}


# Casts whose failed rows are exactly the rows for which Spark raises: there, TRY_CAST is null and not unknown.
_EXACT_FAILURES = frozenset(
    [
        ("string", "integer"),
        ("string", "boolean"),
        ("string", "date"),
        ("integer", "integer"),
        ("integer", "decimal"),
        ("decimal", "integer"),
        ("decimal", "decimal"),
        ("float", "integer"),
    ]
)


def _zoneless(convert: Callable[[pa.Array, pa.DataType], Vector]) -> _Cast:
    return lambda values, to, zone: convert(values, to)


_CASTS: dict[tuple[str, str], _Cast] = {
    ("boolean", "integer"): _zoneless(number.boolean_to_integer),
    ("boolean", "float"): _zoneless(number.number_to_float),
    ("boolean", "decimal"): _zoneless(number.whole_to_decimal),
    ("boolean", "string"): text.plain_to_string,
    ("integer", "boolean"): _zoneless(number.number_to_boolean),
    ("integer", "integer"): _zoneless(number.integer_to_integer),
    ("integer", "float"): _zoneless(number.number_to_float),
    ("integer", "decimal"): _zoneless(number.whole_to_decimal),
    ("integer", "string"): text.plain_to_string,
    ("integer", "timestamp"): time.seconds_to_timestamp,
    ("float", "boolean"): _zoneless(number.number_to_boolean),
    ("float", "integer"): _zoneless(number.float_to_integer),
    ("float", "float"): _zoneless(number.number_to_float),
    ("float", "decimal"): _zoneless(fail_all),
    ("float", "string"): _zoneless(fail_all),
    ("decimal", "boolean"): _zoneless(number.number_to_boolean),
    ("decimal", "integer"): _zoneless(number.decimal_to_integer),
    ("decimal", "float"): _zoneless(number.decimal_to_float),
    ("decimal", "decimal"): _zoneless(number.rescale),
    ("decimal", "string"): text.decimal_to_string,
    ("string", "boolean"): text.string_to_boolean,
    ("string", "integer"): text.string_to_integer,
    ("string", "float"): text.string_to_float,
    ("string", "decimal"): text.string_to_decimal,
    ("string", "binary"): text.string_to_binary,
    ("string", "date"): text.string_to_date,
    ("string", "timestamp"): text.string_to_timestamp,
    ("string", "timestamp_ntz"): text.string_to_timestamp,
    ("binary", "string"): text.binary_to_string,
    ("date", "string"): text.date_to_string,
    ("date", "timestamp"): time.date_to_timestamp,
    ("date", "timestamp_ntz"): time.date_to_timestamp,
    ("timestamp", "integer"): time.timestamp_to_seconds,
    ("timestamp", "string"): text.timestamp_to_string,
    ("timestamp", "date"): time.timestamp_to_date,
    ("timestamp", "timestamp_ntz"): time.between_timestamps,
    ("timestamp_ntz", "string"): text.timestamp_to_string,
    ("timestamp_ntz", "date"): time.timestamp_to_date,
    ("timestamp_ntz", "timestamp"): time.between_timestamps,
}
_ZONED = frozenset({("date", "timestamp"), ("timestamp", "date")})
_ZONED |= {("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp")}


def castable(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether the cast is known.

    >>> castable(pa.int32(), pa.date32())
    False
    """
    kinds = _kind(source), _kind(to)
    return source == to or (kinds[0] == "void" and kinds[1] != "") or kinds in _CASTS


def cast(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """The values as Spark casts them in a session of the given zone; ValueError for an unknown cast."""
    source = values.type
    if source == to:
        return Vector(values)
    if not castable(source, to):
        raise ValueError(f"cannot cast {type_name(source)} to {type_name(to)}: Penstock does not know this cast")
    if pa.types.is_null(source):
        return Vector(pa.nulls(len(values), to))
    return _CASTS[_kind(source), _kind(to)](values, to, zone)


def fails_as_spark(source: pa.DataType, to: pa.DataType) -> bool:
    """Whether a row fails exactly where Spark raises, so that TRY_CAST is null there.

    >>> fails_as_spark(pa.string(), pa.int32()), fails_as_spark(pa.string(), pa.float64())
    (True, False)
    """
    return (_kind(source), _kind(to)) in _EXACT_FAILURES


def cast_direction(source: pa.DataType, to: pa.DataType, zone: str) -> int:
    """+1 when the cast never falls over the rows that do not fail, 0 when that is not known.

    >>> [cast_direction(TIMESTAMP, pa.date32(), zone) for zone in ("UTC", "America/St_Johns")]
    [1, 0]
    """
    if source != to and (_kind(source), _kind(to)) in _ZONED and not is_fixed(zone):
        return 0
    return cast_direction_ignoring_zone(source, to)


def cast_direction_ignoring_zone(source: pa.DataType, to: pa.DataType) -> int:
    """`cast_direction` as if no zone ever turned its clock back."""
    kinds = _kind(source), _kind(to)
    if source == to:
        return 1
    # Negative numbers are true as well: -1, 0, 1 become true, false, true.
    if "string" in kinds or "boolean" in kinds[1:] or kinds not in _CASTS:
        return 0
    return 1


def _kind(t: pa.DataType) -> str:
    if is_integer(t):
        return "integer"
    if is_float(t):
        return "float"
    if is_decimal(t):
        return "decimal"
    return _KINDS.get(t, "")
