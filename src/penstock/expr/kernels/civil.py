"""The proleptic Gregorian calendar over arrays: days since 1970-01-01 to year, month and day, and back.

It is NumPy's, in 64 bits: days before 1970 and years before 1 need no case of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def to_days(year: Int64s, month: Int64s, day: Int64s) -> Int64s:
    """Days since the epoch.

    >>> to_days(np.array([1969]), np.array([12]), np.array([31]))
    array([-1])
    """
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64) + day - 1


def to_civil(days: npt.NDArray[np.integer]) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month and day of each day number.

    >>> [int(part[0]) for part in to_civil(np.array([-1]))]
    [1969, 12, 31]
    """
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    since_1970 = months.astype(np.int64)
    day = (dates - months.astype("datetime64[D]")).astype(np.int64) + 1
    return since_1970 // 12 + 1970, since_1970 % 12 + 1, day


def month_length(year: Int64s, month: Int64s) -> Int64s:
    first = np.ones_like(month)
    return to_days(year, month + 1, first) - to_days(year, month, first)


def add_months(days: npt.NDArray[np.integer], months: npt.NDArray[np.integer] | int) -> Int64s:
    """The same day of another month, or that month's last."""
    year, month, day = to_civil(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return to_days(year, month, np.minimum(day, month_length(year, month)))
