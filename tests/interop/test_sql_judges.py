"""Spark SQL on a lake answers as Iceberg's own Spark runtime does: the same rows, and the same statements that fail.

The answers stand in `sql_corpus.sql`. Penstock's catalog must give them, and so must the runtime on a twin catalog;
where Penstock differs on purpose, the corpus says why. The runtime executes all groups in one process.

Groups that change rows are executed over tables of several layouts, copying on write and merging on read. After each
of their statements PyIceberg and DuckDB read the rows that Penstock's session has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from tests.interop.iceberg_judge import IcebergJudge, shared_judge
from tests.interop.sql_corpus import (
    CATALOG,
    ERROR,
    LAYOUTS,
    MODES,
    Statement,
    read_corpus,
    run_group,
    twin_settings,
    variant,
    variants,
)
from tests.interop.test_iceberg_judges import as_rows, connect_duckdb
from tests.spark.conftest import spark  # noqa: F401
from tools.fetch_jars import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.spark]

GROUPS = variants(read_corpus())
IN_EVERY_RUN = {"truncate", "zones", "rows_evolved", "rows_sides_coalesced_merge_on_read"}
OURS_ALONE = {
    name
    for name in GROUPS
    for layout, facts in LAYOUTS.items()
    if not facts.is_known_to_iceberg and any(name.endswith(variant("", layout, mode)) for mode in MODES)
}


def cases(without: Collection[str] = ()) -> list[Any]:
    """The groups to be executed; but for a few, not in every run."""
    names = [name for name in GROUPS if name not in without]
    return [pytest.param(name, marks=[] if name in IN_EVERY_RUN else [pytest.mark.slow]) for name in names]


# What a message must not show: names of ours and of the JVM's, and traces.
INTERNAL = re.compile(r"io\.penstock|__penstock|py4j|Traceback|\tat |Py4JJavaError|PenstockError\(")


def texts(statements: Sequence[Statement], *, theirs: bool = False) -> list[tuple[str, str]]:
    return [((theirs and each.theirs) or each.text, each.name) for each in statements]


def is_right(statement: Statement, answer: Sequence[str]) -> bool:
    if statement.theirs:  # two texts that do the same, and answer as they like
        return answer[:1] != ERROR
    return as_in_corpus(answer) == statement.answer


def as_in_corpus(answer: Sequence[str]) -> Sequence[str]:
    """An answer without the message of an error."""
    return ERROR if answer[:1] == ERROR else answer


def check(statements: Sequence[Statement], answers: Sequence[Sequence[str]]) -> None:
    """All differences of a group at once: a statement that goes wrong takes others with it."""
    wrong = [
        f"{each.text}\n    expected {each.answer}\n    answered {answer[:9]}"
        for each, answer in zip(statements, answers, strict=True)
        if not is_right(each, answer)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    return penstock.connect(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def session(spark: SparkSession, lake: penstock.Lake) -> SparkSession:  # noqa: F811
    """A session with an empty lake as the catalog of the corpus."""
    other = spark.newSession()
    penstock.attach(other, lake, CATALOG)
    return other


@pytest.fixture(scope="module")
def duck() -> Any:
    return connect_duckdb()


class Readers:
    """PyIceberg and DuckDB read the table of a group after each change of its rows."""

    def __init__(self, lake: penstock.Lake, group: str, duck: Any) -> None:
        self._name, self._lake, self._duck = f"{group}.t", lake, duck
        self._snapshot: int | None = None
        self.changes = 0

    def check(self, session: Any, statement: str) -> None:
        if not statement.upper().startswith(("UPDATE", "MERGE", "DELETE")):
            return
        self.changes += 1
        table = self._lake.writable_table(self._name)
        if table.version.snapshot_id == self._snapshot:
            return
        self._snapshot = table.version.snapshot_id
        # Of maps whose hot keys are moved, others see the rest.
        names = [name for name in table.schema.names if name != "m" or "mirrored" in self._name or not table.shred]
        own = as_rows(session.sql("SELECT * FROM t").toArrow(), names)
        assert as_rows(table.table.scan().to_arrow(), names) == own, statement
        text = f"SELECT * FROM iceberg_scan('{table.table.metadata_location}')"
        assert as_rows(self._duck.execute(text).to_arrow_table(), names) == own, statement


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


@pytest.mark.parametrize("group", cases())
def test_statements_of_a_group_answer_as_the_corpus_says(
    session: SparkSession, lake: penstock.Lake, duck: Any, group: str
) -> None:
    statements = GROUPS[group]
    readers = Readers(lake, group, duck) if group.startswith("rows_") else None
    answers = run_group(session, group, texts(statements), {}, None if readers is None else readers.check)
    check(statements, answers)
    assert readers is None or readers.changes
    messages = [answer[1] for answer in answers if answer[:1] == ERROR]
    assert not [message for message in messages if INTERNAL.search(message)]


@pytest.mark.parametrize("group", cases(OURS_ALONE))
def test_icebergs_runtime_answers_as_the_corpus_says(judge: IcebergJudge, twin: Path, group: str) -> None:
    statements = GROUPS[group]
    answers = judge.ask(run_group, group, texts(statements, theirs=True), twin_settings(str(twin)))
    alike = [each for each in zip(statements, answers, strict=True) if not each[0].difference]
    check([statement for statement, _ in alike], [answer for _, answer in alike])
    others = [each for each in zip(statements, answers, strict=True) if each[0].difference]
    no_longer = [each.text for each, answer in others if as_in_corpus(answer) == each.answer]
    assert not no_longer, "marked as differing from Iceberg"
