"""Every type a partition column can have, nulls and escapes: the rows of plain Spark, from fewer files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.fixtures.variants import variants
from tests.spark.hive_layouts import EVALUATED, ROWS, Layout, answer, compare, compare_all, make

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """A type, directory texts of it (and NULL), and filters on `p` with how many files each must read."""

    type: str
    texts: list[str]
    filters: dict[str, int]


MANY_WORDS = ", ".join(f"'w{i}'" for i in range(1000))
MANY_NUMBERS = ", ".join(map(str, range(100, 1100)))
CASES = [
    Case(
        "string",
        ["a", "ab", "abc", "b", "5", "US/CA", "x y", "a=b", "ü:ñ", "%2F", "😀", "null", "\\N", "50%", "a'b"],
        {
            "p = 'ab'": 1,
            "p <> 'ab'": 14,
            "p IN ('a', 'b', 'q', NULL)": 2,
            "p NOT IN ('a', 'b')": 13,
            f"p IN ('US/CA', {MANY_WORDS})": 1,
            f"p NOT IN ('US/CA', {MANY_WORDS})": 14,
            "p IS NULL": 1,
            "p <=> NULL": 1,
            "NOT (p <=> 'a')": 15,
            "p LIKE 'a%'": 5,
            "p LIKE '%b'": 4,
            "p LIKE 'a%b'": 3,
            "p LIKE '%b%'": 5,
            "p LIKE 'a_'": 1,
            "p LIKE '50!%' ESCAPE '!'": 1,
            "p NOT LIKE 'a%'": 10,
            "substr(p, 1, 1) = 'a'": 5,
            "upper(p) = 'AB'": 1,
            "length(p) = 1": 4,
            "p > 'b'": 4,
            "p = '%2F'": 1,
            "p = 'ü:ñ'": 1,
            "p = '😀'": 1,
            "p = 'x y' OR p = 'a=b'": 2,
            "p < CAST(X'FF' AS STRING)": 15,
            "p <> CAST(X'FF' AS STRING)": 15,
            "coalesce(p, 'a') = 'a'": 2,
            "p RLIKE '^a'": 5,
            "try_cast(p AS INT) = 5": 1,
            "concat(p, 'x') = 'ax'": 1,
        },
    ),
    Case(
        "int",
        ["-2147483648", "-1", "0", "1", "05", "5", "2147483647"],
        {
            "p = 5": 2,
            "p = '5'": 2,
            "p > 0": 4,
            "p BETWEEN -1 AND 1": 3,
            "p BETWEEN 1 AND -1": 0,
            "p IN (1, 5, 7)": 3,
            f"p IN (1, {MANY_NUMBERS})": 1,
            "p IS NULL": 1,
            "NOT (p > 0)": 3,
            "p % 2 = 1": 4,
            "p = 5L": 2,
            "p < 5.5": 6,
            "CAST(p AS STRING) LIKE '5%'": 2,
            "p = 1e0": 1,
            "5 > p": 4,
        },
    ),
    Case(
        "bigint",
        ["-9223372036854775808", "9223372036854775807", "9007199254740993", "0", "7"],
        {"p = 9007199254740993": 1, "p > 9007199254740992": 2, "p < 0": 1, "p IS NULL": 1, "p = 7 OR p IS NULL": 2},
    ),
    Case("smallint", ["-32768", "32767", "0", "9"], {"p = 9": 1, "p < 0": 1, "p IS NULL": 1, "p = 40000": 0}),
    Case("tinyint", ["-128", "127", "0", "9"], {"p = 9": 1, "p <= 0": 2, "p IS NULL": 1, "p IN (9, 127)": 2}),
    Case(
        "date",
        ["2026-05-16", "2026-05-17", "2026-12-31", "1969-12-31", "1500-01-01", "9999-12-31"],
        {
            "p = '2026-05-17'": 1,
            "p >= DATE'2026-05-17'": 3,
            "year(p) = 2026": 3,
            "month(p) = 12": 3,
            "date_trunc('MONTH', p) = '2026-05-01'": 2,
            "trunc(p, 'YEAR') = DATE'2026-01-01'": 3,
            "p < '1970-01-01'": 2,
            "p IN (DATE'2026-05-16', DATE'1500-01-01')": 2,
            "CAST(p AS STRING) LIKE '2026-05%'": 2,
            "CAST(p AS TIMESTAMP) >= TIMESTAMP'2026-05-16 00:00:01'": 3,
            "date_add(p, 1) = DATE'2026-05-17'": 1,
            "datediff(p, DATE'2026-05-16') BETWEEN 0 AND 1": 2,
            "dayofweek(p) = 1": 1,
            "p IS NULL": 1,
            "p + INTERVAL 1 DAY = DATE'2026-05-18'": 1,
        },
    ),
    Case(
        "timestamp",
        [
            "2026-05-16 00:00:00",
            "2026-05-16 23:59:59.123456",
            "2026-03-29 02:30:00",
            "1969-12-31 23:59:59",
            "2026-05-17",
        ],
        {
            "p = TIMESTAMP'2026-05-16 00:00:00'": 1,
            "p > '2026-05-16 00:00:00'": 2,
            "CAST(p AS DATE) = DATE'2026-05-16'": 2,
            "hour(p) = 23": 2,
            "year(p) = 2026": 4,
            "date_trunc('DAY', p) = TIMESTAMP'2026-05-16 00:00:00'": 2,
            "CAST(p AS STRING) LIKE '2026-05-16%'": 2,
            "p IS NULL": 1,
        },
    ),
    Case(
        "boolean", ["true", "false"], {"p": 1, "NOT p": 1, "p IS NULL": 1, "p = true OR p IS NULL": 2, "p <> true": 1}
    ),
    Case(
        "decimal(10,2)",
        ["1.50", "-0.01", "99999999.99", "0.00"],
        {"p = 1.5": 1, "p > 1": 2, "p < 0": 1, "p IN (0, 1.50)": 2, "p IS NULL": 1, "p = 1.505": 0, "p = 1.5e0": 1},
    ),
    Case(
        "double",
        ["1.5", "-0.0", "0.0", "NaN", "Infinity", "-Infinity", "1e300"],
        {
            "p = 1.5": 1,
            "p = 0": 2,
            "p > 1e300": 2,
            "p < 0": 1,
            "isnan(p)": 1,
            "p = double('NaN')": 1,
            "p IS NULL": 1,
            "p IN (0, 1.5, double('NaN'))": 4,
            "NOT (p > 0)": 3,
        },
    ),
]


@pytest.fixture(autouse=True)
def _utc(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@EVALUATED
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.type)
def test_filters_on_a_type_give_the_rows_of_plain_spark_from_the_files_that_match(
    spark: SparkSession, tmp_path: Path, case: Case, evaluated: dict[str, str]
) -> None:
    layout = make(tmp_path, f"p {case.type}", [*([text] for text in case.texts), [None]])
    found = compare_all(spark, layout, list(case.filters), evaluated)
    assert {text: (each.read.total, each.rows) for text, each in found.items()} == {
        text: (files, files * ROWS) for text, files in case.filters.items()
    }


def test_filter_that_is_asked_alone_is_asked_once(spark: SparkSession, tmp_path: Path) -> None:
    for case in CASES:
        layout = make(tmp_path / case.type, f"p {case.type}", [*([text] for text in case.texts), [None]])
        text, files = next(iter(case.filters.items()))
        found = compare(spark, layout, lambda df, text=text: df.where(text))  # type: ignore[misc]
        assert (text, found.read.total, found.rows, found.calls) == (text, files, files * ROWS, 1)


def test_error_of_a_filter_on_a_partition_is_that_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import ArithmeticException, NumberFormatException

    layout = make(tmp_path / "s", "p string", [["5"], ["a"]])
    for table in (layout.ours(spark), layout.plain(spark)):
        with pytest.raises(NumberFormatException, match="CAST_INVALID_INPUT"):
            table.where("p = 5").collect()
        assert table.where("p <> 'a' AND p = 5").count() == ROWS
    numbers = make(tmp_path / "n", "p int", [["-2147483648"], ["1"]])
    for table in (numbers.ours(spark), numbers.plain(spark)):
        with pytest.raises(ArithmeticException):
            table.where("-p = 1").collect()


def test_collation_of_a_filter_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p string", [["ab"], ["AB"], ["b"], [None]])
    assert compare(spark, layout, lambda df: df.where("p COLLATE UTF8_LCASE = 'Ab'")).read.total == 2
    assert compare(spark, layout, lambda df: df.where("NOT (p COLLATE UTF8_LCASE = 'Ab')")).read.total == 1
    assert compare(spark, layout, lambda df: df.where("p COLLATE UNICODE_CI IN ('Ab', 'B')")).read.total == 3
    assert compare(spark, layout, lambda df: df.where("p = 'AB' COLLATE UTF8_LCASE")).read.total == 2
    assert compare(spark, layout, lambda df: df.where("p IN ('B' COLLATE UTF8_LCASE, 'x')")).read.total == 1
    assert compare(spark, layout, lambda df: df.where("p < 'B' COLLATE UTF8_LCASE")).read.total == 2


def test_number_compared_with_text_is_cast_as_spark_casts_it(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p string", [["5"], ["05"], [" 5"], ["6"], [None]])
    assert compare(spark, layout, lambda df: df.where("p = 5")).read.total == 3
    assert compare(spark, layout, lambda df: df.where("p > 5")).read.total == 1


def test_decimal_directory_of_a_smaller_scale_has_its_value(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p decimal(10,2)", [["1.50"], ["1.5"], ["1"], ["0.15"]])
    # Plain Spark 4.3 shows 0.15 for the directory p=1.5, and finds it by p = 1.5.
    found = layout.ours(spark).where("p = 1.5").select("id", "p")
    assert sorted((row.id, str(row.p)) for row in found.collect()) == [(i, "1.50") for i in range(6)]
    assert [str(row.p) for row in layout.ours(spark).where("p = 1").collect()] == ["1.00"] * ROWS


@pytest.mark.parametrize(
    "zone", variants(["America/New_York", "Pacific/Apia", "Asia/Kolkata", "Europe/Berlin"], every_run=2)
)
def test_timestamp_directories_are_of_the_sessions_zone(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    texts = ["2026-05-16 00:00:00", "2026-05-15 20:00:00", "2026-03-29 02:30:00", "2026-11-01 01:30:00", "1880-01-01"]
    layout = make(tmp_path, "p timestamp", [*([text] for text in texts), [None]], timezone=zone)
    exact = {
        "p = TIMESTAMP'2026-05-16 00:00:00'": 1,
        "p = TIMESTAMP'2026-05-16 00:00:00Z'": None,
        "hour(p) = 20": 1,
        "CAST(p AS DATE) = DATE'2026-05-16'": 1,
        "p < TIMESTAMP'1900-01-01'": 1,
        "date_trunc('DAY', p) = TIMESTAMP'2026-05-15 00:00:00'": 1,
        "CAST(p AS STRING) = '2026-05-15 20:00:00'": 1,
    }
    found = compare_all(spark, layout, list(exact))
    for text, files in exact.items():
        assert files is None or found[text].read.total == files, text


def test_zone_of_the_session_that_is_not_the_tables_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["2026-05-16 00:00:00", "2026-05-15 20:00:00", "2026-05-15 23:30:00"]
    utc = make(tmp_path, "p timestamp", [*([text] for text in texts), [None]])
    judge = {row.id: row.p for row in utc.ours(spark).select("id", "p").collect()}  # the instants, read in UTC
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    rows = spark.createDataFrame(list(judge.items()), "id bigint, p timestamp")
    assert {row.id: row.p for row in utc.ours(spark).select("id", "p").collect()} == judge
    for text in [
        "hour(p) = 20",
        "hour(p) = 0",
        "CAST(p AS DATE) = DATE'2026-05-15'",
        "CAST(p AS STRING) LIKE '2026-05-15 1%'",
        "date_trunc('DAY', p) = TIMESTAMP'2026-05-15 00:00:00'",
        "minute(p) = 30",
        "p >= TIMESTAMP'2026-05-15 19:00:00'",
        "CAST('2026-05-15 20:00:00' AS TIMESTAMP) = p",
    ]:
        assert answer(utc.ours(spark).where(text).select("id")) == answer(rows.where(text).select("id")), text


def test_two_tables_that_differ_in_their_zone_stay_apart(spark: SparkSession, tmp_path: Path) -> None:
    one = make(tmp_path, "p timestamp", [["2026-05-16 00:00:00"], ["2026-05-16 12:00:00"]])
    other = Layout(one.root, one.partition_by, "Asia/Tokyo")
    first, second = one.ours(spark), other.ours(spark)
    assert first.where("p = TIMESTAMP'2026-05-16 00:00:00Z'").count() == ROWS
    assert second.where("p = TIMESTAMP'2026-05-16 00:00:00Z'").count() == 0
    assert second.where("p = TIMESTAMP'2026-05-15 15:00:00Z'").count() == ROWS
    assert first.union(second).select("p").distinct().count() == 4


def test_names_in_any_characters_are_found_by_their_path(spark: SparkSession, tmp_path: Path) -> None:
    values = ["a b", "q#?", "[x]{y}", 'd"q', "a|b^c`d~", "!$&'()*+,;@", "a%b", "US/CA"]
    layout = make(tmp_path, "p string", [[value] for value in values])
    layout.add_in(tmp_path / "p=raw #?[]{}|^`~!$&'()+,;@", name="f #[]{}|^~.parquet")
    find_each_file(spark, layout)


def test_names_outside_ascii_are_found_by_their_path(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p string", [["öß"], ["漢字"], ["😀"], ["a\u00a0b\u3000c"]])
    layout.add_in(tmp_path / "p=x", name="ö 漢.parquet")
    find_each_file(spark, layout)


def test_file_names_with_signs_are_found(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p string", [["a"]])
    layout.add_in(tmp_path / "p=b", name="part=1,2+3&'()!$;@.parquet")
    find_each_file(spark, layout)


def find_each_file(spark: SparkSession, layout: Layout) -> None:
    """Each file by the path and by the name that Spark gives it."""
    columns = ("file_path", "file_name", "file_size", "file_modification_time")
    compare(spark, layout, lambda df: df.select("id", *(f"_metadata.{column}" for column in columns)))
    files = layout.plain(spark).select("_metadata.file_path", "_metadata.file_name").distinct().collect()
    wheres = {}
    for file in files:
        for column, value in (("file_path", file.file_path), ("file_name", file.file_name)):
            literal = value.replace("\\", "\\\\").replace("'", "\\'")
            wheres[f"_metadata.{column} = '{literal}'"] = column
    found = compare_all(spark, layout, list(wheres))
    for where, column in wheres.items():
        assert (found[where].rows, found[where].read.scans) == (found[where].read.total * ROWS, 1)
        assert column == "file_name" or found[where].read.total == 1


def test_three_levels_of_several_types_prune_together(spark: SparkSession, tmp_path: Path) -> None:
    values = [[d, a, n] for d in ("2026-05-16", "2026-05-17", None) for a in ("x", "y z", None) for n in ("1", None)]
    layout = make(tmp_path, "d date, a string, n int", values)
    expected = {
        "d = '2026-05-16' AND a = 'x' AND n = 1": 1,
        "d = '2026-05-16' OR a = 'x'": 10,
        "(d = '2026-05-16' AND a = 'x') OR (d IS NULL AND n IS NULL)": 5,
        "(d, a) IN ((DATE'2026-05-16', 'x'), (DATE'2026-05-17', 'y z'))": 4,
        "struct(a, n) = struct('x', 1)": 3,
        "array_contains(array('x', 'q'), a)": 6,
        "map('x', 1, 'q', 2)[a] = 1": 6,
        "coalesce(a, CAST(n AS STRING)) = '1'": 3,
        "NOT (a = 'x' AND n = 1)": 6,
        "a > CAST(d AS STRING)": 8,
        "concat(a, CAST(n AS STRING)) = 'x1'": 3,
        "CASE WHEN d IS NULL THEN a = 'x' ELSE n = 1 END": 8,
    }
    found = compare_all(spark, layout, list(expected))
    assert {text: (each.read.total, each.read.scans) for text, each in found.items()} == {
        text: (files, 1) for text, files in expected.items()
    }
