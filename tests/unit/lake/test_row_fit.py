"""Rows that lack columns of the table, have more, or wider ones; PyIceberg and DuckDB read what was written."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType, UUIDType

from penstock.errors import SchemaError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.duckdb_reader import connect_duckdb
from tests.fixtures.managed_tables import files_below, head_id, local, managed_table, reopened

DDL = (
    "id bigint NOT NULL, app string, n int, f float, p decimal(9,2), place struct<city: string, zip: int>, "
    "tags array<struct<k: string, v: int>>, m map<string, struct<a: int>>"
)


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, DDL, ["app"])
    table.append(pa.table({"id": [1], "app": ["x"], "n": pa.array([7], pa.int32())}))
    return table


def row(id: int, **columns: Any) -> pa.Table:
    return pa.table({"id": [id], **{name: pa.array([value]) for name, value in columns.items()}})


def text(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as text; maps are lists of pairs, and floats are as exact as they were."""
    return [json.dumps(each, default=str, sort_keys=True) for each in rows]


def read(table: ManagedTable) -> list[dict[str, Any]]:
    """The rows as Penstock, PyIceberg and DuckDB all have them."""
    rows = table.arrow().sort_by("id")
    theirs = table.table.catalog.load_table(table.name)
    assert text(theirs.scan().to_arrow().sort_by("id").to_pylist()) == text(rows.to_pylist())
    metadata = local(theirs.metadata_location)
    duck = connect_duckdb().sql(f"SELECT * FROM iceberg_scan('{metadata}') ORDER BY id").to_arrow_table()
    assert text(duck.cast(rows.schema).to_pylist()) == text(rows.to_pylist())
    return rows.to_pylist()


def test_columns_that_rows_do_not_have_are_null(table: ManagedTable) -> None:
    table.append(pa.table({"id": [2], "place": pa.array([{"zip": 5}], pa.struct({"zip": pa.int32()}))}))
    table.append(pa.RecordBatchReader.from_batches((b := row(3, app="y")).schema, b.to_batches()))
    tags, maps = pa.list_(pa.struct({"v": pa.int32()})), pa.map_(pa.string(), pa.struct({"a": pa.int32()}))
    nested = {"tags": pa.array([[{"v": 1}, None]], tags), "m": pa.array([[("k", {"a": 3})]], maps)}
    table.append(pa.table({"id": [4], **nested}))
    rows = read(table)
    nothing = dict.fromkeys(table.schema.names)
    assert rows[0] == {**nothing, "id": 1, "app": "x", "n": 7}
    assert rows[1] == {**nothing, "id": 2, "place": {"city": None, "zip": 5}}
    assert rows[2] == {**nothing, "id": 3, "app": "y"}
    assert rows[3]["tags"] == [{"k": None, "v": 1}, None]
    assert rows[3]["m"] == [("k", {"a": 3})]


def test_an_overwrite_fills_in_null_too(table: ManagedTable) -> None:
    table.overwrite(row(2, app="x"), "app = 'x'")
    assert [(each["id"], each["app"], each["n"]) for each in read(table)] == [(2, "x", None)]
    table.overwrite(row(3))
    assert [(each["id"], each["app"]) for each in read(table)] == [(3, None)]
    table.overwrite(row(4), dynamic=True)
    assert [each["id"] for each in read(table)] == [4], "it replaces the partition of NULL"


def test_fields_of_structs_are_found_by_their_names(table: ManagedTable) -> None:
    kind = pa.struct({"ZIP": pa.int32(), "City": pa.string()})
    table.append(pa.table({"id": [2], "place": pa.array([{"ZIP": 5, "City": "Bonn"}], kind)}))
    assert read(table)[1]["place"] == {"city": "Bonn", "zip": 5}


def test_fields_with_odd_names_are_found_and_filled_in_too(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, s struct<`.dot`: string, `1st`: int, `a b`: array<struct<`c.d`: int>>>")
    inner = pa.struct({"a B": pa.list_(pa.struct({"C.d": pa.int32()})), ".DOT": pa.string()})
    table.append(pa.table({"id": [1], "s": pa.array([{".DOT": "x", "a B": [{"C.d": 5}]}], inner)}))
    assert table.arrow().to_pylist() == [{"id": 1, "s": {".dot": "x", "1st": None, "a b": [{"c.d": 5}]}}]


def test_a_partition_column_inside_a_struct_may_be_missing(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, place struct<city: string, zip: int>", ["place.city"])
    table.append(pa.table({"id": [1, 2], "place": pa.array([{"zip": 5}, None], pa.struct({"zip": pa.int32()}))}))
    table.append(row(3))
    assert [each["id"] for each in read(table)] == [1, 2, 3]
    assert len(table.plan("place.city IS NULL").files) == 2
    assert len(table.plan("place.city = 'Bonn'").files) == 0


def test_null_structs_with_required_fields_and_uuids_can_be_left_out(tmp_path: Path) -> None:
    inner = StructType(
        NestedField(4, "code", IntegerType(), required=True),
        NestedField(5, "in", StructType(NestedField(6, "s", StringType(), required=True)), required=True),
    )
    fields = [
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "u", UUIDType(), required=False),
        NestedField(3, "place", inner, required=False),
    ]
    table = managed_table(tmp_path, Schema(*fields), [])
    table.append(row(1))
    code = pa.struct({"code": pa.int32()})
    kind = pa.struct([*code, pa.field("in", pa.struct({"s": pa.string()}))])
    table.append(pa.table({"id": [2], "place": pa.array([{"code": 1, "in": {"s": "abc"}}], kind)}))
    assert table.arrow().sort_by("id").to_pylist() == [
        {"id": 1, "u": None, "place": None}, {"id": 2, "u": None, "place": {"code": 1, "in": {"s": "abc"}}},
    ]  # fmt: skip
    with pytest.raises(SchemaError, match=r"missing: place\.in struct<s:string>; select"):
        table.append(pa.table({"id": [3], "place": pa.array([{"code": 1}], code)}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (row(2, extra=1), "not in the table: extra; append with merge_schema=True to change the table, or select"),
        (row(2, place={"street": "x"}), r"not in the table: place\.street; append with merge_schema=True"),
        (row(2, tags=[{"w": 1}]), r"not in the table: tags\.element\.w; append with merge_schema=True"),
        (row(2, n=1), "n is a int and was given as bigint; append with merge_schema=True"),
        (row(2, f=1.5), "f is a float and was given as double; append with merge_schema=True"),
        (row(2, n="1", extra=1), "n is a int and was given as string; not in the table: extra; select and cast"),
        (pa.table({"n": pa.array([1], pa.int32()), "x": [1]}), "missing: id bigint; not in the table: x; select"),
        (row(2, app={"a": 1}), "app is a string and was given as struct<a:bigint>"),
        (row(2, place="x"), "place is a struct<city:string,zip:int> and was given as string"),
        (row(2, place={"zip": 1, "ZIP": 2}), "place is a struct<city:string,zip:int> and was given as struct"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(table: ManagedTable, tmp_path: Path, rows: Any, message: str) -> None:
    before = files_below(tmp_path)
    for write in (table.append, table.overwrite, lambda new: table.overwrite(new, dynamic=True)):
        with pytest.raises(SchemaError, match=message) as raised:
            write(rows)
        assert "\n" not in str(raised.value)
    assert files_below(tmp_path) == before


class TestMerge:
    def test_new_columns_are_added_and_types_widened_before_the_rows_are_written(self, table: ManagedTable) -> None:
        table.append(
            row(
                2, n=1 << 40, f=1e300, p=Decimal("12345678901.25"), place={"zip": 1 << 40, "street": "x"},
                tags=[{"v": 1, "w": [1]}], m=[], extra={"a": 1},
            ).drop_columns(["m"]),
            merge_schema=True,
        )  # fmt: skip
        assert len(table.table.metadata.schemas) == 2, "one change"
        kinds = {field.name: str(field.type) for field in table.schema}
        assert (kinds["n"], kinds["f"], kinds["p"]) == ("int64", "double", "decimal128(13, 2)")
        assert kinds["place"] == "struct<city: string, zip: int64, street: string>"
        assert kinds["extra"] == "struct<a: int64>"
        first, second = read(table)
        assert (first["n"], first["extra"], first["f"]) == (7, None, None)
        assert (second["n"], second["f"], second["p"]) == (1 << 40, 1e300, Decimal("12345678901.25"))
        assert second["place"] == {"city": None, "zip": 1 << 40, "street": "x"}
        assert second["tags"] == [{"k": None, "v": 1, "w": [1]}]
        assert len(table.plan("n = 1099511627776").files) == 1

    def test_a_table_that_has_all_columns_is_not_changed(self, table: ManagedTable) -> None:
        location = table.table.metadata_location
        table.append(row(2, n=None), merge_schema=True)
        assert len(table.table.metadata.schemas) == 1
        assert table.table.metadata_location != location, "the rows are there"
        assert table.count() == 2

    def test_narrower_rows_do_not_narrow_the_table(self, table: ManagedTable) -> None:
        table.append(row(2, n=1 << 40), merge_schema=True)
        narrow = pa.table({"id": pa.array([3], pa.int32()), "n": pa.array([1], pa.int16())})
        table.append(narrow, merge_schema=True)
        assert table.schema.field("n").type == pa.int64()
        assert [each["n"] for each in read(table)] == [7, 1 << 40, 1]

    def test_a_widened_partition_column_keeps_its_partitions(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, n int, p decimal(9,2)", ["n", "truncate(10, p)"])
        table.append(pa.table({"id": [1], "n": pa.array([5], pa.int32()), "p": [Decimal("1.25")]}).cast(table.schema))
        table.append(pa.table({"id": [2], "n": [5], "p": [Decimal("12345678901.25")]}), merge_schema=True)
        table.append(pa.table({"id": [3], "n": [1 << 40], "p": [Decimal("1.25")]}))
        read(table)
        assert [len(table.plan(where).files) for where in ("n = 5", "p = 1.25", "n = 1099511627776", "n = 6")] == [
            2, 2, 1, 0,
        ]  # fmt: skip
        table.compact()
        read(table)

    def test_a_coalesced_column_that_is_widened_still_shares_and_prunes(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, n int", ["n"], coalesce=["n"])
        table.append(pa.table({"id": [1, 2], "n": pa.array([5, 7], pa.int32())}))
        table.append(pa.table({"id": [3, 4], "n": [5, 1 << 40]}), merge_schema=True)
        assert [len(table.plan(f"n = {n}").files) for n in (5, 7, 6, 1 << 40)] == [2, 1, 0, 1]
        table.compact()
        assert [len(table.plan(f"n = {n}").files) for n in (5, 7, 6, 1 << 40)] == [1, 1, 0, 1]
        assert len(read(table)) == 4

    def test_a_shredded_map_whose_values_widen_keeps_its_hot_keys(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, m map<string,int>", shred={"m": ["k"]})
        narrow, wide = pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())
        table.append(pa.table({"id": [1], "m": pa.array([[("k", 1), ("z", 2)]], narrow)}))
        table.append(pa.table({"id": [2], "m": pa.array([[("k", 1 << 40)]], wide)}), merge_schema=True)
        table.append(pa.table({"id": [3]}))
        assert table.arrow("m['k'] = 1099511627776").column("id").to_pylist() == [2]
        assert table.arrow("m['k'] = 1").column("id").to_pylist() == [1]
        assert table.arrow("m IS NULL").column("id").to_pylist() == [3]

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (row(2, n="1", extra=1), "n is a int and was given as string; select and cast"),
            (row(2, extra=None), "new columns without a type, because all of their values are NULL: extra"),
            (row(2, p=Decimal("1.2345"), extra=1), r"p is a decimal\(9,2\) and was given as decimal\(5,4\)"),
            (pa.table({"n": [1 << 40], "extra": [1]}), "missing: id bigint"),
            (row(2, __map_shred_m_0=1, extra=1), "is called like a sidecar"),
            (pa.table({"id": pa.array([None], pa.int64()), "extra": [1]}), "column 'id' is required and 1 of the rows"),
            (row(2, extra=dt.timedelta(1)), "column extra is of type duration.*, which tables do not have"),
            (row(2, extra={"a": 1, "A": 2}), "the fields 'a' and 'A' of extra have the same name"),
            ([{"id": 2}], "found list"),
        ],
    )
    def test_what_cannot_be_merged_changes_nothing(
        self, table: ManagedTable, tmp_path: Path, rows: Any, message: str
    ) -> None:
        before, head = files_below(tmp_path), head_id(table)
        with pytest.raises(Exception, match=message) as raised:
            table.append(rows, merge_schema=True)
        assert "\n" not in str(raised.value)
        table.refresh()
        assert (files_below(tmp_path), head_id(table), len(table.table.metadata.schemas)) == (before, head, 1)

    def test_two_writers_that_bring_the_same_column_add_it_once(self, table: ManagedTable, tmp_path: Path) -> None:
        other = reopened(tmp_path)
        with table.change_schema() as change:
            change.merge_columns(row(2, extra=1, mine=1).schema)
            other.append(row(3, extra=1), merge_schema=True)
        assert table.schema.names[-2:] == ["extra", "mine"]
        assert [each["extra"] for each in read(table)] == [None, 1]

    def test_lists_of_a_fixed_length_are_lists(self, table: ManagedTable) -> None:
        pairs = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2))
        table.append(pa.table({"id": [2, 3, 4], "pair": pairs}), merge_schema=True)
        table.append(pa.table({"id": [5], "pair": pairs.slice(2)}))
        assert [each["pair"] for each in read(table)] == [None, [1, 2], None, [3, None], [3, None]]
