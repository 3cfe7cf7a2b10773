"""What a fact about a column says of a function of that column.

Bounds of `ts`, or the days that files are partitioned by, say in which range `year(ts)` or `ts - INTERVAL 7 DAYS` lies
(`functions.laws`). An exact value says it exactly. An image is a witness like the fact it is made of, about the
function instead of the column:

| fact about x | what its image says of f(x) |
|---|---|
| exact value v | f(v), and nothing where f fails for v |
| bounds [low, high] | the range that the laws carry it to |
| `day(x) = d` and other transforms that keep order | the same for the range of x that d stands for |

f(x) is NULL where x is, and may be NULL where the range is unknown. NaN is in no range; f(NaN) is looked at on its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.laws import Path, carry, carry_exactly
from penstock.expr.kernels.physical import from_arrow, mask_of
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Expr
from penstock.expr.types import is_float
from penstock.prune.domain import Domain
from penstock.prune.facts import Bounds, Codes, Derived, Exact, Witness
from penstock.prune.ordered_keys import key_of
from penstock.prune.ranges import Ranges, Rows, at
from penstock.prune.transforms import transform_of

_MOST_IMAGES = 4
_FEW = 4  # for at most one container in four, ends are evaluated for those alone and not kept


@dataclass(frozen=True)
class Source:
    """The column's side of an image: a range for each entry, and the entry, NULL and NaN of each container."""

    lower: pa.Array
    upper: pa.Array
    entry: Codes | None  # None: entry i is container i
    may_be_value: Mask
    may_be_null: Mask
    may_be_nan: Mask | None
    exact: bool


def source_of(fact: Exact | Bounds, with_laws: bool) -> Source | None:
    """What a fact says of its column in a form that an image can be made of; None when it says nothing of ranges."""
    if not with_laws and (isinstance(fact.term, Derived) or isinstance(fact, Bounds)):
        return None
    if isinstance(fact.term, Derived) and not transform_of(fact.term.transform).is_ordered:
        return None
    return _source_of_bounds(fact) if isinstance(fact, Bounds) else _source_of_exact(fact)


def _source_of_exact(fact: Exact) -> Source | None:
    codes, dictionary = fact.encoded
    ends = (dictionary, dictionary)
    if isinstance(fact.term, Derived):
        ranges = transform_of(fact.term.transform).source_ranges(fact.term.source.type, dictionary)
        if ranges is None:
            return None
        ends = ranges
    null = codes == len(dictionary)
    unknown = np.zeros(len(codes), np.bool_) if fact.known is None else ~fact.known
    # The entry behind the last one stands for NULL and for what is not known: its range is unknown.
    nothing = pa.nulls(1, ends[0].type)
    lower, upper = (pa.concat_arrays([end, nothing]) for end in ends)
    entry = np.where(unknown, len(dictionary), codes)
    return Source(lower, upper, entry, ~null | unknown, null | unknown, None, not isinstance(fact.term, Derived))


def _source_of_bounds(fact: Bounds) -> Source | None:
    if fact.ranges is None:
        return None
    lower, upper = fact.ranges.trusted()
    if isinstance(fact.term, Derived):
        transform, source = transform_of(fact.term.transform), fact.term.source.type
        low, high = transform.source_ranges(source, lower), transform.source_ranges(source, upper)
        if low is None or high is None:
            return None
        lower, upper = low[0], high[1]
        if transform.wraps(source):  # what lies behind an end that is not known may be values of the other end
            known = pc.and_(lower.is_valid(), upper.is_valid())
            lower, upper = (pc.if_else(known, end, pa.scalar(None, end.type)) for end in (lower, upper))
    nan = fact.may_be_nan if is_float(lower.type) else None
    return Source(lower, upper, None, fact.may_be_value, fact.may_be_null, nan, False)


class Image(Witness):
    """A fact about a column, applied to a function of the column."""

    def __init__(self, fact: Exact | Bounds, source: Source, expr: Expr, path: Path, zone: str) -> None:
        derived = isinstance(fact.term, Derived)
        self.term, self.label = expr, f"{fact.label} {fact.term}" if derived else fact.label
        self._source, self._path, self._zone = source, path, zone

    def admits(self, domain: Domain, rows: Rows) -> Mask:
        source = self._source
        count = len(source.may_be_value) if rows is None else len(rows)
        if source.entry is not None:
            entries = at(source.entry, rows)
            fits, unknown = self.ranges.overlaps(domain).take(entries), self._unknown.take(entries)
        elif rows is None or "ranges" in self.__dict__ or len(rows) * _FEW > len(source.may_be_value):
            fits, unknown = self.ranges.overlaps(domain, rows), at(self._unknown, rows)
        else:
            ranges = self._carried(source.lower.take(pa.array(rows)), source.upper.take(pa.array(rows)))
            fits, unknown = ranges.overlaps(domain), _unknown(ranges)
        fits = fits & at(source.may_be_value, rows) if domain.intervals else np.zeros(count, np.bool_)
        if domain.null:
            fits = fits | at(source.may_be_null, rows) | unknown
        if source.may_be_nan is not None and self._nan_fits(domain):
            fits = fits | at(source.may_be_nan, rows)
        return fits

    @cached_property
    def ranges(self) -> Ranges:
        """The range of the function for each entry."""
        return self._carried(self._source.lower, self._source.upper)

    @cached_property
    def _unknown(self) -> Mask:
        return _unknown(self.ranges)

    def _carried(self, lower: pa.Array, upper: pa.Array) -> Ranges:
        if not self._source.exact:
            return Ranges(*carry(self._path, lower, upper, self._zone))
        values = carry_exactly(self._path, lower, self._zone)
        return Ranges(values, values)

    def _nan_fits(self, domain: Domain) -> bool:
        value = carry_exactly(self._path, pa.array([math.nan], self._source.lower.type), self._zone)
        return value.null_count > 0 or domain.contains(key_of(from_arrow(value)[0], value.type))


def _unknown(ranges: Ranges) -> Mask:
    """Where an end is unknown, perhaps because the function fails, which is NULL with ANSI mode off."""
    return mask_of(pc.or_(ranges.lower.is_null(), ranges.upper.is_null()))


def image(fact: Exact | Bounds, expr: Expr, path: Path, zone: str, with_laws: bool) -> Image | None:
    """The image of a fact under a function of its column; kept with the fact for the last few functions."""
    known = fact.images.get((expr, zone, with_laws))
    if known is None:
        source = source_of(fact, with_laws)
        if source is None:
            return None
        known = Image(fact, source, expr, path, zone)
        if len(fact.images) >= _MOST_IMAGES:
            fact.images.clear()
        fact.images[expr, zone, with_laws] = known
    return known
