"""One schema with every kind of column, and rows of values that the predicates of this folder ask for.

The pools are small, so that equalities hit, and hold the values at which comparisons go wrong: NaN and both zeros,
the ends of the integer types, strings with wildcards, quotes, line breaks and characters beyond 16 bits, times around
the changes of the clock in New York. Dates and timestamps are physical: days and microseconds.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from penstock.expr.schema import as_schema

NAN, INF = float("nan"), float("inf")
_DAY, _HOUR = 86_400_000_000, 3_600_000_000
_STRINGS = [
    "", "a", "A", "ab", "abc", "a%c", "a_c", "b", "it's", "\\", "a\\b", "x\ny", "\n", "é", "日本", "🎉", "a🎉c", "1",
    "-1", " 1 ", "5", "1.5", "true", "2024-03-10", "2024-03-10 02:30:00", '"', "k",
]  # fmt: skip
# 2024-03-10 and 2024-11-03 are the days on which New York changes its clocks.
_DATES = [-719_162, -1, 0, 1, 19_782, 19_783, 20_030, 20_031, 20_590, 2_932_896]
_MOMENTS = [
    -_DAY, -1, 0, 1, 500_000, _HOUR, 19_782 * _DAY, 1_710_054_000_000_000 - 1, 1_710_054_000_000_000,
    1_710_037_800_000_000, 1_730_611_800_000_000, 1_730_615_400_000_000, 20_030 * _DAY - 1, 20_030 * _DAY,
    20_590 * _DAY + 12 * _HOUR + 123_456, 20_590 * _DAY - 5 * _HOUR - _HOUR // 2, 253_402_300_799_999_999,
]  # fmt: skip


def _integers(bits: int) -> list[int]:
    top = 1 << bits - 1
    return [-top, -2, -1, 0, 1, 2, 3, 5, 10, top - 1]


def _decimals(*digits: str) -> list[Decimal]:
    return [Decimal(each) for each in digits]


# fmt: off
POOLS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": _integers(8),
    "smallint": _integers(16),
    "int": _integers(32),
    "bigint": [*_integers(64), 2**53 + 1, 2**31],
    "float": [-INF, -1.5, -0.0, 0.0, 0.10000000149011612, 1.0, 1.5, 2.0, 5.0, 16777216.0, INF, NAN],
    "double": [-INF, -1.5, -0.0, 0.0, 0.1, 1.0, 1.5, 2.0, 5.0, 9007199254740992.0, INF, NAN],
    "decimal(5,2)": _decimals("-999.99", "-1.50", "0.00", "0.01", "1.00", "1.50", "2.00", "5.00", "999.99"),
    "decimal(20,3)": _decimals("-1.500", "0.000", "0.001", "1.000", "1.500", "5.000", "9007199254740993.000",
                               "99999999999999999.999"),
    "decimal(38,10)": _decimals("-1.5", "0", "0.0000000001", "1", "1.5", "5",
                                "9999999999999999999999999999.9999999999"),
    "string": _STRINGS,
    "binary": [b"", b"\0", b"a", b"ab", b"\x80", b"\xff", "é".encode()],
    "date": _DATES,
    "timestamp": _MOMENTS,
    "timestamp_ntz": _MOMENTS,
}
# fmt: on
_KEYS = ["k", "a.b", "", "é", "it's"]
COLUMNS = {
    "b": "boolean",
    "c": "boolean",
    "ti": "tinyint",
    "si": "smallint",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "p": "decimal(5,2)",
    "q": "decimal(20,3)",
    "r": "decimal(38,10)",
    "s": "string",
    "t": "string",
    "bin": "binary",
    "dt": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "st": "struct<a:int,b:string,in:struct<x:bigint,t:timestamp,`odd name`:double>>",
    "m": "map<string,string>",
    "mi": "map<string,int>",
    "order by": "int",
}
DDL = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
SCHEMA: pa.Schema = as_schema(DDL)


def _inner(rng: Random) -> dict[str, Any] | None:
    parts = {"x": _one(rng, "bigint"), "t": _one(rng, "timestamp"), "odd name": _one(rng, "double")}
    return None if rng.random() < 0.15 else parts


def _struct(rng: Random) -> dict[str, Any] | None:
    parts = {"a": _one(rng, "int"), "b": _one(rng, "string"), "in": _inner(rng)}
    return None if rng.random() < 0.15 else parts


def _map(rng: Random, kind: str) -> list[tuple[str, Any]] | None:
    entries = [(key, _one(rng, kind)) for key in _KEYS if rng.random() < 0.5]
    return None if rng.random() < 0.15 else entries


def _one(rng: Random, kind: str) -> Any:
    return None if rng.random() < 0.12 else rng.choice(POOLS[kind])


def _column(rng: Random, name: str, count: int) -> pa.Array:
    t, kind = SCHEMA.field(name).type, COLUMNS[name]
    if kind in POOLS:
        values = [_one(rng, kind) for _ in range(count)]
        if pa.types.is_date(t) or pa.types.is_timestamp(t):
            return pa.array(values, pa.int32() if pa.types.is_date(t) else pa.int64()).view(t)
        return pa.array(values, t, from_pandas=False)
    if pa.types.is_map(t):
        return pa.array([_map(rng, "int" if name == "mi" else "string") for _ in range(count)], t)
    return pa.array([_struct(rng) for _ in range(count)], t)


def make_rows(rng: Random, count: int) -> pa.Table:
    """Random rows of the schema; the first is all null."""
    arrays = [
        pa.concat_arrays([pa.nulls(1, SCHEMA.field(name).type), _column(rng, name, count - 1)]) for name in COLUMNS
    ]
    return pa.table(arrays, schema=SCHEMA)
