"""The judge: plain Spark over a flat copy of the rows, one file without statistics, dictionaries or a page index.

Every predicate is a column of one query, so nothing is ever pushed into the reader. `TryEval` turns a row for which
Spark raises into an answer of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.expr.types import type_name
from tests.fuzz.predicates import Predicate, quote
from tests.spark.judge import Answers
from tests.spark.predicate_judge import ask_spark

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answer:
    """For each row by its id: whether the predicate is true, and whether Spark raises."""

    true: Mask
    raised: Mask

    @property
    def ids(self) -> set[int]:
        return set(np.flatnonzero(self.true).tolist())

    @property
    def doubtful(self) -> set[int]:
        return set(np.flatnonzero(self.raised).tolist())


def flat_copy(spark: SparkSession, rows: pa.Table, path: Path) -> DataFrame:
    """The rows as one file that says nothing about them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, write_statistics=False, use_dictionary=False, write_page_index=False)
    ddl = ", ".join(f"{quote(f.name)} {type_name(f.type)}" for f in rows.schema)
    return spark.read.schema(ddl).parquet(str(path)).cache()


def ask(frame: DataFrame, predicates: Sequence[Predicate], size: int = 60) -> dict[str, Answer | str]:
    """Spark's answer to each predicate, or why there is none."""
    with _active(frame.sparkSession):
        said = ask_spark(frame, [predicate.text for predicate in predicates], size)
    return {text: _answer(answers) if isinstance(answers, Answers) else answers for text, answers in said.items()}


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Texts are parsed by the settings of the session that is active in the JVM: TIMESTAMP '…' has a zone."""
    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


def _answer(answers: Answers) -> Answer:
    true = np.array([value is True for value in answers.values.to_pylist()], np.bool_)
    return Answer(true, np.array(answers.raised, np.bool_))


def ask_duckdb(rows: pa.Table, predicates: Sequence[Predicate]) -> dict[str, set[int]]:
    """A second opinion where the meanings agree: plain comparisons of plain types."""
    with duckdb.connect() as connection:
        connection.register("flat", rows)
        found = {}
        for predicate in predicates:
            if predicate.plain and "\\" not in predicate.text and "X'" not in predicate.text:
                try:
                    matching = connection.sql(f"SELECT id FROM flat WHERE {_dialect(predicate.text)}").fetchall()
                except duckdb.Error:
                    continue  # a literal that only Spark reads
                found[predicate.text] = {row[0] for row in matching}
        return found


def _dialect(text: str) -> str:
    """Spark's operators and suffixes of numbers as DuckDB writes them."""
    text = text.replace("`", '"').replace("==", "=").replace("!=", "<>").replace("<=>", "IS NOT DISTINCT FROM")
    return re.sub(r"(?<=\d)[LSY]\b", "", text)
