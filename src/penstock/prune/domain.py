"""A set of values of one column: disjoint half-open key intervals in order, and whether NULL belongs to it.

A test on one column is a set: the values (and NULL) for which it is *true*. AND is intersection, OR is union, and the
set of a negated test is computed from the test itself, because NOT does not take complements in three-valued logic
(`x = 5` and `NOT x = 5` are both not true for NULL). `complement` here is the plain one, NULL included: it answers
"which values are not in the set", which is what proving that *every* row matches needs.

Sets stay exact at any size: an IN of 10,000 values is 10,000 intervals, searched in binary.

>>> d = Domain.interval(pa.int32(), 5, None) & Domain.points(pa.int32(), [3, 5, 9])
>>> d.intervals
((5, 6), (9, 10))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.prune.ordered_keys import INT64_MAX, INT64_MIN, Key, Keys, key_limits, successor

Interval = tuple[Key | None, Key | None]  # [low, high), None is infinite


@dataclass(frozen=True)
class Domain:
    """The intervals are sorted, disjoint, not adjacent, not empty, and end in None at the limits of the type."""

    type: pa.DataType
    intervals: tuple[Interval, ...]
    null: bool

    @staticmethod
    def all(t: pa.DataType, null: bool = True) -> Domain:
        """Every value."""
        return Domain(t, ((None, None),), null)

    @staticmethod
    def none(t: pa.DataType, null: bool = False) -> Domain:
        """No value but perhaps NULL."""
        return Domain(t, (), null)

    @staticmethod
    def interval(t: pa.DataType, low: Key | None, high: Key | None, null: bool = False) -> Domain:
        """`low <= x < high`."""
        return Domain(t, _normal(t, [(low, high)]), null)

    @staticmethod
    def points(t: pa.DataType, keys: Iterable[Key], null: bool = False) -> Domain:
        """Exactly these keys."""
        return Domain(t, _normal(t, [(key, successor(key)) for key in sorted(set(keys))]), null)

    @staticmethod
    def union_of(t: pa.DataType, intervals: Iterable[Interval], null: bool = False) -> Domain:
        """Any intervals, in any order, overlapping or empty."""
        return Domain(t, _normal(t, intervals), null)

    @property
    def is_empty(self) -> bool:
        """Whether nothing belongs to the set, not even NULL."""
        return not self.intervals and not self.null

    @property
    def is_all(self) -> bool:
        """Whether everything belongs to the set."""
        return self.null and self.has_all_values

    @property
    def has_all_values(self) -> bool:
        """Whether everything but perhaps NULL belongs to the set."""
        return self.intervals == ((None, None),)

    def with_null(self, null: bool) -> Domain:
        """The same values, with or without NULL."""
        return Domain(self.type, self.intervals, null)

    def contains(self, key: Key) -> bool:
        """Whether one key belongs to the set."""
        return any((lo is None or lo <= key) and (hi is None or key < hi) for lo, hi in self.intervals)

    def __and__(self, other: Domain) -> Domain:
        common: list[Interval] = []
        i = j = 0
        a, b = self.intervals, other.intervals
        while i < len(a) and j < len(b):
            low = _later(a[i][0], b[j][0])
            high = _earlier(a[i][1], b[j][1])
            if low is None or high is None or low < high:
                common.append((low, high))
            if high is a[i][1] or (a[i][1] is not None and a[i][1] == high):
                i += 1
            else:
                j += 1
        return Domain(self.type, tuple(common), self.null and other.null)

    def __or__(self, other: Domain) -> Domain:
        return Domain(self.type, _normal(self.type, [*self.intervals, *other.intervals]), self.null or other.null)

    def complement(self) -> Domain:
        """Everything that is not in the set; NULL changes sides too."""
        gaps: list[Interval] = []
        low: Key | None = None
        for i, (start, end) in enumerate(self.intervals):
            if not (i == 0 and start is None):
                gaps.append((low, start))
            low = end
            if end is None:
                break
        else:
            gaps.append((low, None))
        return Domain(self.type, tuple(gaps), not self.null)

    @cached_property
    def key_bounds(self) -> tuple[Keys, Keys]:
        """First and last key of each interval as int64, for types with such keys."""
        first = [INT64_MIN if lo is None else lo for lo, _ in self.intervals]
        last = [INT64_MAX if hi is None else hi - 1 for _, hi in self.intervals]
        return np.array(first, np.int64), np.array(last, np.int64)

    def point_keys(self, most: int) -> list[Key] | None:
        """The keys one by one when there are at most `most`, else None."""
        keys: list[Key] = []
        limits = key_limits(self.type)
        empty: Key = "" if self.type == pa.string() else b""
        for low, high in self.intervals:
            if low is None:
                low = empty if limits is None else limits[0]
            if high is None:
                if limits is None:
                    return None
                high = limits[1] + 1
            if isinstance(low, int):
                if len(keys) + high - low > most:
                    return None
                keys.extend(range(low, high))
            elif high != successor(low) or len(keys) == most:
                return None
            else:
                keys.append(low)
        return keys


def unite(domains: Sequence[Domain]) -> Domain:
    """The union of several domains in one pass."""
    t = domains[0].type
    intervals = [interval for domain in domains for interval in domain.intervals]
    return Domain(t, _normal(t, intervals), any(domain.null for domain in domains))


def _later(a: Key | None, b: Key | None) -> Key | None:
    return b if a is None else (a if b is None else max(a, b))


def _earlier(a: Key | None, b: Key | None) -> Key | None:
    return b if a is None else (a if b is None else min(a, b))


def _normal(t: pa.DataType, intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Clipped to the type's limits, sorted, empty ones dropped, touching ones joined."""
    limits = key_limits(t)
    clipped = []
    for low, high in intervals:
        if limits is not None:
            low = None if low is not None and low <= limits[0] else low
            high = None if high is not None and high > limits[1] else high
            if (low is not None and low > limits[1]) or (high is not None and high <= limits[0]):
                continue
        elif not low and low is not None:
            low = None  # the empty string is the smallest
        if low is None or high is None or low < high:
            clipped.append((low, high))
    clipped = [i for i in clipped if not (limits is None and i[1] is not None and not i[1])]
    clipped.sort(key=lambda i: (i[0] is not None, i[0] if i[0] is not None else 0))
    joined: list[Interval] = []
    for low, high in clipped:
        if joined and (joined[-1][1] is None or low is None or low <= joined[-1][1]):
            before = joined[-1]
            end = None if before[1] is None or high is None else max(before[1], high)
            joined[-1] = (before[0], end)
        else:
            joined.append((low, high))
    return tuple(joined)
