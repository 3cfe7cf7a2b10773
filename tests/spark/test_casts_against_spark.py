"""Every cast that Penstock knows, over hard values, against Spark's own `CAST`.

A wrong value fails the test. So does giving up too often: each cast states which share of the rows that Spark
answers it may leave open. What may stay open, and why, is in `allowed`.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.expr.kernels.cast import cast, castable, fails_as_spark
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_float, type_name
from tests.fixtures.variants import variants
from tests.spark.hard_values import HARD, ZONES
from tests.spark.judge import Answers, ask, disagreements, given_up

TARGETS = [*HARD, pa.decimal128(3, 0)]
_TIMES = (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ)
PAIRS = [(a, b) for a in HARD for b in TARGETS if a != b and castable(a, b)]
ZONED = [(a, b) for a, b in PAIRS if (a in _TIMES or a == pa.string()) and (b in _TIMES or b == pa.string())]


def allowed(source: pa.DataType, to: pa.DataType) -> float:
    """The share of Spark's answers that may stay open."""
    if is_float(source) and (is_decimal(to) or to == pa.string()):
        return 1.0  # Java's digits of a double
    if source == pa.binary():
        return 0.4  # bytes that are not UTF-8
    if to == pa.string() and source in _TIMES:
        return 0.35  # years of more or fewer than four digits
    if source == pa.string() and to in _TIMES:
        return 0.15  # times without a date mean today; Java's three-letter zones
    if to == pa.float32():
        return 0.15  # rounding twice
    if source in _TIMES:
        return 0.05  # the last days of the range, in zones other than UTC
    return 0.1  # text that only Java reads as a number


@cache
def answers(spark: SparkSession, source: pa.DataType, zone: str) -> dict[pa.DataType, Answers]:
    """Spark's casts of all hard values of a type to every other type, in one query."""
    targets = [b for a, b in (PAIRS if zone == "UTC" else ZONED) if a == source]
    found = ask(spark, {"x": HARD[source]}, [f"CAST(x AS {type_name(to)})" for to in targets], zone)
    return dict(zip(targets, found, strict=True))


def _judge(spark: SparkSession, source: pa.DataType, to: pa.DataType, zone: str) -> None:
    values = HARD[source]
    ours = cast(values, to, zone)
    theirs = answers(spark, source, zone)[to]
    assert ours.values.type == to
    wrong = [
        (values.view(pa.int64()) if values.type in _TIMES[1:] else values)[i] for i, _, _ in disagreements(ours, theirs)
    ]
    assert disagreements(ours, theirs) == [], wrong
    answered = theirs.raised.count(False)
    assert len(given_up(ours, theirs)) <= allowed(source, to) * answered + 0.5, [
        values[i] for i in given_up(ours, theirs)
    ]


@pytest.mark.spark
@pytest.mark.parametrize(("source", "to"), PAIRS, ids=lambda t: type_name(t))
def test_cast_gives_what_spark_gives(spark: SparkSession, source: pa.DataType, to: pa.DataType) -> None:
    _judge(spark, source, to, "UTC")


@pytest.mark.spark
@pytest.mark.parametrize("zone", variants(ZONES[1:], every_run=3))
@pytest.mark.parametrize(("source", "to"), ZONED, ids=lambda t: type_name(t))
def test_cast_of_times_follows_the_session_zone(
    spark: SparkSession, source: pa.DataType, to: pa.DataType, zone: str
) -> None:
    _judge(spark, source, to, zone)


@pytest.mark.spark
def test_known_casts_are_casts_that_spark_accepts(spark: SparkSession) -> None:
    spark.sql("SELECT " + ", ".join(f"CAST(CAST(NULL AS {type_name(a)}) AS {type_name(b)})" for a, b in PAIRS))


@pytest.mark.spark
@pytest.mark.parametrize(("source", "to"), [p for p in PAIRS if fails_as_spark(*p)], ids=lambda t: type_name(t))
def test_try_cast_is_null_exactly_where_cast_raises(spark: SparkSession, source: pa.DataType, to: pa.DataType) -> None:
    values = HARD[source]
    ours = cast(values, to, "UTC")
    theirs = answers(spark, source, "UTC")[to]
    assert [values[i] for i in given_up(ours, theirs)] == []
