"""Tables of Hive's metastore as it is embedded in Spark, with Derby behind it, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.spark_process import SparkProcess
from tests.spark import metastore_questions as questions
from tests.spark.metastore_judge import Seen

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hive")


@pytest.fixture(scope="module")
def hive(root: Path) -> Iterator[SparkProcess]:
    """A Spark with tables in a metastore of its own."""
    config = {
        **questions.CONFIG,
        "spark.sql.warehouse.dir": f"{root}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={root}/derby.log",
    }
    process = SparkProcess(config=config, master="local[1]")
    process.ask(questions.tables, root)
    yield process
    process.close()


@pytest.mark.parametrize("name", questions.KEPT)
def test_rows_are_sparks_and_only_matching_partitions_are_listed(hive: SparkProcess, name: str) -> None:
    assert hive.ask(questions.kept, name) == questions.KEPT[name]


def test_what_the_metastore_cannot_filter_is_judged_here(hive: SparkProcess) -> None:
    seen, explained = hive.ask(questions.quotes)
    assert seen == Seen(1, 1, 5, 1, 1, 1)
    assert "the metastore lists all partitions: [INTERNAL_ERROR_INVALID_PARTITION_FILTER_VALUE]" in explained
    assert len(explained.splitlines()) == 8


def test_partitions_elsewhere_and_inside_of_each_other(hive: SparkProcess, root: Path) -> None:
    assert list(hive.ask(questions.elsewhere, root).values()) == [
        Seen(1, 1, 3, 1, 1, 1),
        Seen(2, 2, 3, 2, 2, 2),
        Seen(3, 3, 3, 3, 3, 3),
    ]


def test_many_partitions_come_in_one_call(hive: SparkProcess, root: Path) -> None:
    seen, calls = hive.ask(questions.many, root / "many", 500)
    assert list(seen.values()) == [Seen(1, 1, 500, 1, 1, 1), Seen(2, 2, 500, 2, 2, 2), Seen(9, 9, 500, 9, 9, 9)]
    assert calls == [1, 1, 1, 1]


def test_what_is_refused_is_one_line(hive: SparkProcess) -> None:
    assert hive.ask(questions.refused) == {
        "dw.hive_text": "dw.hive_text is stored by Hive's LazySimpleSerDe, which is not supported; use spark.table, or "
        "write it again STORED AS PARQUET or ORC",
        "dw.seen": "dw.seen is a view, which has no files of its own; open the tables that it reads, or use spark.table",
        "dw.mixed": "partition dt=a of dw.mixed is stored as parquet, which the table is not; leave it out by the "
        "filter, or write it again in the format of the table",
        "dw.nosuch": "no table dw.nosuch in Spark's session catalog; see SHOW TABLES",
    }


def test_sql_joins_it_with_sparks_own_tables(hive: SparkProcess) -> None:
    assert hive.ask(questions.by_sql) == [(2,)]
