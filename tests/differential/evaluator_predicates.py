"""Predicates in three languages: Spark SQL for Penstock, DuckDB's SQL for the truth, PyIceberg's expressions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)

from tests.differential.evaluator_facts import Column

COMPARISONS = {
    "=": EqualTo,
    "<>": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}


@dataclass(frozen=True)
class Predicate:
    """One predicate on one column; `{}` stands for the column in DuckDB's text."""

    column: Column
    spark: str
    duck: str
    iceberg: BooleanExpression


def spark_sql(value: Any) -> str:
    """A literal in Spark's SQL."""
    match value:
        case str() | UUID():
            return f"'{value}'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            kind = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
            return f"{kind} '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return f"'{value!r}'"
        case Decimal():
            return f"{value:f}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def duck_sql(value: Any) -> str:
    """The same in DuckDB's."""
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP{'TZ' if value.tzinfo else ''} '{value.isoformat(sep=' ')}'"
    return spark_sql(value)


def literal(value: Any) -> Any:
    """A literal as PyIceberg takes it."""
    return value.isoformat() if isinstance(value, dt.date) else value


def _typed(write: Callable[[Any], str], kind: str, value: Any) -> str:
    """A literal of the column's own type: a float beside a double would be cast."""
    return f"CAST({write(value)} AS {kind})" if isinstance(value, float) else write(value)


def plain(column: Column) -> Iterator[Predicate]:
    """Every test on one column with every literal."""
    name = column.name
    as_spark, as_duck = (partial(_typed, write, str(column.kind)) for write in (spark_sql, duck_sql))
    for value in column.values:
        for sign, kind in COMPARISONS.items():
            texts = f"{name} {sign} {as_spark(value)}", f"{{}} {sign} {as_duck(value)}"
            yield Predicate(column, *texts, kind(name, literal(value)))
    for chosen in (column.values[:2], column.values[1:2], column.values[1:], [column.values[0], column.values[-1]]):
        spark, duck = (", ".join(map(write, chosen)) for write in (as_spark, as_duck))
        values = [literal(value) for value in chosen]
        yield Predicate(column, f"{name} IN ({spark})", f"{{}} IN ({duck})", In(name, values))
        yield Predicate(column, f"{name} NOT IN ({spark})", f"{{}} NOT IN ({duck})", NotIn(name, values))
    yield Predicate(column, f"{name} IS NULL", "{} IS NULL", IsNull(name))
    yield Predicate(column, f"{name} IS NOT NULL", "{} IS NOT NULL", NotNull(name))
    if column.is_float:
        yield Predicate(column, f"isnan({name})", "coalesce(isnan({}), false)", IsNaN(name))
        yield Predicate(column, f"NOT isnan({name})", "NOT coalesce(isnan({}), false)", NotNaN(name))
    if str(column.kind) == "string":
        for prefix in sorted({value[:length] for value in column.values for length in (1, 2, 4) if value}):
            test = f"LIKE '{prefix}%'"
            yield Predicate(column, f"{name} {test}", f"{{}} {test}", StartsWith(name, prefix))
            yield Predicate(column, f"{name} NOT {test}", f"{{}} NOT {test}", NotStartsWith(name, prefix))


def combined(predicates: Sequence[Predicate], rng: Random, count: int) -> Iterator[Predicate]:
    """NOT, AND and OR of predicates on one column."""
    for _ in range(count):
        a, b = rng.sample(predicates, 2)
        match rng.randrange(3):
            case 0:
                yield Predicate(a.column, f"NOT ({a.spark})", f"NOT ({a.duck})", Not(a.iceberg))
            case 1:
                texts = [f"({x}) AND ({y})" for x, y in ((a.spark, b.spark), (a.duck, b.duck))]
                yield Predicate(a.column, *texts, And(a.iceberg, b.iceberg))
            case _:
                texts = [f"({x}) OR ({y})" for x, y in ((a.spark, b.spark), (a.duck, b.duck))]
                yield Predicate(a.column, *texts, Or(a.iceberg, b.iceberg))


def truths(predicates: Sequence[Predicate], kind: pa.DataType) -> list[dict[str, bool]]:
    """Which of a column's candidates each predicate is true for, by their texts; DuckDB says so."""
    column = predicates[0].column
    values = [str(value) if isinstance(value, UUID) else value for value in column.candidates]
    rows = pa.table({"key": list(map(repr, column.candidates)), "x": pa.array(values, kind, from_pandas=False)})
    tests = ", ".join(f"coalesce({p.duck.replace('{}', 'x')}, false)" for p in predicates)
    with duckdb.connect() as connection:
        connection.register("candidates", rows)
        answers = connection.sql(f"SELECT key, {tests} FROM candidates").fetchall()
    return [{row[0]: row[i + 1] for row in answers} for i in range(len(predicates))]
