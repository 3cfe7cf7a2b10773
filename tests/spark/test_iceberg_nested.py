"""Structs, lists and maps whose fields were renamed, added or replaced: a field is its id at every depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyiceberg import types as iceberg
from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.spark.scan.iceberg_columns import Shape
from penstock.spark.scan.iceberg_names import names_by_id
from tests.fixtures.iceberg_tables import create
from tests.spark.iceberg_layouts import all_filters, ask, both_readers, opened, same_as_pyiceberg, small

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("utc")]


def nested_rows(first: str, second: str) -> pa.Table:
    values = [{first: i, second: 100 + i} for i in range(12)]
    kind = pa.struct({first: pa.int64(), second: pa.int64()})
    return pa.table(
        {
            "id": pa.array(range(12)),
            "st": pa.array([None if i == 7 else v for i, v in enumerate(values)], kind),
            "li": pa.array([[v] for v in values], pa.list_(kind)),
            "ma": pa.array([[("k", v)] for v in values], pa.map_(pa.string(), kind)),
        }
    )


@pytest.mark.xfail(
    pyspark.__version__.startswith("4.0"),
    reason="Spark 4.0 refuses to read a struct whose fields stand in another order in the file",
    strict=True,
)
def test_nested_fields_are_found_by_id_where_names_were_swapped(spark: SparkSession, tmp_path: Path) -> None:
    table = small(create(tmp_path, nested_rows("x", "y").schema))
    table.append(nested_rows("x", "y"))
    for parent in ("st", "li.element", "ma.value"):
        for old, new in (("x", "t"), ("y", "x"), ("t", "y")):
            with table.update_schema() as update:
                update.rename_column(f"{parent}.{old}", new)
    with table.update_schema() as update:
        update.rename_column("st", "struct")
    table.append(nested_rows("y", "x").rename_columns(["id", "struct", "li", "ma"]))
    all_filters(spark, tmp_path, "struct.x", "struct.y")
    found = opened(tmp_path).dataframe(spark)
    assert found.where("struct.x = 105").count() == 2
    assert found.where("li[0].x = 105").count() == 2
    assert found.where("ma['k'].y = 5").count() == 2


def test_field_behind_our_cast_is_known_and_behind_anothers_is_not(tmp_path: Path) -> None:
    table = create(tmp_path, nested_rows("x", "y").schema)
    for old, new in (("x", "t"), ("y", "x"), ("t", "y")):
        with table.update_schema() as update:
            update.rename_column(f"st.{old}", new)
    version = opened(tmp_path).version
    shape = Shape(tuple(version.columns.schema.fields), names_by_id(version.metadata), frozenset())
    assert shape.shown(version.columns.schema.fields[1]) == "CAST(st AS struct<`y`:bigint,`x`:bigint>)"
    paths: list[dict[str, Any]] = [
        {"column": ["st", "x"], "casts": 1, "type": "bigint"},
        {"column": ["st", "x"], "casts": 2, "type": "bigint"},
        {"column": ["st", "x"], "type": "bigint"},
        {"column": ["li", "x"], "casts": 1, "type": "bigint"},
        {"column": ["ID"], "type": "bigint"},
    ]
    restored = shape.meanings.restore(paths)
    assert [node.get("column") for node in restored] == [["st", "x"], None, None, None, ["id"]]


def test_struct_is_not_null_where_a_file_lacks_the_field_that_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    kind = pa.struct({"x": pa.int64()})
    values = [None if i == 7 else {"x": i} for i in range(12)]
    rows = pa.table(
        {"id": pa.array(range(12)), "st": pa.array(values, kind), "li": pa.array([[v] for v in values], pa.list_(kind))}
    )
    table = create(tmp_path, rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        update.add_column(("st", "y"), iceberg.LongType())
        update.add_column(("li", "y"), iceberg.LongType())
    pq.write_table(rows, tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path / 'other.parquet'}"])

    def check() -> None:
        df = opened(tmp_path).dataframe(spark)
        assert df.where("st IS NOT NULL AND st.y IS NULL").count() == 22
        assert df.where("st IS NULL").select("st.y").count() == 2
        assert df.selectExpr("st IS NULL AS n", "st.y").where("n").count() == 2
        assert df.where("li[0] IS NULL").select("li.y").count() == 2
        assert df.where("li[0].y IS NULL AND li[0] IS NOT NULL").count() == 22
        same_as_pyiceberg(spark, opened(tmp_path))

    both_readers(spark, check)


def test_struct_whose_fields_were_all_replaced_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1]), "st": pa.array([{"x": 1}])})
    table = create(tmp_path, rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        update.add_column(("st", "y"), iceberg.LongType())
        update.delete_column(("st", "x"))
    with pytest.raises(LakeError, match="were replaced"):
        opened(tmp_path).dataframe(spark)


def test_cast_by_the_user_is_not_taken_for_a_column_of_that_name(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path, nested_rows("x", "y").schema).append(nested_rows("x", "y").drop(["li", "ma"]))
    df = opened(tmp_path).dataframe(spark)
    assert df.where("cast(st AS struct<y: bigint, x: bigint>).x = 105").count() == 1
    assert df.where("cast(st AS struct<y: bigint, x: bigint>).x = 5").count() == 0


def test_nested_fields_of_files_without_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, nested_rows("x", "y").schema)
    table.append(nested_rows("x", "y"))
    pq.write_table(nested_rows("x", "y"), tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path / 'other.parquet'}"])
    same_as_pyiceberg(spark, opened(tmp_path))
    ask(spark, opened(tmp_path), "st.x = 5 AND id > 2")
