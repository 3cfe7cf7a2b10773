"""Small, nasty pools of values for every type, how a value is written as SQL, and how a column of them is made.

Values are physical as in `penstock.expr.types`: a date is its days, a timestamp its microseconds. Nothing here
uses the code under test except for the two names of the timestamp types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ

NAN, INF = float("nan"), float("inf")
DAY = 86_400_000_000
HOUR = 3_600_000_000


def _integers(bits: int) -> list[int]:
    top = 1 << bits - 1
    return [-top, 1 - top, -11, -10, -2, -1, 0, 1, 2, 3, 5, 9, 10, 11, 34, 100, top - 2, top - 1]


_STRINGS = [
    "", "\0", "A", "a", "a\0", "ab", "ab\0", "abc", "ab%", "a_c", "b", "B", "ba", "iceberg", "it's", "\\",
    "\n", "1", "\x00101", "é",
    "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "a\U0010ffff", "\U0010ffff\U0010ffff", "\ud7ffa",
]  # fmt: skip
_DATES = [
    -719162,
    -25567,
    -366,
    -365,
    -32,
    -31,
    -1,
    0,
    1,
    30,
    31,
    58,
    59,
    364,
    365,
    20453,
    20454,
    20589,
    20590,
    20591,
    2932896,
]
# New York leaves summer time at 2025-11-02 06:00 UTC and enters it at 2025-03-09 07:00; in St John's the date itself
# went back at 2006-10-29 02:31 UTC.
_MOMENTS = [
    -62135596800000000, -365 * DAY, -31 * DAY - 1, -DAY - 1, -DAY, -HOUR, -500_000, -1, 0, 1, 999_999,
    HOUR - 1, HOUR, DAY - 1,
    DAY, 31 * DAY, 365 * DAY - 1, 365 * DAY, 1162089059_999999, 1162089060_000000, 1162092660_000000, 1741503599_999999,
    1741503600_000000, 1762061400_000000, 1762063200_000000, 20454 * DAY - 1, 20454 * DAY, 20590 * DAY - 1, 20590 * DAY,
    20590 * DAY + 12 * HOUR + 123456, 20590 * DAY + 4 * HOUR, 20591 * DAY - 1, 20591 * DAY, 253402300799_999999,
]  # fmt: skip

POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "tinyint": (pa.int8(), _integers(8)),
    "smallint": (pa.int16(), _integers(16)),
    "int": (pa.int32(), _integers(32)),
    "bigint": (pa.int64(), [*_integers(64), 2**53, 2**53 + 1, -(2**53) - 1]),
    "float": (
        pa.float32(),
        [-INF, -3.4028234663852886e38, -1.5, -1.0, -0.0, 0.0, 1.401298464324817e-45, 1.0, 1.5, 2.0,
        16777216.0, INF, NAN],
    ),
    "double": (
        pa.float64(),
        [-INF, -1.7976931348623157e308, -1.5, -1.0, -0.0, 0.0, 5e-324, 0.1, 1.0, 1.5, 2.0,
        9007199254740992.0, INF, NAN],
    ),
    "decimal(5,2)": (
        pa.decimal128(5, 2),
        [Decimal(v) for v in ("-999.99", "-1.50", "-0.01", "0.00", "0.01", "1.00", "1.50", "1.51", "9.99", "999.99")],
    ),
    "decimal(20,3)": (
        pa.decimal128(20, 3),
        [
            Decimal(v)
            for v in (
                "-99999999999999999.999", "-1.500", "-0.001", "0.000", "0.001", "1.000", "1.500",
                "9007199254740993.000",
                "99999999999999999.998", "99999999999999999.999",
            )
        ],
    ),
    "string": (pa.string(), _STRINGS),
    "binary": (pa.binary(), [b"", b"\0", b"a", b"a\0", b"ab", b"abc", b"\x7f", b"\x80", b"\xff", b"\xff\xff",
    b"a\xff"]),
    "date": (pa.date32(), _DATES),
    "timestamp": (TIMESTAMP, _MOMENTS),
    "timestamp_ntz": (TIMESTAMP_NTZ, _MOMENTS),
}  # fmt: skip

TRANSFORMS = {
    "tinyint": ["bucket[4]", "truncate[10]"],
    "smallint": ["bucket[4]", "truncate[10]"],
    "int": ["bucket[4]", "bucket[16]", "truncate[1]", "truncate[10]", "truncate[100]"],
    "bigint": ["bucket[4]", "bucket[16]", "truncate[10]", "truncate[1000000000]"],
    "decimal(5,2)": ["bucket[4]", "truncate[50]", "truncate[100]"],
    "decimal(20,3)": ["bucket[4]", "truncate[1000]"],
    "string": ["bucket[4]", "truncate[1]", "truncate[2]", "truncate[3]"],
    "binary": ["bucket[4]", "truncate[1]", "truncate[2]"],
    "date": ["year", "month", "day", "bucket[4]"],
    "timestamp": ["year", "month", "day", "hour", "bucket[4]"],
    "timestamp_ntz": ["year", "month", "day", "hour", "bucket[4]"],
}


def to_array(values: Sequence[Any], t: pa.DataType) -> pa.Array:
    """Physical values as an Arrow array."""
    if t == pa.date32():
        return pa.array(values, pa.int32()).view(t)
    if pa.types.is_timestamp(t):
        return pa.array(values, pa.int64()).view(t)
    if pa.types.is_map(t):
        return pa.array([None if v is None else list(v.items()) for v in values], t)
    return pa.array(values, t, from_pandas=False)


def identity(value: Any) -> str:
    """What tells two values apart: NaN is one value, and -0.0 is not 0.0."""
    return repr(value)


def order(value: Any) -> Any:
    """A sort key in Spark's order for values of one type: NaN above all, -0.0 equal to 0.0, strings by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def is_nan(value: Any) -> bool:
    """Whether a value is NaN."""
    return isinstance(value, float) and math.isnan(value)


def write_text(value: str) -> str:
    """A string literal; everything but quotes and backslashes is written raw."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write(value: Any, kind: str) -> str:
    """A value as a literal of its own type."""
    if value is None:
        return "NULL"
    if kind == "boolean":
        return "TRUE" if value else "FALSE"
    if kind in ("float", "double"):
        if math.isnan(value) or math.isinf(value):
            return f"CAST('{'NaN' if math.isnan(value) else ('Infinity' if value > 0 else '-Infinity')}' AS {kind})"
        return f"CAST({value!r}D AS float)" if kind == "float" else f"{value!r}D"
    if kind == "string":
        return write_text(value)
    if kind == "binary":
        return f"X'{value.hex().upper()}'"
    if kind == "date":
        return f"DATE '{day_text(value)}'"
    if kind == "timestamp":
        return f"TIMESTAMP '{moment_text(value)}Z'"
    if kind == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{moment_text(value)}'"
    return str(value)


def day_text(days: int) -> str:
    """A date as Spark reads it."""
    return str(np.datetime64(days, "D"))


def moment_text(micros: int) -> str:
    """A moment as Spark reads it, without a zone."""
    return str(np.datetime64(micros, "us")).replace("T", " ")


@lru_cache(maxsize=512)
def transform(name: str, t: pa.DataType) -> Any:
    """PyIceberg's function for physical values of a type."""
    from pyiceberg import types
    from pyiceberg.transforms import parse_transform

    if pa.types.is_decimal(t):
        iceberg: Any = types.DecimalType(t.precision, t.scale)
    else:
        iceberg = {
            pa.int8(): types.IntegerType(), pa.int16(): types.IntegerType(), pa.int32(): types.IntegerType(),
            pa.int64(): types.LongType(), pa.string(): types.StringType(), pa.binary(): types.BinaryType(),
            pa.date32(): types.DateType(), TIMESTAMP: types.TimestamptzType(), TIMESTAMP_NTZ: types.TimestampType(),
            pa.bool_(): types.BooleanType(), pa.float32(): types.FloatType(), pa.float64(): types.DoubleType(),
        }[t]  # fmt: skip
    return parse_transform(name).transform(iceberg)


def transformed(name: str, t: pa.DataType, value: Any) -> Any:
    """The partition value of a source value."""
    return None if value is None else transform(name, t)(value)


def fits(value: Any, t: pa.DataType) -> bool:
    """Whether a value can be held: truncating the smallest integer goes below it."""
    try:
        to_array([value], t)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def transformed_type(name: str, t: pa.DataType) -> pa.DataType:
    """The type of the partition values."""
    if name == "identity" or name.startswith("truncate"):
        return t
    return pa.date32() if name == "day" else pa.int32()
