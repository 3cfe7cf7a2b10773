"""Generated predicates: each row is in exactly one of P, NOT P and P IS NULL, and P gives the rows of plain Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.fixtures.variants import variants
from tests.spark.hive_layouts import EVALUATED, ROWS, Layout, compare_all, make

pytestmark = pytest.mark.spark
DAYS = ["2026-05-16", "2026-05-17", "2025-12-31", None]
APPS = ["a", "ab", "5", "x y", None]
NUMBERS = ["-1", "0", "7", None]
LITERALS = {
    "dt": ["DATE'2026-05-16'", "DATE'2026-05-17'", "DATE'2026-01-01'", "NULL"],
    "app": ["'a'", "'ab'", "'5'", "'x y'", "'zz'", "''", "NULL"],
    "n": ["-1", "0", "7", "8", "NULL"],
    "x": ["0", "3", "-5", "NULL"],
    "m['k']": ["'v1'", "'v30'", "NULL"],
    "st.a": ["0", "5", "NULL"],
    "tag": ["'a'", "'t3'", "NULL"],
}
TERMS = [
    "year(dt) = 2026",
    "month(dt) IN (5, 12)",
    "app LIKE 'a%'",
    "app NOT LIKE '%b'",
    "substr(app, 1, 1) = 'a'",
    "coalesce(app, 'a') = 'a'",
    "app = CAST(n AS STRING)",
    "n + x > 5",
    "abs(n) = 1",
    "try_cast(app AS INT) = 5",
    "app IN ('a', NULL)",
    "n IN (0, 7, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109)",
    "date_add(dt, 1) = DATE'2026-05-17'",
    "length(app) > 1",
    "nullif(app, 'a') IS NULL",
    "dt BETWEEN DATE'2026-01-01' AND DATE'2026-05-16'",
    "_metadata.file_path LIKE '%n=7%'",
    "arr[0] = 1",
]


def predicate(chance: random.Random, depth: int = 3) -> str:
    """A predicate that Spark can type, of up to so many levels."""
    kind = chance.random()
    if depth and kind < 0.45:
        word = chance.choice(["AND", "OR"])
        return f"({predicate(chance, depth - 1)} {word} {predicate(chance, depth - 1)})"
    if depth and kind < 0.6:
        return f"NOT ({predicate(chance, depth - 1)})"
    if kind < 0.75:
        return chance.choice(TERMS)
    term = chance.choice(list(LITERALS))
    if kind < 0.82:
        return f"{term} IS {chance.choice(['', 'NOT '])}NULL"
    if kind < 0.9:
        values = ", ".join(chance.choice(LITERALS[term]) for _ in range(3))
        return f"{term} {chance.choice(['', 'NOT '])}IN ({values})"
    return f"{term} {chance.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {chance.choice(LITERALS[term])}"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Eighty files, all combinations of three keys."""
    root: Path = tmp_path_factory.mktemp("oracle")
    return make(root, "dt date, app string, n int", [[d, a, n] for d in DAYS for a in APPS for n in NUMBERS])


@EVALUATED
@pytest.mark.parametrize("chunk", variants(range(5), every_run=1))
def test_every_row_is_in_one_part_and_the_rows_are_those_of_plain_spark(
    spark: SparkSession, layout: Layout, chunk: int, evaluated: dict[str, str]
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    texts = [predicate(random.Random(seed)) for seed in range(5 * chunk, 5 * chunk + 5)]
    parts = [part for text in texts for part in (text, f"NOT ({text})", f"({text}) IS NULL")]
    found = compare_all(spark, layout, parts, evaluated)
    for text in texts:
        rows = [found[part].rows for part in (text, f"NOT ({text})", f"({text}) IS NULL")]
        assert sum(rows) == layout.files * ROWS == 240, text
