"""Iceberg's partition transforms, one class each: everything that Penstock knows of a transform is in its entry here.

The functions themselves (what day, bucket, truncate *are*) are PyIceberg's code. An entry adds how people write it, the
type of its values, and how it prunes:

* `project`: the partition values that a container must have to be able to hold a value of a set (the *inclusive*
  projection). A transform that keeps order takes `[low, high]` to `[T(low), T(high)]`; bucket goes point by point.
* `source_range`: the one interval of source values that a partition value stands for, where there is one.

Both are proven in the tests against PyIceberg. Truncated integers at the lower end of their type, and hours 245,000
years away, are the exceptions to both: they wrap. The *strict* projection (partition values for which every row is in
the set) needs no code of its own; it is the complement of the projection of the complement:

    strict(D) = complement(project(complement(D)))

An unknown or void transform, or a key that PyIceberg cannot transform (a year past 9999), projects to everything. To
add a transform, write its class and list it in `_ENTRIES`; Spark computes it in Python until `spark/write` has an
expression for it.

>>> transform_of("truncate[3]").project(Domain.points(pa.string(), ["iceberg"])).intervals
(('ice', 'ice\\x00'),)
>>> transform_of("month").source_range(pa.date32(), 676)  # the days of May 2026
(20574, 20605)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError
from penstock.expr.kernels.decimals import from_unscaled
from penstock.expr.kernels.physical import from_arrow, numbers, to_arrow, valid, vector
from penstock.expr.types import integer_range, is_decimal, is_integer, is_timestamp
from penstock.prune.domain import Domain, Interval
from penstock.prune.ordered_keys import Key, is_comparable, key_limits, key_of, next_prefix, successor, value_of
from penstock.prune.transform_functions import OF_UUID, project_interval, transform_function, transformed_array

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

# Ranges of up to this many integers are bucketed value by value; an IN list has no such limit.
MOST_BUCKETED = 50_000
# More distinct partition values than this are not turned into ranges: it is done one by one.
MOST_RANGES = 50_000

_TICKS = {unit: 3600 * 1000**power for power, unit in enumerate(("s", "ms", "us", "ns"))}  # of an hour
_HOUR = _TICKS["us"]
_MOST_HOURS = 2**31


@dataclass(frozen=True)
class Transform:
    """A transform that is not known: it says nothing of its source. The entries below say more."""

    text: str  # as metadata spells it, `bucket[16]`
    name: str
    width: int = 0  # of bucket and truncate

    aliases: ClassVar[tuple[str, ...]] = ()  # what people may write instead of the name
    suffix: ClassVar[str] = ""  # of the names of partition fields, where it is not the transform's own name
    has_width: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False  # whether a partition value stands for one range of source values
    is_hash: ClassVar[bool] = False

    @property
    def shown(self) -> str:
        """The text as people know it."""
        return self.text.removesuffix(OF_UUID)

    def field_name(self, column: str) -> str:
        """The name of a partition field of a column, where people give it none."""
        return f"{column.replace('.', '_')}_{self.suffix or self.name}"

    def on_type(self, kind: IcebergType) -> str:
        """The text of the transform for values of one of Iceberg's types."""
        return self.text

    def result_type(self, source: pa.DataType) -> pa.DataType | None:
        """The type of the partition values; None for void and for transforms that are not known."""
        return None

    def project(self, domain: Domain) -> Domain:
        """The partition values that a container must have to be able to hold a value of the set."""
        return Domain.all(pa.int32())

    def source_range(self, source: pa.DataType, value: Any) -> Interval | None:
        """The interval of source keys that a partition value stands for; None where it says nothing of a range.

        A null partition value stands for NULL alone and has no range either.
        """
        return None if value is None or not is_comparable(source) else self._range(source, value)

    def _range(self, source: pa.DataType, value: Any) -> Interval | None:
        return None

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        """The partition values of a column of one of Iceberg's types, dates and times as numbers."""
        return transformed_array(array, self.text, kind)

    def source_ranges(self, source: pa.DataType | None, values: pa.Array) -> tuple[pa.Array, pa.Array] | None:
        """`source_range` for a column of partition values, closed at both ends: the first and the last source value.

        An end that cannot be told is null. A range of strings has no last value; its end is the first value behind it,
        which is a little too wide.
        """
        if source is None or not is_comparable(source) or len(values) > MOST_RANGES:
            return None
        ranges = [self.source_range(source, value) or (None, None) for value in from_arrow(values)]
        limits = key_limits(source)

        def end(key: Key | None, step: int) -> Any:
            if key is None or isinstance(key, str | bytes):
                return key
            inside = limits is not None and limits[0] <= key - step <= limits[1]
            return value_of(key - step, source) if inside else None

        lows, highs = [end(low, 0) for low, _ in ranges], [end(high, 1) for _, high in ranges]
        return to_arrow(lows, source), to_arrow(highs, source)

    def wraps(self, source: pa.DataType) -> bool:
        """Whether results may leave their type at one end, and come in again at the other."""
        return False

    def texts(self, values: pa.Array) -> list[str] | None:
        """Partition values for people; None where the values themselves are what people read."""
        return None


class Identity(Transform):
    """The value itself."""

    def field_name(self, column: str) -> str:
        return column

    def result_type(self, source: pa.DataType) -> pa.DataType:
        return source

    def project(self, domain: Domain) -> Domain:
        return domain

    def _range(self, source: pa.DataType, value: Any) -> Interval:
        key = key_of(value, source)
        return key, successor(key)

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        return array


class Void(Transform):
    """Always null: a field that was removed from a table of version 1."""

    suffix = "null"

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        return pa.nulls(len(array), pa.int32())


class Ordered(Transform):
    """A transform that keeps order."""

    is_ordered = True

    def project(self, domain: Domain) -> Domain:
        result = self.result_type(domain.type)
        function = self.function(domain.type)
        if function is None:
            return Domain.all(result)
        intervals = [project_interval(i, function, domain.type, result, self.width) for i in domain.intervals]
        intervals += [wrapped for i in domain.intervals for wrapped in self._wrapped(i, domain.type)]
        return Domain.union_of(result, intervals, domain.null)

    def function(self, source: pa.DataType) -> Callable[[Any], Any] | None:
        """The transform of one value; None where it does not take the type."""
        return transform_function(self.text, source)

    def _wrapped(self, interval: Interval, source: pa.DataType) -> Iterator[Interval]:
        """Where values of an interval land whose results leave the type of results: writers let them wrap around."""
        return iter(())


class Truncate(Ordered):
    """Strings and binary cut to a width; numbers rounded down to a multiple of it."""

    suffix = "trunc"
    has_width = True

    def result_type(self, source: pa.DataType) -> pa.DataType:
        return source

    def wraps(self, source: pa.DataType) -> bool:
        return is_integer(source)

    def _wrapped(self, interval: Interval, source: pa.DataType) -> Iterator[Interval]:
        """`truncate[10]` of the smallest int, -2147483648, is -2147483650, which is 2147483646 in 32 bits."""
        if not is_integer(source):
            return
        least, most = integer_range(source)
        first = -(-least // self.width) * self.width  # the first multiple inside of the type: below it, it is left
        if first != least and (interval[0] is None or interval[0] < first):
            value = first - self.width + (most - least + 1)
            yield value, value + 1

    def _range(self, source: pa.DataType, value: Any) -> Interval | None:
        if isinstance(value, str | bytes):
            if len(value) < self.width:  # it was not cut: it is the whole value
                return value, successor(value)
            return value, next_prefix(value)
        if is_integer(source) and value > integer_range(source)[1] + 1 - self.width:
            return None  # it may have wrapped around
        if is_integer(source) or is_decimal(source):
            key = key_of(value, source)
            return key, key + self.width
        return None

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        """An error for a decimal near the lower end of its type: it may need a digit more than a manifest can hold."""
        from pyiceberg.types import DecimalType

        result = super().on_array(array, kind)
        if not isinstance(kind, DecimalType):
            return result
        least = pc.min(result).as_py()
        if least is not None and least < from_unscaled(10**kind.precision - 1, kind.scale).copy_negate():
            what = f"{self.text} of a value near the lower end of {kind} does not fit {kind}"
            raise SchemaError(what, hint="filter out those rows, or partition by identity or bucket")
        return result


class Period(Ordered):
    """Years, months, days or hours since 1970."""

    unit: ClassVar[str]  # NumPy's

    def result_type(self, source: pa.DataType) -> pa.DataType:
        return pa.int32()

    def function(self, source: pa.DataType) -> Callable[[Any], Any] | None:
        """By NumPy's calendar, which goes on after the year 9999, where `<= '9999-12-31'` has its end."""
        if transform_function(self.text, source) is None:
            return None
        unit, ticks = ("D", 1) if source == pa.date32() else ("h", _HOUR)

        def period(value: int) -> int:
            moment = np.array(value // ticks, f"datetime64[{unit}]")
            return int(moment.astype(f"datetime64[{self.unit}]").astype(np.int64))

        return period

    def _range(self, source: pa.DataType, value: Any) -> Interval | None:
        if not is_timestamp(source) and source != pa.date32():
            return None
        periods = np.array([value, value + 1], f"datetime64[{self.unit}]")
        if source == pa.date32():
            low, high = periods.astype("datetime64[D]").astype(np.int64).tolist()
        else:  # the first and the last periods of 64 bits of microseconds are cut, and NumPy would wrap around
            low, high = (hour * _HOUR for hour in periods.astype("datetime64[h]").astype(np.int64).tolist())
        first, last = integer_range(source)
        return max(low, first), min(high, last + 1)

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        # PyIceberg's core rounds up a day's last second before 1970; NumPy's calendar is exact from hours on.
        values = numbers(array).astype(np.int64)
        hours = values // _TICKS[array.type.unit] if pa.types.is_timestamp(array.type) else values * 24
        periods = hours.astype("datetime64[h]").astype(f"datetime64[{self.unit}]")
        return vector(periods.astype(np.int64), pa.int32(), valid(array)).values

    def texts(self, values: pa.Array) -> list[str] | None:
        if not is_integer(values.type):
            return None
        return [str(moment) for moment in values.to_numpy(zero_copy_only=False).astype(f"datetime64[{self.unit}]")]


class Year(Period):
    """Years since 1970."""

    aliases, unit = ("years",), "Y"


class Month(Period):
    """Months since January 1970."""

    aliases, unit = ("months",), "M"


class Day(Period):
    """Days since 1970-01-01, which are dates."""

    aliases, unit = ("days", "date"), "D"

    def result_type(self, source: pa.DataType) -> pa.DataType:
        return pa.date32()


class Hour(Period):
    """Hours since 1970; 64 bits of microseconds hold moments more than 2^31 hours away, whose hours wrap around."""

    aliases, unit = ("hours",), "h"

    def wraps(self, source: pa.DataType) -> bool:
        return True

    def _wrapped(self, interval: Interval, source: pa.DataType) -> Iterator[Interval]:
        low, high = interval
        if low is None or low < -_MOST_HOURS * _HOUR:
            yield 2 * _MOST_HOURS - 2**63 // _HOUR - 1, None
        if high is None or high > _MOST_HOURS * _HOUR:
            yield None, 2**63 // _HOUR - 2 * _MOST_HOURS + 1

    def _range(self, source: pa.DataType, value: Any) -> Interval | None:
        may_have_wrapped = abs(value) >= 2 * _MOST_HOURS - 2**63 // _HOUR - 1
        return None if may_have_wrapped else super()._range(source, value)


class Bucket(Transform):
    """A hash of the value, in a number of buckets.

    The values of a uuid are text in Penstock and Spark, and Iceberg hashes its bytes: `bucket[16]@uuid` is the
    transform of such texts.
    """

    has_width = True
    is_hash = True

    def on_type(self, kind: IcebergType) -> str:
        return self.text + OF_UUID if str(kind) == "uuid" else self.text

    def result_type(self, source: pa.DataType) -> pa.DataType:
        return pa.int32()

    def project(self, domain: Domain) -> Domain:
        if not domain.intervals:
            return Domain.none(pa.int32(), domain.null)
        keys, function = domain.point_keys(MOST_BUCKETED), transform_function(self.text, domain.type)
        if keys is None or function is None:
            return Domain.all(pa.int32()).with_null(domain.null)
        buckets: set[int] = set()
        for key in keys:
            bucket = function(value_of(key, domain.type))
            if bucket is not None:
                buckets.add(bucket)
            if len(buckets) == self.width:
                break
        return Domain.points(pa.int32(), buckets, domain.null)

    def on_array(self, array: pa.Array, kind: IcebergType) -> pa.Array:
        if str(kind) == "uuid" and pa.types.is_string(array.type):
            array = pa.array([None if text is None else UUID(text).bytes for text in array.to_pylist()], pa.binary(16))
        return super().on_array(array, kind)


_ENTRIES: dict[str, type[Transform]] = {
    entry.__name__.lower(): entry for entry in (Identity, Void, Year, Month, Day, Hour, Truncate, Bucket)
}
# What people may write -> the transform's own name, and whether it takes a width.
TRANSFORM_NAMES = {word: (name, entry.has_width) for name, entry in _ENTRIES.items() for word in (name, *entry.aliases)}


@lru_cache(maxsize=256)
def transform_of(text: str) -> Transform:
    """The entry of a transform as metadata spells it.

    >>> transform_of("bucket[16]").width, transform_of("bucket[16]@uuid").width
    (16, 16)
    """
    name, _, rest = text.strip().lower().partition("@")[0].partition("[")
    width = int(rest.rstrip("]")) if rest.rstrip("]").isdigit() else 0
    entry = _ENTRIES.get(name, Transform)
    return (Transform if entry.has_width and not width else entry)(text, name, width)
