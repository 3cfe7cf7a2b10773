"""Facts as manifests state them, and every value that a row may have under them, worked out from the specification.

A fact is about one column of one file. `consistent` picks, out of a column's candidate values, those that a row of such
a file may hold: the ground on which both Penstock and PyIceberg are judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pyiceberg.conversions import to_bytes
from pyiceberg.types import IcebergType

ROWS = 50
NAN = float("nan")


@dataclass(frozen=True)
class Column:
    """A column with its values in order; the second and the last but one are what bounds are made of."""

    name: str
    field_id: int
    kind: IcebergType
    values: Sequence[Any]
    required: bool = False
    nested: bool = False

    @property
    def is_float(self) -> bool:
        return str(self.kind) in ("float", "double")

    @property
    def candidates(self) -> list[Any]:
        return [*self.values, None, *([NAN] if self.is_float else [])]


@dataclass(frozen=True)
class Fact:
    """What a manifest entry says of one column; None is nothing."""

    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: Any = None
    upper: Any = None

    def entry(self, column: Column) -> dict[str, Any]:
        """The fact as maps of a manifest entry."""
        counts = {"value_counts": self.values, "null_value_counts": self.nulls, "nan_value_counts": self.nans}
        ends = {"lower_bounds": self.lower, "upper_bounds": self.upper}
        bounds = {name: None if end is None else to_bytes(column.kind, end) for name, end in ends.items()}
        return {name: {} if v is None else {column.field_id: v} for name, v in {**counts, **bounds}.items()}

    def consistent(self, column: Column) -> list[Any]:
        """The candidates that a row of such a file may hold."""
        return [value for value in column.candidates if self._admits(value, column)]

    def _admits(self, value: Any, column: Column) -> bool:
        uncounted = column.nested and self.values is not None and self.values < ROWS
        if value is None:
            if self.values is not None and self.nans == self.values and not uncounted:
                return False
            if self.nulls is None or (column.nested and self.values is None):
                return not column.required
            return self.nulls != 0 or uncounted
        if self.values is not None and self.nulls == self.values:
            return False
        if is_nan(value):
            return self.nans != 0
        if self.values is not None and (self.nulls or 0) + (self.nans or 0) == self.values:
            return False
        return within(value, self.lower, self.upper)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def within(value: Any, lower: Any, upper: Any) -> bool:
    """Whether bounds admit a value; one that is NaN, as old writers left them, says nothing."""
    return (lower is None or is_nan(lower) or lower <= value) and (upper is None or is_nan(upper) or value <= upper)


def facts_of(column: Column) -> Iterator[Fact]:
    """Every combination of counts and bounds that a writer may state."""
    low, high = column.values[1], column.values[-2]
    bounds = [(None, None), (low, high), (low, low), (low, None), (None, high)]
    bounds += [(NAN, NAN), (low, NAN)] if column.is_float else []
    nans = (None, 0, 10, ROWS) if column.is_float else (None,)
    counted = [(ROWS, None), (ROWS, 0), (ROWS, 10), (ROWS, ROWS), (None, None), (None, 0)]
    counted += [(40, 0), (40, 40), (40, 10)] if column.nested else []
    for (values, nulls), nan, (lower, upper) in product(counted, nans, bounds):
        if values is None or (nulls or 0) + (nan or 0) <= values:
            yield Fact(values, nulls, nan, lower, upper)


@dataclass(frozen=True)
class Summary:
    """What a manifest list says of one partition field over all files of a manifest."""

    contains_null: bool
    contains_nan: bool | None = None
    lower: Any = None
    upper: Any = None

    @property
    def says_nothing(self) -> bool:
        """Whether there are neither values nor NULL nor NaN: nothing that a manifest with files can say."""
        return self.lower is None and not self.contains_null and not self.contains_nan

    def consistent(self, column: Column) -> list[Any]:
        """The candidates that a row of such a manifest may hold."""
        no_values = self.lower is None and self.upper is None and bool(self.contains_null or self.contains_nan)
        return [value for value in column.candidates if self._admits(value, no_values)]

    def _admits(self, value: Any, no_values: bool) -> bool:
        if value is None:
            return self.contains_null
        if is_nan(value):
            return self.contains_nan is not False
        return not no_values and within(value, self.lower, self.upper)


def summaries_of(column: Column) -> Iterator[Summary]:
    """Every combination of what a summary may state."""
    low, high = column.values[1], column.values[-2]
    nans = (None, False, True) if column.is_float else (None, False)
    for null, nan, (lower, upper) in product((False, True), nans, [(None, None), (low, high), (low, low)]):
        yield Summary(null, nan, lower, upper)
