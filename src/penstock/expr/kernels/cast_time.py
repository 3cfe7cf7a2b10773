"""Casts between dates, timestamps and zoneless timestamps: where the session's zone decides which day it is.

A TIMESTAMP is an instant, a DATE and a TIMESTAMP_NTZ are readings of a calendar and a clock. In UTC, and in
every fixed offset, the way between them is one addition; elsewhere it goes through the zone's transitions.
Days and seconds of instants before 1970 are computed by floor division: one microsecond before the epoch is
1969-12-31.

Rows fail where the result does not fit its type, and where this machine's zone data cannot be trusted to be
Java's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.civil import DAY, SECOND, Int64s
from penstock.expr.kernels.physical import integer_vector, numbers, valid, vector
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.kernels.zone_rules import rules_of
from penstock.expr.kernels.zones import SAFE, fixed_offset, from_local, start_of_day, to_local
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ

_DATE = pa.date32()
_MOST_DAYS = (2**63 - 1) // DAY


def in_doubt(micros: Int64s, zone: str) -> Mask:
    """The rows whose way through a zone could overflow, or that lie before what is known of the zone."""
    if fixed_offset(zone) == 0:
        return np.zeros(micros.shape, np.bool_)
    doubtful = (micros < SAFE[0]) | (micros > SAFE[1])
    if fixed_offset(zone) is None:
        doubtful |= micros < rules_of(zone).known_from
    return np.asarray(doubtful, np.bool_)


def local_micros(values: pa.Array, zone: str) -> tuple[Int64s, Mask]:
    """What the clock shows at a date, timestamp or zoneless timestamp, and the rows that fail."""
    stored = numbers(values).astype(np.int64)
    if values.type == _DATE:
        beyond = np.abs(stored) > _MOST_DAYS
        return np.where(beyond, 0, stored) * DAY, beyond
    if values.type == TIMESTAMP_NTZ:
        return stored, np.zeros(stored.shape, np.bool_)
    doubtful = in_doubt(stored, zone)
    return to_local(np.where(doubtful, 0, stored), zone), doubtful


def date_to_timestamp(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """The start of the day, in the session's zone for a TIMESTAMP."""
    local, failed = local_micros(values, zone)
    if to == TIMESTAMP_NTZ:
        return vector(local, to, valid(values), failed)
    failed = failed | in_doubt(local, zone)
    return vector(start_of_day(np.where(failed, 0, local), zone), to, valid(values), failed)


def timestamp_to_date(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """The day on which an instant falls."""
    local, failed = local_micros(values, zone)
    return vector(local // DAY, to, valid(values), failed)


def between_timestamps(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """An instant to its reading on the clock, or back."""
    if to == TIMESTAMP_NTZ:
        local, failed = local_micros(values, zone)
        return vector(local, to, valid(values), failed)
    return timestamps_from_local(numbers(values), valid(values), zone)


def timestamps_from_local(local: Int64s, known: Mask, zone: str) -> Vector:
    """The instants of readings on the clock of a zone."""
    doubtful = in_doubt(local, zone)
    return vector(from_local(np.where(doubtful, 0, local), zone), TIMESTAMP, known, doubtful)


def seconds_to_timestamp(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """Whole seconds since the epoch. Spark does not fail beyond the range: it takes the nearest end of it."""
    seconds = numbers(values).astype(np.int64)
    limit = (2**63 - 1) // SECOND
    inside = np.clip(seconds, -limit, limit) * SECOND
    micros = np.where(seconds > limit, 2**63 - 1, np.where(seconds < -limit, -(2**63), inside))
    return vector(micros, to, valid(values))


def timestamp_to_seconds(values: pa.Array, to: pa.DataType, zone: str) -> Vector:
    """Whole seconds since the epoch, rounded down."""
    return integer_vector(numbers(values) // SECOND, to, valid(values))
