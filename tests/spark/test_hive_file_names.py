"""Which files of a layout hold its rows: the same as plain Spark reads, whatever their names and sizes are."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import penstock
from penstock.errors import LayoutError
from tests.fixtures.hive_writer import write_file
from tests.fixtures.layouts import LAYOUTS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("name", "lists", "files"), [("any_file_name", 2, 7), ("empty_files", 3, 1), ("hidden", 2, 1), ("null", 3, 2)]
)
def test_the_rows_are_those_of_plain_spark(
    spark: SparkSession, utc: None, tmp_path: Path, name: str, lists: int, files: int
) -> None:
    layout = LAYOUTS[name]
    root = layout.build(tmp_path)
    table = penstock.hive(root, layout.partition_by, "n bigint")
    plain = spark.read.schema(f"n bigint, {layout.partition_by}").parquet(str(root))
    expected = sorted(map(tuple, plain.collect()), key=str)
    assert len(expected) == files
    assert sorted(map(tuple, table.dataframe(spark).collect()), key=str) == expected
    assert sorted((tuple(row.values()) for row in table.arrow().to_pylist()), key=str) == expected
    assert (len(table.plan().files), table.plan().report.list_calls) == (files, lists)


def test_what_is_not_parquet_is_named_by_spark_unless_it_is_pruned(
    spark: SparkSession, utc: None, tmp_path: Path
) -> None:
    layout = LAYOUTS["other_files"]
    rows = penstock.hive(layout.build(tmp_path), layout.partition_by, "n bigint").dataframe(spark)
    assert [row.n for row in rows.where("dt = '2'").collect()] == [2]
    with pytest.raises(Py4JJavaError, match=r"dt=1/notes\.txt"):
        rows.collect()


def test_a_pipe_is_an_error_in_spark_and_not_a_hang(spark: SparkSession, utc: None, tmp_path: Path) -> None:
    write_file(tmp_path / "k=1" / "a", pa.table({"n": pa.array([1], pa.int64())}))
    rows = penstock.hive(tmp_path, "k int", "n bigint").dataframe(spark)
    os.mkfifo(tmp_path / "k=1" / "b")
    with pytest.raises(LayoutError, match="k=1/b is a pipe, socket or device"):
        rows.collect()
