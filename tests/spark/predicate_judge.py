"""Whole predicates through Spark and through Penstock: what each answers for every row, and where they differ.

Penstock answers four times: the bound tree, its normal form, and both of them printed and read again. Spark answers
the text, and what Penstock prints for both trees. All of these must be the same true, false or null for every row.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.column import Column

from penstock.errors import PredicateError, TypeMismatchError
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import evaluate, read_terms, unevaluable
from penstock.expr.kernels.vector import Vector
from penstock.expr.simplify import simplify
from penstock.expr.tree import Expr
from tests.fixtures.spark_settings import COMPILED, INTERPRETED
from tests.spark.judge import Answers, disagreements, given_up, tried
from tests.spark.predicate_rows import DDL, SCHEMA

# What Spark says of a text: an answer for each row, or why there is none for any.
Said = Answers | str
NOT_ANALYSED, NOT_PARSED, NOT_RUN = "refused by the analyzer", "refused by the parser", "raised for the whole query"
TOO_DEEP = "too deep for Spark's parser"
_REFUSALS = (AnalysisException, Py4JJavaError)  # the second: an assertion of the analyzer's own, INTERNAL_ERROR


# PySpark writes every refusal to stderr, with the whole stack of the JVM; here they are expected.
logging.getLogger("SQLQueryContextLogger").disabled = True


@dataclass
class Report:
    """What came of a number of predicates; `wrong` is for people and must stay empty."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    reprinted: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, text: str, problem: str) -> None:
        """Note that something is wrong with a predicate."""
        self.wrong.setdefault(text, []).append(problem)

    def merge(self, other: Report) -> None:
        """Take in what came of others, or of the same ones in another zone."""
        for text, problems in other.wrong.items():
            self.wrong.setdefault(text, []).extend(problems)
        self.counts.update(other.counts)
        self.reprinted += other.reprinted
        self.notes += other.notes

    def share_given_up(self) -> float:
        """The share of rows that Spark answers and Penstock leaves open, among predicates it can evaluate at all."""
        return self.counts["rows given up"] / max(1, self.counts["rows answered"])


@cache
def session_in(spark: SparkSession, zone: str) -> SparkSession:
    """A session of its own for each zone; all but UTC are interpreted, so that both ways in which Spark runs judge."""
    session = spark.newSession()
    for name, value in (COMPILED if zone == "UTC" else INTERPRETED).items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.session.timeZone", zone)
    # Else the operand of BETWEEN is computed ahead of everything else, outside of what catches errors here.
    session.conf.set("spark.sql.alwaysInlineCommonExpr", "true")
    # Thousands of different texts fill the heap with what the parser remembers of them, and with the texts of plans.
    session.conf.set("spark.sql.parser.manageParserCaches", "true")
    session.conf.set("spark.sql.parser.parserDfaCacheFlushThreshold", "30000")
    session.conf.set("spark.sql.maxPlanStringLength", "200")
    session.conf.set("spark.sql.debug.maxToStringFields", "1")
    return session


def ask_spark(frame: DataFrame, texts: Sequence[str], size: int = 40) -> dict[str, Said]:
    """Spark's word on each text, many in one query."""
    said: dict[str, Said] = {}
    taken: dict[str, Column] = {}
    for text in dict.fromkeys(texts):
        try:
            taken[text] = _attempt(frame, text)
        except ParseException:
            said[text] = NOT_PARSED
        except Py4JJavaError:  # its stack overflows
            said[text] = TOO_DEEP
    names = list(taken)
    for start in range(0, len(names), size):
        said |= _answers(frame, {name: taken[name] for name in names[start : start + size]})
    return said


def _answers(frame: DataFrame, taken: dict[str, Column]) -> dict[str, Said]:
    """The answers of one query; where something stops it, the texts are asked alone or by halves until it is found."""
    try:
        query = frame.select(*(column.alias(f"c{i}") for i, column in enumerate(taken.values())))
    except _REFUSALS:
        if len(taken) == 1:
            return dict.fromkeys(taken, NOT_ANALYSED)
        good = {text: column for text, column in taken.items() if _is_analysed(frame, column)}
        assert len(good) < len(taken), f"refused together but not alone: {list(taken)}"
        return dict.fromkeys(taken, NOT_ANALYSED) | (_answers(frame, good) if good else {})
    try:
        found = query.toArrow().columns
    except PySparkException:
        if len(taken) == 1:
            return dict.fromkeys(taken, NOT_RUN)
        names, middle = list(taken), len(taken) // 2
        halves = (names[:middle], names[middle:])
        first, second = (_answers(frame, {name: taken[name] for name in half}) for half in halves)
        return first | second
    return {text: _answer(column.combine_chunks()) for text, column in zip(taken, found, strict=True)}


def _answer(words: pa.Array) -> Said:
    """`WHERE i` is refused; only as a column is `i` an expression like any other."""
    known = {"true": True, "false": False, "null": None, None: None}
    found = words.to_pylist()
    if not all(word in known for word in found):
        return NOT_ANALYSED
    return Answers(pa.array([known[word] for word in found], pa.bool_()), [word is None for word in found])


def _is_analysed(frame: DataFrame, column: Column) -> bool:
    try:
        frame.select(column)
    except _REFUSALS:
        return False
    return True


@dataclass
class Reading:
    """A text as Penstock reads it: the tree in all the ways that must mean the same, or the error."""

    text: str
    forms: dict[str, Expr] = field(default_factory=dict)
    refusal: PredicateError | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def printed(self) -> list[str]:
        return [str(self.forms[how]) for how in ("bound", "simplified") if how in self.forms]


def read(text: str, zone: str) -> Reading:
    """Bind, simplify, and read again what is printed of both."""
    reading = Reading(text)
    context = Context(timezone=zone)
    try:
        bound = reading.forms["bound"] = bind_text(text, SCHEMA, context)
        reading.forms["simplified"] = simplify(bound)
    except PredicateError as error:
        reading.refusal = error
    except Exception as error:
        reading.problems.append(f"crashes: {error!r}")
    for how, form in list(reading.forms.items()):
        try:
            reading.forms[f"{how}, printed and read again"] = bind_text(str(form), SCHEMA, context)
        except Exception as error:
            reading.problems.append(f"{how}: {form}\n    cannot be read again: {type(error).__name__} {error}")
    return reading


def check_all(spark: SparkSession, rows: pa.Table, texts: Sequence[str], zone: str) -> Report:
    """Every text over the same rows."""
    report = Report()
    session = session_in(spark, zone)
    frame = session.createDataFrame(rows, DDL)
    readings = [read(text, zone) for text in texts]
    said = ask_spark(frame, texts)
    printed = [p for r in readings if isinstance(said[r.text], Answers) for p in r.printed]
    said |= ask_spark(frame, [text for text in printed if text not in said])
    for reading in readings:
        report.counts["predicates"] += 1
        for problem in reading.problems:
            report.add(reading.text, problem)
        spark_says = said[reading.text]
        if reading.refusal is not None:
            _check_refusal(report, reading.text, reading.refusal, spark_says)
        elif reading.forms and isinstance(spark_says, Answers):
            _check_one(report, rows, reading, said, zone)
        elif reading.forms:
            report.counts[f"accepted here, {spark_says}"] += 1
            report.notes.append(f"{spark_says}: {reading.text}")
    return report


def _check_refusal(report: Report, text: str, error: PredicateError, spark: Said) -> None:
    """Spark must refuse what Penstock refuses. A literal that cannot be read makes Spark raise only when it runs."""
    reason = str(error).splitlines()[0]
    report.counts[f"refused here: {type(error).__name__}"] += 1
    unreadable = reason.startswith("cannot read ")
    if not isinstance(spark, Answers) or (unreadable and any(spark.raised)):
        report.counts[f"refused here, {spark if isinstance(spark, str) else 'raised for some row'}"] += 1
    elif isinstance(error, TypeMismatchError):
        report.add(text, f"refused here ({reason}), Spark answers {_few(spark)}")
    else:
        report.counts["not read here, but answered by Spark"] += 1
        report.notes.append(f"not read here: {text}: {reason}")


def _check_one(report: Report, rows: pa.Table, reading: Reading, said: dict[str, Said], zone: str) -> None:
    text, spark = reading.text, said[reading.text]
    assert isinstance(spark, Answers)
    for printed in dict.fromkeys(reading.printed):
        problem = _unlike(spark, said[printed]) if printed != text else ""
        if problem:
            report.add(text, f"printed: {printed}\n    to Spark that is not the same: {problem}")
    if unevaluable(reading.forms["bound"]) is not None:
        report.counts["opaque here"] += 1
    for how, form in reading.forms.items():
        _check_form(report, rows, text, how, form, spark, zone)
        again = reading.forms.get(f"{how}, printed and read again", form)
        if again != form:
            report.counts["not the same tree when read again"] += 1
            report.reprinted.append(f"{text}\n    {how}: {form}\n    again: {again}")


def _check_form(report: Report, rows: pa.Table, text: str, how: str, form: Expr, spark: Answers, zone: str) -> None:
    try:
        mine = evaluate(form, read_terms(form, rows), rows.num_rows, zone)
    except Exception as error:
        report.add(text, f"{how}: {form}\n    crashes: {error!r}")
        return
    differ = disagreements(mine, spark)
    if differ:
        row, ours, theirs = differ[0]
        shown = f"{_row(rows, row, form)}: Spark {theirs}, here {ours} ({len(differ)} rows differ)"
        report.add(text, f"{how}: {form}\n    {shown}")
    if how == "bound" and unevaluable(form) is None:
        _count(report, text, mine, spark)


def _count(report: Report, text: str, mine: Vector, spark: Answers) -> None:
    left = given_up(mine, spark)
    report.counts["rows answered"] += spark.raised.count(False)
    report.counts["rows given up"] += len(left)
    report.counts["evaluated"] += 1
    if left:
        report.notes.append(f"given up {len(left)} rows: {text}")


def _unlike(one: Answers, other: Said) -> str:
    """Where Spark says different things of two texts."""
    if not isinstance(other, Answers):
        return "" if other == TOO_DEEP or (other == NOT_RUN and all(one.raised)) else other
    pairs = zip(_words(one), _words(other), strict=True)
    differ = [(i, a, b) for i, (a, b) in enumerate(pairs) if a != b]
    if not differ:
        return ""
    row, a, b = differ[0]
    return f"row {row} {a} and {b} ({len(differ)} rows differ)"


def _words(answers: Answers) -> list[Any]:
    return ["raised" if raised else v for v, raised in zip(answers.values.to_pylist(), answers.raised, strict=True)]


def _few(answers: Answers) -> str:
    return str(list(dict.fromkeys(map(str, _words(answers)))))


def _row(rows: pa.Table, row: int, tree: Expr) -> str:
    """The values of a row that a tree looks at."""
    shown = []
    for column, values in read_terms(tree, rows).items():
        value = values.slice(row, 1)
        if pa.types.is_timestamp(value.type):
            value = value.cast(pa.int64())
        shown.append(f"{column} = {value[0] if pa.types.is_date(value.type) else value[0].as_py()!r}")
    return ", ".join(shown) or "no columns"


def _attempt(frame: DataFrame, text: str) -> Column:
    """The value as a word, which is null only where the expression raised."""
    return tried(frame.sparkSession, f"coalesce(CAST(({text}) AS string), 'null')")
