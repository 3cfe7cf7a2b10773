"""Spark SQL on a lake answers as Iceberg's own Spark runtime does: the same rows, and the same statements that fail.

The answers stand in `sql_corpus.sql`. Penstock's catalog must give them, and so must the runtime on a twin catalog;
where Penstock differs on purpose, the corpus says why. The runtime executes all groups in one process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from tests.interop.iceberg_judge import IcebergJudge, shared_judge
from tests.interop.sql_corpus import CATALOG, ERROR, Statement, read_corpus, run_group, twin_settings
from tests.spark.conftest import spark  # noqa: F401
from tools.fetch_jars import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark]

GROUPS = read_corpus()
IN_EVERY_RUN = {"rows_evolved", "truncate", "not_ansi", "null_partitions", "zones", "properties"}
CASES = [pytest.param(name, marks=[] if name in IN_EVERY_RUN else [pytest.mark.slow]) for name in GROUPS]
# What a message must not show: names of ours and of the JVM's, and traces.
INTERNAL = re.compile(r"io\.penstock|__penstock|py4j|Traceback|\tat |Py4JJavaError|PenstockError\(")


def texts(statements: Sequence[Statement]) -> list[tuple[str, str]]:
    return [(each.text, each.name) for each in statements]


def as_in_corpus(answer: Sequence[str]) -> Sequence[str]:
    """An answer without the message of an error."""
    return ERROR if answer[:1] == ERROR else answer


def check(statements: Sequence[Statement], answers: Sequence[Sequence[str]]) -> None:
    """All differences of a group at once: a statement that goes wrong takes others with it."""
    wrong = [
        f"{each.text}\n    expected {each.answer}\n    answered {answer[:9]}"
        for each, answer in zip(statements, answers, strict=True)
        if as_in_corpus(answer) != each.answer
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:  # noqa: F811
    """A session with an empty lake as the catalog of the corpus."""
    other = spark.newSession()
    penstock.attach(other, penstock.connect(tmp_path_factory.mktemp("lake")), CATALOG)
    return other


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of Iceberg's runtime are."""
    return tmp_path_factory.mktemp("twin")


@pytest.fixture(scope="module")
def judge(twin: Path) -> IcebergJudge:
    try:
        return shared_judge(twin)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("group", CASES)
def test_statements_of_a_group_answer_as_the_corpus_says(session: SparkSession, group: str) -> None:
    statements = GROUPS[group]
    answers = run_group(session, group, texts(statements), {})
    check(statements, answers)
    messages = [answer[1] for answer in answers if answer[:1] == ERROR]
    assert not [message for message in messages if INTERNAL.search(message)]


@pytest.mark.parametrize("group", CASES)
def test_icebergs_runtime_answers_as_the_corpus_says(judge: IcebergJudge, twin: Path, group: str) -> None:
    statements = GROUPS[group]
    answers = judge.ask(run_group, group, texts(statements), twin_settings(str(twin)))
    alike = [each for each in zip(statements, answers, strict=True) if not each[0].difference]
    check([statement for statement, _ in alike], [answer for _, answer in alike])
    others = [each for each in zip(statements, answers, strict=True) if each[0].difference]
    no_longer = [each.text for each, answer in others if as_in_corpus(answer) == each.answer]
    assert not no_longer, "marked as differing from Iceberg"
