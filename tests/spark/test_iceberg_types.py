"""Types that were widened, values and defaults that are only in metadata, and types that Spark has no word for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.errors import LakeError
from tests.fixtures.iceberg_deletes import rewritten
from tests.fixtures.iceberg_files import ID, add_file
from tests.fixtures.iceberg_tables import create, repartition
from tests.spark.hive_layouts import read_by
from tests.spark.iceberg_layouts import ask, both_readers, opened, same_as_pyiceberg, small, texts

pytestmark = [pytest.mark.spark, pytest.mark.compiled, pytest.mark.usefixtures("utc")]


def test_widened_types(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {"id": pa.int64(), "i": pa.int32(), "f": pa.float32(), "p": pa.decimal128(5, 2)}
    narrow = pa.table(
        [[1, 2, 3], [5, -5, None], [1.5, -1.5, None], [Decimal("1.50"), Decimal("-1"), None]], pa.schema(kinds)
    )
    table = small(create(tmp_path, narrow.schema))
    table.append(narrow)
    with table.update_schema() as update:
        update.update_column("i", iceberg.LongType())
        update.update_column("f", iceberg.DoubleType())
        update.update_column("p", iceberg.DecimalType(20, 2))
    wide = {"id": pa.int64(), "i": pa.int64(), "f": pa.float64(), "p": pa.decimal128(20, 2)}
    table.append(pa.table([[4], [2**40], [1e300], [Decimal("123456789012.34")]], pa.schema(wide)))

    def check() -> None:
        same_as_pyiceberg(spark, opened(tmp_path))
        for where in (
            "i = 5", "i > 3000000000", "i < 3000000000", "i IN (5, 1099511627776)", "f = 1.5", "f > 1e200",
            "p = 1.50", "p > 1000", "p < 1000", "i IS NULL",
        ):  # fmt: skip
            ask(spark, opened(tmp_path), where)

    both_readers(spark, check)


def test_identity_columns_that_were_widened_or_renamed(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3, 4]), "i": pa.array([5, 6, None, 5], pa.int32())})
    table = create(tmp_path, rows.schema, ["i"])
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("i", iceberg.LongType())
        update.rename_column("i", "wide")
    table.append(pa.table({"id": pa.array([5]), "wide": pa.array([2**40])}))
    same_as_pyiceberg(spark, opened(tmp_path))
    assert ask(spark, opened(tmp_path), "wide = 5").files == 1
    assert ask(spark, opened(tmp_path), "wide > 3000000000").ids == [5]


def test_values_that_are_only_in_metadata_come_from_there(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(8)), "app": ["a", "b"] * 4, "n": pa.array([1, 2] * 4)})
    table = create(tmp_path, rows.schema, ["app"])
    table.append(rows.slice(0, 4))
    for file in (tmp_path / "web" / "t" / "data").rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop(["app"]), file)
    rewritten(table, lambda path: path, file_size_in_bytes=_one_size(tmp_path))
    repartition(table, ["n"])
    table.append(rows.slice(4))
    repartition(table, [])
    table.append(rows.slice(0, 1))
    for where in ("app = 'a'", "app IS NULL", "app <> 'a'", "n = 1 AND app = 'b'", "app = 'b'", "TRUE"):
        ask(spark, opened(tmp_path), where)
    same_as_pyiceberg(spark, opened(tmp_path))
    assert opened(tmp_path).dataframe(spark).where("app IS NULL").count() == 0


def test_required_columns_that_are_only_in_metadata_come_from_there(spark: SparkSession, tmp_path: Path) -> None:
    app = iceberg.NestedField(2, "app", iceberg.StringType(), required=True)
    table = create(tmp_path, Schema(iceberg.NestedField(1, "id", iceberg.LongType()), app), ["app"])
    for i, value in enumerate("ab"):
        add_file(table, pa.table({"id": [i]}, schema=pa.schema([ID])), Record(value))
    for where in ("app = 'a'", "app IS NULL", "app <> 'a'", "TRUE"):
        ask(spark, opened(tmp_path), where)
    assert opened(tmp_path).dataframe(spark).where("app = 'b'").collect() == [(1, "b")]


def _one_size(root: Path) -> int:
    found = {file.stat().st_size for file in (root / "web" / "t" / "data").rglob("*.parquet")}
    assert len(found) == 1
    return found.pop()


def with_fields(table: Table, change: Callable[[list[dict[str, Any]]], None]) -> Any:
    """The table with another schema in its metadata, as one of format version 3: PyIceberg cannot add defaults."""
    told = json.loads(table.metadata.model_dump_json())
    schema = json.loads(json.dumps(told["schemas"][-1]))
    change(schema["fields"])
    schema["schema-id"] = told["current-schema-id"] = len(told["schemas"])
    told["schemas"].append(schema)
    told |= {"format-version": 3, "next-row-id": 0, "last-column-id": 40}
    path = Path(table.location().removeprefix("file://")) / "metadata" / f"{uuid.uuid4().hex}.metadata.json"
    path.write_text(json.dumps(told))
    return penstock.iceberg(path)


DEFAULTS: list[tuple[str, Any, Any]] = [
    ("boolean", True, True),
    ("int", -5, -5),
    ("long", 2**40, 2**40),
    ("float", 1.5, 1.5),
    ("double", -2.5, -2.5),
    ("date", "2026-05-17", date(2026, 5, 17)),
    ("timestamp", "2026-05-17T10:11:12.000013", datetime(2026, 5, 17, 10, 11, 12, 13)),
    ("timestamptz", "2026-05-17T10:11:12.000013+00:00", datetime(2026, 5, 17, 10, 11, 12, 13, UTC)),
    ("string", 'it\'s \\ "q" ü', 'it\'s \\ "q" ü'),
    ("decimal(9, 2)", "14.20", Decimal("14.20")),
    ("binary", "00ff", b"\x00\xff"),
    ("fixed[2]", "00ff", b"\x00\xff"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
]


def test_defaults_of_every_type(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(4)), "st": [{"a": 1}, None, {"a": 2}, {"a": None}]})
    table = create(tmp_path, rows.schema)
    table.append(rows)

    def change(fields: list[dict[str, Any]]) -> None:
        for i, (kind, default, _) in enumerate(DEFAULTS):
            fields.append({"id": 10 + i, "name": f"c{i}", "type": kind, "required": False, "initial-default": default})
        inner = next(f for f in fields if f["name"] == "st")["type"]["fields"]
        inner.append({"id": 30, "name": "b", "type": "string", "required": False, "initial-default": "inside"})

    found = with_fields(table, change)

    def check() -> None:
        row = found.dataframe(spark).where("id = 0").first()
        spark_values = [row[f"c{i}"] for i in range(len(DEFAULTS))]
        for (kind, _, expected), value in zip(DEFAULTS, spark_values, strict=True):
            got = value.replace(tzinfo=UTC) if kind == "timestamptz" else value
            assert (bytes(got) if isinstance(got, bytearray) else got) == expected, kind
        assert texts([(r.st,) for r in found.dataframe(spark).collect()]) == texts(
            [({"a": 1, "b": "inside"},), (None,), ({"a": 2, "b": "inside"},), ({"a": None, "b": "inside"},)]
        )
        uuids = "c12 = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"
        for where, count in (("c1 = -5", 4), ("c8 IS NULL", 0), (uuids, 4), ("st.b = 'inside'", 3), ("c9 > 14.2", 0)):
            assert found.dataframe(spark).where(where).count() == count, where

    both_readers(spark, check)


def test_default_is_not_put_where_a_file_says_null(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(4)), "b": pa.array([b"x", None] * 2, pa.binary())})
    table = create(tmp_path, rows.schema)
    table.append(rows)
    table.append(rows)

    def change(fields: list[dict[str, Any]]) -> None:
        fields[1]["initial-default"] = "00ff"

    first = sorted((tmp_path / "web" / "t" / "data").rglob("*.parquet"))[0]
    size = first.stat().st_size
    data = pq.read_table(first).drop(["b"])
    pq.write_table(data, first)
    rewritten(table, lambda path: path)
    assert first.stat().st_size <= size
    found = with_fields(table, change)
    sizes = {path: Path(path.removeprefix("file://")).stat().st_size for path in found.plan().files.paths.to_pylist()}
    assert len(sizes) == 2
    rewritten_sizes(table, sizes)
    found = with_fields(table, change)
    values = sorted(repr(row.b and bytes(row.b)) for row in found.dataframe(spark).collect())
    assert values == sorted([repr(b"\x00\xff")] * 4 + [repr(b"x"), "None"] * 2)


def rewritten_sizes(table: Table, sizes: dict[str, int]) -> None:
    from tests.fixtures import iceberg_deletes as fixture

    make = fixture._entry
    fixture._entry = lambda file: {**make(file), "file_size_in_bytes": sizes[file.file_path]}
    try:
        rewritten(table, lambda path: path)
    finally:
        fixture._entry = make


UUIDS = [str(uuid.UUID(int=i * 2**100 + i)) for i in range(8)]


def uuid_table(root: Path, partition_by: list[str]) -> Table:
    field = iceberg.NestedField
    inner = iceberg.StructType(field(4, "v", iceberg.UUIDType()), field(5, "k", iceberg.LongType()))
    schema = Schema(
        field(1, "id", iceberg.LongType()),
        field(2, "u", iceberg.UUIDType()),
        field(3, "st", inner),
        field(6, "li", iceberg.ListType(7, iceberg.UUIDType(), False)),
        field(8, "fx", iceberg.FixedType(2)),
    )
    table = create(root, schema, partition_by)
    octets = [uuid.UUID(text).bytes for text in UUIDS]
    for part in (slice(0, 4), slice(4, 8)):
        ids = list(range(8))[part]
        values = as_uuids([octets[i] for i in ids])
        columns = [
            pa.array(ids),
            as_uuids([None if i == 3 else octets[i] for i in ids]),
            pa.StructArray.from_arrays([values, pa.array(ids)], ["v", "k"]),
            pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), values),
            pa.array([bytes([i, i]) for i in ids], pa.binary(2)),
        ]
        table.append(pa.table(columns, ["id", "u", "st", "li", "fx"]))
    return table


def as_uuids(octets: list[bytes | None] | list[bytes]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(octets, pa.binary(16)))


@pytest.mark.parametrize("partition_by", [[], ["bucket[4](u)"]])
def test_uuids_are_text_and_prune(spark: SparkSession, tmp_path: Path, partition_by: list[str]) -> None:
    uuid_table(tmp_path, partition_by)
    df = opened(tmp_path).dataframe(spark)
    rows = {row.id: row for row in df.collect()}
    assert [rows[i].u for i in range(8)] == [None if i == 3 else UUIDS[i] for i in range(8)]
    assert [(rows[i].st.v, rows[i].st.k, rows[i].li, bytes(rows[i].fx)) for i in range(8)] == [
        (UUIDS[i], i, [UUIDS[i]], bytes([i, i])) for i in range(8)
    ]
    questions: list[tuple[str, set[int]]] = [
        (f"u = '{UUIDS[5]}'", {5}),
        ("u IS NULL", {3}),
        (f"u > '{UUIDS[5]}'", {6, 7}),
        (f"u IN ('{UUIDS[0]}', '{UUIDS[6]}')", {0, 6}),
        (f"u LIKE '{UUIDS[1][:8]}%'", {1}),
        (f"st.v = '{UUIDS[2]}'", {2}),
        (f"li[0] = '{UUIDS[2]}' AND u <> '{UUIDS[1]}'", {2}),
    ]
    for where, ids in questions:
        query = df.where(where)
        assert {row.id for row in query.collect()} == ids, where
        if where.startswith("u"):
            assert read_by(query).total == len(opened(tmp_path).plan(where).files), where
    assert len(opened(tmp_path).plan(f"u = '{UUIDS[5]}'").files) == 1


@pytest.mark.parametrize("setting", ["enableVectorizedReader", "enableNestedColumnVectorizedReader"])
def test_uuids_inside_lists_by_the_row_reader_are_one_clear_line(
    spark: SparkSession, tmp_path: Path, setting: str
) -> None:
    uuid_table(tmp_path, [])
    df = opened(tmp_path).dataframe(spark)
    spark.conf.set(f"spark.sql.parquet.{setting}", "false")
    try:
        assert {row.u for row in df.select("u").collect()} == {*UUIDS, None} - {UUIDS[3]}
        assert {row.v for row in df.select("st.v").collect()} == set(UUIDS)
        for read in (DataFrame.collect, DataFrame.toArrow):
            with pytest.raises(LakeError, match="cannot read a uuid inside") as raised:
                read(df.select("li"))
            assert "enableVectorizedReader" in str(raised.value.hint)
    finally:
        spark.conf.unset(f"spark.sql.parquet.{setting}")


def test_time_columns_are_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path, Schema(iceberg.NestedField(1, "t", iceberg.TimeType())))
    with pytest.raises(LakeError, match="column t is a time, which Spark cannot read"):
        opened(tmp_path).dataframe(spark)
