"""Dates and timestamps moved by an interval of one unit: `ts - INTERVAL 7 DAYS`, `d + INTERVAL '1' MONTH`.

Binding turns `x - INTERVAL n unit` into `add_interval(x, -n, 'unit')`. A date moved by days, weeks, months or years
stays a date; moved by hours or less it becomes a timestamp, as in Spark. On a timestamp, whole days, months and years
are moved on the wall clock of the session's zone, and where the clock shows a time twice, Java keeps the offset that
it came from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.expr.functions.function import Constants, Function, Law, Signature
from penstock.expr.kernels.cast_time import in_doubt
from penstock.expr.kernels.civil import DAY, add_months
from penstock.expr.kernels.physical import Numbers, fail_all, numbers, valid, vector
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.kernels.zones import keep_offset, to_local
from penstock.expr.types import TIMESTAMP, is_timestamp

NAME = "add_interval"
_MONTHS = {"YEAR": 12, "MONTH": 1}
_MICROS = {"WEEK": 7 * DAY, "DAY": DAY, "HOUR": DAY // 24, "MINUTE": 60_000_000, "SECOND": 1_000_000}
_MICROS["MICROSECOND"] = 1
UNITS = frozenset(_MONTHS) | frozenset(_MICROS)  # microseconds are how Spark itself sends days and less
# Beyond these, a result may leave the range of the type; Spark raises there, or wraps.
_SAFE_MICROS, _SAFE_DAYS = 1 << 62, 1 << 30


def _signature(types: Sequence[pa.DataType], constants: Constants) -> Signature | None:
    if len(types) != 3 or constants[1] is None or constants[2] is None or constants[1][0] is None:
        return None
    unit, is_date = str(constants[2][0]), pa.types.is_date(types[0])
    if not (is_timestamp(types[0]) or is_date) or unit not in UNITS:
        return None
    moved = TIMESTAMP if is_date and unit in ("HOUR", "MINUTE", "SECOND", "MICROSECOND") else types[0]
    return Signature((moved, pa.int64(), pa.string()), moved)


def _kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
    values, amounts, units = arrays
    if not len(values):
        return Vector(values)
    amount, unit = int(amounts[0].as_py()), str(units[0].as_py())
    if abs(amount) * _MICROS.get(unit, 366 * DAY) >= _SAFE_MICROS:
        return fail_all(values, values.type)
    raw = numbers(values).astype(np.int64)
    if pa.types.is_date(values.type):
        moved = add_months(raw, amount * _MONTHS[unit]) if unit in _MONTHS else raw + amount * _MICROS[unit] // DAY
        failed = _beyond(moved, _SAFE_DAYS)
    else:
        moved, failed = _move_timestamps(raw, amount, unit, zone if values.type == TIMESTAMP else "UTC")
    return vector(moved, values.type, valid(values), failed)


def _beyond(moved: Numbers, limit: int) -> Mask:
    return np.asarray((moved >= limit) | (moved <= -limit), np.bool_)  # the absolute value of the smallest overflows


def _move_timestamps(micros: Numbers, amount: int, unit: str, zone: str) -> tuple[Numbers, Mask]:
    too_far = _beyond(micros, _SAFE_MICROS // 2)
    local = to_local(np.where(too_far, 0, micros), zone)
    if unit in _MONTHS:
        moved, rest = add_months(local // DAY, amount * _MONTHS[unit]) * DAY + local % DAY, 0
    else:
        total = amount * _MICROS[unit]
        days = abs(total) // DAY * (1 if total >= 0 else -1)  # toward zero, as Java divides
        moved, rest = local + days * DAY, total - days * DAY
    too_far |= _beyond(moved, _SAFE_MICROS)
    instant = keep_offset(np.where(too_far, 0, moved), local - micros, zone)
    return instant + rest, too_far | in_doubt(micros, zone)


def _law(argument: int, constants: Constants) -> Law | None:
    if argument != 0 or constants[2] is None:
        return None
    # The day of a month is cut at the month's end, the time of day is not: the order is right up to a day.
    return Law(1, clock=True, slack=DAY if constants[2][0] in _MONTHS else 0)


INTERVAL_FUNCTIONS = (Function(NAME, _signature, _kernel, _law),)
