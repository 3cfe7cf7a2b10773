"""What holds of tables of any Hive metastore; a module has the fixtures `hive` and `root`, and inherits the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.spark_process import SparkProcess
from tests.spark import metastore_questions as questions
from tests.spark.metastore_judge import Seen


class HiveMetastoreContract:
    """`spark.table` is the judge of all rows."""

    partitions = 500

    @pytest.mark.parametrize("name", questions.KEPT)
    def test_rows_are_sparks_and_only_matching_partitions_are_listed(self, hive: SparkProcess, name: str) -> None:
        assert hive.ask(questions.kept, name) == questions.KEPT[name]

    def test_what_the_metastore_cannot_filter_is_judged_here(self, hive: SparkProcess) -> None:
        seen, explained = hive.ask(questions.quotes)
        assert seen == Seen(1, 1, 5, 1, 1, 1)
        assert "the metastore lists all partitions: " in explained  # then Spark's reason, which has a name from 4.1 on
        assert len(explained.splitlines()) == 8

    def test_partitions_elsewhere_and_inside_of_each_other(self, hive: SparkProcess, root: Path) -> None:
        assert list(hive.ask(questions.elsewhere, root).values()) == [
            Seen(1, 1, 3, 1, 1, 1),
            Seen(2, 2, 3, 2, 2, 2),
            Seen(3, 3, 3, 3, 3, 3),
        ]

    def test_many_partitions_come_in_one_call(self, hive: SparkProcess, root: Path) -> None:
        seen, calls = hive.ask(questions.many, root / "many", self.partitions)
        matching = (1, 8 if self.partitions == 5_000 else 2, 9)
        assert list(seen.values()) == [Seen(n, n, self.partitions, n, n, n) for n in matching]
        assert calls == [1, 1, 1, 1]

    def test_what_is_refused_is_one_line(self, hive: SparkProcess) -> None:
        assert hive.ask(questions.refused) == {
            "dw.hive_text": "dw.hive_text is stored by Hive's LazySimpleSerDe, which is not supported; "
            "use spark.table, or write it again STORED AS PARQUET or ORC",
            "dw.seen": "dw.seen is a view, which has no files of its own; open the tables that it reads, "
            "or use spark.table",
            "dw.mixed": "partition dt=a of dw.mixed is stored as parquet, which the table is not; leave it out by the "
            "filter, or write it again in the format of the table",
            "dw.nosuch": "no table dw.nosuch in Spark's session catalog; see SHOW TABLES",
        }

    def test_sql_joins_it_with_sparks_own_tables(self, hive: SparkProcess) -> None:
        assert hive.ask(questions.by_sql) == [(2,)]
