"""Every function of the registry that Spark has a class for prunes from `df.where` as it does from text.

Each example runs over a table of two files, in each of which the column has one value; plain Spark reads the same rows
from files without statistics. The exact number of files that are read is asserted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.expr.functions.function_registry import FUNCTIONS
from tests.fixtures.variants import variants
from tests.spark.hive_layouts import EVALUATED, compare_all

pytestmark = pytest.mark.spark

# What each column holds in the first file and in the second.
VALUES = {
    "n": ("int", -7, 4),
    "m": ("bigint", 100, 5),
    "x": ("double", -1.5, 2.5),
    "e": ("decimal(9,2)", "-1.50", "2.25"),
    "s": ("string", " Ab", "cd"),
    "d": ("date", "2026-01-31", "2025-06-15"),
    "t": ("timestamp", "2026-01-31 10:30:15Z", "2025-06-15 23:59:59Z"),
    "f": ("boolean", True, False),
}
# Each is true for the first file only.
EXAMPLES = {
    "+": ["n + 1 = -6", "m + 1 = 101", "e + 1.00 = -0.50", "x + 1 = -0.5"],
    "-": ["n - 1 = -8", "1 - m = -99", "m - '1' = 99"],
    "*": ["n * 2 = -14", "e * 2 = -3.00"],
    "/": ["x / 2 = -0.75", "e / 2 = -0.75", "e / m = -0.015"],
    "div": ["m div 7 = 14"],
    "%": ["m % 7 = 2", "e % 1 = -0.50"],
    "pmod": ["pmod(n, 4) = 1", "pmod(e, 2) = 0.50"],
    "abs": ["abs(n) = 7"],
    "negative": ["-n = 7"],
    "positive": ["+x = -1.5"],
    "floor": ["floor(x) = -2", "floor(e, 1) = -1.5"],
    "ceil": ["ceil(x) = -1", "ceil(e, 1) = -1.5", "ceil(m, -2) = 100 AND m > 5"],
    "round": ["round(e, 1) = -1.5"],
    "bround": ["bround(e, 1) = -1.5"],
    "sqrt": ["sqrt(m) = 10"],
    "&": ["(n & 8) = 8"],
    "|": ["(m | 1) = 101"],
    "^": ["(n ^ 1) = -8"],
    "~": ["~n = 6"],
    "shiftleft": ["shiftleft(n, 1) = -14", "n << 1 = -14"],
    "shiftright": ["shiftright(m, 1) = 50"],
    "bit_count": ["bit_count(m) = 3"],
    "hex": ["hex(s) = '204162'", "hex(m) = '64'"],
    "unhex": ["unhex(hex(s)) = X'204162'"],
    "md5": ["md5(s) = '4533df9640bf4c8c4638b9e16c2a8156'"],
    "sha1": ["sha1(s) = '3a48d019f444f9f967237b28a1ac7f417fad682d'"],
    "sha2": ["sha2(s, 256) LIKE 'b3d940b20d61%'"],
    "crc32": ["crc32(s) = 2379407810"],
    "sign": ["sign(x) = -1"],
    "isnan": ["NOT isnan(x) AND x < 0"],
    "nanvl": ["nanvl(x, 0D) = -1.5"],
    "greatest": ["greatest(n, 0) = 0"],
    "least": ["least(n, 0) = -7"],
    "lower": ["lower(s) = ' ab'", "s ILIKE ' A%'", "s LIKE ANY (' A%', 'x')"],
    "upper": ["upper(s) = ' AB'"],
    "length": ["length(s) = 3"],
    "trim": ["trim(s) = 'Ab'", "trim(BOTH ' b' FROM s) = 'A'"],
    "ltrim": ["ltrim(s) = 'Ab'", "ltrim(' A', s) = 'b'"],
    "rtrim": ["rtrim(s) = ' Ab'", "rtrim('b', s) = ' A'"],
    "reverse": ["reverse(s) = 'bA '"],
    "substring": ["substring(s, 2, 1) = 'A'"],
    "concat": ["s || '!' = ' Ab!'"],
    "replace": ["replace(s, 'A', 'x') = ' xb'"],
    "startswith": ["startswith(s, ' A')"],
    "endswith": ["endswith(s, 'b')"],
    "contains": ["contains(s, 'A')"],
    "instr": ["instr(s, 'b') = 3"],
    "locate": ["locate('b', s) = 3", "locate('b', s, 2) = 3"],
    "lpad": ["lpad(s, 5, 'x') = 'xx Ab'"],
    "rpad": ["rpad(s, 5) = ' Ab  '"],
    "year": ["year(d) = 2026", "year(t) = 2026"],
    "quarter": ["quarter(d) = 1"],
    "month": ["month(t) = 1"],
    "day": ["day(d) = 31"],
    "dayofweek": ["dayofweek(d) = 7"],
    "weekday": ["weekday(d) = 5"],
    "dayofyear": ["dayofyear(d) = 31"],
    "weekofyear": ["weekofyear(d) = 5"],
    "hour": ["hour(t) = 10"],
    "minute": ["minute(t) = 30"],
    "second": ["second(t) = 15"],
    "last_day": ["last_day(d) = '2026-01-31'"],
    "date_add": ["date_add(d, 1) = '2026-02-01'"],
    "date_sub": ["date_sub(d, 1) = '2026-01-30'"],
    "datediff": ["datediff(d, DATE '2026-01-01') = 30"],
    "add_months": ["add_months(d, 1) = '2026-02-28'"],
    "date_trunc": ["date_trunc('HOUR', t) = '2026-01-31 10:00:00'"],
    "trunc": ["trunc(d, 'MONTH') = '2026-01-01'"],
    "unix_date": ["unix_date(d) = 20484"],
    "date_from_unix_date": ["date_from_unix_date(n) = '1969-12-25'"],
    "unix_seconds": ["unix_seconds(t) > 1767225600"],
    "unix_millis": ["unix_millis(t) > 1767225600000"],
    "unix_micros": ["unix_micros(t) > 1767225600000000"],
    "timestamp_seconds": ["timestamp_seconds(n) < '1970-01-01'", "timestamp_seconds(e) < '1970-01-01'"],
    "timestamp_millis": ["timestamp_millis(m) = '1970-01-01 00:00:00.1'"],
    "timestamp_micros": ["timestamp_micros(m) = '1970-01-01 00:00:00.0001'"],
    "make_date": ["make_date(2026, 1, n + 8) = '2026-01-01'"],
    "make_timestamp": ["make_timestamp(2026, 1, 31, 10, 30, n + 22) = t"],
    "next_day": ["next_day(d, 'MON') = '2026-02-02'"],
    "coalesce": ["coalesce(n, 3) = -7", "zeroifnull(n) = -7"],
    "if": ["if(n < 0, 1, 2) = 1", "nullifzero(n) = -7", "nullif(n, 4) = -7", "nvl2(n, n, 0) = -7"],
    "case": ["CASE WHEN n < 0 THEN 1 WHEN n = 0 THEN 2 ELSE 3 END = 1"],
    "add_interval": [
        "t + INTERVAL 1 MONTH > '2026-02-01'",
        "t - INTERVAL 36 HOURS > '2026-01-01'",
        "d + INTERVAL 1 YEAR > '2027-01-01'",
    ],
}
# Spark's optimizer replaces these by others, or hands them over in a form of their own.
REPLACED = {"left", "right", "to_date", "to_timestamp", "split_part", "typeof"}
REPLACED |= {"try_add", "try_subtract", "try_multiply", "try_divide"}
OF_MAPS = {"size", "map_contains_key", "element_at"}


def test_every_function_is_known_by_its_class_or_replaced_by_spark() -> None:
    names = {function.name for function in FUNCTIONS.values() if function.catalyst}
    assert names | {"add_interval"} == set(EXAMPLES)
    assert {function.name for function in FUNCTIONS.values()} - names - {"add_interval"} == REPLACED | OF_MAPS


@dataclass(frozen=True)
class Rows:
    """The two rows in a file each, and in one file without statistics, where plain Spark reads them."""

    lake: Path
    flat: Path

    def ours(self, spark: SparkSession) -> DataFrame:
        """Through Penstock."""
        return penstock.connect(self.lake).table("web.t").dataframe(spark)

    def plain(self, spark: SparkSession) -> DataFrame:
        """Through Spark alone."""
        return spark.read.parquet(str(self.flat))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    lake, flat = tmp_path_factory.mktemp("lake"), tmp_path_factory.mktemp("flat")
    table = penstock.connect(lake).create_table("web.t", ", ".join(f"{c} {v[0]}" for c, v in VALUES.items()))
    columns = {c: pa.array([v[1], v[2]]).cast(table.schema.field(c).type) for c, v in VALUES.items() if c != "t"}
    columns["t"] = pa.array([1769855415000000, 1750031999000000]).cast(pa.timestamp("us", "UTC"))
    both = pa.table({name: columns[name] for name in VALUES})
    for i in range(2):
        table.append(both.slice(i, 1))
    pq.write_table(both, flat / "rows.parquet", write_statistics=False, use_dictionary=False)
    return Rows(lake, flat)


@EVALUATED
@pytest.mark.parametrize("ansi", variants(["true", "false"], every_run=1))
def test_functions_prune_from_where_as_they_do_from_text(
    spark: SparkSession, utc: None, rows: Rows, ansi: str, evaluated: dict[str, str]
) -> None:
    table = penstock.connect(rows.lake).table("web.t")
    texts = [text for examples in EXAMPLES.values() for text in examples]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        answers = compare_all(spark, rows, texts, evaluated)  # type: ignore[arg-type]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    counts = {text: (each.rows, each.read.total, len(table.plan(text).files)) for text, each in answers.items()}
    assert {text: count for text, count in counts.items() if count != (1, 1, 1)} == {}
