"""Several facts about one term, taken together where each alone would keep.

`x IN (1, 100)` is admitted by the bounds (-∞, 50] because of 1 and by `truncate[10](x) = 100` because of 100; no value
satisfies both. A joint fact is made of the *intersection* of all ranges that are known of a term (bounds, and what a
partition value implies), and of the bucket: of the points of an IN list only those in the container's bucket count.

It also says that a column has no nulls when one fact allows nulls only and another values only. It is applied last, to
the containers that each fact alone has kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.compare import compare
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Expr
from penstock.expr.types import is_float
from penstock.prune.domain import Domain
from penstock.prune.facts import Bounds, Derived, Exact, Fact, Witness, source_term
from penstock.prune.image import source_of
from penstock.prune.ordered_keys import array_keys, has_int64_keys, is_comparable, key_of, value_of
from penstock.prune.ranges import Ranges, Rows, at
from penstock.prune.transform_functions import transform_function
from penstock.prune.transforms import MOST_BUCKETED, transform_of


@dataclass(frozen=True)
class Joint(Witness):
    """All facts about one term that are not exact values, as one witness."""

    term: Expr
    parts: tuple[Exact | Bounds, ...]
    label: str = "partition and bounds"

    def admits(self, domain: Domain, rows: Rows) -> Mask:
        t = domain.type
        nan = Domain.points(t, [key_of(float("nan"), t)]) if is_float(t) else Domain.none(t)
        plain = domain & nan.complement()
        fits = np.ones(self._count if rows is None else len(rows), np.bool_)
        if self._ranges is not None:
            fits &= self._ranges.overlaps(plain, rows)
        fits &= self._all_admit(Domain.all(t, null=False) & nan.complement(), rows)
        for bucket in self._buckets:
            fits &= self._points_in_bucket(bucket, plain, rows)
        if domain.null:
            fits |= self._all_admit(Domain.none(t, null=True), rows)
        if not (domain & nan).is_empty:
            fits |= self._all_admit((domain & nan).with_null(False), rows)
        return fits

    @cached_property
    def _count(self) -> int:
        part = self.parts[0]
        return part.count if isinstance(part, Bounds) else len(part.values)

    @cached_property
    def _buckets(self) -> tuple[Exact, ...]:
        exact = (part for part in self.parts if isinstance(part, Exact))
        return tuple(p for p in exact if isinstance(p.term, Derived) and transform_of(p.term.transform).is_hash)

    @cached_property
    def _ranges(self) -> Ranges | None:
        spans = [span for part in self.parts if (span := _span(part)) is not None]
        if not spans:
            return None
        lower, upper = spans[0]
        for low, high in spans[1:]:
            lower, upper = _tighter(">", lower, low), _tighter("<", upper, high)
        return Ranges(lower, upper, crossing_is_empty=True)

    def _all_admit(self, domain: Domain, rows: Rows) -> Mask:
        masks = [part.admits(_projected(part, domain), rows) for part in self.parts]
        return np.asarray(np.logical_and.reduce(masks), np.bool_)

    def _points_in_bucket(self, bucket: Exact, domain: Domain, rows: Rows) -> Mask:
        """Where the range holds a point of the set that falls into the container's own bucket.

        Points and containers are put on one line: bucket by bucket, within a bucket by the rank of the key.
        """
        everywhere = np.ones(self._count if rows is None else len(rows), np.bool_)
        t = domain.type
        points = domain.point_keys(MOST_BUCKETED) if has_int64_keys(t) else None
        assert isinstance(bucket.term, Derived)
        function = transform_function(bucket.term.transform, t)
        if not points or function is None or self._ranges is None:
            return everywhere
        values, known = bucket.single_values(rows)
        known = known & ~values.is_null().to_numpy(zero_copy_only=False)
        keys = np.array(points, np.int64)  # in order: the intervals of a domain are
        numbers = np.array([function(value_of(point, t)) for point in points], np.int64)
        width = len(keys) + 1
        line = np.sort(numbers * width + np.arange(len(keys)))
        low, high = (at(ends, rows) for ends in self._ranges.keys)
        base = array_keys(values) * width
        start = np.searchsorted(line, base + np.searchsorted(keys, low, side="left"))
        last = base + np.searchsorted(keys, high, side="right") - 1
        hit = (start < len(line)) & (line.take(start, mode="clip") <= last)
        return np.asarray(hit | ~known, np.bool_)


def _tighter(op: str, one: pa.Array, other: pa.Array) -> pa.Array:
    """The end that excludes more; a null end excludes nothing."""
    ahead = pc.if_else(pc.is_null(other), True, compare(op, one, other))
    return pc.if_else(pc.and_kleene(pc.is_valid(one), ahead), one, other)


def joint_facts(facts: Sequence[Fact]) -> Iterator[Joint]:
    """The joint facts that are worth making."""
    by_source: dict[Expr, list[Exact | Bounds]] = {}
    for fact in facts:
        if isinstance(fact, Exact | Bounds):
            by_source.setdefault(source_term(fact.term), []).append(fact)
    for source, parts in by_source.items():
        says_all = any(isinstance(p, Exact) and not isinstance(p.term, Derived) and p.known is None for p in parts)
        if len(parts) > 1 and is_comparable(source.type) and not says_all and any(map(_has_span, parts)):
            yield Joint(source, tuple(parts))


def _has_span(part: Exact | Bounds) -> bool:
    if isinstance(part, Bounds):
        return not isinstance(part.term, Derived) and (part.lower is not None or part.upper is not None)
    return isinstance(part.term, Derived) and transform_of(part.term.transform).is_ordered


def _span(part: Exact | Bounds) -> tuple[pa.Array, pa.Array] | None:
    """The range of source values that a fact implies for each container, closed at both ends; null is unknown."""
    source = source_of(part, with_laws=True) if _has_span(part) else None
    if source is None or source.entry is None:
        return None if source is None else (source.lower, source.upper)
    places = pa.array(source.entry)
    return source.lower.take(places), source.upper.take(places)


def _projected(part: Exact | Bounds, domain: Domain) -> Domain:
    return transform_of(part.term.transform).project(domain) if isinstance(part.term, Derived) else domain
