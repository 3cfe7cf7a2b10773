"""What can be known of containers, as columns: one entry for each container of a batch.

A *container* is anything a verdict is about: a directory, a manifest, a file, a row group. A *fact* is one column of
knowledge about one *term*: a column, a nested field, a key of a map, or a partition field (`Derived`).

| fact | says of container i | does not say |
|---|---|---|
| `Exact` | the term has this value (or NULL) in every row | anything, where `known` is false |
| `Bounds` | non-null, non-NaN values lie in [lower, upper]; counts of nulls, NaN and values | that a bound occurs |
| `Tuples` | every row's values are one of these tuples | anything, where `complete` is false |

A null bound or count means unknown, never "none". Facts only ever exclude: a fact that is missing costs pruning, not
rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.physical import mask_of
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Expr
from penstock.expr.types import is_float
from penstock.prune.column_pairs import Span
from penstock.prune.domain import Domain
from penstock.prune.ordered_keys import INT64_MAX, INT64_MIN, array_keys, is_comparable, key_of, next_prefix
from penstock.prune.ranges import Ranges, Rows, at
from penstock.prune.transforms import transform_of


@dataclass(frozen=True, slots=True)
class Derived:
    """A partition field: a transform (`day`, `bucket[16]`, `truncate[4]` …) of a source term."""

    source: Expr
    transform: str

    def __str__(self) -> str:
        transform = transform_of(self.transform)
        return f"{transform.name}({f'{transform.width}, ' if transform.width else ''}{self.source})"


Term = Expr | Derived
Codes = npt.NDArray[np.intp]
_MOST_RECENT = 16


def source_term(term: Term) -> Expr:
    """The term itself, or what a partition field is derived from."""
    return term.source if isinstance(term, Derived) else term


class Witness(ABC):
    """What says something of the values of one term: a fact, or what is made of facts, which speaks of sets only."""

    term: Term
    label: str

    @abstractmethod
    def admits(self, domain: Domain, rows: Rows) -> Mask:
        """Which containers may have a row whose value is in the set."""

    def single_values(self, rows: Rows) -> tuple[pa.Array, Mask] | None:
        """The value of every row of each container, and where it is known."""
        return None

    def span(self, rows: Rows) -> Span | None:
        """The values as ranges; for types with int64 keys and without NaN only."""
        return None

    @cached_property
    def images(self) -> dict[tuple[Expr, str, bool], Any]:
        """What was made of it by `image`, to be used again."""
        return {}


@dataclass(frozen=True)
class Exact(Witness):
    """One value of `term` for each container; a dictionary array is used unchanged."""

    term: Term
    values: pa.Array
    known: Mask | None = None
    label: str = "partition"
    name: str | None = None  # the partition field's own name, where it has one

    def __post_init__(self) -> None:
        _check_type(self.term, self.values)

    @cached_property
    def encoded(self) -> tuple[Codes, pa.Array]:
        """The distinct values, and for each container which of them it has; one past the last is NULL."""
        return encode(self.values)

    @cached_property
    def _ranges(self) -> Ranges:
        dictionary = self.encoded[1]
        return Ranges(dictionary, dictionary)

    def admits(self, domain: Domain, rows: Rows) -> Mask:
        fits = self._admitted(domain).take(at(self.encoded[0], rows))
        return fits if self.known is None else fits | ~at(self.known, rows)

    def _admitted(self, domain: Domain) -> Mask:
        """For each distinct value, and for NULL behind them, whether it is in the set; kept for the last few sets."""
        recent = self._recent
        known = recent.get(id(domain))
        if known is not None and known[0] is domain:
            return known[1]
        admitted = np.append(self._ranges.overlaps(domain), domain.null)
        if len(recent) >= _MOST_RECENT:
            recent.clear()
        recent[id(domain)] = (domain, admitted)
        return admitted

    @cached_property
    def _recent(self) -> dict[int, tuple[Domain, Mask]]:
        return {}

    def single_values(self, rows: Rows) -> tuple[pa.Array, Mask]:
        codes, dictionary = self.encoded
        codes = at(codes, rows)
        values = dictionary.take(pa.array(codes, mask=codes == len(dictionary)))
        return values, np.ones(len(codes), np.bool_) if self.known is None else at(self.known, rows)

    def span(self, rows: Rows) -> Span:
        codes, dictionary = self.encoded
        codes = at(codes, rows)
        keys = np.append(array_keys(dictionary), 0).take(codes)
        known = np.ones(len(codes), np.bool_) if self.known is None else at(self.known, rows)
        null = codes == len(dictionary)
        low, high = np.where(known, keys, INT64_MIN), np.where(known, keys, INT64_MAX)
        return Span(low, high, ~null | ~known, null | ~known)


def encode(values: pa.Array) -> tuple[Codes, pa.Array]:
    """A column as codes into its distinct values; one past the last is NULL."""
    array = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    dictionary = array.dictionary
    codes = array.indices.fill_null(len(dictionary)) if array.indices.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.intp), dictionary


@dataclass(frozen=True)
class Bounds(Witness):
    """Bounds and counts of `term` for each container; any column, and any entry, may be missing.

    `upper_cut` marks upper bounds that were cut short and not incremented: the value 'abcz' under the bound 'abc'.
    """

    term: Term
    lower: pa.Array | None = None
    upper: pa.Array | None = None
    null_count: pa.Array | None = None
    nan_count: pa.Array | None = None
    value_count: pa.Array | None = None
    upper_cut: Mask | None = None
    label: str = "bounds"

    def __post_init__(self) -> None:
        for ends in (self.lower, self.upper):
            if ends is not None:
                _check_type(self.term, ends)

    @cached_property
    def ranges(self) -> Ranges | None:
        """The bounds as ranges; None when there are none, or of a type without order."""
        if self._ends is None or not is_comparable(self._ends.type):
            return None
        nothing = pa.nulls(len(self._ends), self._ends.type)
        lower, upper = (nothing if ends is None else ends for ends in (self.lower, self.upper))
        if self.upper_cut is not None:
            upper = _incremented(upper, self.upper_cut)
        return Ranges(lower, upper, upper_open=self.upper_cut)

    @property
    def _ends(self) -> pa.Array | None:
        return self.lower if self.lower is not None else self.upper

    @cached_property
    def count(self) -> int:
        """The number of containers."""
        columns = (self.lower, self.upper, self.null_count, self.nan_count, self.value_count)
        return next((len(column) for column in columns if column is not None), 0)

    @cached_property
    def may_be_null(self) -> Mask:
        """Whether a row may be NULL."""
        return ~_equals(self.null_count, 0, self.count) & ~self._all_are(self.nan_count)

    @cached_property
    def may_be_nan(self) -> Mask:
        """Whether a row may be NaN; only floats have it, and only they have a count of it."""
        if self._ends is not None and not is_float(self._ends.type):
            return np.zeros(self.count, np.bool_)
        return ~_equals(self.nan_count, 0, self.count) & ~self._all_are(self.null_count)

    @cached_property
    def may_be_value(self) -> Mask:
        """Whether a row may be something else than NULL and NaN; a count that is unknown is at least 0."""
        counts = [c.cast(pa.int64()).fill_null(0) for c in (self.null_count, self.nan_count) if c is not None]
        return ~self._all_are(pc.add(*counts) if len(counts) == 2 else counts[0] if counts else None)

    def _all_are(self, counts: pa.Array | None) -> Mask:
        """Where a count is known to be that of all values."""
        if counts is None or self.value_count is None:
            return np.zeros(self.count, np.bool_)
        return mask_of(pc.equal(counts.cast(pa.int64()), self.value_count.cast(pa.int64())))

    def admits(self, domain: Domain, rows: Rows) -> Mask:
        count = self.count if rows is None else len(rows)
        if not domain.intervals:
            fits = np.zeros(count, np.bool_)
        else:
            fits = np.ones(count, np.bool_) if self.ranges is None else self.ranges.overlaps(domain, rows)
            fits &= at(self.may_be_value, rows)
        if domain.null:
            fits |= at(self.may_be_null, rows)
        if is_float(domain.type) and domain.contains(key_of(float("nan"), domain.type)):
            fits |= at(self.may_be_nan, rows)
        return fits

    def single_values(self, rows: Rows) -> tuple[pa.Array, Mask] | None:
        if self.ranges is None:
            return None
        lower = self.ranges.lower if rows is None else self.ranges.lower.take(pa.array(rows))
        alone = self.ranges.singles(rows) & ~at(self.may_be_null, rows) & ~at(self.may_be_nan, rows)
        return lower, alone  # equal bounds, and nothing beside them

    def span(self, rows: Rows) -> Span:
        count = self.count if rows is None else len(rows)
        low, high = np.full(count, INT64_MIN), np.full(count, INT64_MAX)
        if self.ranges is not None:
            low, high = (at(ends, rows) for ends in self.ranges.keys)
        return Span(low, high, at(self.may_be_value, rows), at(self.may_be_null, rows))


@dataclass(frozen=True)
class Tuples:
    """The combinations of values that occur: those of container i are at `offsets[i]` up to `offsets[i + 1]`."""

    terms: tuple[Term, ...]
    columns: tuple[pa.Array, ...]
    offsets: npt.NDArray[np.int64]
    complete: Mask
    label: str = "logical values"

    @cached_property
    def exact(self) -> tuple[Exact, ...]:
        """Each column as exact values of the combinations, as if those were containers."""
        return tuple(
            Exact(term, column, None, self.label) for term, column in zip(self.terms, self.columns, strict=True)
        )

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many combinations each container has."""
        return np.diff(self.offsets)

    @cached_property
    def listed(self) -> npt.NDArray[np.intp]:
        """The containers whose combinations are all known."""
        return np.flatnonzero(self.complete)


Fact = Exact | Bounds | Tuples


def _check_type(term: Term, values: pa.Array) -> None:
    """Keys of two types are not comparable: 1.50 of decimal(5,2) is 150, of decimal(5,3) it is 1500."""
    t = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not isinstance(term, Derived) and term.type is not None and t != term.type:
        raise ValueError(f"values of {term} are {t}, expected {term.type}")


def _equals(counts: pa.Array | None, number: int, size: int) -> Mask:
    """Where a count is known to be `number`."""
    return np.zeros(size, np.bool_) if counts is None else mask_of(pc.equal(counts, number))


def _incremented(upper: pa.Array, cut: Mask) -> pa.Array:
    """A bound that was cut short says: below everything after this prefix. Where nothing is after it: unknown."""
    values = upper.to_pylist()
    return pa.array([v if v is None or not c else next_prefix(v) for v, c in zip(values, cut, strict=True)], upper.type)
