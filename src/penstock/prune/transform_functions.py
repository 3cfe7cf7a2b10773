"""PyIceberg's transforms as functions: of physical values, of the intervals of a set, and of Arrow's columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.physical import from_arrow
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_integer
from penstock.prune.domain import Interval
from penstock.prune.ordered_keys import Key, key_of, successor, value_of

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

OF_UUID = "@uuid"


@lru_cache(maxsize=256)
def transform_function(transform: str, source: pa.DataType) -> Callable[[Any], Any] | None:
    """PyIceberg's function for physical values; None where the transform does not take the type.

    The values of a uuid are text here, and Iceberg hashes its bytes: `bucket[16]@uuid` is the transform of such texts.
    """
    from pyiceberg.transforms import parse_transform
    from pyiceberg.types import UUIDType

    applied = parse_transform(transform.removesuffix(OF_UUID))
    iceberg = UUIDType() if transform.endswith(OF_UUID) else iceberg_type(source)
    if iceberg is None or not applied.can_transform(iceberg):
        return None
    function = applied.transform(iceberg)

    def of_text(text: str) -> Any:
        """None for a text that is no value of such a column."""
        try:
            value = UUID(text)
        except ValueError:
            return None
        return function(value) if str(value) == text else None

    return of_text if transform.endswith(OF_UUID) else function


def iceberg_type(t: pa.DataType) -> IcebergType | None:
    """Iceberg's type of plain values; None where it has none."""
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


def project_interval(
    interval: Interval, function: Callable[[Any], Any], source: pa.DataType, result: pa.DataType, width: int
) -> Interval:
    """Where the values of an interval land under a function that keeps order; an end that cannot be told is open."""
    low, high = interval
    if isinstance(low, str | bytes) or isinstance(high, str | bytes):
        # T(high) itself is reached only by values above it when `high` is no longer than the width.
        end = high if high is None or len(high) <= width else successor(high[:width])
        return (None if low is None else low[:width]), end
    start = None if low is None else _transformed(low, function, source, result)
    last = None if high is None else _transformed(high - 1, function, source, result)
    return start, None if last is None else last + 1


def _transformed(key: Key, function: Callable[[Any], Any], source: pa.DataType, result: pa.DataType) -> Key | None:
    try:
        return key_of(function(value_of(key, source)), result)
    except (OverflowError, ValueError, ArithmeticError):
        return None  # outside of what PyIceberg's calendar reaches


def transformed_array(array: pa.Array, transform: str, kind: IcebergType) -> pa.Array:
    """The transform of a column of one of Iceberg's types; dates are numbers.

    By PyIceberg's native core; where that does not know a type, by PyIceberg's own code, on distinct values.
    """
    from pyiceberg.transforms import parse_transform

    applied = parse_transform(transform)
    try:
        result = applied.pyarrow_transform(kind)(_aligned(array))
        return result.cast(pa.int32()) if result.type == pa.date32() else result
    except Exception:  # the core has its own kinds of errors for types that it does not know
        encoded, function = array.dictionary_encode(), applied.transform(kind)
        distinct = encoded.dictionary
        physical = from_arrow(distinct.view(pa.int64()) if pa.types.is_time64(distinct.type) else distinct)
        return pa.array([None if value is None else function(value) for value in physical]).take(encoded.indices)


def _aligned(array: pa.Array) -> pa.Array:
    """An array as the core takes it: what comes from another process may lie anywhere in memory, and is copied."""
    if all(buffer is None or buffer.address % 16 == 0 for buffer in array.buffers()):
        return array
    return array.take(pa.array(np.arange(len(array))))
