"""The keys of a merge: which row of the source meets each row of the table.

Values are compared as Spark compares them: NULL meets nothing, NaN meets NaN, and -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.kernels.physical import from_arrow
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import FALSE, And, Column, Compare, Expr, In, Literal, Or
from penstock.lake.write.row_change import Places

# More values than this are looked for by ranges, of which there are so many at most: to plan by these is fast.
_MOST_VALUES, _MOST_RANGES = 10_000, 50


@dataclass(frozen=True)
class MergeKeys:
    """The key columns of a source, by the names that the table has for them, in the table's types."""

    columns: pa.Table = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The table's columns."""
        return list(self.columns.column_names)

    @cached_property
    def codes(self) -> Places:
        """A number for each row of the source: the same for the same key, and -1 where a part of it is null."""
        return self._codes_of(self.columns)

    @cached_property
    def repeated(self) -> Places:
        """The numbers of keys that several rows of the source have."""
        codes, counts = np.unique(self.codes[self.codes >= 0], return_counts=True)
        return codes[counts > 1]

    def meet(self, rows: pa.Table) -> Places:
        """The number of each row's key; -1 where the source does not have it."""
        return self._codes_of(rows)

    def source_rows(self, codes: Places) -> Places:
        """A row of the source for each number of a key."""
        order, sorted_codes = self._order
        return order[np.searchsorted(sorted_codes, codes)]

    def predicate(self, rows: Mask | None = None) -> Expr:
        """What every row of the table that meets the source fulfils."""
        columns = self.columns if rows is None else self.columns.filter(pa.array(rows))
        parts = [_one_of(name, columns.column(name).combine_chunks()) for name in self.names]
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    @cached_property
    def _levels(self) -> list[tuple[pa.Array, pa.Array]]:
        """For each column its distinct values, and the distinct numbers of keys up to this column."""
        levels, codes = [], np.zeros(self.columns.num_rows, np.int64)
        for name in self.names:
            column = _comparable(self.columns.column(name))
            values = column.unique().drop_null()
            numbers = _next_numbers(codes, column, values)
            known = pa.array(np.unique(numbers[numbers >= 0]))
            levels.append((values, known))
            codes = _places(pa.array(numbers), known)
        return levels

    @cached_property
    def _order(self) -> tuple[Places, Places]:
        order = np.argsort(self.codes, kind="stable")
        return order, self.codes[order]

    def _codes_of(self, rows: pa.Table) -> Places:
        codes = np.zeros(rows.num_rows, np.int64)
        for name, (values, known) in zip(self.names, self._levels, strict=True):
            codes = _places(pa.array(_next_numbers(codes, _comparable(rows.column(name)), values)), known)
        return codes

    def __reduce__(self) -> tuple[object, ...]:
        return MergeKeys, (self.columns,)


def _next_numbers(codes: Places, column: pa.Array, values: pa.Array) -> Places:
    """Numbers of keys that have one column more; -1 where a value is not among those of the source."""
    places = _places(column, values)
    return np.where((codes >= 0) & (places >= 0), codes * (len(values) + 1) + places, -1)


def _places(column: pa.Array, values: pa.Array) -> Places:
    """Where each value is among others; -1 where it is not, and for NULL."""
    places = pc.index_in(column, value_set=values, skip_nulls=True).fill_null(-1)
    return np.asarray(places.to_numpy(zero_copy_only=False), np.int64)


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """Values of which equal ones are the same to Arrow."""
    array = column.combine_chunks()
    stored = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    return pc.add(stored, pa.scalar(0.0, stored.type)) if pa.types.is_floating(stored.type) else stored


def _one_of(name: str, values: pa.Array) -> Expr:
    distinct = values.unique().drop_null()
    column = Column((name,), values.type)
    if not len(distinct):
        return FALSE
    if len(distinct) <= _MOST_VALUES:
        return In(column, tuple(Literal(value, values.type) for value in from_arrow(distinct)))
    distinct = distinct.take(pc.sort_indices(distinct))
    parts = [_between(column, distinct, *ends) for ends in _ranges(distinct)]
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _ranges(values: pa.Array) -> list[tuple[int, int]]:
    """The places of the ends of ranges that have all of the sorted values, and none of the widest gaps between them.

    Values that have no distances have one range.
    """
    starts = np.zeros(1, np.int64)
    if pa.types.is_integer(values.type) or pa.types.is_temporal(values.type):
        numbers = values.view(pa.int32() if pa.types.is_date32(values.type) else values.type).cast(pa.int64())
        gaps = np.diff(numbers.to_numpy().view(np.uint64))  # the widest are wider than a signed number
        widest = np.argsort(gaps)[max(0, len(gaps) - _MOST_RANGES + 1) :]
        starts = np.concatenate([starts, np.sort(widest[gaps[widest] > 1]) + 1])
    return list(zip(starts.tolist(), [*(starts[1:] - 1).tolist(), len(values) - 1], strict=True))


def _between(column: Column, values: pa.Array, first: int, last: int) -> Expr:
    low, high = (Literal(value, values.type) for value in from_arrow(values.take([first, last])))
    return And((Compare(">=", column, low), Compare("<=", column, high)))


def keys_of(source: pa.Table, pairs: Sequence[tuple[str, str]]) -> MergeKeys:
    """The keys of a source; pairs are the table's column and the source's."""
    return MergeKeys(pa.table({target: source.column(own) for target, own in pairs}))
