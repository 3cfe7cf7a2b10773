"""Shredded maps of managed tables: every state of a key through every write, what is pruned, what others write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, MapType, NestedField, StringType, StructType

import penstock
from penstock import Shred
from penstock.errors import LakeError, SchemaError
from penstock.shred.record import Record
from penstock.tables.managed.table import ManagedTable
from tests.fixtures.iceberg_deletes import data_files, delete_equal, delete_positions
from tests.fixtures.managed_tables import files_below, local, managed_table, reopened, snapshot_ids
from tests.fixtures.managed_values import ARROW, VALUES
from tests.fixtures.shredding import (
    MAP,
    ODD_KEYS,
    SCHEMA,
    STATES,
    dicts,
    foreign,
    foreign_append,
    ids_of,
    is_complete,
    kept,
    maps_array,
    maps_of,
    records,
    rows,
    shredded_table,
    sidecars_of,
)

MODES = ["move", "mirror"]
COUNT = len(STATES)
MANY = (
    "id bigint, headers map<string,string>, n map<int,string>, deep map<string,map<string,string>>, "
    "l array<map<string,string>>, s struct<x:int>, ll array<struct<m:map<string,string>>>"
)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, mode: str) -> ManagedTable:
    return shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})


@pytest.fixture(scope="module", params=MODES)
def four(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    """Four files, each with its own values; nothing more is written to them."""
    table = shredded_table(tmp_path_factory.mktemp("four"), {"headers": Shred("a", "b", mode=request.param)})
    for i in range(4):
        table.append(rows([{"a": f"v{i}", "c": "x"}, {"a": f"v{i}z"}], 10 * i))
    return table


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lake with one table; nothing is written to it."""
    found = tmp_path_factory.mktemp("rules")
    managed_table(found, MANY)
    return found


class TestEveryStateOfAKey:
    def test_it_comes_back_after_an_append(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        assert maps_of(table) == STATES
        assert table.schema.names == ["id", "headers"]

    def test_each_key_is_found_by_itself(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        asked = ["id", "headers['a']", "element_at(headers, 'b')", "Headers['c']", "headers"]
        found = table.arrow(columns=asked).sort_by("id")
        assert found.column_names == asked
        for name, key in zip(asked[1:4], "abc", strict=True):
            assert found[name].to_pylist() == [None if m is None else m.get(key) for m in STATES]
        assert dicts(found["headers"]) == STATES

    def test_one_key_alone_and_one_twice(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        values = [None if m is None else m.get("a") for m in STATES]
        assert table.arrow(columns=["headers['a']"]).column(0).to_pylist() == values
        twice = table.arrow(columns=["headers['a']", "headers['a']"])
        assert [column.to_pylist() for column in twice.columns] == [values, values]
        assert table.arrow("id > 100", ["headers['a']", "headers"]).schema == pa.schema(
            [("headers['a']", pa.string()), ("headers", MAP)]
        )

    def test_it_comes_back_after_a_compaction(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        table.append(rows(STATES, 10))
        assert table.compact().written == 1
        assert maps_of(table) == STATES * 2
        assert is_complete(table)

    def test_it_comes_back_when_other_rows_are_deleted(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        table.append(rows(STATES, 10))
        table.delete("id = 3")
        table.delete("headers['b'] = ''")
        expected = [m for i, m in enumerate(STATES) if i != 3 and m != {"b": ""}]
        assert maps_of(table) == expected + [m for m in STATES if m != {"b": ""}]
        assert is_complete(table)

    def test_it_comes_back_when_other_rows_are_overwritten(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        table.overwrite(rows(STATES, 10), "headers['a'] IS NULL")
        assert maps_of(table) == [{"a": "1", "b": "2", "c": "3"}, *STATES]
        table.overwrite(rows(STATES, 20))
        assert ids_of(table) == list(range(20, 20 + COUNT))
        assert maps_of(table) == STATES

    def test_it_is_found_by_predicates(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        plain = managed_table(Path(local(table.table.location())).parent.parent / "plain", SCHEMA)
        plain.append(rows(STATES))
        for where in (
            "headers IS NULL", "headers IS NOT NULL", "size(headers) = 0", "headers['a'] IS NULL",
            "headers['a'] IS NOT NULL", "map_contains_key(headers, 'a')", "NOT map_contains_key(headers, 'a')",
            "map_contains_key(headers, 'a') AND headers['a'] IS NULL", "headers['a'] = '1'", "headers['b'] = ''",
            "headers['a'] <> '1'", "headers['a'] IN ('1', '2')", "headers['b'] LIKE '%'", "headers['a'] < headers['b']",
            "headers['c'] IS NULL", "element_at(headers, 'b') = '2'", "try_element_at(headers, 'b') = '2'",
            "headers['a'] <=> NULL", "coalesce(headers['a'], headers['c']) = '3'", "headers[concat('a', '')] = '1'",
        ):  # fmt: skip
            assert ids_of(table, where) == ids_of(plain, where), where
            assert table.count(where) == plain.count(where), where


class TestKeysAndValues:
    def test_odd_keys(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred(*ODD_KEYS, mode=mode)})
        maps = [{key: str(i)} for i, key in enumerate(ODD_KEYS)] + [dict.fromkeys(ODD_KEYS, "v"), {"cold": "x"}]
        for i in range(0, len(maps), 5):
            table.append(rows(maps[i : i + 5], i))
        assert maps_of(table) == maps
        assert table.shred["headers"].keys == tuple(ODD_KEYS)
        assert maps_of(reopened(tmp_path)) == maps
        for i, key in enumerate(ODD_KEYS):
            literal = "'" + key.replace("\\", "\\\\").replace("'", "\\'") + "'"
            where = f"headers[{literal}] = '{i}'"
            assert (ids_of(table, where), kept(table, where)) == ([i], 1), where
        table.compact()
        assert maps_of(table) == maps

    def test_values_of_a_megabyte(self, table: ManagedTable) -> None:
        long = ["x" * (1 << 20), "x" * ((1 << 20) - 1) + "y", "é" * (1 << 19)]
        table.append(rows([{"a": value, "c": value} for value in long]))
        assert maps_of(table) == [{"a": value, "c": value} for value in long]
        assert ids_of(table, "headers['a'] LIKE '%y'") == [1]
        assert ids_of(table, f"headers['a'] = '{long[2]}'") == [2]

    def test_a_row_with_a_hot_key_twice_is_refused_and_nothing_is_left(
        self, table: ManagedTable, tmp_path: Path
    ) -> None:
        table.append(rows(STATES))
        before, snapshots = files_below(tmp_path), snapshot_ids(table)
        twice = pa.table({"id": [7, 8], "headers": pa.array([[("c", "0")], [("a", "1"), ("a", "2")]], MAP)})
        for write in (lambda: table.append(twice), lambda: table.overwrite(twice, "id = 1")):
            with pytest.raises(SchemaError, match="the key 'a' of a shredded map twice") as caught:
                write()
            assert "last-wins" in str(caught.value)
        assert (files_below(tmp_path), snapshot_ids(table.refresh())) == (before, snapshots)
        assert maps_of(table) == STATES

    def test_the_last_wins_when_the_table_says_so(self, tmp_path: Path, mode: str) -> None:
        properties = {"parquet.map.shredding.duplicates": "last-wins"}
        table = shredded_table(tmp_path, {"headers": Shred("a", mode=mode)}, properties=properties)
        twice = [[("a", "1"), ("c", "0"), ("a", "2")], [("a", "1"), ("a", None)]]
        table.append(pa.table({"id": [0, 1], "headers": pa.array(twice, MAP)}))
        assert maps_of(table) == [{"a": "2", "c": "0"}, {"a": None}]
        assert ids_of(table, "headers['a'] = '2'") == [0]
        assert ids_of(table, "headers['a'] = '1'") == []
        table.set_shred({"headers": ["a", "b"]})
        assert table.table.properties["parquet.map.shredding.duplicates"] == "last-wins"

    def test_what_another_engine_wrote_twice_is_no_reason_to_refuse_maintenance(self, table: ManagedTable) -> None:
        twice = [[("a", "1"), ("c", "0"), ("a", "2")], [("a", "1"), ("a", None)], [("b", "1")]]
        foreign_append(table, pa.table({"id": [0, 1, 2], "headers": pa.array(twice, MAP)}))
        table.refresh().delete("id = 2")
        table.compact()
        assert maps_of(table) == [{"a": "2", "c": "0"}, {"a": None}]
        assert is_complete(table)

    def test_values_of_every_type(self, tmp_path: Path, mode: str) -> None:
        """A map for each type: the values in a hot key and in another one, and what the table without sidecars says."""
        names = {kind: kind.replace(" ", "_") for kind in VALUES}
        fields = [NestedField(1, "id", LongType(), required=False)]
        columns, count = [pa.array(range(12), pa.int64())], 12
        for i, (kind, (iceberg, values)) in enumerate(VALUES.items()):
            inner = MapType(100 + 2 * i, StringType(), 101 + 2 * i, iceberg, value_required=False)
            fields.append(NestedField(2 + i, names[kind], inner, required=False))
            maps: list[dict[str, Any] | None] = [{"a": v, "c": v} for v in values]
            maps += [None, {}, {"b": next(v for v in values if v is not None)}]
            columns.append(maps_array((maps * 3)[:count], pa.map_(pa.string(), ARROW[kind])))
        given = pa.table(columns, names=["id", *names.values()])
        plain = managed_table(tmp_path / "plain", Schema(*fields))
        rules = {name: Shred("a", "b", mode=mode) for name in names.values()}
        table = managed_table(tmp_path / "hot", Schema(*fields), shred=rules)
        for each in (plain, table):
            for i in range(0, count, 4):
                each.append(given.slice(i, 4))
        asked = ["id", *names.values(), *(f"{name}['a']" for name in names.values())]
        assert _plain_text(table, asked) == _plain_text(plain, asked)
        for kind, name in names.items():
            assert table.arrow("id < 0", [f"{name}['a']"]).schema.types == [table.schema.field(name).type.item_type]
            tests = [f"{name}['a'] IS NOT NULL", f"{name}['a'] = {name}['c']"]
            if kind in ("float", "double"):
                tests += [f"isnan({name}['a'])", f"{name}['a'] > 1e30", f"{name}['a'] = CAST('NaN' AS double)"]
            for where in tests:
                assert ids_of(table, where) == ids_of(plain, where), where
        foreign(table).delete("id = 5")
        plain.delete("id = 5")
        table.refresh()
        assert _plain_text(table, asked) == _plain_text(plain, asked)
        table.compact()
        assert _plain_text(table, asked) == _plain_text(plain, asked)


def _plain_text(table: ManagedTable, columns: Sequence[str]) -> list[str]:
    """Rows as texts, in which NaN equals itself and the entries of maps have one order."""
    found = table.arrow(columns=columns).sort_by("id").to_pylist()
    return [str({k: sorted(v) if isinstance(v, list) else v for k, v in row.items()}) for row in found]


class TestPruning:
    @pytest.mark.parametrize(
        ("where", "files", "found"),
        [
            ("headers['a'] = 'v1'", 1, [10]),
            ("headers['a'] = 'v9'", 0, []),
            ("headers['a'] IN ('v1', 'v3')", 2, [10, 30]),
            ("headers['a'] > 'v2'", 2, [21, 30, 31]),
            ("headers['a'] LIKE 'v2%'", 1, [20, 21]),
            ("headers['a'] IS NULL", 0, []),
            ("headers['a'] IS NOT NULL", 4, [0, 1, 10, 11, 20, 21, 30, 31]),
            ("headers['b'] = 'x'", 0, []),
            ("headers['b'] IS NOT NULL", 0, []),
            ("headers['b'] IS NULL AND id < 5", 1, [0, 1]),
            ("headers['a'] = 'v1' OR id = 31", 2, [10, 31]),
            ("element_at(headers, 'a') = 'v1'", 1, [10]),
            ("try_element_at(headers, 'a') = 'v1'", 1, [10]),
            ("headers['a'] = 'v1' AND headers['c'] = 'x'", 1, [10]),
            ("headers['c'] = 'x'", 4, [0, 10, 20, 30]),
            ("upper(headers['a']) = 'V1'", 4, [10]),
        ],
    )
    def test_files_whose_sidecar_excludes_the_value_are_skipped(
        self, four: ManagedTable, where: str, files: int, found: list[int]
    ) -> None:
        assert kept(four, where) == files
        assert ids_of(four, where) == found
        assert four.count(where) == len(found)

    def test_files_that_match_whole_are_counted_and_dropped_unread(self, table: ManagedTable) -> None:
        for i in range(3):
            table.append(rows([{"a": f"v{i}"}, {"a": f"v{i}"}], 10 * i))
        for task in table.plan("headers['a'] = 'v1'").files:
            Path(local(task.path)).unlink()
        assert table.count("headers['a'] = 'v1'") == 2
        table.delete("headers['a'] = 'v1'")
        assert ids_of(table) == [0, 1, 20, 21]

    def test_a_key_without_a_value_is_not_lost(self, table: ManagedTable) -> None:
        table.append(rows([{"a": None}]))
        table.append(rows([{"a": "1"}], 1))
        table.append(rows([None], 2))
        table.append(rows([{}], 3))
        assert (kept(table, "headers['a'] IS NULL"), ids_of(table, "headers['a'] IS NULL")) == (3, [0, 2, 3])
        assert (kept(table, "headers['a'] IS NOT NULL"), ids_of(table, "headers['a'] IS NOT NULL")) == (1, [1])
        assert ids_of(table, "map_contains_key(headers, 'a')") == [0, 1]
        hot = sidecars_of(table)["__map_shred_headers_0"].id
        assert sum(record is not None and hot in record.exact for record in records(table)) == 2

    def test_a_plain_file_and_a_foreign_one_are_never_skipped(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, None)
        table.append(rows([{"a": "plain"}]))
        table.set_shred({"headers": Shred("a", mode=mode)})
        table.append(rows([{"a": "own"}], 1))
        foreign_append(table, rows([{"a": "foreign"}], 2))
        assert [len(list(table.plan(f"headers['a'] = '{v}'").files)) for v in ("plain", "own", "foreign")] == [2, 3, 2]
        for i, value in enumerate(("plain", "own", "foreign")):
            assert ids_of(table, f"headers['a'] = '{value}'") == [i]
        table.compact()
        assert (kept(table, "headers['a'] = 'own'"), kept(table, "headers['a'] = 'z'")) == (1, 0)

    def test_maps_in_structs_prune_too(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(
            tmp_path, {"s.m": Shred("a", mode=mode)}, "id bigint, s struct<n:int,m:map<string,string>>"
        )
        kind = pa.struct([("n", pa.int32()), ("m", MAP)])
        structs = [{"n": 1, "m": [("a", "1"), ("c", "2")]}, None, {"n": 2, "m": None}, {"n": 3, "m": [("a", None)]}]
        for i, each in enumerate(structs):
            table.append(pa.table({"id": [i], "s": pa.array([each], kind)}))
        found = table.arrow().sort_by("id")["s"].to_pylist()
        assert [s and (s["n"], s["m"] and dict(s["m"])) for s in found] == [
            (1, {"a": "1", "c": "2"}), None, (2, None), (3, {"a": None})
        ]  # fmt: skip
        assert (kept(table, "s.m['a'] = '1'"), kept(table, "s.m['a'] IS NULL")) == (1, 3)
        assert ids_of(table, "s.m['a'] IS NULL") == [1, 2, 3]
        assert table.arrow(columns=["id", "S.M['a']"]).sort_by("id").column(1).to_pylist() == ["1", None, None, None]
        table.compact()
        assert sorted(map(str, table.arrow()["s"].to_pylist())) == sorted(map(str, found))

    def test_required_fields_below_null_structs(self, tmp_path: Path, mode: str) -> None:
        inner = StructType(
            NestedField(3, "n", LongType(), required=True),
            NestedField(4, "m", MapType(5, StringType(), 6, StringType(), value_required=False), required=True),
        )
        schema = Schema(
            NestedField(1, "id", LongType(), required=False), NestedField(2, "s", inner, required=False)
        )  # fmt: skip
        table = shredded_table(tmp_path, {"s.m": Shred("a", mode=mode)}, schema)
        kind = pa.struct([("n", pa.int64()), ("m", MAP)])
        structs = [{"n": 1, "m": [("a", "1")]}, None, {"n": 2, "m": []}]
        given = pa.table({"id": [0, 1, 2], "s": pa.array(structs, kind)})
        table.append(given)
        table.append(given.set_column(0, "id", pa.array([3, 4, 5])))
        assert table.arrow().sort_by("id")["s"].to_pylist() == structs * 2
        table.delete("id = 1")
        table.compact()
        assert table.arrow().sort_by("id")["s"].to_pylist() == [structs[0], structs[2], *structs]


class TestOtherWriters:
    def test_full_maps_beside_empty_sidecars(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        foreign_append(table, rows(STATES, 10))
        foreign(table).append(rows(STATES, 20))  # sidecars are not even in the file
        table.refresh()
        assert maps_of(table) == STATES * 3
        assert sum(record is None for record in records(table)) == 2
        for where, ids in (
            ("headers['a'] = '1'", [5]),
            ("headers['a'] IS NULL AND headers IS NOT NULL", [1, 2, 3, 4, 6]),
        ):
            assert ids_of(table, where) == [i + more for more in (0, 10, 20) for i in ids]
        values = [None if m is None else m.get("b") for m in STATES]
        assert table.arrow(columns=["id", "headers['b']"]).sort_by("id").column(1).to_pylist() == values * 3
        table.compact()
        assert maps_of(table) == STATES * 3
        assert is_complete(table)

    def test_rows_that_they_delete_and_overwrite(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        foreign(table).delete("id = 5")
        table.refresh()
        assert maps_of(table) == [m for i, m in enumerate(STATES) if i != 5]
        assert records(table) == [None]
        found = foreign(table)
        found.overwrite(found.scan().to_arrow().filter(pa.compute.field("id") > 3))
        table.refresh()
        assert maps_of(table) == [m for i, m in enumerate(STATES) if i in (4, 6)]
        assert ids_of(table, "headers['b'] = '2'") == [4]
        table.compact()
        assert maps_of(table) == [m for i, m in enumerate(STATES) if i in (4, 6)]
        assert is_complete(table)

    def test_a_file_with_both_kinds_of_rows(self, table: ManagedTable, mode: str) -> None:
        """A compaction by somebody else: some rows have the key in the sidecar, some in the map, some in both."""
        maps: list[dict[str, str | None] | None] = [
            {"a": "map", "c": "1"},
            {"c": "2"},
            {"a": None},
            None,
            {"a": "map"},
            None,
            {},
        ]
        sidecar = ["side", "side", "side", "side", None, None, None]
        foreign_append(table, rows(maps), __map_shred_headers_0=sidecar)
        merged: list[dict[str, str | None] | None] = [
            {"a": "side", "c": "1"}, {"a": "side", "c": "2"}, {"a": "side"}, {"a": "side"}, {"a": "map"}, None, {}
        ]  # fmt: skip
        expected = merged if mode == "move" else maps  # of a mirrored key the map is the truth
        values = [None if m is None else m.get("a") for m in expected]
        for _ in range(2):
            assert maps_of(table) == expected
            assert table.arrow(columns=["id", "headers['a']"]).sort_by("id").column(1).to_pylist() == values
            for where, wanted in (("headers['a'] = 'side'", "side"), ("headers['a'] = 'map'", "map")):
                assert ids_of(table, where) == [i for i, value in enumerate(values) if value == wanted]
            assert ids_of(table, "headers IS NULL") == [i for i, m in enumerate(expected) if m is None]
            table.compact()
            assert is_complete(table)

    def test_a_hand_made_file(self, table: ManagedTable, tmp_path: Path, mode: str) -> None:
        schema = foreign(table).schema().as_arrow()
        path = tmp_path / "made.parquet"
        given = pa.table(
            [pa.array([0, 1]), maps_array([{"a": "map"}, None]), pa.array(["side", "side"]), pa.nulls(2, pa.string())],
            schema=pa.schema([field.with_metadata(None) for field in schema]),
        )
        pq.write_table(given, path)
        foreign(table).add_files([str(path)])
        table.refresh()
        expected = [{"a": "side"}, {"a": "side"}] if mode == "move" else [{"a": "map"}, None]
        assert maps_of(table) == expected
        table.delete("id = 0")
        assert maps_of(table) == expected[1:]
        assert is_complete(table)

    def test_a_record_that_cannot_be_read_is_none(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        version = table.version
        for text in (None, "", "{", '{"value": ["x"], "exact": []}'):
            shown = version.shredded(text).column("headers", _stored(table))
            assert dicts(shown) == STATES

    def test_rows_that_delete_files_take_away(self, table: ManagedTable) -> None:
        table.append(rows(STATES))
        found = foreign(table)
        (file,) = data_files(found)
        delete_positions(found, {file.file_path: [0, 5]})
        delete_equal(found, pa.table({"id": [2]}), [1])
        table.refresh()
        expected = [m for i, m in enumerate(STATES) if i not in (0, 2, 5)]
        for _ in range(2):
            assert maps_of(table) == expected
            values = table.arrow(columns=["id", "headers['b']"]).sort_by("id").column(1).to_pylist()
            assert values == [(m or {}).get("b") for m in expected]
            assert (ids_of(table, "headers['b'] = '2'"), table.count("headers['a'] = '1'")) == ([4], 0)
            table.compact()
            assert is_complete(table)

    def test_writers_that_add_the_same_sidecars_at_once(self, tmp_path: Path, mode: str) -> None:
        properties = {"columns": "headers", "headers.keys": "a,b", "headers.mode": mode}
        given = {f"parquet.map.shredding.{name}": text for name, text in properties.items()}
        table = shredded_table(tmp_path, None, properties=given)
        writers = [reopened(tmp_path) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(each.append, rows(STATES, 10 * i)) for i, each in enumerate(writers)]
            for each in running:
                each.result()
        assert [(s.key, s.mode) for s in sidecars_of(table).values()] == [("a", mode), ("b", mode)]
        assert maps_of(table) == STATES * 4
        assert is_complete(table)

    def test_records_survive_new_manifests(self, tmp_path: Path) -> None:
        properties = {"commit.manifest.min-count-to-merge": "2"}
        table = shredded_table(tmp_path, properties=properties)
        for i in range(5):
            table.append(rows([{"a": str(i)}], i))
        assert len(list(table.table.metadata.current_snapshot().manifests(table.table.io))) < 5
        assert is_complete(table)
        assert kept(table, "headers['a'] = '3'") == 1

    def test_mirrored_maps_are_whole_for_everybody(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode="mirror")})
        table.append(rows(STATES))
        table.append(rows(STATES, 10))
        table.delete("id = 3")
        expected = maps_of(table)
        read = foreign(table).scan(selected_fields=("id", "headers")).to_arrow().sort_by("id")
        assert dicts(read["headers"]) == expected
        files = [local(task.path) for task in table.plan().files]
        found = duckdb.execute("SELECT headers FROM read_parquet(?) ORDER BY id", [files]).fetchall()
        assert [row[0] for row in found] == expected

    def test_moved_maps_are_said_to_be_parts(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path)
        table.append(rows(STATES))
        files = [local(task.path) for task in table.plan().files]
        query = "SELECT headers, __map_shred_headers_0, __map_shred_headers_1 FROM read_parquet(?) ORDER BY id"
        for (residual, a, b), whole in zip(duckdb.execute(query, [files]).fetchall(), STATES, strict=True):
            own = {key: value for key, value in (("a", a), ("b", b)) if value is not None}
            assert whole == (residual if residual is None else {**residual, **own})
        assert "mode=mirror" in table.table.properties["penstock.map.shredding.note"]


def _stored(table: ManagedTable) -> pa.Table:
    (task,) = table.plan().files
    return pq.ParquetFile(local(task.path)).read()


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


class TestChosenKeys:
    @staticmethod
    def maps(count: int, *often: str) -> list[dict[str, str]]:
        return [dict.fromkeys(often, "v" * 20) | {f"rare{i}": "r"} for i in range(count)]

    @staticmethod
    def chosen(table: ManagedTable) -> list[str]:
        found: list[str] = json.loads(table.refresh().table.properties["parquet.map.shredding.headers.chosen"])
        return found

    def test_they_stay_between_appends_and_are_chosen_again_by_a_compaction(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred(auto=True, mode=mode)})
        assert "parquet.map.shredding.headers.chosen" not in table.table.properties
        table.append(rows(self.maps(50, "x", "y")))
        assert self.chosen(table) == ["x", "y"]
        table.append(rows(self.maps(200, "z"), 100))
        assert self.chosen(table) == ["x", "y"]
        assert [s.key for s in sidecars_of(table).values()] == ["x", "y"]
        before = maps_of(table)
        table.compact()
        assert set(self.chosen(table)) == {"x", "y", "z"}
        assert maps_of(table) == before == self.maps(50, "x", "y") + self.maps(200, "z")
        wanted = {s.id for s in sidecars_of(table).values()}
        assert all(record is not None and record.value == wanted for record in records(table))
        assert table.compact().rewritten == 0

    def test_there_are_not_more_than_may_be(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": Shred(auto=True, most=2)})
        table.append(rows(self.maps(40, "x", "y", "z")))
        assert len(self.chosen(table)) == 2
        table.compact()
        assert len(self.chosen(table)) == 2

    def test_nothing_is_chosen_by_no_rows(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        table.append(rows([]))
        table.append(rows([None, {}]))
        table.append(pa.table({"id": [5], "headers": pa.nulls(1)}))
        table.compact()
        assert not sidecars_of(table)
        table.append(rows(self.maps(30, "x"), 10))
        assert self.chosen(table) == ["x"]
        assert maps_of(table) == [None, {}, None, *self.maps(30, "x")]

    @pytest.mark.parametrize("rows_of_a_batch", [1, 7, 1_000])
    def test_rows_that_can_be_read_once_are_all_written(self, tmp_path: Path, rows_of_a_batch: int) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        given = rows(self.maps(40, "x"))
        batches = given.to_batches(max_chunksize=rows_of_a_batch)
        table.append(pa.RecordBatchReader.from_batches(given.schema, iter(batches)))
        assert ids_of(table) == list(range(40))
        assert maps_of(table) == self.maps(40, "x")
        assert self.chosen(table) == ["x"]

    def test_more_rows_than_a_sample_has(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        array = pa.concat_arrays([maps_array([{"x": "1"}] * 25_000), maps_array([{"y": "1"}] * 25_000)])
        given = pa.table({"id": pa.array(range(50_000), pa.int64()), "headers": array})
        table.append(pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=5_000)))
        assert (table.count(), self.chosen(table)) == (50_000, ["x"])  # what comes later is not in the sample
        table.overwrite(given)
        other = shredded_table(tmp_path / "whole", {"headers": "auto"})
        other.append(given)
        assert self.chosen(other) == ["x", "y"]  # of rows in memory it is

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (pa.table({"id": [1], "headers": ["x"]}), "headers is a map<string,string> and was given as string"),
            (pa.table({"id": [1]}), "missing: headers"),
            (pa.table({"headers": maps_array([{"x": "1"}])}), "missing: id"),
            (
                pa.table({"id": [1], "headers": pa.array([[(1, "x")]], pa.map_(pa.int32(), pa.string()))}),
                "headers is a",
            ),
        ],
    )
    def test_rows_that_do_not_fit_are_refused(self, tmp_path: Path, given: pa.Table, said: str) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        with pytest.raises(SchemaError, match=said):
            table.append(given)
        assert table.refresh().count() == 0

    @pytest.mark.parametrize(
        "kind",
        [
            pa.map_(pa.large_string(), pa.large_string()),
            pa.map_(pa.string_view(), pa.string_view()),
            pa.map_(pa.string(), pa.null()),
        ],
    )
    def test_rows_in_other_forms(self, tmp_path: Path, kind: pa.DataType) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        value = None if kind.item_type == pa.null() else "1"
        table.append(rows([{"x": value}, None], kind=kind, column="Headers"))
        assert maps_of(table) == [{"x": value}, None]
        assert self.chosen(table) == ["x"]

    @pytest.mark.parametrize("column", ["req.params", "REQ.Params"])
    @pytest.mark.parametrize("names", [("params", "z"), ("PARAMS", "Z")])
    def test_maps_in_structs_whatever_the_case(self, tmp_path: Path, column: str, names: tuple[str, str]) -> None:
        schema = "id bigint, req struct<params:map<string,string>,z:int>"
        table = shredded_table(tmp_path, {column: "auto"}, schema)
        kind = pa.struct([(names[0], MAP), (names[1], pa.int32())])
        structs = [{names[0]: [("x", "1")], names[1]: 1}, None]
        table.append(pa.table({"id": [0, 1], "Req": pa.array(structs, kind)}))
        table.compact()
        assert [s.key for s in sidecars_of(table).values()] == ["x"]
        assert table.arrow().sort_by("id")["req"].to_pylist() == [{"params": [("x", "1")], "z": 1}, None]

    def test_a_column_with_a_dot_in_its_name(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"a.b": "auto"}, pa.schema([("id", pa.int64()), ("a.b", MAP)]))
        table.append(rows([{"x": "1"}, None], column="a.b"))
        table.append(rows([{"x": "1"}, {}], 2, column="a.b"))
        table.compact()
        assert [s.key for s in sidecars_of(table).values()] == ["x"]
        assert maps_of(table, column="a.b") == [{"x": "1"}, None, {"x": "1"}, {}]

    def test_overwritten_rows_are_read_by_what_was_chosen(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        table.append(rows(self.maps(30, "x")))
        table.overwrite(rows(self.maps(30, "y"), 100))
        assert self.chosen(table) == ["x"]
        table.compact()
        table.append(rows(self.maps(30, "y"), 200))
        assert self.chosen(table) == ["y"]
        assert maps_of(table) == self.maps(30, "y") * 2

    def test_given_keys_take_the_place_of_chosen_ones(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": "auto"})
        table.append(rows(self.maps(30, "x")))
        table.set_shred({"headers": ["q"]})
        assert "parquet.map.shredding.headers.chosen" not in table.table.properties
        table.append(rows([{"x": "1", "q": "2"}], 100))
        assert ids_of(table, "headers['q'] = '2'") == [100]
        assert maps_of(table) == [*self.maps(30, "x"), {"x": "1", "q": "2"}]
        assert records(table) == [Record(frozenset(value), frozenset(value)) for value in _own(table, ["x"], ["q"])]


def _own(table: ManagedTable, *keys: Sequence[str]) -> list[set[int]]:
    """The sidecars of keys; of files that come in any order, as the plan has them."""
    wanted = [{s.id for s in sidecars_of(table).values() if s.key in own} for own in keys]
    first = records(table)[0]
    return wanted if first is not None and first.value == wanted[0] else wanted[::-1]


class TestSeveralMaps:
    def test_each_by_its_own_rule(self, tmp_path: Path) -> None:
        rules = {"m": Shred("a"), "n": Shred("a", "b", mode="mirror"), "s.m": Shred("c")}
        schema = pa.schema([("id", pa.int64()), ("m", MAP), ("n", MAP), ("o", MAP), ("s", pa.struct([("m", MAP)]))])
        table = shredded_table(tmp_path, rules, schema)
        given = pa.table(
            [
                pa.array(range(COUNT)), maps_array(STATES), maps_array(STATES[::-1]), maps_array(STATES),
                pa.StructArray.from_arrays([maps_array(STATES)], fields=[pa.field("m", MAP)]),
            ],
            schema=schema,
        )  # fmt: skip
        table.append(given)
        table.append(given.set_column(0, "id", pa.array(range(10, 10 + COUNT))))
        for _ in range(2):
            assert maps_of(table, column="m") == maps_of(table, column="o") == STATES * 2
            assert maps_of(table, column="n") == STATES[::-1] * 2
            assert dicts(pa.compute.struct_field(table.arrow().sort_by("id")["s"], "m")) == STATES * 2
            assert ids_of(table, "m['a'] = '1' OR n['a'] = '1'") == [1, 5, 11, 15]
            assert ids_of(table, "m['a'] = o['a'] AND s.m['c'] = '3'") == [5, 15]
            table.compact()
        assert table.shred == rules

    def test_rules_of_one_map_change_and_those_of_others_stay(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"m": ["a"]}, pa.schema([("id", pa.int64()), ("m", MAP), ("n", MAP)]))
        table.set_shred({"n": ["b"]})
        assert table.shred == {"m": Shred("a"), "n": Shred("b")}
        table.set_shred({"M": None})
        assert table.shred == {"n": Shred("b")}
        table.set_shred(None)
        assert table.shred == {}

    def test_partitions_that_share_files(self, tmp_path: Path, mode: str) -> None:
        schema = pa.schema([("id", pa.int64()), ("headers", MAP), ("app", pa.string())])
        table = shredded_table(
            tmp_path, {"headers": Shred("a", mode=mode)}, schema, partition_by=["app"], coalesce=["app"]
        )
        for first in (0, 10):
            apps = pa.array(["x", "y", "x", None, "z", "x", "y"])
            table.append(rows(STATES, first).append_column("app", apps))
        assert maps_of(table) == STATES * 2
        assert ids_of(table, "app = 'x' AND headers['a'] = '1'") == [5, 15]
        table.overwrite(rows([{"a": "new"}], 99).append_column("app", pa.array(["x"])), dynamic=True)
        table.compact()
        assert ids_of(table) == [1, 3, 4, 6, 11, 13, 14, 16, 99]
        assert ids_of(table, "headers['a'] = 'new'") == [99]
        assert is_complete(table)
