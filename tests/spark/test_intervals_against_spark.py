"""Dates and timestamps moved by intervals, against Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import evaluate
from penstock.expr.tree import Compare, terms_of
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, type_name
from tests.fixtures.variants import variants
from tests.spark.hard_values import HARD, ZONES
from tests.spark.judge import ask, disagreements, given_up

UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
MOVES = [f"{sign} INTERVAL {n} {unit}" for unit in UNITS for sign, n in (("+", 1), ("-", 13), ("+", 100))]


@pytest.mark.spark
@pytest.mark.parametrize("zone", variants(ZONES, every_run=4))
@pytest.mark.parametrize("source", [pa.date32(), TIMESTAMP, TIMESTAMP_NTZ], ids=type_name)
def test_moving_by_an_interval_gives_what_spark_gives(spark: SparkSession, source: pa.DataType, zone: str) -> None:
    values = HARD[source]
    answers = ask(spark, {"x": values}, [f"x {move}" for move in MOVES], zone)
    open_rows = answered = 0
    for move, theirs in zip(MOVES, answers, strict=True):
        test = bind_text(f"x {move} = x {move}", pa.schema({"x": source}), Context(timezone=zone))
        assert isinstance(test, Compare)
        ours = evaluate(test.left, {terms_of(test.left)[0]: values}, len(values), zone)
        assert disagreements(ours, theirs) == [], move
        open_rows += len(given_up(ours, theirs))
        answered += theirs.raised.count(False)
    assert open_rows <= 0.35 * answered, f"{open_rows} of {answered} rows left open"
