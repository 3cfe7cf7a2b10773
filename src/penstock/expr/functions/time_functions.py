"""Functions of dates and times: parts of the calendar, truncation, days added, and counts since the epoch.

Spark reads most of these from a DATE and casts its argument to one, so their signatures ask for a date
and the evaluator's cast applies the session's zone. Only the time of day and `date_trunc` look at an instant
themselves.

A unit that Spark does not know makes `date_trunc` and `trunc` null, it does not raise.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.expr.functions.function import Constants, Function, Kernel, Law, Signature, opposed, rising, rising_first
from penstock.expr.functions.kernel_shapes import Answer, of_integers, unchanged, uniform
from penstock.expr.functions.signatures import (
    BIGINT,
    DATE,
    INT,
    STRING,
    Types,
    as_int,
    clock_type,
    exactly,
    is_time,
    unary,
    widen,
    with_constant,
)
from penstock.expr.kernels.cast_time import between_timestamps, in_doubt, local_micros
from penstock.expr.kernels.civil import DAY, HOUR, MINUTE, SECOND, Int64s, add_months, month_length, to_civil, to_days
from penstock.expr.kernels.decimals import rescaled, unscaled
from penstock.expr.kernels.physical import all_valid, integer_vector, numbers, valid, vector
from penstock.expr.kernels.vector import Vector
from penstock.expr.kernels.zones import keep_offset, start_of_day, to_local
from penstock.expr.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_float, is_integer, is_numeric

_STEPS = {"DAY": DAY, "HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND, "MILLISECOND": 1000, "MICROSECOND": 1}
_DATE_UNITS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK"})
_UNIT_OF = {unit: unit for unit in (*_DATE_UNITS, *_STEPS)}
_UNIT_OF |= {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY"}
# Days of the week, counted from that of 1970-01-01, with their short names.
_WEEKDAYS = ("THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY")
_WEEKDAY_OF = {name: day for day, word in enumerate(_WEEKDAYS) for name in (word, word[:3], word[:2])}
_SAFE_DAYS = 100_000_000  # more of them may not fit a timestamp


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


def _civil(part: int) -> Kernel:
    """The year, month or day of a date."""
    return of_integers(lambda days: to_civil(days)[part], INT)


def _of_clock(unit: int, modulus: int) -> Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        local, failed = local_micros(arrays[0], zone)
        return vector(local // unit % modulus, INT, valid(arrays[0]), failed)

    return kernel


def _date_trunc(arrays: Sequence[pa.Array], zone: str) -> Vector:
    unit, values = _named_unit(uniform(arrays[0])), arrays[1]
    if unit is None:
        return Vector(pa.nulls(len(values), TIMESTAMP))
    micros = numbers(values)
    if unit in ("SECOND", "MILLISECOND", "MICROSECOND"):
        failed = micros < -(2**63) + SECOND
        safe = np.where(failed, 0, micros)
        return vector(safe - safe % _STEPS[unit], TIMESTAMP, valid(values), failed)
    # Truncation subtracts a year at most.
    failed = in_doubt(micros, zone) | (micros < -(2**63) + 370 * DAY)
    safe = np.where(failed, 0, micros)
    local = to_local(safe, zone)
    if unit in _DATE_UNITS:
        truncated = start_of_day(truncate_days(local // DAY, unit) * DAY, zone)
    else:
        truncated = keep_offset(local - local % _STEPS[unit], local - safe, zone)
    return vector(truncated, TIMESTAMP, valid(values), failed | in_doubt(truncated, zone))


def _trunc(arrays: Sequence[pa.Array], zone: str) -> Vector:
    unit = _named_unit(uniform(arrays[1]))
    if unit is None or unit not in _DATE_UNITS:
        return Vector(pa.nulls(len(arrays[0]), DATE))
    return of_integers(lambda days: truncate_days(days, unit))(arrays[:1], zone)


def _date_of(year: Int64s, month: Int64s, day: Int64s) -> Answer:
    failed = (month < 1) | (month > 12) | (day < 1)
    month = np.where(failed, 1, month)
    failed |= day > month_length(year, month)
    return to_days(year, month, np.where(failed, 1, day)), failed


def _make_timestamp(arrays: Sequence[pa.Array], zone: str) -> Vector:
    """A time on the clock of the session's zone; 60 seconds are those of the next minute."""
    year, month, day, hour, minute = (numbers(values).astype(np.int64) for values in arrays[:5])
    date, failed = _date_of(year, month, day)
    micros = unscaled(arrays[5], 0)
    failed |= (hour < 0) | (hour > 23) | (minute < 0) | (minute > 59) | (micros < 0) | (micros > MINUTE)
    failed |= abs(date) > _SAFE_DAYS
    local = np.where(failed, 0, date * DAY + hour * HOUR + minute * MINUTE + micros)
    instants = between_timestamps(vector(local, TIMESTAMP_NTZ, ~failed).values, TIMESTAMP, zone)
    failed |= False if instants.failed is None else instants.failed
    return vector(numbers(instants.values), TIMESTAMP, all_valid(*arrays), failed)


def _time_fields(types: Types, constants: Constants) -> Signature | None:
    if len(types) != 6 or not all(as_int(t) for t in types[:5]) or not (as_int(types[5]) or is_decimal(types[5])):
        return None
    return Signature((*(INT,) * 5, pa.decimal128(16, 6)), TIMESTAMP)


def _next_day(arrays: Sequence[pa.Array], zone: str) -> Vector:
    """The first such day of the week after a date; fails for any other word."""
    days = numbers(arrays[0]).astype(np.int64)
    weekday = np.array([_WEEKDAY_OF.get(str(name).upper(), -1) for name in arrays[1].to_pylist()], np.int64)
    failed = (weekday < 0) | (abs(days) > 2**31 - 16)  # where Java's integers wrap around
    return integer_vector(days + 1 + (weekday - days - 1) % 7, DATE, all_valid(*arrays), failed)


def _counted(unit: int, to: pa.DataType = BIGINT) -> Kernel:
    """How many whole units since the epoch."""
    return of_integers(lambda values: values // unit, to)


def _from_units(unit: int) -> Kernel:
    def compute(counts: Int64s) -> Answer:
        limit = (2**63 - 1) // unit
        beyond = (counts > limit) | (counts < -limit - (unit == 1))
        return np.where(beyond, 0, counts) * unit, beyond

    return of_integers(compute, TIMESTAMP)


def _from_seconds(arrays: Sequence[pa.Array], zone: str) -> Vector:
    """Decimals must be whole microseconds; doubles are cut to them, and NaN is null."""
    values = arrays[0]
    if is_decimal(values.type):
        scale = max(values.type.scale, 6)
        micros = rescaled(unscaled(values, 2 * MAX_PRECISION), values.type.scale, scale)
        unit = 10 ** (scale - 6)
        failed = np.asarray((micros % unit != 0) | (abs(micros) >= unit << 63), np.bool_)
        return vector(np.where(failed, 0, micros // unit), TIMESTAMP, valid(values), failed)
    if not is_float(values.type):
        return _from_units(SECOND)(arrays, zone)
    doubles = np.trunc(numbers(values).astype(np.float64) * SECOND)
    known, failed = valid(values) & ~np.isnan(doubles), ~(abs(doubles) < 2.0**63)
    return vector(np.where(failed, 0, doubles), TIMESTAMP, known, failed)


def _trunc_law(argument: int, constants: Constants) -> Law | None:
    return rising_first(argument, constants) if _named_unit(constants[1]) in _DATE_UNITS else None


def _date_trunc_law(argument: int, constants: Constants) -> Law | None:
    return Law(1, clock=True) if argument == 1 and _named_unit(constants[0]) is not None else None


def _named_unit(constant: tuple[object] | None) -> str | None:
    return _UNIT_OF.get(str(constant[0]).upper()) if constant is not None else None


_date_part = exactly([DATE], INT)
_date_to_date = exactly([DATE], DATE)
_shifting = exactly([DATE, INT], DATE)
_days_between = exactly([DATE, DATE], INT)
_clock = unary(is_time, clock_type, INT)
_integral = unary(is_integer, widen, TIMESTAMP)
_number = unary(is_numeric, widen, TIMESTAMP)
# Spark casts nothing to these implicitly.
_since_epoch = unary(lambda t: t == TIMESTAMP, result=BIGINT)
_only_date = unary(lambda t: t == DATE, result=INT)
_difference = of_integers(operator.sub, INT)

TIME_FUNCTIONS = (
    Function("year", _date_part, _civil(0), rising, catalyst=("Year",)),
    Function("quarter", _date_part, of_integers(lambda days: (to_civil(days)[1] + 2) // 3, INT), catalyst=("Quarter",)),
    Function("month", _date_part, _civil(1), catalyst=("Month",)),
    Function("day", _date_part, _civil(2), aliases=("dayofmonth",), catalyst=("DayOfMonth",)),
    Function("dayofweek", _date_part, of_integers(lambda days: (days + 4) % 7 + 1, INT), catalyst=("DayOfWeek",)),
    Function("weekday", _date_part, of_integers(lambda days: (days + 3) % 7, INT), catalyst=("WeekDay",)),
    Function("dayofyear", _date_part, of_integers(_day_of_year, INT), catalyst=("DayOfYear",)),
    Function("weekofyear", _date_part, of_integers(_week_of_year, INT), catalyst=("WeekOfYear",)),
    Function("hour", _clock, _of_clock(HOUR, 24), catalyst=("Hour",)),
    Function("minute", _clock, _of_clock(MINUTE, 60), catalyst=("Minute",)),
    Function("second", _clock, _of_clock(SECOND, 60), catalyst=("Second",)),
    Function("last_day", _date_to_date, of_integers(_last_day), rising, catalyst=("LastDay",)),
    Function("date_add", _shifting, of_integers(operator.add), rising, aliases=("dateadd",), catalyst=("DateAdd",)),
    Function("date_sub", _shifting, of_integers(operator.sub), opposed, catalyst=("DateSub",)),
    Function("datediff", _days_between, _difference, opposed, aliases=("date_diff",), catalyst=("DateDiff",)),
    Function("add_months", _shifting, of_integers(add_months), rising, catalyst=("AddMonths",)),
    Function(
        "date_trunc",
        with_constant(exactly([STRING, TIMESTAMP], TIMESTAMP), 0),
        _date_trunc,
        _date_trunc_law,
        catalyst=("TruncTimestamp",),
    ),
    Function("trunc", with_constant(exactly([DATE, STRING], DATE), 1), _trunc, _trunc_law, catalyst=("TruncDate",)),
    Function("to_date", _date_to_date, unchanged, rising),
    Function("to_timestamp", exactly([TIMESTAMP], TIMESTAMP), unchanged, rising),
    Function("unix_date", _only_date, _counted(1, INT), rising, catalyst=("UnixDate",)),
    Function("date_from_unix_date", exactly([INT], DATE), _counted(1, DATE), rising, catalyst=("DateFromUnixDate",)),
    Function("unix_seconds", _since_epoch, _counted(SECOND), rising, catalyst=("UnixSeconds",)),
    Function("unix_millis", _since_epoch, _counted(1000), rising, catalyst=("UnixMillis",)),
    Function("unix_micros", _since_epoch, _counted(1), rising, catalyst=("UnixMicros",)),
    Function("timestamp_seconds", _number, _from_seconds, rising, catalyst=("SecondsToTimestamp",)),
    Function("timestamp_millis", _integral, _from_units(1000), rising, catalyst=("MillisToTimestamp",)),
    Function("timestamp_micros", _integral, _from_units(1), rising, catalyst=("MicrosToTimestamp",)),
    Function("make_date", exactly([INT, INT, INT], DATE), of_integers(_date_of, DATE), catalyst=("MakeDate",)),
    Function("make_timestamp", _time_fields, _make_timestamp, catalyst=("MakeTimestamp",)),
    Function("next_day", exactly([DATE, STRING], DATE), _next_day, rising_first, catalyst=("NextDay",)),
)
