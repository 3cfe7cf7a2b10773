"""Functions of dates and times: parts of the calendar, truncation, days added, and counts since the epoch.

Spark reads most of these from a DATE and casts what it is given to one, so their signatures ask for a date
and the evaluator's cast applies the session's zone. Only the time of day and `date_trunc` look at an instant
themselves.

A unit that Spark does not know makes `date_trunc` and `trunc` null, it does not raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from penstock.predicate.cast_time import in_doubt, local_micros
from penstock.predicate.civil import DAY, HOUR, MINUTE, SECOND, Int64s, month_length, to_civil, to_days
from penstock.predicate.function import FALLING, RISING, Constants, Function, Law, Signature, rising
from penstock.predicate.functions_arithmetic import shift_days
from penstock.predicate.functions_text import uniform
from penstock.predicate.physical import all_valid, numbers, valid, vector
from penstock.predicate.signatures import BIGINT, DATE, INT, STRING, Types, clock_type, exactly, is_time
from penstock.predicate.types import TIMESTAMP, is_integer
from penstock.predicate.vector import Vector
from penstock.predicate.zones import keep_offset, start_of_day, to_local

_Kernel = Callable[[Sequence[pa.Array], str], Vector]

_UNITS = {
    "YEAR": ("YEAR", "YYYY", "YY"),
    "QUARTER": ("QUARTER",),
    "MONTH": ("MONTH", "MON", "MM"),
    "WEEK": ("WEEK",),
    "DAY": ("DAY", "DD"),
    "HOUR": ("HOUR",),
    "MINUTE": ("MINUTE",),
    "SECOND": ("SECOND",),
    "MILLISECOND": ("MILLISECOND",),
    "MICROSECOND": ("MICROSECOND",),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_DATE_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK"})
_STEPS = {"DAY": DAY, "HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MILLISECOND": 1000, "MICROSECOND": 1}


def _of_date(part: Callable[[Int64s], Int64s], to: pa.DataType = INT) -> _Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        found = part(numbers(arrays[0]).astype(np.int64))
        beyond = (found >= 2**31) | (found < -(2**31))
        return vector(np.where(beyond, 0, found), to, valid(arrays[0]), beyond)

    return kernel


def _day_of_year(days: Int64s) -> Int64s:
    year = to_civil(days)[0]
    first = np.ones_like(year)
    return days - to_days(year, first, first) + 1


def _week_of_year(days: Int64s) -> Int64s:
    """The ISO week: that of its Thursday."""
    thursday = days - (days + 3) % 7 + 3
    return (_day_of_year(thursday) - 1) // 7 + 1


def _last_day(days: Int64s) -> Int64s:
    year, month, day = to_civil(days)
    return days - day + month_length(year, month)


def truncate_days(days: Int64s, unit: str) -> Int64s:
    """The first day of the year, quarter, month or week; weeks begin on Monday."""
    if unit == "WEEK":
        return days - (days + 3) % 7
    year, month, _ = to_civil(days)
    first = {"YEAR": np.ones_like(month), "QUARTER": (month - 1) // 3 * 3 + 1, "MONTH": month}[unit]
    return to_days(year, first, np.ones_like(month))


def _of_clock(unit: int, modulus: int) -> _Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        local, failed = local_micros(arrays[0], zone)
        return vector(local // unit % modulus, INT, valid(arrays[0]), failed)

    return kernel


def _clock(types: Types, constants: Constants) -> Signature | None:
    return Signature((clock_type(types[0]),), INT) if len(types) == 1 and is_time(types[0]) else None


def _unit_of(values: pa.Array) -> str | None:
    return _named_unit(uniform(values))


def _truncating(unit: int, to: pa.DataType) -> Callable[[Types, Constants], Signature | None]:
    """The unit must be a constant."""
    arguments = [STRING, to] if unit == 0 else [to, STRING]
    typed = exactly(arguments, to)
    return lambda types, constants: typed(types, constants) if len(types) == 2 and constants[unit] is not None else None


def _date_trunc(arrays: Sequence[pa.Array], zone: str) -> Vector:
    unit = _unit_of(arrays[0])
    values = arrays[1]
    if unit is None:
        return Vector(pa.nulls(len(values), TIMESTAMP))
    micros = numbers(values)
    if unit in ("SECOND", "MILLISECOND", "MICROSECOND"):
        failed = micros < -(2**63) + SECOND
        safe = np.where(failed, 0, micros)
        return vector(safe - safe % _STEPS[unit], TIMESTAMP, valid(values), failed)
    # A year, at most, is taken away.
    failed = in_doubt(micros, zone) | (micros < -(2**63) + 370 * DAY)
    safe = np.where(failed, 0, micros)
    local = to_local(safe, zone)
    if unit in _DATE_UNITS:
        found = start_of_day(truncate_days(local // DAY, unit) * DAY, zone)
    else:
        found = keep_offset(local - local % _STEPS[unit], local - safe, zone)
    return vector(found, TIMESTAMP, valid(values), failed | in_doubt(found, zone))


def _trunc(arrays: Sequence[pa.Array], zone: str) -> Vector:
    unit = _unit_of(arrays[1])
    if unit not in _DATE_UNITS or unit is None:
        return Vector(pa.nulls(len(arrays[0]), DATE))
    level = unit
    return _of_date(lambda days: truncate_days(days, level), DATE)(arrays[:1], zone)


def _days_between(arrays: Sequence[pa.Array], zone: str) -> Vector:
    found = numbers(arrays[0]).astype(np.int64) - numbers(arrays[1]).astype(np.int64)
    beyond = (found >= 2**31) | (found < -(2**31))
    return vector(np.where(beyond, 0, found), INT, all_valid(*arrays), beyond)


def _add_months(arrays: Sequence[pa.Array], zone: str) -> Vector:
    """The same day of another month, or that month's last."""
    year, month, day = to_civil(numbers(arrays[0]))
    months = year * 12 + month - 1 + numbers(arrays[1]).astype(np.int64)
    year, month = months // 12, months % 12 + 1
    found = to_days(year, month, np.minimum(day, month_length(year, month)))
    beyond = (found >= 2**31) | (found < -(2**31))
    return vector(np.where(beyond, 0, found), DATE, all_valid(*arrays), beyond)


def _make_date(arrays: Sequence[pa.Array], zone: str) -> Vector:
    year, month, day = (numbers(values).astype(np.int64) for values in arrays)
    failed = (month < 1) | (month > 12) | (day < 1)
    month = np.where(failed, 1, month)
    failed |= day > month_length(year, month)
    found = to_days(year, month, np.where(failed, 1, day))
    failed |= (found >= 2**31) | (found < -(2**31))
    return vector(np.where(failed, 0, found), DATE, all_valid(*arrays), failed)


def _unchanged(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return Vector(arrays[0])


def _as(to: pa.DataType) -> _Kernel:
    return lambda arrays, zone: vector(numbers(arrays[0]), to, valid(arrays[0]))


def _units_since_epoch(unit: int) -> _Kernel:
    return lambda arrays, zone: vector(numbers(arrays[0]) // unit, BIGINT, valid(arrays[0]))


def _from_units(unit: int) -> _Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        found = numbers(arrays[0]).astype(np.int64)
        limit = (2**63 - 1) // unit
        beyond = (found > limit) | (found < -limit - (unit == 1))
        return vector(np.where(beyond, 0, found) * unit, TIMESTAMP, valid(arrays[0]), beyond)

    return kernel


def _integral(types: Types, constants: Constants) -> Signature | None:
    return Signature((BIGINT,), TIMESTAMP) if len(types) == 1 and is_integer(types[0]) else None


def _trunc_law(argument: int, constants: Constants) -> Law | None:
    return RISING if argument == 0 and _named_unit(constants[1]) in _DATE_UNITS else None


def _first_rises_second_falls(argument: int, constants: Constants) -> Law | None:
    return (RISING, FALLING)[argument]


def _date_trunc_law(argument: int, constants: Constants) -> Law | None:
    return Law(1, clock=True) if argument == 1 and _named_unit(constants[0]) is not None else None


def _named_unit(constant: tuple[object] | None) -> str | None:
    return _UNIT_OF.get(str(constant[0]).upper()) if constant is not None else None


_date_part = exactly([DATE], INT)
_date_to_date = exactly([DATE], DATE)
_to_timestamp = exactly([TIMESTAMP], TIMESTAMP)


def _only(given: pa.DataType, result: pa.DataType) -> Callable[[Types, Constants], Signature | None]:
    """These few functions cast nothing of their own accord."""
    return lambda types, constants: Signature((given,), result) if list(types) == [given] else None


_since_epoch = _only(TIMESTAMP, BIGINT)
_shifting = exactly([DATE, INT], DATE)
_between = exactly([DATE, DATE], INT)
_day = _of_date(lambda days: to_civil(days)[2])


def _date_shift(sign: int) -> _Kernel:
    return lambda arrays, zone: shift_days(arrays, sign)


TIME_FUNCTIONS = (
    Function("year", _date_part, _of_date(lambda days: to_civil(days)[0]), rising, catalyst=("Year",)),
    Function("quarter", _date_part, _of_date(lambda days: (to_civil(days)[1] + 2) // 3), catalyst=("Quarter",)),
    Function("month", _date_part, _of_date(lambda days: to_civil(days)[1]), catalyst=("Month",)),
    Function("day", _date_part, _day, aliases=("dayofmonth",), catalyst=("DayOfMonth",)),
    Function("dayofweek", _date_part, _of_date(lambda days: (days + 4) % 7 + 1), catalyst=("DayOfWeek",)),
    Function("weekday", _date_part, _of_date(lambda days: (days + 3) % 7), catalyst=("WeekDay",)),
    Function("dayofyear", _date_part, _of_date(_day_of_year), catalyst=("DayOfYear",)),
    Function("weekofyear", _date_part, _of_date(_week_of_year), catalyst=("WeekOfYear",)),
    Function("hour", _clock, _of_clock(HOUR, 24), catalyst=("Hour",)),
    Function("minute", _clock, _of_clock(MINUTE, 60), catalyst=("Minute",)),
    Function("second", _clock, _of_clock(SECOND, 60), catalyst=("Second",)),
    Function("last_day", _date_to_date, _of_date(_last_day, DATE), rising, catalyst=("LastDay",)),
    Function("date_add", _shifting, _date_shift(1), rising, aliases=("dateadd",), catalyst=("DateAdd",)),
    Function("date_sub", _shifting, _date_shift(-1), _first_rises_second_falls, catalyst=("DateSub",)),
    Function(
        "datediff",
        _between,
        _days_between,
        _first_rises_second_falls,
        aliases=("date_diff",),
        catalyst=("DateDiff",),
    ),
    Function("add_months", _shifting, _add_months, rising, catalyst=("AddMonths",)),
    Function("date_trunc", _truncating(0, TIMESTAMP), _date_trunc, _date_trunc_law, catalyst=("TruncTimestamp",)),
    Function("trunc", _truncating(1, DATE), _trunc, _trunc_law, catalyst=("TruncDate",)),
    Function("to_date", _date_to_date, _unchanged, rising, aliases=("date",)),
    Function("to_timestamp", _to_timestamp, _unchanged, rising, aliases=("timestamp",)),
    Function("unix_date", _only(DATE, INT), _as(INT), rising, catalyst=("UnixDate",)),
    Function("date_from_unix_date", exactly([INT], DATE), _as(DATE), rising, catalyst=("DateFromUnixDate",)),
    Function("unix_seconds", _since_epoch, _units_since_epoch(SECOND), rising, catalyst=("UnixSeconds",)),
    Function("unix_millis", _since_epoch, _units_since_epoch(1000), rising, catalyst=("UnixMillis",)),
    Function("unix_micros", _since_epoch, _units_since_epoch(1), rising, catalyst=("UnixMicros",)),
    Function("timestamp_seconds", _integral, _from_units(SECOND), rising, catalyst=("SecondsToTimestamp",)),
    Function("timestamp_millis", _integral, _from_units(1000), rising, catalyst=("MillisToTimestamp",)),
    Function("timestamp_micros", _integral, _from_units(1), rising, catalyst=("MicrosToTimestamp",)),
    Function("make_date", exactly([INT, INT, INT], DATE), _make_date, catalyst=("MakeDate",)),
)
