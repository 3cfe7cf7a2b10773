"""Where sidecars and rules are told, and rules that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, MapType, NestedField, StringType

import penstock
from penstock import Shred
from penstock.errors import LakeError, SchemaError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import files_below, managed_table, reopened
from tests.fixtures.shredding import (
    MAP,
    STATES,
    foreign,
    is_complete,
    maps_of,
    rows,
    shredded_table,
    sidecars_of,
)

COUNT = len(STATES)
MANY = (
    "id bigint, headers map<string,string>, n map<int,string>, deep map<string,map<string,string>>, "
    "l array<map<string,string>>, s struct<x:int>, ll array<struct<m:map<string,string>>>"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lake with one table; nothing is written to it."""
    found = tmp_path_factory.mktemp("rules")
    managed_table(found, MANY)
    return found


class TestProperties:
    def test_sidecars_are_told_twice(self, table: ManagedTable, mode: str) -> None:
        schema = table.table.schema()
        source = schema.find_field("headers").field_id
        told = {name: {"sidecar of": source, "key": key, "mode": mode} for name, key in
                (("__map_shred_headers_0", "a"), ("__map_shred_headers_1", "b"))}  # fmt: skip
        assert {name: json.loads(schema.find_field(name).doc) for name in told} == told
        known = json.loads(table.table.properties["penstock.map.shredding.sidecars"])
        assert known == {str(schema.find_field(name).field_id): each for name, each in told.items()}
        assert all(not schema.find_field(name).required for name in told)
        assert ("penstock.map.shredding.note" in table.table.properties) == (mode == "move")

    def test_the_note_comes_and_goes_with_the_mode(self, table: ManagedTable) -> None:
        note = "penstock.map.shredding.note"
        table.set_shred({"headers": Shred("a", mode="mirror")})
        assert note not in table.table.properties
        table.set_shred({"headers": Shred("a")})
        assert "headers" in table.table.properties[note]
        table.set_shred(None)
        assert note not in table.table.properties
        assert table.shred == {}

    def test_a_lost_documentation_is_in_the_property(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.update_column("__map_shred_headers_0", doc="")
        assert maps_of(table.refresh()) == STATES
        table.append(rows(STATES, 10))
        assert maps_of(table) == STATES * 2

    def test_a_lost_property_is_in_the_documentation(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        with foreign(table).transaction() as change:
            change.remove_properties("penstock.map.shredding.sidecars")
        assert maps_of(table.refresh()) == STATES

    @pytest.mark.parametrize("left", [None, "{", "[]", '{"3": 1}', '{"3": {"key": "a"}}'])
    def test_without_both_there_is_a_clear_error(self, table: ManagedTable, left: str | None) -> None:
        table.append(rows(STATES))
        with foreign(table).transaction() as change:
            if left is None:
                change.remove_properties("penstock.map.shredding.sidecars")
            else:
                change.set_properties({"penstock.map.shredding.sidecars": left})
            with change.update_schema() as update:
                update.update_column("__map_shred_headers_0", doc="mine")
        table.refresh()
        for ask in (table.arrow, table.plan, lambda: table.append(rows(STATES)), table.compact):
            with pytest.raises(LakeError, match="column __map_shred_headers_0 is a sidecar, and neither"):
                ask()

    def test_rules_by_properties_take_effect_with_the_next_write(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, None)
        table.append(rows(STATES))
        with foreign(table).transaction() as change:
            change.set_properties(
                {
                    "parquet.map.shredding.columns": "headers",
                    "parquet.map.shredding.headers.keys": "a, b",
                    "parquet.map.shredding.headers.mode": "mirror",
                }
            )
        assert maps_of(table.refresh()) == STATES
        assert table.shred == {"headers": Shred("a", "b", mode="mirror")}
        assert not sidecars_of(table)
        table.append(rows(STATES, 10))
        assert [(s.key, s.mode) for s in sidecars_of(table).values()] == [("a", "mirror"), ("b", "mirror")]
        assert maps_of(table) == STATES * 2
        table.compact()
        assert is_complete(table)

    def test_rules_by_properties_of_a_new_table(self, tmp_path: Path) -> None:
        properties = {"parquet.map.shredding.columns": "headers", "parquet.map.shredding.headers.keys": '["a,b"]'}
        table = shredded_table(tmp_path, None, properties=properties)
        table.append(rows([{"a,b": "1", "a": "2"}]))
        assert [s.key for s in sidecars_of(table).values()] == ["a,b"]
        assert maps_of(table) == [{"a,b": "1", "a": "2"}]

    def test_other_properties_of_a_schema_are_kept(self, tmp_path: Path) -> None:
        inner = MapType(3, StringType(), 4, StringType(), value_required=False)
        fields = [
            NestedField(1, "id", LongType(), required=True, doc="mine"),
            NestedField(2, "headers", inner, required=True),
        ]
        for shred in (None, {"headers": ["a"]}):
            root = tmp_path / str(shred is None)
            made = shredded_table(root, shred, Schema(*fields, identifier_field_ids=[1])).table.schema()
            assert made.identifier_field_ids == [1]
            assert (made.find_field("id").doc, made.find_field("headers").required) == ("mine", True)


class TestRulesThatCannotBe:
    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"nope": ["a"]}, "no column 'nope'; maps are: headers$"),
            ({"id": ["a"]}, "'id' is a long and no map"),
            ({"s": ["a"]}, "no map"),
            ({"s.x": ["a"]}, "'s.x' is a int and no map"),
            ({"n": ["a"]}, "keys have to be texts"),
            ({"deep": ["a"]}, "values plain"),
            ({"deep.value": ["a"]}, "lies in a list or a map"),
            ({"l": ["a"]}, "no map"),
            ({"l.element": ["a"]}, "lies in a list or a map"),
            ({"ll.element.m": ["a"]}, "lies in a list or a map"),
            ({"headers": []}, "no key of 'headers'"),
            ({"headers": ["a", "a"]}, "given twice"),
            ({"headers": ["a"], "HEADERS": ["b"]}, "given twice"),
            ({"headers": ["a"], "nope": "auto"}, "no column 'nope'"),
            ({"headers": [5]}, "5 is no key"),
        ],
    )
    def test_it_is_one_clear_error_and_nothing_changes(self, root: Path, asked: Any, said: str) -> None:
        lake, table = penstock.connect(root), reopened(root)
        before, metadata = files_below(root), table.table.metadata_location
        with pytest.raises(penstock.PenstockError, match=said) as caught:
            lake.create_table("web.u", MANY, shred=asked)
        assert len(str(caught.value).splitlines()) == 1
        assert lake.tables() == ["web.t"]
        with pytest.raises(penstock.PenstockError, match=said):
            table.set_shred(asked)
        assert files_below(root) == before
        assert table.refresh().table.metadata_location == metadata

    @pytest.mark.parametrize(
        "properties",
        [
            {"columns": "headers"},
            {"columns": "headers", "headers.keys": "[1]"},
            {"columns": "headers", "headers.keys": "a,a"},
            {"columns": "headers", "headers.keys": "a", "headers.mode": "x"},
            {"columns": "[", "headers.keys": "a"},
        ],
    )
    def test_properties_that_cannot_be_read_are_an_error_of_writes_and_not_of_reads(
        self, tmp_path: Path, properties: dict[str, str]
    ) -> None:
        table = shredded_table(tmp_path, {"headers": ["a"]})
        table.append(rows(STATES))
        with foreign(table).transaction() as change:
            change.set_properties({f"parquet.map.shredding.{name}": text for name, text in properties.items()})
            if "headers.keys" not in properties:
                change.remove_properties("parquet.map.shredding.headers.keys")
        before = files_below(tmp_path)
        assert maps_of(table.refresh()) == STATES
        for write in (lambda: table.append(rows(STATES)), lambda: table.delete("id = 1"), table.compact):
            with pytest.raises(LakeError):
                write()
        assert files_below(tmp_path) == before
        table.set_shred(None)  # takes away what cannot be read, too
        table.append(rows(STATES, 10))
        assert maps_of(table) == STATES * 2

    @pytest.mark.parametrize("asked", ["headers", ["headers"], 5])
    def test_rules_are_a_mapping(self, root: Path, asked: Any) -> None:
        for ask in (reopened(root).set_shred, lambda rules: shredded_table(root / "other", rules)):
            with pytest.raises(LakeError, match="shred is "):
                ask(asked)

    def test_a_column_that_is_called_like_a_sidecar_is_refused(self, tmp_path: Path) -> None:
        schema = "id bigint, headers map<string,string>, __map_shred_headers_0 string"
        for shred in (None, {"headers": ["a"]}):
            with pytest.raises(SchemaError, match="called like a sidecar"):
                shredded_table(tmp_path, shred, schema)

    def test_a_table_of_others_with_such_a_column_is_not_shredded(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path)
        lake.catalog.create_namespace("web")
        schema = pa.schema([("id", pa.int64()), ("headers", MAP), ("__map_shred_headers_0", pa.string())])
        lake.catalog.create_table("web.t", schema)
        table = reopened(tmp_path)
        given = rows(STATES).append_column("__map_shred_headers_0", pa.array(["mine"] * COUNT))
        table.append(given)
        with pytest.raises(SchemaError, match="called like a sidecar"):
            table.set_shred({"headers": ["a"]})
        assert maps_of(reopened(tmp_path)) == STATES
        assert reopened(tmp_path).arrow()["__map_shred_headers_0"].to_pylist() == ["mine"] * COUNT

    def test_a_column_that_others_add_so_is_a_clear_error(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.add_column("__map_shred_headers_7", StringType())
        with pytest.raises(LakeError, match="column __map_shred_headers_7 is a sidecar"):
            table.refresh().arrow()

    def test_rows_may_not_bring_sidecars(self, table: ManagedTable) -> None:
        given = rows(STATES).append_column("__map_shred_headers_0", pa.nulls(COUNT, pa.string()))
        with pytest.raises(SchemaError, match="not in the table: __map_shred_headers_0"):
            table.append(given)

    def test_sidecars_cannot_be_asked_for(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        with pytest.raises(SchemaError, match="no column '__map_shred_headers_0'"):
            table.arrow(columns=["__map_shred_headers_0"])
        with pytest.raises(penstock.PenstockError):
            table.arrow("__map_shred_headers_0 = '1'")
