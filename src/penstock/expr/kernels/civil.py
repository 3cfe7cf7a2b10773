"""The proleptic Gregorian calendar over arrays: days since 1970-01-01 to year, month and day, and back.

Integers only and floor division throughout, so days before 1970 and years before 1 need no case of their own.
The algorithms are Howard Hinnant's (https://howardhinnant.github.io/date_algorithms.html), exact over all of
int64 that int32 days can reach.
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
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return np.asarray(era * 146_097 + day_of_era - 719_468, np.int64)


def to_civil(days: npt.NDArray[np.integer]) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month and day of each day number.

    >>> [int(part[0]) for part in to_civil(np.array([-1]))]
    [1969, 12, 31]
    """
    shifted = days.astype(np.int64) + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    part = (5 * day_of_year + 2) // 153
    month = part + np.where(part < 10, 3, -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * part + 2) // 5 + 1


def is_leap(year: Int64s) -> npt.NDArray[np.bool_]:
    """Whether the years have a 29th of February."""
    return np.asarray((year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0)), np.bool_)


def month_length(year: Int64s, month: Int64s) -> Int64s:
    """The number of days in each month."""
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
    return np.asarray(lengths[month] + ((month == 2) & is_leap(year)), np.int64)


def add_months(days: npt.NDArray[np.integer], months: npt.NDArray[np.integer] | int) -> Int64s:
    """The same day of another month, or that month's last."""
    year, month, day = to_civil(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return to_days(year, month, np.minimum(day, month_length(year, month)))
