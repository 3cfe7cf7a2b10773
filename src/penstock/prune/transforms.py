"""Iceberg's partition transforms: sets of source values projected to partition values, and the range back.

The functions themselves (what day, bucket, truncate *are*) are PyIceberg's code, applied to the few keys at the ends of
a set's intervals. Only two facts are added here, and both are proven in the tests against PyIceberg:

* All transforms but bucket keep order, so the values of `[low, high]` land in `[T(low), T(high)]`.
* A partition value of such a transform stands for one interval of source values (`source_range`).

Truncated integers at the lower end of their type, and hours 245,000 years away, are the exceptions to both: they wrap.

`project` is the *inclusive* projection: a container can hold a value of the set only if its partition value is in the
projected set. The *strict* projection (partition values for which every row is in the set) needs no code of its own; it
is the complement of the projection of the complement:

    strict(D) = complement(project(complement(D)))

An unknown or void transform, or a key that PyIceberg cannot transform (a year past 9999), projects to everything.

>>> project(Domain.points(pa.string(), ["iceberg"]), "truncate[3]").intervals
(('ice', 'ice\\x00'),)
>>> source_range("day", TIMESTAMP, 20590)  # 2026-05-17
(1778976000000000, 1779062400000000)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.python_values import from_arrow, to_arrow
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, integer_range, is_decimal, is_integer, is_timestamp
from penstock.prune.domain import Domain, Interval
from penstock.prune.ordered_keys import Key, is_comparable, key_limits, key_of, successor, value_of

OF_UUID = "@uuid"
# Ranges of up to this many integers are bucketed value by value; an IN list has no such limit.
MOST_BUCKETED = 50_000
# More distinct partition values than this are not turned into ranges: it is done one by one.
MOST_RANGES = 50_000

_HOUR = 3_600_000_000
_MOST_HOURS = 2**31
_PERIODS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}


def transform_parts(transform: str) -> tuple[str, int]:
    """The name and the width of a transform: `bucket[16]` is ("bucket", 16), and so is `bucket[16]@uuid`.

    >>> transform_parts("truncate[4]")
    ('truncate', 4)
    """
    name, _, rest = transform.strip().lower().partition("@")[0].partition("[")
    return name, int(rest.rstrip("]")) if rest.rstrip("]").isdigit() else 0


def is_ordered(transform: str) -> bool:
    """Whether a partition value stands for one range of source values, see `source_range`.

    >>> is_ordered("truncate[4]"), is_ordered("bucket[16]")
    (True, False)
    """
    name, width = transform_parts(transform)
    return name in _PERIODS or (name == "truncate" and width > 0)


def result_type(transform: str, source: pa.DataType) -> pa.DataType | None:
    """The type of the partition values; None for void and for transforms that are not known."""
    name, width = transform_parts(transform)
    if name == "identity" or (name == "truncate" and width > 0):
        return source
    if name == "day":
        return pa.date32()
    if name in _PERIODS or (name == "bucket" and width > 0):
        return pa.int32()
    return None


def project(domain: Domain, transform: str) -> Domain:
    """The partition values that a container must have to be able to hold a value of the set."""
    name, width = transform_parts(transform)
    result = result_type(transform, domain.type)
    if result is None:
        return Domain.all(pa.int32())
    if name == "identity":
        return domain
    if name == "bucket":
        return _project_bucket(domain, transform, result)
    function = transform_function(transform, domain.type)
    if function is None:
        return Domain.all(result)
    intervals = [_project_interval(i, function, domain.type, result, width) for i in domain.intervals]
    if name == "truncate" and is_integer(domain.type):
        intervals += [i for interval in domain.intervals for i in _wrapped(interval, domain.type, width)]
    if name == "hour":
        intervals += [i for interval in domain.intervals for i in _wrapped_hours(interval)]
    return Domain.union_of(result, intervals, domain.null)


def _project_bucket(domain: Domain, transform: str, result: pa.DataType) -> Domain:
    if not domain.intervals:
        return Domain.none(result, domain.null)
    keys = domain.point_keys(MOST_BUCKETED)
    function = transform_function(transform, domain.type)
    if keys is None or function is None:
        return Domain.all(result).with_null(domain.null)
    count = transform_parts(transform)[1]
    buckets: set[int] = set()
    for key in keys:
        bucket = function(value_of(key, domain.type))
        if bucket is not None:
            buckets.add(bucket)
        if len(buckets) == count:
            break
    return Domain.points(result, buckets, domain.null)


def _project_interval(
    interval: Interval, function: Callable[[Any], Any], source: pa.DataType, result: pa.DataType, width: int
) -> Interval:
    low, high = interval
    if isinstance(low, str | bytes) or isinstance(high, str | bytes):
        # T(high) itself is reached only by values above it when `high` is no longer than the width.
        end = high if high is None or len(high) <= width else successor(high[:width])
        return (None if low is None else low[:width]), end
    start = None if low is None else _transformed(low, function, source, result)
    last = None if high is None else _transformed(high - 1, function, source, result)
    return start, None if last is None else last + 1


def _wrapped(interval: Interval, source: pa.DataType, width: int) -> list[Interval]:
    """Where truncation leaves the type at its lower end: writers let the result wrap around to the upper end.

    `truncate[10]` of the smallest int, -2147483648, is -2147483650, which is 2147483646 in 32 bits.
    """
    least, most = integer_range(source)
    first = -(-least // width) * width  # the first multiple inside of the type: below it, truncation leaves it
    if first == least or (interval[0] is not None and interval[0] >= first):
        return []
    value = first - width + (most - least + 1)
    return [(value, value + 1)]


def _wrapped_hours(interval: Interval) -> list[Interval]:
    """Moments more than 2^31 hours from 1970, which 64 bits of microseconds hold: their hours wrap around too."""
    low, high = interval
    found: list[Interval] = []
    if low is None or low < -_MOST_HOURS * _HOUR:
        found.append((2 * _MOST_HOURS - 2**63 // _HOUR - 1, None))
    if high is None or high > _MOST_HOURS * _HOUR:
        found.append((None, 2**63 // _HOUR - 2 * _MOST_HOURS + 1))
    return found


def _transformed(key: Key, function: Callable[[Any], Any], source: pa.DataType, result: pa.DataType) -> Key | None:
    try:
        return key_of(function(value_of(key, source)), result)
    except (OverflowError, ValueError, ArithmeticError):
        return None  # outside of what PyIceberg's calendar reaches


@lru_cache(maxsize=256)
def transform_function(transform: str, source: pa.DataType) -> Callable[[Any], Any] | None:
    """PyIceberg's function for physical values; None where the transform does not take the type.

    The values of a uuid are text here, and Iceberg hashes its bytes: `bucket[16]@uuid` is the transform of such texts.
    """
    from pyiceberg.transforms import parse_transform

    if transform.endswith(OF_UUID):
        return _bucket_of_uuid(transform.removesuffix(OF_UUID))
    iceberg = _iceberg_type(source)
    if iceberg is None:
        return None
    found = parse_transform(transform)
    if not found.can_transform(iceberg):
        return None
    return found.transform(iceberg)


def _bucket_of_uuid(transform: str) -> Callable[[str], int | None]:
    """The bucket of a uuid by its text; None for a text that is no value of such a column."""
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import UUIDType

    function = parse_transform(transform).transform(UUIDType())

    def bucket(text: str) -> int | None:
        try:
            value = UUID(text)
        except ValueError:
            return None
        return function(value) if str(value) == text else None

    return bucket


def _iceberg_type(t: pa.DataType) -> Any:
    from pyiceberg import types

    if is_integer(t):
        return types.LongType() if t == pa.int64() else types.IntegerType()
    if is_decimal(t):
        return types.DecimalType(t.precision, t.scale)
    simple = {
        pa.bool_(): types.BooleanType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.binary(): types.BinaryType(),
        pa.date32(): types.DateType(),
        TIMESTAMP: types.TimestamptzType(),
        TIMESTAMP_NTZ: types.TimestampType(),
    }
    return simple.get(t)


def source_range(transform: str, source: pa.DataType, value: Any) -> Interval | None:
    """The interval of source keys that a partition value stands for; None where it says nothing of a range.

    A null partition value stands for NULL alone and has no range either.
    """
    name, width = transform_parts(transform)
    if value is None or not is_comparable(source):
        return None
    if name == "identity":
        key = key_of(value, source)
        return key, successor(key)
    if name == "truncate" and width > 0:
        return _truncated_range(value, source, width)
    if name == "hour" and abs(value) >= 2 * _MOST_HOURS - 2**63 // _HOUR - 1:
        return None  # it may have wrapped around: see `_wrapped_hours`
    if name in _PERIODS and (is_timestamp(source) or source == pa.date32()):
        unit = "us" if is_timestamp(source) else "D"
        periods = np.array([value, value + 1], f"datetime64[{_PERIODS[name]}]")
        low, high = periods.astype(f"datetime64[{unit}]").astype(np.int64)
        return int(low), int(high)
    return None


def source_ranges(transform: str, source: pa.DataType | None, values: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """`source_range` for a column of partition values, closed at both ends: the first and the last source value.

    An end that cannot be told is null. A range of strings has no last value; its end is the first value behind it,
    which is a little too wide.
    """
    if source is None or not is_comparable(source) or len(values) > MOST_RANGES:
        return None
    ranges = [source_range(transform, source, value) or (None, None) for value in from_arrow(values)]
    limits = key_limits(source)

    def end(key: Key | None, step: int) -> Any:
        if key is None or isinstance(key, str | bytes):
            return key
        inside = limits is not None and limits[0] <= key - step <= limits[1]
        return value_of(key - step, source) if inside else None

    return to_arrow([end(low, 0) for low, _ in ranges], source), to_arrow([end(high, 1) for _, high in ranges], source)


def _truncated_range(value: Any, source: pa.DataType, width: int) -> Interval | None:
    if isinstance(value, str):
        # A value shorter than the width was not cut: it is the whole string.
        return (value, next_prefix(value)) if len(value) >= width else (value, successor(value))
    if isinstance(value, bytes):
        return (value, next_bytes_prefix(value)) if len(value) >= width else (value, successor(value))
    if is_integer(source) and value > integer_range(source)[1] + 1 - width:
        return None  # it may have wrapped around: see `_wrapped`
    if is_integer(source) or is_decimal(source):
        key = key_of(value, source)
        return key, key + width
    return None


def next_prefix(prefix: str) -> str | None:
    """The smallest string above all strings with this prefix; None when there is none.

    >>> next_prefix("ab"), next_prefix("a\\U0010ffff"), next_prefix("\\U0010ffff")
    ('ac', 'b', None)
    """
    stripped = prefix.rstrip("\U0010ffff")
    if not stripped:
        return None
    last = ord(stripped[-1]) + 1
    # No string has half of a surrogate pair in it: U+D7FF is followed by U+E000.
    return stripped[:-1] + chr(0xE000 if 0xD800 <= last <= 0xDFFF else last)


def next_bytes_prefix(prefix: bytes) -> bytes | None:
    """The same for binary."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
