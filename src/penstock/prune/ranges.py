"""Columns of value ranges, one range a container, tested against a set of values all at once.

A range is `[lower, upper]`, either end unknown when null. An exact value is a range whose ends are one column. The test
"does any value of the range belong to the set" is two comparisons for one interval and a binary search for many, on
int64 keys. Strings (and decimals of more than 18 digits) have no such keys: a few intervals are compared by Arrow
directly, many through ranks in the sorted list of all ends, which is made once and kept.

A range whose ends are the wrong way round, or that has NaN for an end, says nothing and is treated as unknown.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.compare import compare
from penstock.expr.kernels.physical import mask_of, to_arrow
from penstock.expr.kernels.vector import Mask
from penstock.expr.types import is_float
from penstock.prune.domain import Domain
from penstock.prune.ordered_keys import INT64_MAX, INT64_MIN, Key, Keys, array_keys, has_int64_keys, key_of, value_of

Rows = npt.NDArray[np.int64] | None  # positions of the containers in question; None is all of them
S = TypeVar("S", bound=np.generic)
_FEW_INTERVALS = 8
_MANY_KEYS, _CELL_BITS, _MOST_IN_A_CELL = 20_000, 16, 8


def at(values: npt.NDArray[S], rows: Rows) -> npt.NDArray[S]:
    """The entries of the containers in question."""
    return values if rows is None else values[rows]


class Ranges:
    """`lower[i] <= value <= upper[i]` for every non-null, non-NaN value of container i."""

    def __init__(
        self, lower: pa.Array, upper: pa.Array, crossing_is_empty: bool = False, upper_open: Mask | None = None
    ) -> None:
        self.lower, self.upper = lower, upper
        self.upper_open = upper_open  # upper ends that no value reaches; seen where few intervals are compared
        self.exact = lower is upper
        self.crossing_is_empty = crossing_is_empty  # ends that were computed, not read: crossed, they hold nothing

    def overlaps(self, domain: Domain, rows: Rows = None) -> Mask:
        """Which containers may hold a value of the set."""
        overlapping = self._overlaps(domain, rows)
        return overlapping & ~at(self._crossed, rows) if self.crossing_is_empty else overlapping

    def _overlaps(self, domain: Domain, rows: Rows) -> Mask:
        count = len(self.lower) if rows is None else len(rows)
        if not domain.intervals:
            return np.zeros(count, np.bool_)
        if domain.has_all_values:
            return np.ones(count, np.bool_)
        if has_int64_keys(self.lower.type):
            low, high = self.keys
            return _overlap_keys(at(low, rows), at(high, rows), *domain.key_bounds)
        if len(domain.intervals) <= _FEW_INTERVALS and "_ranks" not in self.__dict__:
            return self._overlap_arrow(domain, rows)
        low, high, order = self._ranks
        first, last = _rank_bounds(np.asarray(order), domain)
        return _overlap_keys(at(low, rows), at(high, rows), first, last)

    def singles(self, rows: Rows = None) -> Mask:
        """Which containers hold one value only (NaN and null aside): their ends are known and equal."""
        return np.asarray(at(self._single, rows), np.bool_)

    @cached_property
    def _single(self) -> Mask:
        known = mask_of(pc.and_(pc.is_valid(self.lower), pc.is_valid(self.upper)))
        if self.exact:
            return known
        # A float zero may be -0.0 in one row and 0.0 in another: equal, but not the same to every function.
        ends = mask_of(compare("=", self.lower, self.upper))
        if is_float(self.lower.type):
            ends &= ~mask_of(pc.equal(self.lower, pa.scalar(0.0, self.lower.type)))
        return known & ends

    @cached_property
    def _crossed(self) -> Mask:
        return mask_of(pc.greater(self.lower, self.upper))

    @cached_property
    def _unknown(self) -> tuple[Mask, Mask]:
        """Containers whose lower or upper end says nothing."""
        low, high = mask_of(pc.is_null(self.lower)), mask_of(pc.is_null(self.upper))
        if self.exact:
            return low, high
        if is_float(self.lower.type):
            low |= mask_of(pc.is_nan(self.lower))
            high |= mask_of(pc.is_nan(self.upper))
        if not self.crossing_is_empty:
            low, high = low | self._crossed, high | self._crossed
        return low, high

    def trusted(self) -> tuple[pa.Array, pa.Array]:
        """The ends, null where they say nothing."""
        nothing = pa.scalar(None, self.lower.type)
        low, high = (pa.array(mask) for mask in self._unknown)
        return pc.if_else(low, nothing, self.lower), pc.if_else(high, nothing, self.upper)

    @cached_property
    def keys(self) -> tuple[Keys, Keys]:
        no_low, no_high = self._unknown
        low = array_keys(self.lower)
        if self.exact and not no_low.any():
            return low, low
        high = low if self.exact else array_keys(self.upper)
        lowest, highest = INT64_MIN, INT64_MAX
        if is_float(self.lower.type):  # NaN is above every bound and no part of a range
            lowest, highest = (key_of(end, self.lower.type) for end in (float("-inf"), float("inf")))
        return np.where(no_low, lowest, low), np.where(no_high, highest, high)

    @cached_property
    def _ranks(self) -> tuple[Keys, Keys, npt.NDArray[Any]]:
        """Each end's position among all distinct ends in order, and that order."""
        both = self.lower if self.exact else pa.concat_arrays([self.lower, self.upper])
        order = pc.drop_null(pc.unique(both)).sort()
        positions = pc.fill_null(pc.index_in(both, value_set=order), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        count = len(self.lower)
        low, high = positions[:count], positions[:count] if self.exact else positions[count:]
        no_low, no_high = self._unknown
        return (
            np.where(no_low, INT64_MIN, low),
            np.where(no_high, INT64_MAX, high),
            order.to_numpy(zero_copy_only=False),
        )

    def _overlap_arrow(self, domain: Domain, rows: Rows) -> Mask:
        lower = self.lower if rows is None else self.lower.take(pa.array(rows))
        upper = lower if self.exact else (self.upper if rows is None else self.upper.take(pa.array(rows)))
        no_low, no_high = (np.asarray(at(mask, rows), np.bool_) for mask in self._unknown)
        overlapping = np.zeros(len(lower), np.bool_)
        for low, high in domain.intervals:
            fits = np.ones(len(lower), np.bool_)
            if low is not None:
                reach = mask_of(pc.greater_equal(upper, _scalar(low, upper.type)))
                if self.upper_open is not None:
                    reach &= ~(mask_of(pc.equal(upper, _scalar(low, upper.type))) & at(self.upper_open, rows))
                fits &= reach | no_high
            if high is not None:
                fits &= mask_of(pc.less(lower, _scalar(high, lower.type))) | no_low
            overlapping |= fits
        return overlapping


def _scalar(key: Key, t: pa.DataType) -> pa.Scalar:
    return to_arrow([value_of(key, t)], t)[0]


def _overlap_keys(low: Keys, high: Keys, first: Keys, last: Keys) -> Mask:
    if len(first) == 1:
        return np.asarray((high >= first[0]) & (low <= last[0]), np.bool_)
    # The first interval that does not end before the range begins; it is hit unless it starts behind the range's end.
    i = _first_at_least(last, low)
    inside = i < len(last)
    return np.asarray(inside & (first.take(i, mode="clip") <= high), np.bool_)


def _first_at_least(ends: Keys, keys: Keys) -> npt.NDArray[np.intp]:
    """`np.searchsorted(ends, keys)`, through a table of cells where the ends are spread evenly enough.

    A binary search mispredicts a branch at each step, which is most of its time for a million keys. One look into a
    table of cells and a step or two from there gives the same answer in a fifth of it.
    """
    span = int(ends[-1]) - int(ends[0])
    if len(keys) < _MANY_KEYS or span >= 1 << 62:
        return np.searchsorted(ends, keys, side="left")
    shift = np.int64(max(0, span.bit_length() - _CELL_BITS))
    cells = ((ends - ends[0]) >> shift).astype(np.int64)
    if np.bincount(cells).max() > _MOST_IN_A_CELL:
        return np.searchsorted(ends, keys, side="left")
    table = np.searchsorted(cells, np.arange(int(cells[-1]) + 1))
    inside = np.clip(keys, ends[0], ends[-1])
    positions: npt.NDArray[np.intp] = table.take((inside - ends[0]) >> shift)
    behind = np.flatnonzero(ends.take(positions) < inside)
    while len(behind):
        positions[behind] += 1
        behind = behind[ends.take(positions[behind]) < inside[behind]]
    positions[keys > ends[-1]] = len(ends)
    return positions


def _rank_bounds(order: npt.NDArray[Any], domain: Domain) -> tuple[Keys, Keys]:
    """The set in terms of ranks: an end at rank r is at or above `low` when r >= the number of ends below `low`.

    An interval between two neighbouring ends becomes [r, r - 1]: no end lies in it, but a range may span it.
    """

    def rank(keys: list[Key | None], missing: int) -> Keys:
        values = np.array([None if key is None else value_of(key, domain.type) for key in keys], dtype=object)
        known = np.array([key is not None for key in keys], np.bool_)
        ranks = np.full(len(keys), missing, np.int64)
        ranks[known] = np.searchsorted(order, values[known], side="left")
        return ranks

    first = rank([low for low, _ in domain.intervals], INT64_MIN)
    ends = rank([high for _, high in domain.intervals], INT64_MAX)
    return first, np.where(ends == INT64_MAX, ends, ends - 1)
