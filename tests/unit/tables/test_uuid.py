"""Columns of uuid: buckets by their bytes, as Iceberg's specification has it, and values inside other types."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType, UUIDType

import penstock
from penstock.prune.transform_functions import transform_function
from tests.fixtures.iceberg_deletes import data_files, delete_by_vectors, delete_equal, delete_positions, upgraded
from tests.fixtures.iceberg_tables import create

IDS = [uuid5(UUID(int=0), str(i)) for i in range(40)]
SPECIFIED = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def test_a_bucket_is_that_of_the_bytes() -> None:
    bucket = transform_function(f"bucket[{2**31 - 1}]@uuid", pa.string())
    assert bucket is not None
    assert bucket(str(SPECIFIED)) == 1488055340  # Iceberg's specification, appendix B
    assert bucket(str(SPECIFIED).upper()) is None
    assert bucket("no uuid") is None


@pytest.fixture
def table(tmp_path: Path) -> Any:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType()))
    plain = create(tmp_path, schema, ["bucket[8](u)"])
    plain.append(pa.table({"id": range(40), "u": pa.array([u.bytes for u in IDS], pa.binary(16)).cast(pa.uuid())}))
    return penstock.connect(tmp_path).table("web.t")


def test_files_of_the_right_bucket_are_read(table: Any) -> None:
    for i, value in enumerate(IDS):
        assert table.arrow(f"u = '{value}'")["id"].to_pylist() == [i]
        assert len(table.plan(f"u = '{value}'").files) == 1
    assert len(table.plan("u = 'no uuid'").files) == 0


def test_a_partition_is_shown_by_its_transform(table: Any) -> None:
    (value,) = next(iter(table.plan().files)).partition.values()
    assert (value.transform, value.source) == ("bucket[8]", "u")


NESTED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StructType(NestedField(3, "u", UUIDType()), NestedField(9, "t", StringType()))),
    NestedField(4, "l", ListType(5, UUIDType(), element_required=False)),
    NestedField(6, "m", MapType(7, UUIDType(), 8, ListType(10, UUIDType()), value_required=False)),
    NestedField(11, "k", MapType(12, StringType(), 13, UUIDType(), value_required=False)),
)


def nested_rows() -> list[dict[str, Any]]:
    first, second = (str(each) for each in IDS[:2])
    return [
        {"id": 0, "s": {"u": first, "t": "a"}, "l": [first, None], "m": [(second, [first])], "k": [("hot", first)]},
        {"id": 1, "s": {"u": None, "t": None}, "l": [], "m": [], "k": [("hot", None), ("cold", second)]},
        {"id": 2, "s": None, "l": None, "m": None, "k": None},
        {"id": 3, "s": {"u": second, "t": "b"}, "l": [second], "m": [(first, None)], "k": [("cold", first)]},
    ]


def test_uuids_inside_other_types_are_text(tmp_path: Path) -> None:
    plain = create(tmp_path, NESTED)
    rows, second = nested_rows(), str(IDS[1])
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.Table.from_pylist(rows, schema=table.schema))
    assert plain.refresh().scan().to_arrow()["l"].to_pylist() == [[IDS[0], None], [], None, [IDS[1]]]
    assert table.arrow().to_pylist() == rows
    assert table.arrow(f"s.u = '{second}'")["id"].to_pylist() == [3]
    assert table.arrow(f"m['{second}'] IS NOT NULL")["id"].to_pylist() == [0]


@pytest.mark.parametrize("delete", [delete_positions, delete_by_vectors])
def test_rows_with_uuids_inside_other_types_are_deleted(tmp_path: Path, delete: Any) -> None:
    plain = create(tmp_path, NESTED)
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.Table.from_pylist(nested_rows(), schema=table.schema))
    delete(plain.refresh(), {data_files(plain)[0].file_path: [1]})
    table = penstock.iceberg(upgraded(plain))
    assert table.arrow().to_pylist() == [row for row in nested_rows() if row["id"] != 1]


def test_rows_are_deleted_by_their_uuid(tmp_path: Path) -> None:
    plain = create(tmp_path, Schema(NestedField(1, "id", LongType()), NestedField(2, "u", UUIDType())))
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.table({"id": [0, 1, 2], "u": [str(IDS[0]), None, str(IDS[1])]}))
    for gone, left in ((IDS[1].bytes, [0, 1]), (None, [0])):
        delete_equal(plain.refresh(), pa.table({"u": pa.array([gone], pa.binary(16))}), [2])
        assert table.refresh().arrow()["id"].to_pylist() == left


def test_a_file_whose_rows_with_uuids_inside_other_types_are_all_deleted_is_empty(tmp_path: Path) -> None:
    plain = create(tmp_path, NESTED)
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.Table.from_pylist(nested_rows(), schema=table.schema))
    delete_positions(plain.refresh(), {data_files(plain)[0].file_path: [0, 1, 2, 3]})
    assert table.refresh().arrow().num_rows == 0


@pytest.mark.parametrize("partition_by", [["bucket[2](id)"], ["id"]])
def test_uuids_inside_other_types_are_written_to_partitions(tmp_path: Path, partition_by: list[str]) -> None:
    create(tmp_path, NESTED, partition_by)
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.Table.from_pylist(nested_rows(), schema=table.schema))
    if partition_by == ["id"]:
        table.set_coalesce("id")
    table.set_shred({"k": ["hot"]})
    table.append(pa.Table.from_pylist([{**row, "id": row["id"] + 4} for row in nested_rows()], schema=table.schema))
    table.delete("id = 1")
    table.compact()
    expected = [{**row, "id": row["id"] + more} for more in (0, 4) for row in nested_rows()]
    rows = table.arrow().sort_by("id").to_pylist()
    assert rows == [row for row in expected if row["id"] != 1]
