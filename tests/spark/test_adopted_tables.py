"""Adopted trees in Spark: the rows of the files with the values of the path, pruned, and compacted by Spark's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.lake.maintain import compact as compacting
from tests.fixtures.adopted_trees import PARTITION_BY, contents, expected, hard_tree
from tests.interop.test_iceberg_judges import as_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHERES = {
    "TRUE": lambda row: True,
    "app = 'ä b' AND id < 20": lambda row: row["app"] == "ä b" and row["id"] < 20,
    "app = 'wrong'": lambda row: False,
    "x > 70": lambda row: row["x"] > 70 or row["x"] != row["x"],
    "Name = 'a' OR dt = DATE'2026-05-18'": lambda row: row["Name"] == "a" or row["dt"].day == 18,
    "seen > TIMESTAMP'9000-01-01 00:00:00Z'": lambda row: row["seen"] is not None and row["seen"].year > 9000,
    "place.n = 3": lambda row: row["place"] is not None and row["place"]["n"] == 3,
    "counts['k1'] IS NOT NULL": lambda row: "k1" in (row["counts"] or {}),
}


def agree(spark: SparkSession, table: Any, rows: list[dict[str, Any]]) -> None:
    names = table.schema.names
    for where, is_match in WHERES.items():
        wanted = as_rows(expected([row for row in rows if is_match(row)]), names)
        assert as_rows(table.dataframe(spark).where(where).toArrow(), names) == wanted, where


def test_adopted_tree_is_read_and_compacted_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    penstock.attach(spark)
    rows = hard_tree(tmp_path / "tree")
    before = contents(tmp_path / "tree")
    lake = penstock.connect(tmp_path / "lake")
    lake.adopt(tmp_path / "tree", "web.t", PARTITION_BY, coalesce=["app"])
    table = lake.writable_table("web.t")
    agree(spark, table, rows)
    monkeypatch.setattr(compacting, "LOCALLY", 0)
    assert table.compact().written == 2
    agree(spark, table, rows)
    assert contents(tmp_path / "tree") == before
