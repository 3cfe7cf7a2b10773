"""Values of every type, in physical form: those that break things, and their neighbours.

A date is the number of days since 1970-01-01, a timestamp the number of microseconds, a decimal its unscaled digits: so
dates before year 1 and after 9999 and decimals of 38 digits need no Python object that cannot hold them.
"""

from __future__ import annotations

import math
import struct
import uuid
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
DAY = 86_400_000_000
UUID = "uuid"

# Short names of the types that columns have; only tables of lakes have a uuid, which is read as text.
SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(18,6)": pa.decimal128(18, 6),
    "decimal(38,10)": pa.decimal128(38, 10),
    "decimal(38,0)": pa.decimal128(38, 0),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
NESTED: dict[str, pa.DataType] = {
    "map": pa.map_(pa.string(), pa.string()),
    "map of int": pa.map_(pa.string(), pa.int32()),
    "array": pa.list_(pa.int32()),
    "struct": pa.struct(
        {"a": pa.int32(), "b": pa.string(), "t": TIMESTAMP, "d": pa.decimal128(38, 10), "x": pa.float64()}
    ),
}
TYPES = SCALARS | NESTED
# Types with a uuid inside, which is read as text too.
NESTED_UUIDS: dict[str, pa.DataType] = {
    "struct with uuid": pa.struct({"u": pa.string(), "n": pa.int32()}),
    "array of uuid": pa.list_(pa.string()),
    "map of uuid": pa.map_(pa.string(), pa.string()),
}
UUIDS = (UUID, *NESTED_UUIDS)
KEYS = ("k", "key 2", "rare")

_LONG = "a long text that is longer than any bound is kept: "
_WORDS = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b",
    "z",
    "~",
    " a ",
    "ß",
    "é",
    "😀",
    "\U0010ffff",
    "\ud7ff",
    "5",
    "-7",
    "1.5",
    "true",
]
_WORDS += ["2026-05-01", "2026-05-01 10:00:00", "null", "NaN", "a%b", "a_b", "a\\b", "a'b", "\n", "\x01", "10", "9"]
_WORDS += [_LONG, _LONG + "a", _LONG + "b", "\U0010ffff" * 20, "a" * 16, "a" * 16 + "\U0010ffff", "a" * 70, "é" * 17]
_BYTES = [b"", b"\0", b"a", b"ab", b"\xff", b"\xff" * 20, b"\x7f", b"\x80", b"a" * 16 + b"\xff", b"\xff" * 16 + b"a"]
# 1582-10-15 and the day before, year 1, year 0, 1970, 2000-02-29, month ends of 2026, 9999-12-31, years beyond it.
_DAYS = [-141_427, -141_428, -719_162, -719_163, -719_529, 0, -1, 1, 11_016, 20_483, 20_484, 20_543, 20_544, 20_574]
_DAYS += [20_604, 20_635, 2_932_896, 2_932_897, 4_000_000, 36_524_000, -800_000]
# Clock changes of New York (2026-03-08 07:00, 2026-11-01 06:00 UTC) and Apia (2011-12-30 is missing there).
_MICROS = [1_772_953_200 * 10**6, 1_793_512_800 * 10**6, 1_325_239_200 * 10**6, 1_325_152_800 * 10**6, 0, -1, 1]
_MICROS += [-12_219_292_800 * 10**6, -62_135_596_800 * 10**6, 253_402_300_799_999_999, 253_402_300_800_000_000]
# The last days of January 2026, whose months later are in another order.
_MICROS += [1_769_767_200 * 10**6, 1_769_850_000 * 10**6, 1_769_810_400 * 10**6, 1_769_900_000 * 10**6]
_MICROS += [1_777_593_600 * 10**6 + 123_456, 1_000_000_000_000_000_000, -3_000 * 365 * DAY]
# Where functions of the clock or the calendar lose their order, and the distance at which values are drawn there: the
# end of January, whose last days are the same day a month later; clocks that go back; a day that Apia left out.
_MINUTE = 60 * 10**6
_MONTH_END = (1_769_817_600 * 10**6, 180 * _MINUTE)
_TURNS = {
    "America/New_York": (1_793_512_800 * 10**6, 15 * _MINUTE),
    "Australia/Lord_Howe": (1_775_314_800 * 10**6, 5 * _MINUTE),
    "Pacific/Apia": (1_325_239_200 * 10**6, 150 * _MINUTE),
}
_DOUBLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, -1.0, 1.5, 0.1, 1e9, -1e9, 1e300, -1e300, 5e-324, 2.0**53]
_FLOATS = [*_DOUBLES[:11], 16_777_216.0, 16_777_217.0, 1.401298464324817e-45, 3.4028234663852886e38]


def bits_of(t: pa.DataType) -> int:
    """How many bits an integer type has."""
    return int(t.bit_width)


def draw(rng: Random, t: pa.DataType) -> Any:
    """A value of a plain type, in physical form."""
    if pa.types.is_boolean(t):
        return rng.random() < 0.5
    if pa.types.is_integer(t):
        top = 1 << bits_of(t) - 1
        return rng.choice([0, 1, -1, 2, 7, 12, 31, 100, -100, top - 1, -top, top - 2, rng.randrange(-top, top)])
    if pa.types.is_floating(t):
        return _as_float(rng.choice([*(_FLOATS if t == pa.float32() else _DOUBLES), rng.uniform(-1e4, 1e4)]), t)
    if pa.types.is_decimal(t):
        top = 10**t.precision
        small = 10**t.scale
        edges = [0, 1, -1, small, -small, top - 1, 1 - top, top - 2, small // 2, 10 ** (t.precision // 2) + 1]
        return rng.choice([*edges, rng.randrange(1 - top, top), rng.randrange(-100 * small, 100 * small)])
    if pa.types.is_string(t):
        return rng.choice([*_WORDS, "".join(rng.choices("abAB01 %_é\U0010ffff", k=rng.randrange(1, 30)))])
    if pa.types.is_binary(t):
        return rng.choice([*_BYTES, rng.randbytes(rng.randrange(1, 24))])
    if pa.types.is_date(t):
        return rng.choice([*_DAYS, rng.randrange(20_400, 20_700), rng.randrange(-719_162, 2_932_896)])
    return rng.choice([*_MICROS, rng.randrange(1_767_225_600, 1_798_761_600) * 10**6 + rng.randrange(10**6)])


def around_a_turn(rng: Random, zone: str, count: int) -> list[int]:
    """Timestamps on both sides of a moment where functions of the clock or the calendar lose their order."""
    turn, step = rng.choice([_MONTH_END, _TURNS.get(zone, _MONTH_END)])
    return [turn - rng.randrange(1, 5) * step, *(turn + rng.randrange(-1, 11) * step for _ in range(count - 1))]


def neighbour(rng: Random, t: pa.DataType, value: Any) -> Any:
    """A value close to another one: the next, or one a few steps away."""
    step = rng.choice([-1, 1, 1, -2, 3, rng.randrange(-50, 50)])
    if pa.types.is_boolean(t):
        return value
    if pa.types.is_integer(t):
        return _clamped(value + step, 1 << bits_of(t) - 1)
    if pa.types.is_floating(t):
        moved = value if not math.isfinite(value) else rng.choice([value + step, value * 1.5, math.nextafter(value, 0)])
        return _as_float(moved, t)
    if pa.types.is_decimal(t):
        scaled = step * rng.choice([1, 10 ** (t.scale // 2), 10**t.scale])
        return max(1 - 10**t.precision, min(10**t.precision - 1, value + scaled))
    if pa.types.is_string(t):
        return rng.choice([value + "a", value + "\U0010ffff", value[:-1], value[:17] + "b", value.upper()])
    if pa.types.is_binary(t):
        return rng.choice([value + b"\0", value + b"\xff", value[:-1], value[:17] + b"b"])
    if pa.types.is_date(t):
        return _clamped(value + step * rng.choice([1, 1, 30]), 1 << 31)
    unit = rng.choice([1, 10**6, 60 * 10**6, 3_600 * 10**6, DAY, DAY // 3, 7 * DAY])
    return _clamped(value + step * unit, 1 << 62)


def array(values: list[Any], t: pa.DataType) -> pa.Array:
    """Physical values as an array of their type."""
    if pa.types.is_decimal(t):
        return pa.array([None if v is None else digits(v, t.scale) for v in values], t)
    if pa.types.is_timestamp(t):
        return pa.array(values, pa.int64()).cast(t)
    if pa.types.is_date(t):
        return pa.array(values, pa.int32()).cast(t)
    return pa.array(values, t)


def digits(unscaled: int, scale: int) -> Decimal:
    """A decimal of unscaled digits; Python's context, which would round to 28 of them, is not involved."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def draw_uuid(rng: Random) -> str:
    """A uuid as its text; few distinct ones, so that equal ones meet."""
    return str(uuid.UUID(int=rng.choice([0, 1, 2**128 - 1, 2**127, rng.getrandbits(128), rng.getrandbits(4)])))


def _as_float(value: float, t: pa.DataType) -> float:
    """What a `float` column holds of a double."""
    if t != pa.float32() or not math.isfinite(value):
        return value
    return float(struct.unpack("<f", struct.pack("<f", max(-3.4e38, min(3.4e38, value))))[0])


def _clamped(value: int, top: int) -> int:
    return max(-top, min(top - 1, value))
