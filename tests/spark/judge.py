"""Real Spark as the judge of a kernel: the same values through both, row by row.

Spark raises for a whole query when one row is bad. Wrapped in Catalyst's own `TryEval` (what `try_cast` is
made of) an expression gives null for such a row, and a second column, `expr IS NULL`, tells that null from a
real one: it is null itself only where the expression raised. Values travel as Arrow in both directions, so
dates and timestamps keep their physical numbers and Python's `datetime` with its limits is never involved.

A query costs Spark much more than one more expression in it, so `ask_all` puts many questions into one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.classic.column import Column

from penstock.expr.kernels.vector import Vector
from penstock.expr.types import type_name


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


class Question(NamedTuple):
    """An expression over columns of its own, whose names are single letters."""

    columns: Mapping[str, pa.Array]
    expression: str


# A text between quotes, or a single letter that is no part of a word.
_LETTER = re.compile(r"'[^']*'|(?<![\w'])([a-z])(?![\w'(])")


def ask(
    spark: SparkSession, columns: Mapping[str, pa.Array], expressions: Sequence[str], zone: str = "UTC"
) -> list[Answers]:
    """Spark's answers to several expressions over the same columns."""
    return ask_all(spark, [Question(columns, expression) for expression in expressions], zone)


def ask_all(spark: SparkSession, questions: Sequence[Question], zone: str = "UTC", size: int = 50) -> list[Answers]:
    """Spark's answers to expressions over different columns, `size` of them in one query."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    starts = range(0, len(questions), size)
    return [answer for start in starts for answer in _ask(spark, questions[start : start + size])]


def _ask(spark: SparkSession, questions: Sequence[Question]) -> list[Answers]:
    """One query; columns that are shorter than others are filled up with nulls, and their answers cut off again."""
    sets = {id(question.columns): question.columns for question in questions}
    names = {key: {name: f"{name}{i}" for name in columns} for i, (key, columns) in enumerate(sets.items())}
    given = {names[key][name]: values for key, columns in sets.items() for name, values in columns.items()}
    count = max(map(len, given.values()))
    filled = {name: pa.concat_arrays([v, pa.nulls(count - len(v), v.type)]) for name, v in given.items()}
    schema = ", ".join(f"{name} {type_name(values.type)}" for name, values in filled.items())
    rows = spark.createDataFrame(pa.table(filled), schema)
    texts = [_renamed(question.expression, names[id(question.columns)]) for question in questions]
    found = rows.select(*(column for text in texts for column in _attempts(spark, text))).toArrow()
    answers = []
    for i, question in enumerate(questions):
        length = len(next(iter(question.columns.values())))
        values, is_null = (found.column(2 * i + j).combine_chunks()[:length] for j in range(2))
        answers.append(Answers(values, [not x.is_valid for x in is_null]))
    return answers


def _renamed(expression: str, names: Mapping[str, str]) -> str:
    return _LETTER.sub(lambda found: names[found[1]] if found[1] else found[0], expression)


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
    return [tried(spark, text) for text in (expression, f"({expression}) IS NULL")]


def tried(spark: SparkSession, text: str) -> Column:
    """An expression that is null where it would raise."""
    parse, wrap, as_column = _of_the_jvm(spark)
    return Column(as_column(wrap(parse(text))))


@cache
def _of_the_jvm(spark: SparkSession) -> tuple[Any, Any, Any]:
    """What makes columns of texts; looking for it takes longer than parsing does."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    return (
        session.sessionState().sqlParser().parseExpression,
        jvm.org.apache.spark.sql.catalyst.expressions.TryEval,
        jvm.org.apache.spark.sql.classic.ExpressionUtils.column,
    )


def _float_key(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return (value, math.copysign(1.0, value))
