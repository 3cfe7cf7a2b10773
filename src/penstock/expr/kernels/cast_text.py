"""Casts from and to strings, by Spark's own grammars (`UTF8String`, `SparkDateTimeUtils`), not Python's or
Arrow's.

Each grammar is a regular expression over the trimmed text. What it does not match fails: either Spark raises
there, or it is one of the forms that only Java reads (hexadecimal doubles, `1.5d`, a time without a date,
which means today). Python's `int`, `float` and `Decimal` see only text that a grammar has let through, so
their own liberties (underscores, other scripts' digits) never count.

>>> parse_date("2024-2-29T09:00"), parse_date("1970")
(19782, 0)

Strings repeat, so each distinct value is read once.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.cast_number import narrow_parsed
from penstock.expr.kernels.cast_time import in_doubt, local_micros, timestamps_from_local
from penstock.expr.kernels.civil import DAY, SECOND, month_length, to_days
from penstock.expr.kernels.decimals import from_unscaled, to_unscaled
from penstock.expr.kernels.physical import by_distinct, numbers, valid, vector
from penstock.expr.kernels.vector import Vector, union
from penstock.expr.kernels.zone_rules import region_names
from penstock.expr.kernels.zones import fixed_offset, from_local
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, integer_range

# `UTF8String.trimAll` removes ASCII white space and controls, Java's `String.trim` all up to a space.
_TRIM_ALL = "".join(map(chr, range(0x21))) + "\x7f"
_TRIM = "".join(map(chr, range(0x21)))

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf"}
_SPECIAL |= {"-inf": "-inf", "-infinity": "-inf"}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
# Enough digits for any 38-digit decimal; longer text is left to Spark.
_LONGEST_NUMBER = 120
_EXACT = Context(prec=400)


def parse_integer(text: str, to: pa.DataType) -> int:
    """Digits with a sign; no point, no exponent."""
    trimmed = text.strip(_TRIM_ALL)
    low, high = integer_range(to)
    if len(trimmed) > _LONGEST_NUMBER or not _INTEGER.fullmatch(trimmed) or not low <= int(trimmed) <= high:
        raise ValueError(text)
    return int(trimmed)


def parse_double(text: str) -> float:
    """Decimal digits with an exponent, and the words for NaN and the infinities in any case."""
    trimmed = text.strip(_TRIM)
    if _NUMBER.fullmatch(trimmed):
        return float(trimmed)
    if trimmed.isascii() and trimmed.lower() in _SPECIAL:
        return float(_SPECIAL[trimmed.lower()])
    raise ValueError(text)


def parse_decimal(text: str, to: pa.DataType) -> Decimal:
    """Decimal digits with an exponent, rounded HALF_UP to the scale."""
    trimmed = text.strip(_TRIM)
    if len(trimmed) > _LONGEST_NUMBER or not _NUMBER.fullmatch(trimmed):
        raise ValueError(text)
    try:
        exact = Decimal(trimmed)
        if exact.adjusted() > _LONGEST_NUMBER:
            raise ValueError(text)
        if exact.adjusted() < -_LONGEST_NUMBER:
            return from_unscaled(0, to.scale)
        rounded = exact.quantize(from_unscaled(1, to.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        raise ValueError(text) from None
    if abs(to_unscaled(rounded, to.scale)) >= 10**to.precision:
        raise ValueError(text)
    return rounded


def parse_boolean(text: str) -> bool:
    """The words of Postgres."""
    trimmed = text.strip(_TRIM_ALL)
    word = trimmed.lower() if trimmed.isascii() else ""
    if word not in _TRUE | _FALSE:
        raise ValueError(text)
    return word in _TRUE


def parse_date(text: str) -> int:
    """`yyyy`, `yyyy-m` or `yyyy-m-d`; after a whole date anything may follow a space or a `T`."""
    match = _DATE.fullmatch(text.strip(_TRIM_ALL))
    if match is None:
        raise ValueError(text)
    days = _days(*(1 if part is None else int(part) for part in match.groups()))
    if not -(2**31) <= days < 2**31:
        raise ValueError(text)
    return days


def parse_timestamp(text: str) -> tuple[int, str | None]:
    """Microseconds on the clock, and the zone that the text names; digits after the sixth are dropped."""
    match = _TIMESTAMP.fullmatch(text.strip(_TRIM_ALL))
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    days = _days(int(year), int(month or 1), int(day or 1))
    clock = [int(part or 0) for part in (hour, minute, second)]
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        raise ValueError(text)
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2]
    micros = days * DAY + seconds * SECOND + int((fraction or "")[:6].ljust(6, "0"))
    if not -(2**63) <= micros < 2**63:
        raise ValueError(text)
    return micros, None if zone is None else _known_zone(zone.strip(_TRIM))


def string_to_integer(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    plain = _all_plain(values, r"^-?[0-9]{1,18}$", to)
    return Vector(plain) if plain is not None else by_distinct(values, to, lambda text: parse_integer(text, to))


def string_to_float(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """To the nearest double; as a float it fails where rounding twice could matter."""
    double = by_distinct(values, pa.float64(), parse_double)
    return double if to == pa.float64() else narrow_parsed(double)


def string_to_decimal(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    return by_distinct(values, to, lambda text: parse_decimal(text, to))


def string_to_date(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    plain = _all_plain(values, r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$", to)
    return Vector(plain) if plain is not None else by_distinct(values, to, parse_date)


def string_to_timestamp(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """In the zone that the text names, or else the session's; a TIMESTAMP_NTZ ignores the zone of a text."""
    if to == TIMESTAMP_NTZ:
        return by_distinct(values, to, lambda text: parse_timestamp(text)[0])
    # Times without a zone are kept as local times and go through the session's zone together.
    local = by_distinct(values, TIMESTAMP_NTZ, _local_only)
    zoned = by_distinct(values, TIMESTAMP, _instant_only)
    zoneless = timestamps_from_local(numbers(local.values), valid(local.values), zone)
    neither = None if local.failed is None or zoned.failed is None else local.failed & zoned.failed
    return Vector(pc.coalesce(zoneless.values, zoned.values), union(zoneless.failed, neither))


def _all_plain(values: pa.Array, pattern: str, to: pa.DataType) -> pa.Array | None:
    """What Arrow reads of texts that are all of a form on which it and Spark agree; None when one is not."""
    if pc.all(pc.match_substring_regex(values, pattern)).as_py() is False:
        return None
    try:
        return values.cast(to)
    except pa.ArrowInvalid:  # out of range, or not a date
        return None


def date_to_string(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """`yyyy-MM-dd`; years that do not have four digits fail."""
    return by_distinct(values.view(pa.int32()), to, _written_day)


def timestamp_to_string(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """`yyyy-MM-dd HH:mm:ss` with as much of a fraction as there is, on the clock of the session's zone."""
    local, failed = local_micros(values, zone)
    shown = by_distinct(vector(local, pa.int64(), valid(values), failed).values, to, _written_micros)
    return Vector(shown.values, union(shown.failed, failed & valid(values)))


def _local_only(text: str) -> int:
    micros, zone = parse_timestamp(text)
    if zone is not None:
        raise ValueError(text)
    return micros


def _instant_only(text: str) -> int:
    micros, zone = parse_timestamp(text)
    if zone is None or in_doubt(np.array([micros]), zone)[0]:
        raise ValueError(text)
    return int(from_local(np.array([micros]), zone)[0])


def _known_zone(name: str) -> str:
    if fixed_offset(name) is None and name not in region_names():
        raise ValueError(name)
    return name


def _days(year: int, month: int = 1, day: int = 1) -> int:
    years, months = np.array([year], np.int64), np.array([month], np.int64)
    if not 1 <= month <= 12 or not 1 <= day <= int(month_length(years, months)[0]):
        raise ValueError(f"{year}-{month}-{day}")
    return int(to_days(years, months, np.array([day], np.int64))[0])


def _written_day(days: int) -> str:
    day = str(np.datetime64(days, "D"))
    if len(day) != len("yyyy-MM-dd") or day < "0001":
        raise ValueError(days)
    return day


def _written_micros(micros: int) -> str:
    clock = str(np.datetime64(micros % DAY, "us"))[11:]
    return f"{_written_day(micros // DAY)} {clock.rstrip('0').rstrip('.') if '.000000' not in clock else clock[:8]}"
