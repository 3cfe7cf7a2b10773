"""`lake.sql` reads the table that is named, whatever other tables and lakes are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def lake_of(place: Path, **tables: int) -> Any:
    """A lake whose tables hold one number each; DOT stands for the dot of a name."""
    lake = penstock.connect(place)
    for name, number in tables.items():
        namespace, _, table = name.rpartition("DOT")
        made = lake.create_table(f"{namespace}.{table}", "n bigint")
        made.append(pa.table({"n": [number]}))
    return lake


def numbers(rows: Any) -> list[int]:
    return sorted(row["n"] for row in rows.collect())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tables = {"aDOTb__c": 1, "a__bDOTc": 2, "webDOTevents": 3, "webDOTEvents": 4, "webDOTmy-table": 5}
    return lake_of(tmp_path_factory.mktemp("lake"), **tables)


@pytest.mark.parametrize(("first", "second"), [("a.b__c", "a__b.c"), ("web.events", "web.Events")])
def test_names_that_look_alike_are_two_tables(spark: SparkSession, lake: Any, first: str, second: str) -> None:
    both = lake.sql(f"SELECT n FROM {first} UNION ALL SELECT n FROM {second}", spark)
    one = lake.sql(f"SELECT n FROM {first}", spark)
    other = lake.sql(f"SELECT n FROM {second}", spark)
    assert (numbers(both), numbers(one), numbers(other)) in [([1, 2], [1], [2]), ([3, 4], [3], [4])]


def test_a_view_over_one_lake_does_not_follow_a_query_of_another(
    spark: SparkSession, lake: Any, tmp_path: Path
) -> None:
    other = lake_of(tmp_path / "other", webDOTevents=30)
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW of_lake AS SELECT n FROM web.events", spark)
    assert numbers(other.sql("SELECT n FROM web.events", spark)) == [30]
    assert numbers(spark.table("of_lake")) == [3]


def test_names_in_backticks_are_tables_too(spark: SparkSession, lake: Any) -> None:
    assert numbers(lake.sql("SELECT `my-table`.n FROM web.`my-table`", spark)) == [5]
    assert numbers(lake.sql("SELECT x.n FROM `web`.`my-table` AS x WHERE x.n = 5", spark)) == [5]
