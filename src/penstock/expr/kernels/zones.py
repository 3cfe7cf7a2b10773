"""Between an instant and the wall clock of a zone, as Java's `ZoneRules` answers.

Two local times have no plain answer. One that the clock skipped (a gap) is moved forward by the gap's length,
one that the clock showed twice (an overlap) is the earlier of the two. Both come down to one sentence: the
offset from before a transition holds up to the larger of its two local readings. A *day* that begins in a gap
is a third case: Java starts it at the transition, not at the shifted midnight (Toronto, 1919-03-31: the clock
went from 23:30 to 00:30).

Fixed offsets, UTC among them, are one addition, without any table.

Arithmetic near the ends of int64 wraps around: callers fail the rows outside `SAFE`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.expr.kernels.civil import DAY, SECOND, Int64s
from penstock.expr.kernels.vector import Mask
from penstock.expr.kernels.zone_rules import CYCLE, FOLD_FROM, rules_of

# No offset exceeds 18 hours; within these limits neither the way to local time nor the way back can overflow.
SAFE = (-(2**63) + 2 * DAY, 2**63 - 1 - 2 * DAY)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UTC = frozenset({"UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT"})
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})(?::([0-9]{1,2}))?|([0-9]{1,2}):([0-9]{2}):([0-9]{2})|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)


def is_fixed(zone: str) -> bool:
    """Whether a zone has the same offset at all times; ValueError for an unknown zone.

    >>> is_fixed("+02:00"), is_fixed("Europe/Paris")
    (True, False)
    """
    return fixed_offset(zone) is not None or rules_of(zone).instants.size == 0


@lru_cache(maxsize=256)
def fixed_offset(zone: str) -> int | None:
    """The microseconds of `UTC` or of an offset like `+02:00`; None for the name of a region."""
    if zone in _UTC:
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    sign, *parts = (part for part in match.groups() if part is not None)
    hours, minutes, seconds = ([int(part) for part in parts] + [0, 0])[:3]
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise ValueError(f"unknown time zone {zone!r}: an offset goes from -18:00 to +18:00")
    return (-total if sign == "-" else total) * SECOND


def to_local(micros: Int64s, zone: str) -> Int64s:
    """The wall clock of `zone` at these instants, as microseconds of a zoneless calendar.

    >>> to_local(np.array([0]), "America/New_York") // SECOND
    array([-18000])
    """
    fixed = fixed_offset(zone)
    if fixed is not None:
        return micros + fixed
    rules = rules_of(zone)
    folded = _folded(micros)
    return micros + rules.offsets[np.searchsorted(rules.instants, folded, side="right")]


def in_zone(value: Any, zone: str) -> Any:
    """A moment on the clock of a zone; anything else, including a time without a zone, unchanged.

    >>> str(in_zone(datetime(2026, 5, 17, 6, 40, tzinfo=UTC), "Asia/Tokyo"))
    '2026-05-17 15:40:00+09:00'
    """
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    micros = np.array([(value - _EPOCH) // timedelta(microseconds=1)], np.int64)
    offset = timedelta(microseconds=int((to_local(micros, zone) - micros)[0]))
    try:
        return value.astimezone(timezone(offset))
    except OverflowError:  # the last hours of Python's calendar
        return value


def from_local(local: Int64s, zone: str) -> Int64s:
    """The instants at which the clock of `zone` showed these local times.

    >>> from_local(np.array([0]), "America/New_York") // SECOND
    array([18000])
    """
    fixed = fixed_offset(zone)
    if fixed is not None:
        return local - fixed
    rules = rules_of(zone)
    return local - rules.offsets[_place(local, zone)]


def keep_offset(local: Int64s, offset: Int64s, zone: str) -> Int64s:
    """The same, but where a local time has two instants, the one with this offset, as Java prefers it."""
    kept = local - offset
    if fixed_offset(zone) is not None:
        return kept
    return np.where(to_local(kept, zone) == local, kept, from_local(local, zone))


def start_of_day(local_midnights: Int64s, zone: str) -> Int64s:
    """The first instants of the days that begin at these local times."""
    instants = from_local(local_midnights, zone)
    if is_fixed(zone):
        return instants
    rules = rules_of(zone)
    # After a gap the clock reads later than that midnight: the day began at the transition itself.
    late = to_local(instants, zone) - local_midnights
    passed = np.searchsorted(rules.instants, _folded(instants), side="right")
    since = _folded(instants) - rules.instants[np.maximum(passed - 1, 0)]
    return np.where(late > 0, instants - since, instants)


@lru_cache(maxsize=256)
def clock_spread(zone: str) -> int:
    """The most by which two readings of a zone's clock at one instant may differ: its largest offset less its smallest.

    >>> clock_spread("America/New_York") // SECOND
    3600
    """
    if is_fixed(zone):
        return 0
    offsets = rules_of(zone).offsets
    return int(offsets.max() - offsets.min())


def near_clock_change(micros: Int64s, window: int, zone: str) -> Mask:
    """Where the clock of a zone that is not fixed changes within `window` of an instant."""
    instants = rules_of(zone).instants
    before, after = (np.searchsorted(instants, _folded(micros + shift)) for shift in (-window, window))
    return np.asarray(before != after, np.bool_)


def _place(local: Int64s, zone: str) -> Int64s:
    return np.searchsorted(_local_limits(zone), _folded(local), side="right")


@lru_cache(maxsize=64)
def _local_limits(zone: str) -> Int64s:
    """For each transition the local time up to which the offset before it is taken."""
    rules = rules_of(zone)
    return rules.instants + np.maximum(rules.offsets[:-1], rules.offsets[1:])


def _folded(micros: Int64s) -> Int64s:
    beyond = micros >= FOLD_FROM
    if not beyond.any():
        return micros
    return np.where(beyond, (micros - FOLD_FROM) % CYCLE + FOLD_FROM - CYCLE, micros)
