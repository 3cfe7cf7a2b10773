"""Iceberg tables with data files in ORC and Avro, in Spark: what is read by name, and what is refused instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyspark.sql import SparkSession

import penstock
from penstock.errors import LakeError
from tests.fixtures.iceberg_deletes import delete_equal, delete_positions
from tests.fixtures.iceberg_formats import append_in
from tests.fixtures.iceberg_tables import create

pytestmark = pytest.mark.spark
FORMATS = ["orc", "avro"]


def table_in(root: Path, *forms: str, **properties: str) -> Table:
    """A table with a file of four rows in each of some formats."""
    fields = (types.NestedField(1, "id", types.IntegerType()), types.NestedField(2, "x", types.DoubleType()))
    table = create(root, Schema(*fields))
    with table.transaction() as transaction:
        transaction.set_properties({name.replace("__", "."): value for name, value in properties.items()})
    for i, form in enumerate(forms):
        values = [float("nan"), -0.0, None, 1.5]
        rows = pa.table({"id": pa.array(range(i * 4, i * 4 + 4), pa.int32()), "x": pa.array(values, pa.float64())})
        append_in(table, rows, form)
    return table


def ids(spark: SparkSession, table: Table, where: str = "true") -> list[int]:
    table.refresh()
    rows = penstock.iceberg(table.metadata_location).dataframe(spark).where(where)
    return sorted(row.id for row in rows.collect())


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_read_by_the_format_that_the_table_writes(spark: SparkSession, tmp_path: Path, form: str) -> None:
    table = table_in(tmp_path, form, form, write__format__default=form)
    assert ids(spark, table) == list(range(8))
    assert ids(spark, table, "x = 0.0") == [1, 5]
    assert ids(spark, table, "x > 1e9") == [0, 4]
    opened: Any = penstock.iceberg(table.metadata_location).dataframe(spark)
    assert {row[0] for row in opened.select("_metadata.file_name").collect()} == {
        task.path.rpartition("/")[2] for task in penstock.iceberg(table.metadata_location).plan().files
    }


def test_a_format_that_nothing_told_of_is_an_error_and_known_from_then_on(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, "orc", "avro", "orc")
    opened = penstock.iceberg(table.metadata_location)
    with pytest.raises(LakeError, match=r"is a file in (orc|avro), and this DataFrame was made for Parquet; make the"):
        opened.dataframe(spark).collect()
    assert ids(spark, table) == list(range(12))


def test_a_plan_tells_of_formats(spark: SparkSession, tmp_path: Path) -> None:
    table = table_in(tmp_path, "orc", "avro")
    opened = penstock.iceberg(table.metadata_location)
    assert len(opened.plan().files) == 2
    assert opened.dataframe(spark).count() == 8


@pytest.mark.parametrize("form", FORMATS)
def test_a_renamed_column_is_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    table = table_in(tmp_path, form, write__format__default=form)
    with table.update_schema() as change:
        change.rename_column("x", "y")
    with pytest.raises(LakeError, match=r"a column was called 'x' and 'y'; read the table with table.arrow"):
        ids(spark, table)
    assert penstock.iceberg(table.metadata_location).count("y = 0") == 1


@pytest.mark.parametrize("form", FORMATS)
def test_the_name_of_a_dropped_column_is_refused(spark: SparkSession, tmp_path: Path, form: str) -> None:
    table = table_in(tmp_path, form, write__format__default=form)
    with table.update_schema() as change:
        change.delete_column("x")
    with table.update_schema() as change:
        change.add_column("X", types.DoubleType())
    with pytest.raises(LakeError, match="the name 'X' was that of another column"):
        ids(spark, table)
    assert penstock.iceberg(table.metadata_location).count("X IS NULL") == 4


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_deleted_by_value_and_not_by_position(spark: SparkSession, tmp_path: Path, form: str) -> None:
    table = table_in(tmp_path, form, write__format__default=form)
    delete_equal(table, pa.table({"x": pa.array([None, float("nan")], pa.float64())}), [2], form=form)
    assert ids(spark, table) == [1, 3]
    table.refresh()
    path = penstock.iceberg(table.metadata_location).plan().files[0].path
    delete_positions(table, {path: [1]})
    with pytest.raises(LakeError, match="has rows deleted by position, and Spark does not number the rows of"):
        ids(spark, table)
    assert penstock.iceberg(table.metadata_location).arrow().column("id").to_pylist() == [3]
