"""Tables as other engines write and migrate them: what PyIceberg's own append would never produce."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from penstock.errors import LakeError
from tests.differential.iceberg_checks import check, ids, opened
from tests.fixtures.iceberg_deletes import delete_equal
from tests.fixtures.iceberg_files import ID, add_file, with_id
from tests.fixtures.iceberg_tables import append_by_hand, create, repartition, write_iceberg


class TestDeletes:
    def test_equality_deletes_of_a_spec_of_void_fields_apply_to_every_partition(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2, 3], "app": ["a", "b", None]}), ["app"], version=1)
        repartition(table, [])
        with table.transaction() as transaction:
            transaction.upgrade_table_version(2)
        table = table.refresh()
        assert [str(field.transform) for field in table.spec().fields] == ["void"]
        append_by_hand(table, pa.table({"id": [4, 5], "app": ["a", "b"]}))
        delete_equal(table, pa.table({"id": [1, 3, 4]}), [1], spec_id=table.spec().spec_id, partition=Record(None))
        append_by_hand(table, pa.table({"id": [1], "app": ["a"]}))
        found = opened(tmp_path)
        assert ids(found.arrow()) == [1, 2, 5]
        assert found.count("app = 'a'") == 1
        assert [len(task.deletes) for task in found.plan("app = 'b'").files] == [1, 1]

    def test_equality_deletes_by_text_apply_to_files_that_lack_the_column(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2]}), [])
        with table.update_schema() as update:
            update.add_column("s", StringType())
        append_by_hand(table, pa.table({"id": [3, 4], "s": ["a", "b"]}))
        delete_equal(table, pa.table({"id": [2, 3], "s": pa.array([None, "a"])}), [1, 2])
        assert ids(opened(tmp_path).arrow()) == [1, 4]

    @pytest.mark.parametrize(("columns", "message"), [([], "name no columns"), ([2], "on nested columns")])
    def test_equality_deletes_without_plain_columns_are_refused(
        self, tmp_path: Path, columns: list[int], message: str
    ) -> None:
        inside = pa.struct({"x": pa.int32()})
        table = write_iceberg(tmp_path, pa.table({"id": [1], "s": pa.array([{"x": 1}], inside)}), [])
        delete_equal(table, pa.table({"s": pa.array([{"x": 1}], inside)}).select(["s"] * len(columns)), columns)
        with pytest.raises(LakeError, match=message):
            opened(tmp_path).arrow()


class TestCounts:
    """A field of a struct has no value where the struct is NULL, and some writers do not count one there."""

    ROWS = ({"x": 1.0}, None, {"x": 3.0})

    def write(self, root: Path, values: int, nulls: int) -> Path:
        kind = StructType(NestedField(3, "x", DoubleType(), required=True))
        table = create(root, Schema(NestedField(1, "id", LongType()), NestedField(2, "s", kind)))
        inside = pa.struct([with_id("x", pa.float64(), 3)])
        schema = pa.schema([ID, with_id("s", inside, 2)])
        rows = pa.table([pa.array([1, 2, 3]), pa.array(self.ROWS, inside)], schema=schema)
        bounds = {"lower_bounds": {3: struct.pack("<d", 1.0)}, "upper_bounds": {3: struct.pack("<d", 3.0)}}
        counts = {"value_counts": {3: values}, "null_value_counts": {3: nulls}, "nan_value_counts": {3: 0}}
        return add_file(table, rows, Record(), **counts, **bounds)

    @pytest.mark.parametrize(("values", "nulls"), [(2, 0), (3, 1)])
    @pytest.mark.parametrize("where", ["s.x IS NULL", "s.x > 0", "s.x IS NOT NULL", "s.x > 3", "NOT (s.x > 0)"])
    def test_rows_without_a_value_are_null(self, tmp_path: Path, values: int, nulls: int, where: str) -> None:
        path = self.write(tmp_path, values, nulls)
        expected = [i for (i,) in duckdb.sql(f"SELECT id FROM '{path}' WHERE {where} ORDER BY id").fetchall()]
        found = opened(tmp_path)
        assert ids(found.arrow(where)) == expected
        assert found.count(where) == len(expected)
        assert len(found.plan(where).files) == (0 if where in ("s.x > 3", "NOT (s.x > 0)") else 1)

    def test_rows_without_a_value_leave_a_field_that_is_null_elsewhere_all_null(self, tmp_path: Path) -> None:
        self.write(tmp_path, 2, 2)
        assert len(opened(tmp_path).plan("s.x IS NOT NULL").files) == 0

    def test_a_negative_record_count_is_no_count(self, tmp_path: Path) -> None:
        table = create(tmp_path, Schema(NestedField(1, "id", LongType())))
        add_file(table, pa.table({"id": [1, 2]}, schema=pa.schema([ID])), Record(), record_count=-1)
        found = opened(tmp_path)
        assert found.count() == 2
        assert ids(found.arrow(limit=1)) == [1]


MIGRATED: Mapping[str, tuple[Any, Any, Any, str]] = {
    "string": (StringType(), "a", "a", "'a'"),
    "int": (IntegerType(), 7, 7, "7"),
    "boolean": (BooleanType(), True, True, "true"),
    "date": (DateType(), -1, dt.date(1969, 12, 31), "DATE'1969-12-31'"),
    "timestamp": (TimestampType(), -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), "'1969-12-31 23:59:59.999999'"),
    "timestamptz": (TimestamptzType(), 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "'1970-01-01 00:00:00Z'"),
    "decimal": (DecimalType(38, 2), Decimal("9" * 36 + ".99"), Decimal("9" * 36 + ".99"), "9" * 36 + ".99"),
    "binary": (BinaryType(), b"\xff\x00", b"\xff\x00", "X'FF00'"),
    "fixed": (FixedType(2), b"\xff\x00", b"\xff\x00", "X'FF00'"),
    "uuid": (
        UUIDType(),
        UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
    ),
}


class TestMigratedTables:
    @pytest.mark.parametrize("required", [True, False])
    @pytest.mark.parametrize("name", MIGRATED)
    def test_partition_columns_that_files_lack_come_from_the_partition(
        self, tmp_path: Path, name: str, required: bool
    ) -> None:
        kind, stored, shown, literal = MIGRATED[name]
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", kind, required=required))
        table = create(tmp_path, schema, ["p"])
        add_file(table, pa.table({"id": [1, 2]}, schema=pa.schema([ID])), Record(stored))
        found = opened(tmp_path)
        assert found.arrow("id = 2").to_pylist() == [{"id": 2, "p": shown}]
        check(found, f"p = {literal}", [1, 2], 1)
        check(found, f"p <> {literal}", [], 0)


class TestNameMappings:
    @pytest.mark.parametrize("mapping", [None, '[{"field-id": 1, "names": ["id"]}]', '[{"names": ["id"]}]', "{"])
    def test_a_mapping_that_does_not_name_all_columns_is_to_be_completed(
        self, tmp_path: Path, mapping: str | None
    ) -> None:
        table = create(tmp_path, Schema(NestedField(1, "id", LongType()), NestedField(2, "n", LongType())))
        if mapping is not None:
            with table.transaction() as transaction:
                transaction.set_properties({"schema.name-mapping.default": mapping})
        path = add_file(table, pa.table({"id": [1], "n": [2]}), Record())
        with pytest.raises(LakeError, match=r"no field ids: name all its columns in .*schema\.name-mapping") as caught:
            opened(tmp_path).arrow()
        assert path.name in str(caught.value)
        assert "damaged" not in str(caught.value)
