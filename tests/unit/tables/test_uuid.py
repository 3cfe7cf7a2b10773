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


def test_uuids_inside_other_types_are_text(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StructType(NestedField(3, "u", UUIDType()), NestedField(9, "t", StringType()))),
        NestedField(4, "l", ListType(5, UUIDType(), element_required=False)),
        NestedField(6, "m", MapType(7, UUIDType(), 8, ListType(10, UUIDType()), value_required=False)),
    )
    plain = create(tmp_path, schema)
    first, second = (str(each) for each in IDS[:2])
    rows = [
        {"id": 0, "s": {"u": first, "t": "a"}, "l": [first, None], "m": [(second, [first])]},
        {"id": 1, "s": {"u": None, "t": None}, "l": [], "m": []},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"u": second, "t": "b"}, "l": [second], "m": [(first, None)]},
    ]
    table = penstock.connect(tmp_path).table("web.t")
    table.append(pa.Table.from_pylist(rows, schema=table.schema))
    assert plain.refresh().scan().to_arrow()["l"].to_pylist() == [[IDS[0], None], [], None, [IDS[1]]]
    assert table.arrow().to_pylist() == rows
    assert table.arrow(f"s.u = '{second}'")["id"].to_pylist() == [3]
    assert table.arrow(f"m['{second}'] IS NOT NULL")["id"].to_pylist() == [0]
