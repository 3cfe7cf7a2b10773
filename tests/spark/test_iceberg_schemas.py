"""Schemas that changed: a column is its field id, whatever it was called, and no other column's statistics skip it.

Row groups have four rows, so that a filter pushed to the wrong column's statistics would lose rows at once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyspark.sql import SparkSession

import penstock
from penstock.errors import LakeError
from penstock.spark.iceberg_columns import Shape
from penstock.spark.iceberg_names import names_by_id
from tests.fixtures.iceberg_deletes import rewritten
from tests.fixtures.iceberg_tables import create, repartition
from tests.spark.hive_layouts import read_by
from tests.spark.iceberg_layouts import ask, opened, same_as_pyiceberg, texts

pytestmark = pytest.mark.spark
SMALL = {"write.parquet.row-group-limit": "4", "write.parquet.page-row-limit": "4"}
WHERE = [
    "{} = 5",
    "{} < 3",
    "{} IS NULL",
    "{} IS NOT NULL",
    "{} IN (5, 105)",
    "NOT ({} = 5)",
    "{} > 100",
    "{} <=> NULL",
]


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _utc(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def small(table: Table) -> Table:
    with table.transaction() as change:
        change.set_properties(SMALL)
    return table


def numbers(start: int, *names: str, step: int = 100) -> pa.Table:
    """Twelve rows; the columns hold numbers that are far apart."""
    return pa.table({name: pa.array(range(start + i * step, start + i * step + 12)) for i, name in enumerate(names)})


def both_readers(spark: SparkSession, check: Callable[[], None]) -> None:
    for vectorised in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
        try:
            check()
        finally:
            spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def all_filters(spark: SparkSession, root: Path, *columns: str) -> None:
    def check() -> None:
        same_as_pyiceberg(spark, opened(root))
        for column in columns:
            for where in WHERE:
                ask(spark, opened(root), where.format(column), exact=False)

    both_readers(spark, check)


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


def test_time_columns_are_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path, Schema(iceberg.NestedField(1, "t", iceberg.TimeType())))
    with pytest.raises(LakeError, match="column t is a time, which Spark cannot read"):
        opened(tmp_path).dataframe(spark)


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


def test_nested_fields_of_files_without_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, nested_rows("x", "y").schema)
    table.append(nested_rows("x", "y"))
    pq.write_table(nested_rows("x", "y"), tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path / 'other.parquet'}"])
    same_as_pyiceberg(spark, opened(tmp_path))
    ask(spark, opened(tmp_path), "st.x = 5 AND id > 2")


def test_file_without_ids_and_without_a_mapping_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, numbers(0, "id", "a").schema)
    pq.write_table(numbers(0, "id", "a"), tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path / 'other.parquet'}"])
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(LakeError, match=r"other.parquet has no field ids, and the table has no name mapping"):
        opened(tmp_path).dataframe(spark).collect()
