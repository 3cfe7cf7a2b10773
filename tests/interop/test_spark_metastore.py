"""Tables of a real server of Hive's metastore, which Spark asks over Thrift: the rows of `spark.table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.metastore_server import metastore_server
from tests.interop.spark_process import SparkProcess
from tests.spark import metastore_questions as questions
from tests.spark.metastore_judge import Seen
from tools.fetch_jars import Unavailable, fetch

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def hive(root: Path) -> Iterator[SparkProcess]:
    """A Spark whose session catalog is the server."""
    try:
        jars = fetch("hive-metastore")
    except Unavailable as error:
        pytest.skip(f"no server of Hive's metastore: {error}")
    with metastore_server(jars, root) as uri:
        config = {**questions.CONFIG, "spark.hadoop.hive.metastore.uris": uri}
        process = SparkProcess(config={**config, "spark.sql.warehouse.dir": f"{root}/warehouse"}, master="local[1]")
        try:
            process.ask(questions.tables, root)
            yield process
        finally:
            process.close()


@pytest.mark.parametrize("name", questions.KEPT)
def test_rows_are_sparks_and_only_matching_partitions_are_listed(hive: SparkProcess, name: str) -> None:
    assert hive.ask(questions.kept, name) == questions.KEPT[name]


def test_what_the_server_cannot_filter_is_judged_here(hive: SparkProcess) -> None:
    assert hive.ask(questions.quotes)[0] == Seen(1, 1, 5, 1, 1, 1)


def test_partitions_elsewhere_and_inside_of_each_other(hive: SparkProcess, root: Path) -> None:
    assert list(hive.ask(questions.elsewhere, root).values()) == [
        Seen(1, 1, 3, 1, 1, 1),
        Seen(2, 2, 3, 2, 2, 2),
        Seen(3, 3, 3, 3, 3, 3),
    ]


def test_five_thousand_partitions_come_in_one_call(hive: SparkProcess, root: Path) -> None:
    seen, calls = hive.ask(questions.many, root / "many", 5_000)
    assert list(seen.values()) == [Seen(1, 1, 5_000, 1, 1, 1), Seen(8, 8, 5_000, 8, 8, 8), Seen(9, 9, 5_000, 9, 9, 9)]
    assert calls == [1, 1, 1, 1]


def test_what_is_refused_is_one_line(hive: SparkProcess) -> None:
    assert all(text and len(text.splitlines()) == 1 for text in hive.ask(questions.refused).values())


def test_sql_joins_it_with_sparks_own_tables(hive: SparkProcess) -> None:
    assert hive.ask(questions.by_sql) == [(2,)]
