"""Schemas that changed: a column is its field id, whatever it was called, and no other column's statistics skip it.

Row groups have four rows, so that a filter pushed to the wrong column's statistics would lose rows at once.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as iceberg
from pyspark.sql import SparkSession

import penstock
from penstock.errors import LakeError
from penstock.spark.scan.iceberg_names import names_by_id
from tests.fixtures.iceberg_tables import create
from tests.spark.iceberg_layouts import all_filters, ask, numbers, opened, same_as_pyiceberg, small

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("utc")]


def test_renamed_column_keeps_its_rows_and_the_skipping_of_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a").schema))
    table.append(numbers(0, "id", "a"))
    with table.update_schema() as update:
        update.rename_column("a", "b")
    table.append(numbers(5, "id", "b"))
    all_filters(spark, tmp_path, "b", "id")
    query = opened(tmp_path).dataframe(spark).where("b = 105")
    assert "PushedFilters: [IsNotNull(a), EqualTo(a,105)]" in query._jdf.queryExecution().toString()


def test_swapped_names_read_right_with_pushdown(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a", "b").schema))
    table.append(numbers(0, "id", "a", "b"))
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    table.append(numbers(0, "id", "b", "a"))
    all_filters(spark, tmp_path, "a", "b")
    assert opened(tmp_path).dataframe(spark).where("a = 205").count() == 2


def test_name_of_a_dropped_column_given_to_a_new_one(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a").schema))
    table.append(numbers(0, "id", "a"))
    with table.update_schema() as update:
        update.delete_column("a")
    table.append(numbers(0, "id"))
    with table.update_schema() as update:
        update.add_column("a", iceberg.LongType())
    table.append(numbers(0, "id", "a"))
    all_filters(spark, tmp_path, "a")
    assert opened(tmp_path).dataframe(spark).where("a IS NULL").count() == 24


def test_name_given_on_after_a_rename(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a").schema))
    table.append(numbers(0, "id", "a"))
    with table.update_schema() as update:
        update.rename_column("a", "old_a")
    with table.update_schema() as update:
        update.add_column("A", iceberg.LongType())
    table.append(numbers(0, "id", "old_a", "A"))
    all_filters(spark, tmp_path, "A", "old_a")


def test_names_that_writers_escape(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table(
        {"id": pa.array([1, 2]), "a-b": pa.array([5, 6]), "1st": ["x", None], "ü ö": ["u", "v"], "p.q": [1, 2]}
    )
    create(tmp_path, rows.schema, ["1st"]).append(rows)
    same_as_pyiceberg(spark, opened(tmp_path))
    for where in ("`a-b` = 5", "`1st` = 'x'", "`ü ö` = 'v'", "`p.q` = 2", "`A-B` > 5"):
        assert len(ask(spark, opened(tmp_path), where).ids) == 1


def test_history_with_a_missing_schema_gives_every_column_a_surrogate(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a", "b").schema))
    table.append(numbers(0, "id", "a", "b"))
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    told = json.loads(table.metadata.model_dump_json())
    told["schemas"] = told["schemas"][-1:]
    told["snapshots"] = [s for s in told["snapshots"] if s.pop("schema-id", 0) is not None]
    path = tmp_path / "expired.metadata.json"
    path.write_text(json.dumps(told))
    found = penstock.iceberg(path)
    assert not names_by_id(found.version.metadata).complete
    assert found.dataframe(spark).where("a = 205").count() == 1
    assert found.dataframe(spark).where("b = 205").count() == 0


def test_files_without_ids_are_read_by_the_name_mapping(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, numbers(0, "id", "a").schema))
    table.append(numbers(0, "id", "a"))
    other = tmp_path / "other.parquet"
    pq.write_table(numbers(1000, "id", "a"), other, row_group_size=4)
    table.add_files([f"file://{other}"])
    assert "schema.name-mapping.default" in table.properties
    all_filters(spark, tmp_path, "a", "id")
    assert opened(tmp_path).dataframe(spark).count() == 24
    with table.update_schema() as update:
        update.rename_column("a", "b")
    pq.write_table(numbers(2000, "id", "b"), tmp_path / "third.parquet", row_group_size=4)
    table.add_files([f"file://{tmp_path / 'third.parquet'}"])
    all_filters(spark, tmp_path, "b", "id")
    assert ask(spark, opened(tmp_path), "b >= 2000").ids == list(range(2000, 2012))


def test_file_without_ids_and_without_a_mapping_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, numbers(0, "id", "a").schema)
    pq.write_table(numbers(0, "id", "a"), tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path / 'other.parquet'}"])
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(LakeError, match=r"other.parquet has no field ids, and the table has no name mapping"):
        opened(tmp_path).dataframe(spark).collect()
