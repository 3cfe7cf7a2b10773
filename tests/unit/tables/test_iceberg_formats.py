"""Data files and delete files of Iceberg tables in ORC and Avro, read without Spark."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import create_mapping_from_schema

import penstock
from penstock.errors import LakeError
from tests.fixtures.iceberg_deletes import delete_by_vectors, delete_equal, delete_positions
from tests.fixtures.iceberg_formats import append_in
from tests.fixtures.iceberg_tables import append_by_hand, create

FORMATS = ["orc", "avro"]
EVERY_TYPE = Schema(
    types.NestedField(1, "id", types.LongType(), required=True),
    types.NestedField(2, "u", types.UUIDType()),
    types.NestedField(3, "fx", types.FixedType(3)),
    types.NestedField(4, "t", types.TimeType()),
    types.NestedField(5, "small", types.DecimalType(9, 2)),
    types.NestedField(6, "big", types.DecimalType(38, 10)),
    types.NestedField(7, "ts", types.TimestamptzType()),
    types.NestedField(8, "ntz", types.TimestampType()),
    types.NestedField(9, "d", types.DateType()),
    types.NestedField(10, "x", types.DoubleType()),
    types.NestedField(11, "f", types.FloatType()),
    types.NestedField(12, "raw", types.BinaryType()),
    types.NestedField(13, "ok", types.BooleanType()),
    types.NestedField(14, "s", types.StructType(types.NestedField(15, "a", types.IntegerType()))),
    types.NestedField(16, "l", types.ListType(17, types.StringType(), element_required=False)),
    types.NestedField(18, "m", types.MapType(19, types.StringType(), 20, types.LongType(), value_required=False)),
    types.NestedField(21, "we.ird ä", types.IntegerType()),
)
ROW: dict[str, Any] = {
    "id": 1,
    "u": UUID("0123456789abcdef0123456789abcdef").bytes,
    "fx": b"\x00\xffz",
    "t": dt.time(23, 59, 59, 999999),
    "small": Decimal("-1234567.89"),
    "big": Decimal("-1234567890123456789012345678.0123456789"),
    "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "ntz": dt.datetime(1700, 1, 1, 0, 0, 0, 1),
    "d": dt.date(1500, 2, 28),
    "x": -0.0,
    "f": 1.5,
    "raw": b"\xff\x00",
    "ok": False,
    "s": {"a": None},
    "l": ["", "ü"],
    "m": [("k", 1), ("", -2)],
    "we.ird ä": -5,
}
NULLS: dict[str, Any] = dict.fromkeys(ROW) | {"id": 2}
LARGEST: dict[str, Any] = NULLS | {"id": 3, "small": Decimal("9999999.99"), "x": 5e-324, "s": None, "l": [], "m": []}
SHOWN: dict[str, Any] = {"u": "01234567-89ab-cdef-0123-456789abcdef"}


def rows_of(*rows: dict[str, Any]) -> pa.Table:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.Table.from_pylist(list(rows), schema_to_pyarrow(EVERY_TYPE, include_field_ids=False))


def simple(root: Path, form: str, version: int = 2) -> Table:
    """Two files of six rows each in a format, and one in Parquet."""
    schema = Schema(
        types.NestedField(1, "id", types.IntegerType()),
        types.NestedField(2, "f", types.FloatType()),
        types.NestedField(3, "app", types.StringType()),
    )
    table = create(root, schema, version=version)
    for start in (0, 6):
        append_in(table, some_rows(start), form)
    append_by_hand(table, some_rows(12))
    return table


def some_rows(start: int, count: int = 6) -> pa.Table:
    ids = list(range(start, start + count))
    values = {"id": pa.array(ids, pa.int32()), "f": pa.array([i / 2 for i in ids], pa.float32())}
    return pa.table({**values, "app": [None if i % 3 == 2 else f"a{i % 3}" for i in ids]})


def ids_of(table: Any, where: str | None = None) -> list[int]:
    return sorted(table.arrow(where).column("id").to_pylist())


@pytest.mark.parametrize("form", FORMATS)
def test_every_type_is_read_with_all_its_bits(tmp_path: Path, form: str) -> None:
    table = create(tmp_path, EVERY_TYPE)
    append_in(table, rows_of(ROW, NULLS, LARGEST), form)
    rows = penstock.iceberg(table.metadata_location).arrow().to_pylist()
    for row, expected in zip(rows, [ROW | SHOWN, NULLS, LARGEST], strict=True):
        assert {name: row[name] for name in row if row[name] != expected[name]} == {}
    assert math.copysign(1, rows[0]["x"]) == -1
    for name in ROW:
        assert penstock.iceberg(table.metadata_location).arrow(columns=[name]).num_rows == 3


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_avro_is_read_in_every_codec_of_iceberg(tmp_path: Path, codec: str) -> None:
    table = create(tmp_path, EVERY_TYPE)
    append_in(table, rows_of(ROW, LARGEST), "avro", codec=codec)
    assert penstock.iceberg(table.metadata_location).arrow("small > 0").to_pylist() == [LARGEST]


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_planned_with_their_formats_and_without_bounds_kept(tmp_path: Path, form: str) -> None:
    table = penstock.iceberg(simple(tmp_path, form).metadata_location)
    plan = table.plan("id = 13")
    assert sorted(str(task.format) for task in plan.files) == sorted([form.upper()] * 2 + ["PARQUET"])
    assert len(table.plan("id = 3").files) == 2  # the bounds of the Parquet file say no
    assert ids_of(table, "id = 13") == [13]
    assert table.count("app = 'a1'") == 6
    assert ids_of(table) == list(range(18))


@pytest.mark.parametrize("form", FORMATS)
def test_columns_are_found_by_field_id_in_every_version_of_the_schema(tmp_path: Path, form: str) -> None:
    table = simple(tmp_path, form)
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("app", "was_app")
        change.update_column("id", types.LongType())
        change.update_column("f", types.DoubleType())
    with table.update_schema() as change:
        change.add_column("app", types.IntegerType())
        change.add_column("later", types.StringType())
    rows = penstock.iceberg(table.metadata_location).arrow("id = 4").to_pylist()
    assert rows == [{"id": 4, "f": 2.0, "was_app": "a1", "app": None, "later": None}]
    assert penstock.iceberg(table.metadata_location).count("app IS NULL AND was_app = 'a0'") == 6


@pytest.mark.parametrize("deletes", [*FORMATS, "parquet"])
@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_deleted_by_position_and_by_value(tmp_path: Path, form: str, deletes: str) -> None:
    table = simple(tmp_path, form)
    paths = [task.path for task in penstock.iceberg(table.metadata_location).plan().files]
    delete_positions(table, {path: [0, 5] for path in paths}, form=deletes)
    delete_equal(table, pa.table({"app": pa.array([None], pa.string())}), [3], form=deletes)
    table.refresh()
    opened = penstock.iceberg(table.metadata_location)
    expected = [i for i in range(18) if i % 6 not in (0, 5) and i % 3 != 2]
    assert ids_of(opened) == expected
    assert opened.count() == len(expected)


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_deleted_by_vectors(tmp_path: Path, form: str) -> None:
    table = simple(tmp_path, form)
    paths = [task.path for task in penstock.iceberg(table.metadata_location).plan().files]
    delete_by_vectors(table, {path: [1, 2] for path in paths})
    table.refresh()
    assert ids_of(penstock.iceberg(table.metadata_location)) == [i for i in range(18) if i % 6 not in (1, 2)]


@pytest.mark.parametrize("form", FORMATS)
def test_files_without_field_ids_are_read_by_the_name_mapping_or_not_at_all(tmp_path: Path, form: str) -> None:
    table = create(tmp_path, EVERY_TYPE)
    rows = rows_of(ROW, NULLS)
    path = append_in(table, rows, form, ids=False)
    with pytest.raises(LakeError, match=r"no field ids.*schema.name-mapping.default") as error:
        penstock.iceberg(table.metadata_location).arrow(columns=["id"])
    assert path.removeprefix("file://") in str(error.value)
    mapping = create_mapping_from_schema(table.schema()).model_dump_json()
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping})
    names = ["id", "small", "ntz", "s", "l", "m"]
    found = penstock.iceberg(table.metadata_location).arrow(columns=names).to_pylist()
    assert found == [{name: row[name] for name in names} for row in (ROW, NULLS)]


def test_a_time_that_arrow_cannot_read_from_orc_is_one_clear_error(tmp_path: Path) -> None:
    table = create(tmp_path, EVERY_TYPE)
    append_in(table, rows_of(ROW | {"ntz": dt.datetime(1500, 1, 1)}), "orc")
    opened = penstock.iceberg(table.metadata_location)
    assert opened.arrow(columns=["id", "d"]).to_pylist() == [{"id": 1, "d": ROW["d"]}]
    with pytest.raises(LakeError, match="it has a time before 1677 or after 2262; read it by dataframe"):
        opened.arrow(columns=["ntz"])


def test_nan_in_the_bounds_of_a_file_proves_nothing(tmp_path: Path) -> None:
    """ORC's own statistics have NaN as both bounds where the first value is NaN; some writers take them over."""
    table = create(tmp_path, EVERY_TYPE)
    nan, zero = struct.pack("<d", math.nan), struct.pack("<d", 0.0)
    rows = rows_of(NULLS | {"x": math.nan}, NULLS | {"x": -7.0, "id": 3})
    append_in(table, rows, "orc", lower_bounds={10: nan}, upper_bounds={10: nan})
    append_in(table, rows_of(NULLS | {"x": -0.0, "id": 4}), "orc", lower_bounds={10: zero}, upper_bounds={10: zero})
    opened = penstock.iceberg(table.metadata_location)
    expected = {"x < -5": [3], "x > 5": [2], "x = double('NaN')": [2], "x = 0": [4], "x = -0.0D": [4], "x <> 0": [2, 3]}
    assert {where: ids_of(opened, where) for where in expected} == expected
    kept = {where: len(opened.plan(where).files) for where in expected}
    assert kept == {"x < -5": 1, "x > 5": 2, "x = double('NaN')": 2, "x = 0": 2, "x = -0.0D": 2, "x <> 0": 2}


def test_a_file_of_another_format_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = simple(tmp_path, "orc")
    task = penstock.iceberg(table.metadata_location).plan().files[0]
    Path(task.path.removeprefix("file://")).write_bytes(b"no ORC file")
    with pytest.raises(LakeError, match="cannot be read") as error:
        penstock.iceberg(table.metadata_location).arrow()
    assert "\n" not in str(error.value)
