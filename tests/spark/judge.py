"""Real Spark as the judge of a kernel: the same values through both, row by row.

Spark raises for a whole query when one row is bad. Wrapped in Catalyst's own `TryEval` (what `try_cast` is
made of) an expression gives null for such a row, and a second column, `expr IS NULL`, tells that null from a
real one: it is null itself only where the expression raised. Values travel as Arrow in both directions, so
dates and timestamps keep their physical numbers and Python's `datetime` with its limits is never involved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.classic.column import Column

from penstock.predicate.types import type_name
from penstock.predicate.vector import Vector


@dataclass(frozen=True)
class Answers:
    """Spark's value for each row, and whether it raised there."""

    values: pa.Array
    raised: list[bool]


def physical(values: pa.Array) -> list[Any]:
    """Values that compare exactly: dates and timestamps as integers, floats by what tells them apart."""
    if pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_string(values.type):
        values = values.view(pa.binary())  # Spark's strings need not be UTF-8
    return [_float_key(x) if isinstance(x, float) else x for x in values.to_pylist()]


def ask(
    spark: SparkSession, columns: dict[str, pa.Array], expressions: Sequence[str], zone: str = "UTC"
) -> list[Answers]:
    """Spark's answers to several expressions over the same columns."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    schema = ", ".join(f"{name} {type_name(values.type)}" for name, values in columns.items())
    rows = spark.createDataFrame(pa.table(columns), schema)
    found = rows.select(*(column for e in expressions for column in _attempts(spark, e))).toArrow()
    return [
        Answers(found.column(2 * i).combine_chunks(), [not x.is_valid for x in found.column(2 * i + 1)])
        for i in range(len(expressions))
    ]


def disagreements(ours: Vector, spark: Answers) -> list[tuple[int, Any, Any]]:
    """The rows where we answer and Spark raises or answers something else: (row, ours, Spark's)."""
    failed = np.zeros(len(ours.values), bool) if ours.failed is None else ours.failed
    mine, theirs = physical(ours.values), physical(spark.values)
    return [
        (i, mine[i], "raised" if spark.raised[i] else theirs[i])
        for i in range(len(mine))
        if not failed[i] and (spark.raised[i] or mine[i] != theirs[i])
    ]


def given_up(ours: Vector, spark: Answers) -> list[int]:
    """The rows where Spark answers and we do not."""
    if ours.failed is None:
        return []
    return [i for i, failed in enumerate(ours.failed) if failed and not spark.raised[i]]


def _attempts(spark: SparkSession, expression: str) -> list[Column]:
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    wrap = jvm.org.apache.spark.sql.catalyst.expressions.TryEval
    parser = session.sessionState().sqlParser()
    texts = (expression, f"({expression}) IS NULL")
    as_column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    return [Column(as_column(wrap(parser.parseExpression(text)))) for text in texts]


def _float_key(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return (value, math.copysign(1.0, value))
