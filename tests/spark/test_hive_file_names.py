"""Which files of a layout hold its rows: the same as plain Spark reads, whatever their names and sizes are."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import penstock
from penstock.errors import LayoutError, PenstockError
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
    with pytest.raises(Py4JJavaError, match=r"dt=1/notes\.md"):
        rows.collect()


def test_a_file_of_another_format_is_named_before_anything_is_read(
    spark: SparkSession, utc: None, tmp_path: Path
) -> None:
    for n, path in enumerate(("k=1/a.parquet", "k=1/b.orc", "k=2/c.parq", "k=2/000000_0")):
        write_file(tmp_path / path, pa.table({"n": pa.array([n], pa.int64())}))
    rows = penstock.hive(tmp_path, "k int", "n bigint").dataframe(spark)
    assert sorted(map(tuple, rows.where("k = 2").collect())) == [(2, 2), (3, 2)]
    with pytest.raises(LayoutError, match=r"k=1/b\.orc is ORC, and .*k=1/a\.parquet is Parquet; move it out"):
        rows.collect()


def test_a_pipe_is_an_error_in_spark_and_not_a_hang(spark: SparkSession, utc: None, tmp_path: Path) -> None:
    write_file(tmp_path / "k=1" / "a", pa.table({"n": pa.array([1], pa.int64())}))
    rows = penstock.hive(tmp_path, "k int", "n bigint").dataframe(spark)
    os.mkfifo(tmp_path / "k=1" / "b")
    with pytest.raises(LayoutError, match="k=1/b is a pipe, socket or device"):
        rows.collect()


ODD_NAMES = ["a b", "a%20b", "a#b", "[x]", "{y}", "*", "a?b", "a,b", "a=b=c", "ü", "😀", "a+b", "%", "~", "x"]


def write_odd_names(root: Path) -> None:
    for number, name in enumerate(ODD_NAMES):
        write_file(root / "k=1" / name, pa.table({"n": pa.array([number], pa.int64())}))
    write_file(root / "k=[12]" / "y", pa.table({"n": pa.array([99], pa.int64())}))


def test_a_name_is_never_a_pattern_or_an_escape(spark: SparkSession, utc: None, tmp_path: Path) -> None:
    write_odd_names(tmp_path)
    rows = penstock.hive(tmp_path, "k string", "n bigint").dataframe(spark)
    assert sorted(row.n for row in rows.collect()) == [*range(len(ODD_NAMES)), 99]
    assert sorted(row.n for row in rows.where("k = '1' AND n < 9").collect()) == list(range(9))
    assert [row.n for row in rows.where("k <> '1'").collect()] == [99]


@pytest.mark.parametrize(("where", "name"), [("k = '1'", r"k=1/\[x\]"), ("k <> '1'", r"k=\[12\]/y")])
def test_a_name_that_spark_connect_takes_for_a_pattern_is_refused(tmp_path: Path, where: str, name: str) -> None:
    write_odd_names(tmp_path)
    (tmp_path / "k=1" / "*").unlink()
    connect = SimpleNamespace()  # a session of Spark Connect has no `_jsparkSession`
    with pytest.raises(PenstockError, match=f"{name} is a pattern to Spark Connect; use a classic Spark session"):
        penstock.hive(tmp_path, "k string", "n bigint").dataframe(connect, where=where)
