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
from dataclasses import dataclass, replace
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
    def interval(t: pa.DataType, low: Key | None, high: Key | None) -> Domain:
        """`low <= x < high`."""
        return Domain.union_of(t, [(low, high)])

    @staticmethod
    def points(t: pa.DataType, keys: Iterable[Key], null: bool = False) -> Domain:
        """Exactly these keys."""
        return Domain.union_of(t, [(key, successor(key)) for key in sorted(set(keys))], null)

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
        return replace(self, null=null)

    def contains(self, key: Key) -> bool:
        return any((lo is None or lo <= key) and (hi is None or key < hi) for lo, hi in self.intervals)

    def __and__(self, other: Domain) -> Domain:
        return unite([self.complement(), other.complement()]).complement()

    def complement(self) -> Domain:
        """Everything that is not in the set; NULL changes sides too."""
        gaps: list[Interval] = []
        last: Key | None = None  # where the gap begins that the next interval ends
        for low, high in self.intervals:
            if low is not None:
                gaps.append((last, low))
            last = high
        if not self.intervals or last is not None:
            gaps.append((last, None))
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
        least, last = _ends(self.type)
        for low, high in self.intervals:
            low = least if low is None else low
            if high is None:
                if last is None:
                    return None
                high = last + 1
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
    intervals = [interval for domain in domains for interval in domain.intervals]
    return Domain.union_of(domains[0].type, intervals, any(domain.null for domain in domains))


def _ends(t: pa.DataType) -> tuple[Key, Key | None]:
    """The smallest and the largest key of a type; None where there is no largest."""
    return key_limits(t) or ("" if t == pa.string() else b"", None)


def _normal(t: pa.DataType, intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Clipped to the type's limits, sorted, empty ones dropped, touching ones joined."""
    least, most = _ends(t)
    clipped: list[Interval] = []
    for low, high in intervals:
        low = None if low is not None and low <= least else low
        high = None if high is not None and most is not None and high > most else high
        beyond = (low is not None and most is not None and low > most) or (high is not None and high <= least)
        if not beyond and (low is None or high is None or low < high):
            clipped.append((low, high))
    clipped.sort(key=lambda interval: (interval[0] is not None, interval[0] or 0))
    joined: list[Interval] = []
    for low, high in clipped:
        if joined and (joined[-1][1] is None or low is None or low <= joined[-1][1]):
            start, end = joined[-1]
            joined[-1] = start, None if end is None or high is None else max(end, high)
        else:
            joined.append((low, high))
    return tuple(joined)
