"""Columns added, renamed, dropped, widened, moved and commented, in one commit each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import penstock
from penstock.errors import ConflictError, SchemaError
from penstock.lake.write import writes

DDL = "ts timestamp, app string, n int, place struct<city: string, zip: int>, headers map<string,string>"


@pytest.fixture
def table(tmp_path: Path) -> Any:
    lake = penstock.connect(tmp_path / "lake")
    rules: Any = {"coalesce": ["app"], "shred": {"headers": ["k"]}}
    table = lake.create_table("web.events", DDL, ["day(ts)", "app"], **rules)
    table.append(rows(table, [("a", 1), ("b", 2)]))
    return table


def rows(table: Any, values: list[tuple[str, int]]) -> pa.Table:
    documents = [{"app": app, "n": n, "place": {"city": app, "zip": n}, "headers": [("k", app)]} for app, n in values]
    return pa.Table.from_pylist(documents, table.schema)


def test_rows_that_exist_have_null_in_a_new_column(table: Any) -> None:
    with table.change_schema() as schema:
        schema.add_column(("extra",), pa.float64(), comment="more")
        schema.move_column(("extra",), after="app")
    assert table.schema.names == ["ts", "app", "extra", "n", "place", "headers"]
    assert table.arrow("extra IS NULL").num_rows == 2
    assert table.comments() == {"extra": "more"}


def test_nested_fields_are_columns_too(table: Any) -> None:
    with table.change_schema() as schema:
        schema.add_column(("place", "street"), pa.string())
        schema.rename_column(("place", "zip"), "code")
        schema.drop_column(("place", "city"))
    assert [field.name for field in table.schema.field("place").type] == ["code", "street"]
    assert table.arrow("place.code = 2").column("app").to_pylist() == ["b"]


def test_rules_and_pruning_follow_a_renamed_column(table: Any) -> None:
    with table.change_schema() as schema:
        schema.rename_column(("app",), "application")
        schema.rename_column(("headers",), "labels")
    assert table.coalesce.columns == ("application",)
    assert table.arrow("application = 'a' AND labels['k'] = 'a'").num_rows == 1
    table.append(table.arrow().slice(0, 1))
    table.compact()
    assert table.count() == 3
    assert table.plan("application = 'nope'").report.files.kept == 0


def test_widened_columns_keep_their_values(table: Any) -> None:
    with table.change_schema() as schema:
        schema.widen_column(("n",), pa.int64())
    assert table.schema.field("n").type == pa.int64()
    assert sorted(table.arrow(columns=["n"]).column("n").to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda schema: schema.drop_column(("app",)), "web.events is partitioned by app"),
        (lambda schema: schema.drop_column(("ts",)), "web.events is partitioned by ts"),
        (lambda schema: schema.drop_column(("headers",)), "keys of headers have columns of their own"),
        (lambda schema: schema.drop_column(("nope",)), "web.events has no column 'nope'"),
        (lambda schema: schema.rename_column(("nop",), "x"), "web.events has no column 'nop'"),
        (lambda schema: schema.widen_column(("n",), pa.string()), "n is int and cannot become string; int becomes"),
        (lambda schema: schema.add_column(("n",), pa.int32()), "web.events has a column 'n' already"),
        (lambda schema: schema.add_column(("m",), pa.int32(), nullable=False), "column m is NOT NULL"),
        (lambda schema: schema.set_nullable(("n",), nullable=False), "n cannot become NOT NULL"),
        (lambda schema: schema.move_column(("n",), after="nope"), "web.events has no column 'nope'"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(table: Any, change: Any, message: str) -> None:
    before = table.schema

    def several() -> None:
        with table.change_schema() as schema:
            schema.add_column(("first",), pa.int32())
            change(schema)

    with pytest.raises(SchemaError, match=message) as raised:
        several()
    assert "\n" not in str(raised.value)
    assert table.refresh().schema == before


def test_a_column_may_be_missing_when_it_is_dropped_if_it_exists(table: Any) -> None:
    with table.change_schema() as schema:
        schema.drop_column(("nope",), missing_ok=True)
        schema.drop_column(("n",))
    assert "n" not in table.schema.names


def test_another_snapshot_is_read_with_the_schema_that_it_had(table: Any) -> None:
    before = table.version.snapshot_id
    with table.change_schema() as schema:
        schema.drop_column(("n",))
    table.append(table.arrow())
    assert "n" in table.at(before).schema.names
    assert sorted(table.at(before).arrow(columns=["n"]).column("n").to_pylist()) == [1, 2]


def test_columns_are_added_to_a_table_of_version_1_whose_default_spec_names_a_dropped_column(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table: Any = lake.create_table("web.old", "id bigint, app string", ["app"], properties={"format-version": "1"})
    table.append(pa.table({"id": pa.array([1], pa.int64()), "app": ["x"]}))
    with table.table.update_spec() as spec:
        spec.remove_field("app")
    table.refresh()
    with table.table.update_schema(allow_incompatible_changes=True) as dropped:
        dropped.delete_column("app")
    table.refresh()
    with table.change_schema() as schema:
        schema.add_column(("n",), pa.int64())
    assert table.arrow().to_pylist() == [{"id": 1, "n": None}]


class TestMethodsOfTheTable:
    def test_each_is_one_commit(self, table: Any) -> None:
        schemas = len(table.table.metadata.schemas)
        table.add_column("extra", "decimal(10,2)", comment="more", after="app")
        table.add_column("place.street", "string", first=True)
        table.rename_column("place.zip", "code")
        table.widen_column("N", "bigint")
        table.move_column("n", first=True)
        table.move_column("place.code", after="street")
        table.comment_column("place.code", "the postcode")
        table.drop_column("place.city")
        assert table.schema.names == ["n", "ts", "app", "extra", "place", "headers"]
        assert [field.name for field in table.schema.field("place").type] == ["street", "code"]
        assert len(table.table.metadata.schemas) == schemas + 8
        assert sorted(table.arrow("place.code = 2").column("n").to_pylist()) == [2]
        assert table.arrow("extra IS NULL AND place.street IS NULL").num_rows == 2

    @pytest.mark.parametrize("kind", ["bigint", pa.int64(), LongType()])
    def test_types_are_text_or_arrows_or_icebergs(self, table: Any, kind: Any) -> None:
        table.add_column("x", kind)
        table.widen_column("n", kind)
        assert (table.schema.field("x").type, table.schema.field("n").type) == (pa.int64(), pa.int64())

    def test_names_with_dots_stand_in_backticks(self, table: Any) -> None:
        table.add_column("`a.b`", "struct<`c d`: int>")
        table.add_column("`a.b`.`e f`", "string")
        assert [field.name for field in table.schema.field("a.b").type] == ["c d", "e f"]
        table.rename_column("a.b", "ab")
        assert "ab" in table.schema.names

    def test_lists_and_maps_have_parts(self, table: Any) -> None:
        table.add_column("tags", "array<struct<k: int>>")
        table.add_column("counts", "map<string,int>")
        table.add_column("tags.element.v", "int")
        table.widen_column("counts.value", "bigint")
        assert str(table.schema.field("counts").type.item_type) == "int64"
        assert [field.name for field in table.schema.field("tags").type.value_type] == ["k", "v"]

    def test_changes_of_a_block_see_those_before_them_and_are_one_schema(self, table: Any) -> None:
        schemas = len(table.table.metadata.schemas)
        with table.change_schema() as change:
            change.add_column("place.street", "string")
            change.rename_column("n", "m")
            change.add_column("n", "string", first=True)
            change.rename_column("place", "address")
            change.move_column("address.street", first=True)
            change.add_column("gone", "int")
            change.drop_column("gone")
            change.widen_column("m", "bigint")
        assert table.schema.names == ["n", "ts", "app", "m", "address", "headers"]
        assert [field.name for field in table.schema.field("address").type] == ["street", "city", "zip"]
        assert len(table.table.metadata.schemas) == schemas + 1
        assert sorted(table.arrow().column("m").to_pylist()) == [1, 2]
        assert set(table.arrow().column("n").to_pylist()) == {None}

    def test_a_change_that_comes_back_is_the_schema_that_it_was(self, table: Any) -> None:
        before = table.table.metadata.current_schema_id
        table.rename_column("n", "m")
        table.rename_column("m", "n")
        assert table.table.metadata.current_schema_id == before

    def test_nothing_is_committed_when_nothing_changes(self, table: Any) -> None:
        location = table.table.metadata_location
        with table.change_schema() as change:
            change.rename_column("n", "n")
            change.widen_column("n", "int")
            change.add_column("x", "int")
            change.drop_column("x")
        assert table.refresh().table.metadata_location == location

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda table: table.add_column("x", "bigin"), "unknown type 'bigin'; did you mean bigint"),
            (lambda table: table.add_column("x", "int, y int"), "column x: 2 types are given"),
            (lambda table: table.add_column("x", "int NOT NULL"), "column x is NOT NULL"),
            (lambda table: table.add_column("x", 5), "5 is no type"),
            (lambda table: table.add_column("", "int"), "invalid column name"),
            (lambda table: table.add_column("a..b", "int"), "invalid column name"),
            (lambda table: table.add_column("nope.x", "int"), "web.events has no column 'nope'"),
            (lambda table: table.add_column("app.x", "int"), "web.events: .*non-struct type: app"),
            (lambda table: table.add_column("APP", "int"), "web.events has a column 'APP' already"),
            (lambda table: table.add_column("__map_shred_headers_7", "int"), "is called like a sidecar"),
            (lambda table: table.rename_column("n", "__map_shred_headers_7"), "is called like a sidecar"),
            (lambda table: table.rename_column("n", "App"), "web.events has a column 'App' already"),
            (lambda table: table.rename_column("n", ""), "a column needs a name"),
            (lambda table: table.drop_column("__map_shred_headers_0"), "has no column '__map_shred_headers_0'"),
            (lambda table: table.move_column("n"), "a column is moved to one place"),
            (lambda table: table.move_column("n", after="n"), "n cannot stand behind itself"),
            (lambda table: table.widen_column("app", "int"), "app"),
            (lambda table: table.comment_column("nope", "x"), "web.events has no column 'nope'"),
            (lambda table: table.widen_column("app", "binary"), "app is string and cannot become binary"),
            (lambda table: table.widen_column("n", "decimal(10,0)"), "n is int and cannot become decimal"),
            (lambda table: table.drop_column("place.zap"), r"no column 'place\.zap'; did you mean 'zip'"),
            (lambda table: table.drop_column(5), "invalid column name 5"),
            (lambda table: table.rename_column("n", 5), "a column needs a name"),
            (lambda table: table.rename_column("place.zip", "place.code"), "invalid new name 'place.code'"),
            (lambda table: table.rename_column("headers.key", "k"), "headers.key is a part of a list or a map"),
            (lambda table: table.comment_column("headers.value", "x"), "headers.value is a part of a list or a map"),
            (
                lambda table: table.add_column("d", "struct<a: int, A: int>"),
                "the fields 'a' and 'A' of d have the same",
            ),
            (lambda table: table.add_column("d", "array<struct<a: int, A: int>>"), "fields 'a' and 'A' of d.element"),
            (lambda table: table.add_column("d", pa.struct([])), "d is a struct without fields"),
            (lambda table: table.add_column("d", pa.duration("s")), "column d is of type duration.s., which tables do"),
            (lambda table: table.add_column("d", pa.list_(pa.null())), "column d is of type list"),
            (lambda table: table.add_column("d", "int DEFAULT 5"), "d has DEFAULT 5; only NOT NULL and COMMENT"),
            (lambda table: table.add_column("ts_day", "int"), "a partition field 'ts_day' of another column"),
            (lambda table: table.rename_column("n", "ts_day"), "a partition field 'ts_day' of another column"),
            (lambda table: table.add_partition_field("void(n)"), "keeps no value of the column"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, table: Any, change: Any, message: str) -> None:
        before = table.table.metadata_location
        with pytest.raises(SchemaError, match=message) as raised:
            change(table)
        assert "\n" not in str(raised.value)
        assert table.refresh().table.metadata_location == before

    def test_a_struct_with_a_shredded_map_or_a_column_of_an_older_spec_stays(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path / "other")
        table: Any = lake.create_table(
            "web.t", "id int, app string, s struct<m: map<string,string>>", ["app"], shred={"s.m": ["k"]}
        )
        with pytest.raises(SchemaError, match=r"keys of s\.m have columns of their own"):
            table.drop_column("s")
        table.append(pa.table({"id": pa.array([1], pa.int32())}))
        table.drop_partition_field("app")
        with pytest.raises(
            SchemaError, match=r"web\.t was partitioned by app, and files of that time need it; compact"
        ):
            table.drop_column("app")

    def test_new_names_are_written_as_all_names_are(self, table: Any) -> None:
        table.rename_column("n", "`a.b`")
        table.rename_column("place.zip", "`c``d`")
        assert table.schema.names[2] == "a.b"
        assert [field.name for field in table.schema.field("place").type] == ["city", "c`d"]
        assert table.count("`a.b` = 2") == 1

    def test_a_comment_behind_the_type_is_the_columns(self, table: Any) -> None:
        table.add_column("x", "int COMMENT 'five'")
        table.add_column("y", "int COMMENT 'this'", comment="that")
        assert table.comments() == {"x": "five", "y": "that"}

    def test_the_last_field_of_a_struct_stays(self, table: Any) -> None:
        table.drop_column("place.city")
        with pytest.raises(SchemaError, match="place is a struct without fields"):
            table.drop_column("place.zip")
        table.append(rows(table, []).slice(0, 0))
        table.drop_column("place")

    def test_a_column_in_the_place_of_a_renamed_partition_column_needs_another_name(self, table: Any) -> None:
        table.rename_column("app", "application")
        with pytest.raises(SchemaError, match="has, or had, a partition field 'app' of another column"):
            table.add_column("app", "string")
        table.rename_column("application", "app")
        assert table.plan("app = 'a'").report.files.kept == 1

    def test_in_format_version_1_a_column_of_a_dropped_partition_field_stays(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path / "other")
        table: Any = lake.create_table("web.t", "id int, app string", ["app"], properties={"format-version": "1"})
        table.drop_partition_field("app")
        with pytest.raises(SchemaError, match="the column stays: tables of format version 1 never lose a partition"):
            table.drop_column("app")

    def test_columns_that_other_engines_sort_or_identify_rows_by_stay(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path / "other")
        lake.create_namespace("web")
        schema = Schema(
            NestedField(1, "id", LongType(), required=True),
            NestedField(2, "app", StringType()),
            identifier_field_ids=[1],
        )
        order = SortOrder(SortField(source_id=2, transform=IdentityTransform()))
        lake.catalog.create_table("web.t", schema, sort_order=order)
        table: Any = lake.table("web.t")

        def nullable() -> None:
            with table.change_schema() as change:
                change.set_nullable("id")

        for change in (lambda: table.drop_column("id"), nullable):
            with pytest.raises(SchemaError, match=r"id is an identifier field of web\.t"):
                change()
        with pytest.raises(SchemaError, match=r"app is in the sort order of web\.t"):
            table.drop_column("app")
        table.rename_column("id", "number")
        assert table.table.catalog.load_table("web.t").schema().identifier_field_names() == {"number"}

    @pytest.mark.parametrize("change", ["rename", "drop", "swap"])
    def test_values_of_files_without_field_ids_do_not_move_to_another_column(self, tmp_path: Path, change: str) -> None:
        table: Any = penstock.connect(tmp_path / "other").create_table("web.t", "id bigint, a string, b string")
        path = tmp_path / "adopted.parquet"
        pq.write_table(pa.table({"id": [1], "a": ["old"], "b": ["other"]}), path)
        table.table.add_files([str(path)])
        steps: dict[str, list[Any]] = {
            "rename": [lambda: table.rename_column("a", "c"), lambda: table.add_column("a", "string")],
            "drop": [lambda: table.drop_column("a"), lambda: table.add_column("a", "string")],
            "swap": [lambda: table.rename_column("a", "c"), lambda: table.rename_column("b", "a")],
        }
        first, second = steps[change]
        first()
        before = table.arrow().to_pylist()
        with pytest.raises(SchemaError, match=r"files of web\.t without field ids have .* under the name 'a'"):
            second()
        assert table.refresh().arrow().to_pylist() == before == table.table.scan().to_arrow().to_pylist()
        table.overwrite(table.arrow())
        table.set_properties({}, ["schema.name-mapping.default"])
        second()
        assert table.table.catalog.load_table("web.t").scan().to_arrow().to_pylist() == table.arrow().to_pylist()

    def test_the_only_column_cannot_be_dropped(self, tmp_path: Path) -> None:
        table: Any = penstock.connect(tmp_path / "other").create_table("web.t", "id int")
        with pytest.raises(SchemaError, match=r"web\.t would have no column"):
            table.drop_column("id")


class TestNewTables:
    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ("id int, s struct<a: int, A: int>", "the fields 'a' and 'A' of s have the same name"),
            (pa.schema([("a", pa.int32()), ("A", pa.int32())]), "'a' and 'A' have the same name"),
            (pa.schema([("a", pa.int32()), ("a", pa.int32())]), "column 'a' is given twice"),
            (pa.schema([("s", pa.struct([]))]), "s is a struct without fields, which files cannot hold"),
            (pa.schema([("t", pa.time32("s"))]), r"column t is of type time32\[s\], which tables do not have"),
            (
                pa.schema([("m", pa.map_(pa.string(), pa.null()))]),
                "column m is of type map.*, which tables do not have",
            ),
            ("id int DEFAULT 5", "id has DEFAULT 5; only NOT NULL and COMMENT can stand behind a type"),
        ],
    )
    def test_a_schema_that_could_not_be_read_or_written_makes_no_table(
        self, tmp_path: Path, schema: Any, message: str
    ) -> None:
        lake = penstock.connect(tmp_path / "other")
        with pytest.raises(SchemaError, match=message) as raised:
            lake.create_table("web.t", schema)
        assert "\n" not in str(raised.value)
        assert lake.tables() == []

    def test_comments_in_the_text_of_a_schema_are_the_columns(self, tmp_path: Path) -> None:
        table = penstock.connect(tmp_path / "other").create_table("web.t", "id int NOT NULL COMMENT 'number', n int")
        assert table.comments() == {"id": "number"}
        assert not table.schema.field("id").nullable


class TestOtherWriters:
    def test_a_schema_that_came_and_went_meanwhile_leaves_every_id_to_one_schema(self, table: Any) -> None:
        root = Path(table.table.metadata.location.removeprefix("file://")).parents[1]
        other: Any = penstock.connect(root).table(table.name)
        with table.change_schema() as change:
            change.rename_column("n", "number")
            other.rename_column("n", "m")
            other.rename_column("m", "n")
        metadata = table.table.metadata
        ids = [schema.schema_id for schema in metadata.schemas]
        assert len(set(ids)) == len(ids) == 3
        assert sorted(table.arrow().column("number").to_pylist()) == [1, 2]

    def test_a_key_that_is_renamed_while_rows_are_merged_does_not_insert_them_again(
        self, table: Any, monkeypatch: Any
    ) -> None:
        root = Path(table.table.metadata.location.removeprefix("file://")).parents[1]
        original = writes.prepare

        def prepare(*arguments: Any, **options: Any) -> Any:
            job, other = original(*arguments, **options), penstock.connect(root).table(table.name)
            other.rename_column("n", "number")  # type: ignore[union-attr]
            return job

        monkeypatch.setattr(writes, "prepare", prepare)
        with pytest.raises(ConflictError, match=r"the columns of web\.events were changed while its rows were"):
            table.upsert(rows(table, [("a", 1)]), on="n")
        assert table.refresh().count() == 2

    @pytest.mark.parametrize("write", ["overwrite", "delete", "update"])
    def test_values_of_a_column_that_is_added_while_rows_are_changed_stay(
        self, table: Any, write: str, monkeypatch: Any
    ) -> None:
        root = Path(table.table.metadata.location.removeprefix("file://")).parents[1]
        original, first = writes.prepare, iter([True])

        def prepare(*arguments: Any, **options: Any) -> Any:
            job = original(*arguments, **options)
            if next(first, False):
                other: Any = penstock.connect(root).table(table.name)
                other.add_column("c", "string")
                other.append(pa.table({"app": ["z", "z"], "n": pa.array([1, 2], pa.int32()), "c": ["x", "y"]}))
            return job

        monkeypatch.setattr(writes, "prepare", prepare)
        changes = {
            "overwrite": lambda: table.overwrite(rows(table, [("z", 1)]), "n = 1"),
            "delete": lambda: table.delete("n = 1"),
            "update": lambda: table.update({"n": "5"}, "n = 1"),
        }
        with pytest.raises(ConflictError, match=r"the columns of web\.events were changed while its rows were"):
            changes[write]()
        monkeypatch.undo()
        assert sorted(str(value) for value in table.refresh().arrow()["c"].to_pylist()) == ["None", "None", "x", "y"]
        changes[write]()
        assert "y" in table.arrow()["c"].to_pylist()
