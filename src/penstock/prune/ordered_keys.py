"""Keys: every value as a point of a discrete order, so that a set of values is a list of half-open intervals.

| type | key |
|---|---|
| boolean, integers, date, timestamp | the physical integer itself |
| float, double | an integer in Spark's order: -Infinity … -0.0 = 0.0 … Infinity, NaN on top |
| decimal(p, s) | the unscaled integer |
| string, binary | the value itself |

Every key has a *successor* with nothing between: `k + 1` for integers, `k + "\\0"` for strings. So `x > 5` is `[6,
∞)`, `x <= 'b'` is `(-∞, 'b\\0')`, there are no open and closed ends to tell apart, and `x > 1 AND x < 2` on integers
is seen to be empty. Infinite ends are None.

>>> successor(key_of("b", pa.string()))
'b\\x00'
>>> key_of(float("nan"), pa.float64()) > key_of(float("inf"), pa.float64())
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.decimals import decimal_vector, from_unscaled, to_unscaled, unscaled
from penstock.expr.kernels.physical import numbers, vector
from penstock.expr.types import integer_range, is_decimal, is_float, is_integer, is_timestamp

Key = Any  # int, str or bytes
Keys = npt.NDArray[np.int64]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
_LONGEST_INT64_DECIMAL = 18


def is_comparable(t: pa.DataType | None) -> bool:
    """Whether values of the type have keys at all."""
    return t is not None and (has_int64_keys(t) or t in (pa.string(), pa.binary()) or is_decimal(t))


def has_int64_keys(t: pa.DataType) -> bool:
    """Whether a column of the type can be turned into a NumPy column of keys."""
    if is_decimal(t):
        return bool(t.precision <= _LONGEST_INT64_DECIMAL)
    return is_integer(t) or is_float(t) or is_timestamp(t) or t in (pa.bool_(), pa.date32())


def key_limits(t: pa.DataType) -> tuple[int, int] | None:
    """The smallest and the largest key of a type; None for strings and binary, which have no largest."""
    if t == pa.bool_():
        return 0, 1
    if is_integer(t):
        return integer_range(t)
    if t == pa.date32():
        return integer_range(pa.int32())
    if is_timestamp(t):
        return INT64_MIN, INT64_MAX
    if is_decimal(t):
        return -(10**t.precision) + 1, 10**t.precision - 1
    if is_float(t):
        return key_of(float("-inf"), t), key_of(float("nan"), t)
    return None


def successor(key: Key) -> Key:
    """The next key; nothing lies between."""
    if isinstance(key, str):
        return key + "\0"
    return key + b"\0" if isinstance(key, bytes) else key + 1


def next_prefix(prefix: Key) -> Key | None:
    """The smallest string or binary above all with this prefix; None when there is none.

    >>> next_prefix("ab"), next_prefix("a\\U0010ffff"), next_prefix("\\U0010ffff"), next_prefix(b"a\\xff")
    ('ac', 'b', None, b'b')
    """
    stripped = prefix.rstrip("\U0010ffff" if isinstance(prefix, str) else b"\xff")
    if not stripped or isinstance(stripped, bytes):
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    last = ord(stripped[-1]) + 1
    # No string has half of a surrogate pair in it: U+D7FF is followed by U+E000.
    return stripped[:-1] + chr(0xE000 if 0xD800 <= last <= 0xDFFF else last)


def key_of(value: Any, t: pa.DataType) -> Key:
    """The key of one physical, non-null value."""
    if isinstance(value, str | bytes):
        return value
    if is_decimal(t):
        return to_unscaled(value, t.scale)
    if is_float(t):
        return int(array_keys(pa.array([value], t))[0])
    return int(value)


def value_of(key: Key, t: pa.DataType) -> Any:
    """The physical value that has this key."""
    if isinstance(key, str | bytes):
        return key
    if is_decimal(t):
        return from_unscaled(key, t.scale)
    if is_float(t):
        return keys_to_array(np.array([key], np.int64), t)[0].as_py()
    return bool(key) if t == pa.bool_() else key


def array_keys(values: pa.Array) -> Keys:
    """The keys of a column of a type with int64 keys; nulls get some key, the caller masks them."""
    if is_decimal(values.type):
        return unscaled(values, 0)
    physical = numbers(values)
    return _float_keys(physical) if is_float(values.type) else physical.astype(np.int64)


def _float_keys(values: npt.NDArray[Any]) -> Keys:
    """Non-negative floats are ordered as their bits are, negative ones the other way round; `low - bits` mends that."""
    width, low, top = _float_layout(values.dtype)
    nan = np.isnan(values)
    clean = np.where(nan, values.dtype.type(0), values) + values.dtype.type(0)  # adding 0 turns -0.0 into 0.0
    bits = clean.view(width).astype(np.int64)
    with np.errstate(over="ignore"):
        keys = np.where(bits < 0, low - bits, bits)
    return np.where(nan, top, keys)


def _float_layout(dtype: Any) -> tuple[Any, np.int64, np.int64]:
    """The integer of the same width, its smallest value, and the key of NaN."""
    width = np.int32 if dtype == np.float32 else np.int64
    infinity = np.array([np.inf], dtype).view(width).astype(np.int64)[0]
    return width, np.int64(np.iinfo(width).min), infinity + 1


def keys_to_array(keys: Keys, t: pa.DataType) -> pa.Array:
    """The column of values that have these keys: the way back from `array_keys`."""
    known = np.ones(len(keys), np.bool_)
    if is_decimal(t):
        return decimal_vector(keys, t, known).values
    return vector(_float_values(keys, t.to_pandas_dtype()) if is_float(t) else keys, t, known).values


def _float_values(keys: Keys, dtype: Any) -> npt.NDArray[Any]:
    width, low, top = _float_layout(dtype)
    with np.errstate(over="ignore"):
        bits = np.where(keys < 0, low - keys, keys)
    return np.asarray(np.where(keys >= top, dtype(np.nan), bits.astype(width).view(dtype)))
