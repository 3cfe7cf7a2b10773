"""Partition values of every type a directory can have, and predicates with the number of partitions that may match.

Every value has two rows. The numbers were counted by hand; that the rows are right is for the evaluator to say.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ


@dataclass(frozen=True)
class Kind:
    """A type of partition column: its values, and predicates over `k` with how many of the values fit."""

    type: pa.DataType
    values: list[Any]
    predicates: dict[str, int]

    def rows(self) -> pa.Table:
        """Two rows for each value, with an id, a number and a text, both sometimes null."""
        values = [value for value in self.values for _ in range(2)]
        ids = range(len(values))
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "n": pa.array([None if i % 7 == 6 else i % 5 for i in ids], pa.int32()),
                "s": pa.array([None if i % 4 == 3 else f"text {i}" for i in ids], pa.string()),
                "k": pa.array(values, self.type, from_pandas=False),
            }
        )


_TIMES = [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 23, 59, 59, 123456), dt.datetime(2025, 1, 1, 10, 30), None]
_OF_TIMES = {
    "cast(k AS date) = '2024-02-29'": 2,
    "k >= '2024-02-29 12:00:00'": 2,
    "k > '2024-02-29 23:59:59.123455'": 2,
    "k > '2024-02-29 23:59:59.123456'": 1,
    "k IN ('2024-02-29 00:00:00', '2025-01-01 10:30:00', NULL)": 2,
    "k = DATE '2024-02-29'": 1,
    "hour(k) = 10": 1,
    "year(k) = 2024": 2,
    "date_trunc('year', k) = '2024-01-01'": 2,
    "k IS NULL": 1,
    "NOT (k < '2025-01-01')": 1,
    "k <> '2024-02-29 00:00:00'": 2,
}

KINDS: dict[str, Kind] = {
    "string": Kind(
        pa.string(),
        [
            "shop", "blog", "Shop", "", "a/b", "a=b", "100%", "a b", "ü", "it's", 'say "hi"', "12:30", "null", "\\N",
            None,
        ],
        {
            "k = 'shop'": 1,
            "k IN ('shop', 'blog', 'nosuch')": 2,
            "k IN ('shop', NULL)": 1,
            "NOT (k IN ('shop', NULL))": 0,
            "k = ''": 1,
            "k = 'a/b'": 1,
            "k = 'a=b'": 1,
            "k = 'a b'": 1,
            "k = '100%'": 1,
            "k = 'ü'": 1,
            "k = 'it\\'s'": 1,
            "k = 'say \"hi\"'": 1,
            "k = '12:30'": 1,
            "k = 'null'": 1,
            "k = '\\\\N'": 1,
            "k = 'a%2Fb'": 0,
            "k = '__HIVE_DEFAULT_PARTITION__'": 0,
            "k IS NULL": 1,
            "k IS NOT NULL": 14,
            "k <> 'shop'": 13,
            "NOT (k = 'shop')": 13,
            "NOT (k <=> 'shop')": 14,
            "k <=> NULL": 1,
            "k LIKE 's%'": 2,
            "k NOT LIKE 's%'": 12,
            "k LIKE '%o%'": 3,
            "k LIKE 'a_b'": 3,
            "k LIKE '100\\\\%'": 1,
            "k >= 'shop'": 2,
            "k < 'a'": 5,
            "k BETWEEN 'a' AND 'b'": 3,
            "left(k, 1) = 'S'": 1,
            "endswith(k, 'op')": 2,
            "length(k) = 0": 1,
            "substring(k, 1, 1) = 'a'": 3,
            "coalesce(k, 'none') = 'none'": 1,
            "k = 'shop' OR k = 'ü'": 2,
            "NOT (k LIKE 's%' OR k IS NULL)": 12,
            "k = 'nosuch'": 0,
            "TRUE": 15,
            "FALSE": 0,
            "NULL": 0,
        },
    ),
    "int": Kind(
        pa.int32(),
        [-1, 0, 1, 2, 10, 2147483647, None],
        {
            "k = 1": 1,
            "k IN (1, 2, 99)": 2,
            "k > 1": 3,
            "k BETWEEN 0 AND 2": 3,
            "k % 2 = 0": 3,
            "abs(k) = 1": 2,
            "k = '1'": 1,
            "k < 1.5": 3,
            "k > 2147483646L": 1,
            "k > 2147483648L": 0,
            "NOT (k > 1)": 3,
            "k <> 1": 5,
            "k IS NULL": 1,
            "k IN (NULL)": 0,
            "cast(k AS string) LIKE '1%'": 2,
            "(k = 1 OR k = 2) AND NOT (k = 2)": 1,
        },
    ),
    "bigint": Kind(
        pa.int64(),
        [-9007199254740993, 0, 9007199254740993, None],
        {
            "k = 9007199254740993": 1,
            "k = 9007199254740992": 0,
            "k > 9007199254740992": 1,
            "k < 0": 1,
            "k IN (0, 1)": 1,
            "k IS NOT NULL": 3,
            "k / 2 > 1": 1,
        },
    ),
    "smallint": Kind(
        pa.int16(),
        [-32768, 7, 32767, None],
        {
            "k = 7": 1,
            "k > 100000": 0,
            "k >= -32768": 3,
            "k < 0 OR k IS NULL": 2,
            "k NOT IN (7, 32767)": 1,
        },
    ),
    "date": Kind(
        pa.date32(),
        [dt.date(2024, 2, 29), dt.date(2024, 12, 31), dt.date(2025, 1, 1), dt.date(1969, 12, 31), None],
        {
            "k = DATE '2024-02-29'": 1,
            "k = '2024-02-29'": 1,
            "k IN ('2024-02-29', NULL)": 1,
            "year(k) = 2024": 2,
            "k >= '2024-12-31'": 2,
            "k BETWEEN '2024-01-01' AND '2024-12-31'": 2,
            "month(k) IN (1, 2)": 2,
            "date_add(k, 1) = '2025-01-01'": 1,
            "NOT (k < '2025-01-01')": 1,
            "k > TIMESTAMP '2024-12-31 12:00:00'": 1,
            "cast(k AS string) LIKE '2024-%'": 2,
            "k < DATE '1970-01-01'": 1,
            "k IS NULL": 1,
        },
    ),
    "timestamp": Kind(
        TIMESTAMP,
        [time and time.replace(tzinfo=dt.UTC) for time in _TIMES],
        {"k = TIMESTAMP '2025-01-01 10:30:00'": 1, "k = TIMESTAMP '2025-01-01 12:30:00+02:00'": 1, **_OF_TIMES},
    ),
    "timestamp_ntz": Kind(TIMESTAMP_NTZ, _TIMES, {"k = TIMESTAMP_NTZ '2025-01-01 10:30:00'": 1, **_OF_TIMES}),
    "boolean": Kind(
        pa.bool_(),
        [True, False, None],
        {
            "k": 1,
            "NOT k": 1,
            "k IS NULL": 1,
            "k = TRUE OR k IS NULL": 2,
            "k IN (TRUE, FALSE)": 2,
            "coalesce(k, TRUE)": 2,
        },
    ),
    "decimal": Kind(
        pa.decimal128(10, 2),
        [Decimal(text) for text in ("1.50", "-0.01", "99999999.99", "0.00")] + [None],
        {
            "k = 1.5": 1,
            "k = 1.500": 1,
            "k = 1.501": 0,
            "k > 0": 2,
            "k <= 0": 2,
            "k IN (1.5, 0)": 2,
            "round(k) = 2": 1,
            "NOT (k = 1.5)": 3,
            "k IS NULL": 1,
        },
    ),
    "double": Kind(
        pa.float64(),
        [-0.0, 1.5, 1e300, float("nan"), float("inf"), None],
        {
            "k = 0": 1,
            "k = 1.5": 1,
            "k > 1e299": 3,
            "k <= 1.5": 2,
            "NOT (k > 1.5)": 2,
            "k IN (0, 1.5)": 2,
            "isnan(k)": 1,
            "k = CAST('NaN' AS double)": 1,
            "k < CAST('Infinity' AS double)": 3,
            "k IS NULL": 1,
        },
    ),
}  # fmt: skip

# Over the column of strings, with columns of the rows: how many of its values the directories alone leave.
MIXED = {
    "k = 'shop' AND n = 1": 1,
    "k = 'shop' AND n > 100": 1,
    "k IN ('shop', 'blog') AND s IS NOT NULL": 2,
    "k = 'shop' OR n = 3": 15,
    "(k = 'shop' AND n = 0) OR (k = 'ü' AND n = 1)": 2,
    "NOT (k <> 'shop' OR n = 0)": 1,
    "k LIKE 's%' AND s LIKE 'text%'": 2,
    "(k = 'shop') = (n = 0)": 14,
    "coalesce(k, s) = 'text 28'": 15,
    "n IS NULL": 15,
    "k || cast(n AS string) = 'shop1'": 14,
    "length(k) > 3 AND n + 1 = 2": 8,
}

BAD = ["", "k =", "nope = 1", "k = 'a' AND", "((", "EXISTS (SELECT 1)", "n", "s.x = 1", "k = 'a'; DROP"]
