"""Every state of a key through every write, odd keys and values, several maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, MapType, NestedField, StringType

from penstock import Shred
from penstock.errors import SchemaError
from penstock.lake.managed_table import ManagedTable
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
    rows,
    shredded_table,
)

COUNT = len(STATES)


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
        table.overwrite(rows(STATES, 10), "headers['a'] IS NULL OR id >= 10")
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
        for write in (lambda: table.append(twice), lambda: table.overwrite(twice, "id >= 7")):
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
