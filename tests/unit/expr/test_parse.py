"""Spark-SQL text to trees: what is read, what is refused, and where the error points."""

import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from penstock.errors import (
    EvaluationError,
    PenstockError,
    PredicateError,
    SchemaError,
    TypeMismatchError,
    UnknownColumnError,
)
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.parse import parse
from penstock.expr.schema import as_schema
from penstock.expr.simplify import simplify

DDL = (
    "i int, l bigint, t tinyint, sm smallint, s string, d date, ts timestamp, n timestamp_ntz, f float, g double, "
    "b boolean, dec decimal(10,2), bin binary, m map<string,string>, st struct<a:int,b:struct<c:string>>, "
    "arr array<int>"
)


def normal(text: str) -> str:
    return str(simplify(bind_text(text, DDL)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 5", "i = 5"),
        ("I = 5", "i = 5"),
        ("5 < i", "i > 5"),
        ("5 >= i", "i <= 5"),
        ("i == 5", "i = 5"),
        ("i != 5", "i <> 5"),
        ("NOT i = 5", "i <> 5"),
        ("NOT NOT i = 5", "i = 5"),
        ("i IS NOT DISTINCT FROM 5", "i <=> 5"),
        ("i BETWEEN 1 AND 3", "i >= 1 AND i <= 3"),
        ("i NOT BETWEEN 1 AND 3", "i < 1 OR i > 3"),
        ("i IN (1, 2, 2)", "i IN (1, 2)"),
        ("i NOT IN (1, 2)", "i NOT IN (1, 2)"),
        ("i IN (3)", "i = 3"),
        ("i IN (1, NULL)", "i IN (1, NULL)"),
        ("i IN (NULL)", "NULL"),
        ("i = 1 OR i = 2 OR i IN (2, 3)", "i IN (1, 2, 3)"),
        ("i = NULL", "NULL"),
        ("i <=> NULL", "i IS NULL"),
        ("isnull(i)", "i IS NULL"),
        ("isnotnull(i)", "i IS NOT NULL"),
        ("s LIKE 'ab%'", "s LIKE 'ab%'"),
        ("s NOT LIKE 'ab%'", "s NOT LIKE 'ab%'"),
        ("NOT s NOT LIKE 'ab%'", "s LIKE 'ab%'"),
        ("s LIKE 'a!%b' ESCAPE '!'", "s LIKE 'a!%b' ESCAPE '!'"),
        ("s NOT LIKE 'a!%b' ESCAPE '!'", "s NOT LIKE 'a!%b' ESCAPE '!'"),
        ("s NOT ILIKE 'A_%'", "lower(s) NOT LIKE 'a_%'"),
        ("s ILIKE 'É'", "ilike(s, 'É', '\\\\')"),
        ("s LIKE ANY ('a', 'b%')", "s LIKE 'a' OR s LIKE 'b%'"),
        ("s LIKE SOME ('a')", "s LIKE 'a'"),
        ("s LIKE ALL ('a', 'b%')", "s LIKE 'a' AND s LIKE 'b%'"),
        ("s NOT LIKE ANY ('a', 'b%')", "s NOT LIKE 'a' OR s NOT LIKE 'b%'"),
        ("NOT s LIKE ANY ('a', 'b%')", "s NOT LIKE 'a' AND s NOT LIKE 'b%'"),
        ("s NOT ILIKE ALL ('A', 'b%')", "lower(s) NOT LIKE 'a' AND lower(s) NOT LIKE 'b%'"),
        ("trim('x', s) = 'a'", "trim(BOTH 'x' FROM s) = 'a'"),
        ("ltrim('x', s) = 'a'", "trim(LEADING 'x' FROM s) = 'a'"),
        ("btrim(s, 'x') = 'a'", "trim(BOTH 'x' FROM s) = 'a'"),
        ("trim(TRAILING 'x' FROM s) = 'a'", "trim(TRAILING 'x' FROM s) = 'a'"),
        ("string(i) = '5'", "CAST(i AS string) = '5'"),
        ("decimal(l) = 5", "CAST(l AS decimal(10,0)) = 5"),
        ("nvl2(i, l, 5) = 1", "if(i IS NOT NULL, l, 5L) = 1"),
        ("nullifzero(i) = 1", "if(i = 0, CAST(NULL AS int), i) = 1"),
        ("extract(dow FROM d) = 1", "dayofweek(d) = 1"),
        ("i << 1 = 2", "shiftleft(i, 1) = 2"),
        ("dec / 2 = 1", "dec / 2BD = 1.000000"),
        ("dec / +2 = 1", "dec / CAST(2BD AS decimal(10,0)) = 1.0000000000000"),
        ("dec / -(2) = 1", "dec / CAST(-2BD AS decimal(10,0)) = 1.0000000000000"),
        ("dec / int(2) = 1", "dec / CAST(2BD AS decimal(10,0)) = 1.0000000000000"),
        ("s NOT RLIKE 'a'", "NOT rlike(s, 'a')"),
        ("b", "b"),
        ("b = TRUE", "b"),
        ("b = FALSE", "NOT b"),
        ("b IS TRUE", "b <=> TRUE"),
        ("b IS NOT TRUE", "NOT b <=> TRUE"),
        ("st.b.c = 'x'", "st.b.c = 'x'"),
        ("m['k'] = 'v'", "m['k'] = 'v'"),
        ("element_at(m, 'k') = 'v'", "m['k'] = 'v'"),
        ("m.k = 'v'", "m['k'] = 'v'"),
        ("s = 'it''s'", "s = 'it\\'s'"),
        ('s = "double"', "s = 'double'"),
        ("s = r'a\\n'", "s = 'a\\\\n'"),
        ("bin = X'0F'", "bin = X'0F'"),
        ("l = -9223372036854775808", "l = -9223372036854775808"),
        ("d >= '2026-05-17'", "d >= DATE '2026-05-17'"),
        ("d = DATE '2026-05-17' - 7", "d = DATE '2026-05-10'"),
        ("ts < '2026-05-17 10:00:00.5'", "ts < TIMESTAMP '2026-05-17 10:00:00.5Z'"),
        ("n < '2026-05-17 10:00:00'", "n < TIMESTAMP_NTZ '2026-05-17 10:00:00'"),
        ("sm = 5", "sm = 5"),
        ("t = 500", "CAST(t AS int) = 500"),
        ("dec = 1.5", "dec = 1.50"),
        ("g > 1", "g > 1.0D"),
        ("s = 5", "CAST(s AS bigint) = 5"),
        ("TRUE AND i = 1", "i = 1"),
        ("FALSE AND i = 1", "FALSE"),
        ("TRUE OR i = 1", "TRUE"),
        ("1 = 1", "TRUE"),
        ("NULL = 1", "NULL"),
        ("unknown_function(i, 'x') = 2", "unknown_function(i, 'x') = 2"),
        ("(i, s) IN ((1, 'a'), (2, 'b'))", "i <=> 1 AND s <=> 'a' OR i <=> 2 AND s <=> 'b'"),
        ("i = 1 /* note */ -- end", "i = 1"),
        ("CASE WHEN i = 1 THEN TRUE ELSE FALSE END", "CASE WHEN i = 1 THEN TRUE ELSE FALSE END"),
        ("CASE i WHEN 1 THEN TRUE END", "CASE WHEN i = 1 THEN TRUE END"),
        ("extract(YEAR FROM d) = 2026", "year(d) = 2026"),
        ("d >= DATE '2026-03-31' - INTERVAL 1 MONTH", "d >= DATE '2026-02-28'"),
        ("ts > TIMESTAMP '2026-05-17 00:00:00Z' + INTERVAL '36' HOUR", "ts > TIMESTAMP '2026-05-18 12:00:00Z'"),
        ("ts - INTERVAL 2 WEEKS < '2026-05-17'", "ts + INTERVAL '-2' WEEK < TIMESTAMP '2026-05-17 00:00:00Z'"),
    ],
)
def test_text_is_read_as_spark_reads_it(text: str, expected: str) -> None:
    assert normal(text) == expected
    assert normal(normal(text)) == expected, "what is printed reads back as the same"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("i =", 2, "missing after '='"),
        ("i = 5 5", 6, "unexpected token"),
        ("(i = 5", 5, "expecting )"),
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("i = 'abc", 4, "the quote that opens here is not closed"),
        ("s = 'a' AND s = 'it''s", 16, "the quote that opens here is not closed"),
        ("s = 'it\\'", 4, "the quote that opens here is not closed"),
        ('s = "abc', 4, "the quote that opens here is not closed"),
        ("s = '`' -- it's\n AND `s = 1", 21, "the quote that opens here is not closed"),
        ("i = 1 /* '", 6, "the comment that opens here is not closed"),
        ("SELECT i", 0, "unexpected token at 'SELECT'; expected a condition such as app = 'a'"),
        ("DELETE FROM t", 7, "unexpected token at 'FROM'; expected a condition such as app = 'a'"),
        ("i IN (SELECT 1)", None, "subquery"),
        ("count(*) > 1", None, "the aggregate COUNT(*)"),
        ("i = ?", None, "a parameter"),
        ("s LIKE 'a' ESCAPE 'xy'", 0, "one character"),
        ("i BETWEEN SYMMETRIC 1 AND 2", None, "SYMMETRIC"),
        ("i = 1; DROP TABLE x", 7, "unexpected token"),
        ("i = 123456789012345678901234567890123456789", 4, "39 digits"),
        ("\n i = 1 AND\n j ==== 2", 17, "missing after"),
    ],
)
def test_bad_text_is_an_error_with_its_position(text: str, position: int | None, message: str) -> None:
    with pytest.raises(PredicateError, match="(?i)" + re.escape(message)) as caught:
        bind_text(text, DDL)
    assert caught.value.text == text
    if position is not None:
        assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("dek = 1", 0, "did you mean 'dec'"),
        ("i = 1 AND x = 2", 10, "there are: i, l, t"),
        ("st.q = 1", 0, "there are: a, b"),
        ("st.b.cc = 'x'", 0, "did you mean 'c'"),
        ("i.x = 1", 0, "has no field 'x'"),
    ],
)
def test_unknown_column_is_an_error_with_a_suggestion(text: str, position: int, hint: str) -> None:
    with pytest.raises(UnknownColumnError) as caught:
        bind_text(text, DDL)
    assert hint in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text",
    ["b = 5", "i = 'abc'", "d = '2026-13-01'", "st = 1", "m = 'x'", "i", "i AND b", "d = 5", "arr = 1", "i['k'] = 1"],
)
def test_types_that_do_not_go_together_are_an_error(text: str) -> None:
    with pytest.raises(TypeMismatchError):
        bind_text(text, DDL)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("d = 2026-05-15", "write d = '2026-05-15'"),
        ("s = 'x' AND d <> 2026-5-1", "write d <> '2026-05-01'"),
        ("ts >= 2026-05-15", "write ts >= '2026-05-15'"),
        ("2026-05-15 = d", "write '2026-05-15'"),
        ("d IN (2026-05-15, 2026-05-16)", "write '2026-05-15'"),
        ("d BETWEEN 2026-05-01 AND 2026-05-15", "write '2026-05-01'"),
        ("d = 2026-13-15", "write a date in quotes"),
        ("d = 20260515", "write a date in quotes"),
        ("ts = 5", "write a timestamp in quotes"),
        ("d = b", None),
    ],
)
def test_a_date_without_quotes_is_an_error_that_says_how_it_is_written(text: str, hint: str | None) -> None:
    with pytest.raises(TypeMismatchError, match="cannot compare") as caught:
        bind_text(text, DDL)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s = s-003", "s cannot be cast to bigint where s is 's-003'; did you mean 's-003' in quotes?"),
        ("s - 3 = 4", "s cannot be cast to bigint where s is 's-003'"),
        ("s-b = 4", "s - b is not known for these arguments; did you mean 's-b' in quotes?; read with Spark"),
        ("abs(b) = 1", "abs() is not known for these arguments; read with Spark: table.dataframe(spark, where=…)"),
    ],
)
def test_a_subtraction_from_a_string_may_be_a_word_without_quotes(text: str, why: str) -> None:
    rows = pa.table({"s": ["s-003"], "b": [True]})
    with pytest.raises(EvaluationError, match=re.escape(why)):
        filter_mask(bind_text(text, rows.schema), rows)


@pytest.mark.parametrize("pattern", ["'a%'", "'%a%'", "'a!%%' ESCAPE '!'"])
def test_like_over_a_function_that_cannot_be_evaluated_is_an_error_of_ours(pattern: str) -> None:
    rows = pa.table({"s": ["a", "b"]})
    with pytest.raises(EvaluationError, match="not known for these arguments"):
        filter_mask(bind_text(f"concat(s, date_from_unix_date(4000000)) LIKE {pattern}", rows.schema), rows)


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("dt dat, app string", "unknown type 'dat'; did you mean date?"),
        ("dt date, app strng", "unknown type 'strng'; did you mean string?"),
        ("m map<string,strng>, n int", "unknown type 'strng'; did you mean string?"),
        ("`a b` bgint", "unknown type 'bgint'; did you mean bigint?"),
        ("d decimal(10,2), u uuid", "unknown type 'uuid'; one of boolean, int, bigint"),
        ("a int b int", "cannot read the schema 'a int b int'"),
    ],
)
def test_a_type_that_is_none_is_an_error_with_a_suggestion(ddl: str, said: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(said)):
        as_schema(ddl)


def test_names_that_differ_in_case_only_are_ambiguous_unless_one_fits_exactly() -> None:
    schema = pa.schema([("aB", pa.int32()), ("Ab", pa.int32())])
    assert str(bind_text("aB = 1", schema)) == "aB = 1"
    assert str(bind_text("Ab = 1", schema, Context(case_sensitive=True))) == "Ab = 1"
    with pytest.raises(UnknownColumnError, match="ambiguous"):
        bind_text("ab = 1", schema)


def test_current_date_is_folded_only_when_the_moment_is_given() -> None:
    moment = datetime(2026, 5, 17, 23, 30, tzinfo=UTC)
    assert str(bind_text("d >= current_date() - 7", DDL)) == "d >= current_date() - 7"
    assert str(bind_text("d >= current_date() - 7", DDL, Context(now=moment))) == "d >= DATE '2026-05-10'"
    tokyo = Context(timezone="Asia/Tokyo", now=moment)
    assert str(bind_text("d = current_date", DDL, tokyo)) == "d = DATE '2026-05-18'"
    assert str(bind_text("ts < now()", DDL, tokyo)) == "ts < TIMESTAMP '2026-05-17 23:30:00Z'"


def test_the_session_zone_gives_texts_their_meaning() -> None:
    context = Context(timezone="America/New_York")
    assert str(bind_text("ts = '2026-05-17'", DDL, context)) == "ts = TIMESTAMP '2026-05-17 04:00:00Z'"


def test_an_escape_in_the_wrong_place_is_left_to_spark() -> None:
    assert str(bind_text("s LIKE 'a\\\\b'", DDL))  # read, never evaluated


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(PenstockError, match="surrogate"):
        parse("s = '\ud800'")
