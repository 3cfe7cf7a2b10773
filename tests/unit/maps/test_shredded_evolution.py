"""Shredded maps of tables that change: other keys and modes, renamed and dropped maps, wider values, old versions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
)

from penstock import Shred
from penstock.errors import LakeError, PenstockWarning, SchemaError
from penstock.lake.managed_table import ManagedTable
from penstock.maps.sidecar_footer import read_footer
from tests.fixtures.managed_tables import head_id, managed_table, reopened
from tests.fixtures.shredding import (
    MAP,
    STATES,
    footers,
    foreign,
    foreign_append,
    ids_of,
    is_complete,
    kept,
    maps_of,
    records,
    rows,
    shredded_table,
    sidecars_of,
)
from tests.fixtures.variants import variants

MODES = ["move", "mirror"]


@pytest.fixture(params=variants(MODES, every_run=1))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestKeysThatChange:
    def test_every_file_is_read_its_own_way(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, None)
        for i, keys in enumerate([None, ["a"], ["b", "c"], ["a", "b", "c"], ["new"], None]):
            table.set_shred(None if keys is None else {"headers": Shred(*keys, mode=mode)})
            table.append(rows(STATES, 10 * i))
        assert maps_of(table) == STATES * 6
        sizes = [len(record.value) if record is not None else -1 for record in records(table)]
        assert sorted(sizes) == [-1, 0, 1, 1, 2, 3]
        assert ids_of(table, "headers['a'] = '1'") == [10 * i + 5 for i in range(6)]
        for key in "abc":
            found = table.arrow(columns=["id", f"headers['{key}']"]).sort_by("id").column(1).to_pylist()
            assert found == [None if m is None else m.get(key) for m in STATES] * 6
        table.set_shred({"headers": Shred("b", mode=mode)})
        table.compact()
        assert maps_of(table) == STATES * 6
        assert is_complete(table)
        assert [s.key for s in sidecars_of(table).values()] == ["a", "b", "c", "new"]  # numbers are not used again

    def test_a_key_comes_back_to_its_sidecar(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": ["a"]})
        before = sidecars_of(table)
        table.set_shred({"headers": ["b"]})
        table.set_shred({"headers": ["a"]})
        assert sidecars_of(table).items() >= before.items()
        assert len(sidecars_of(table)) == 2

    def test_modes_that_change(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b")})
        for i, mode in enumerate(["move", "mirror", "move", "mirror"]):
            table.set_shred({"headers": Shred("a", "b", mode=mode)})
            table.append(rows(STATES, 20 * i))
            foreign_append(table, rows(STATES, 20 * i + 10))
        assert maps_of(table) == STATES * 8
        assert ids_of(table, "headers['a'] = '1'") == [10 * i + 5 for i in range(8)]
        assert kept(table, "headers['a'] = 'z'") == 4  # those that others wrote
        assert [(s.key, s.mode) for s in sidecars_of(table).values()] == [
            ("a", "move"), ("b", "move"), ("a", "mirror"), ("b", "mirror")
        ]  # fmt: skip
        foreign(table).delete("id = 5")
        table.refresh()
        assert maps_of(table) == (STATES * 8)[:5] + (STATES * 8)[6:]
        table.compact()
        assert maps_of(table) == (STATES * 8)[:5] + (STATES * 8)[6:]
        assert kept(table, "headers['a'] = 'z'") == 0

    def test_a_rule_that_is_taken_away_leaves_maps_whole(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})
        table.append(rows(STATES))
        table.set_shred(None)
        assert maps_of(table) == STATES
        table.append(rows(STATES, 10))
        table.compact()
        assert maps_of(table) == STATES * 2
        assert all(record is not None and not record.value for record in records(table))
        read = foreign(table).scan(selected_fields=("id", "headers")).to_arrow().sort_by("id")
        assert [None if m is None else dict(m) for m in read["headers"].to_pylist()] == STATES * 2

    def test_old_versions_are_read_as_they_were(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, None)
        heads = []
        for i, keys in enumerate([None, ["a"], ["b", "a"], None]):
            table.set_shred(None if keys is None else {"headers": Shred(*keys, mode=mode)})
            table.append(rows(STATES, 10 * i))
            heads.append(head_id(table))
        table.delete("id < 15")
        table.compact()
        for i, head in enumerate(heads):
            old = table.at(head)
            found = old.arrow().sort_by("id")["headers"].to_pylist()
            assert [None if m is None else dict(m) for m in found] == STATES * (i + 1)
            assert old.count("headers['a'] = '1'") == i + 1

    def test_another_writer_changes_the_rule_meanwhile(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", mode=mode)})
        behind = reopened(tmp_path)
        table.set_shred({"headers": Shred("b", mode=mode)})
        behind.append(rows(STATES))
        table.append(rows(STATES, 10))
        assert maps_of(table) == STATES * 2
        hot = {s.id for s in sidecars_of(table).values() if s.key == "b"}
        assert [record is not None and set(record.value) == hot for record in records(table)] == [True, True]


class TestMapsThatAreRenamed:
    @pytest.fixture
    def renamed(self, tmp_path: Path, mode: str) -> ManagedTable:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.rename_column("headers", "h2")
        return table.refresh()

    def test_they_keep_their_sidecars(self, renamed: ManagedTable) -> None:
        assert renamed.schema.names == ["id", "h2"]
        assert maps_of(renamed, column="h2") == STATES
        assert (kept(renamed, "h2['a'] = '1'"), kept(renamed, "h2['a'] = '7'")) == (1, 0)
        assert ids_of(renamed, "h2['a'] = '1'") == [5]

    def test_a_rule_follows_its_map(self, renamed: ManagedTable) -> None:
        renamed.append(rows(STATES, 10, column="h2"))
        assert maps_of(renamed, column="h2") == STATES * 2
        renamed.delete("id = 0")
        assert maps_of(renamed, column="h2") == STATES[1:] + STATES
        assert is_complete(renamed)

    def test_a_rule_for_the_new_name_uses_the_old_sidecars(self, renamed: ManagedTable, mode: str) -> None:
        renamed.set_shred({"headers": None, "h2": Shred("a", "z", mode=mode)})
        assert [s.name for s in sidecars_of(renamed).values()] == [
            "__map_shred_headers_0", "__map_shred_headers_1", "__map_shred_h2_0"
        ]  # fmt: skip
        renamed.append(rows([{"a": "1", "z": "2", "b": "3"}], 10, column="h2"))
        assert maps_of(renamed, column="h2") == [*STATES, {"a": "1", "z": "2", "b": "3"}]
        renamed.compact()
        assert maps_of(renamed, column="h2") == [*STATES, {"a": "1", "z": "2", "b": "3"}]
        assert is_complete(renamed)
        ((found,),) = (read_footer(*each) for each in footers(renamed))
        assert (found.column, dict(found.sidecars)) == ("h2", {"a": "__map_shred_headers_0", "z": "__map_shred_h2_0"})

    def test_another_column_takes_the_old_name(self, renamed: ManagedTable) -> None:
        with foreign(renamed).update_schema() as update:
            update.add_column("headers", MapType(50, StringType(), 51, StringType(), value_required=False))
        renamed.refresh()
        given = rows(STATES, 10, column="h2").append_column("headers", rows(STATES[::-1])["headers"])
        renamed.append(given)
        assert maps_of(renamed, column="h2") == STATES * 2
        assert maps_of(renamed) == [None] * len(STATES) + STATES[::-1]
        assert ids_of(renamed, "headers['a'] = '1'") == [11]
        assert len(sidecars_of(renamed)) == 2, "the rule is not about the new column"

    def test_structs_that_are_renamed(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"s.m": ["a"]}, "id bigint, s struct<m:map<string,string>>")
        kind = pa.struct([("m", MAP)])
        table.append(pa.table({"id": [0], "s": pa.array([{"m": [("a", "1")]}], kind)}))
        with foreign(table).update_schema() as update:
            update.rename_column("s", "t")
            update.rename_column("s.m", "n")
            update.add_column(("s", "x"), IntegerType())
        table.refresh()
        assert table.arrow()["t"].to_pylist() == [{"n": [("a", "1")], "x": None}]
        assert ids_of(table, "t.n['a'] = '1'") == [0]


class TestMapsThatAreDropped:
    @pytest.mark.parametrize("shred", [["a", "b"], "auto"])
    def test_the_table_lives_on_without_them(self, tmp_path: Path, shred: Any) -> None:
        table = shredded_table(tmp_path, {"headers": shred})
        table.append(rows(STATES))
        old = head_id(table)
        with foreign(table).update_schema() as update:
            update.delete_column("headers")
        table.refresh()
        assert table.arrow().column_names == ["id"]
        with pytest.warns(PenstockWarning, match="no keys of headers are split off"):
            table.append(pa.table({"id": [10]}))
        with pytest.warns(PenstockWarning, match="no keys of headers are split off"):
            table.delete("id = 0")
        with pytest.warns(PenstockWarning, match="no keys of headers are split off"):
            table.compact()
        assert ids_of(table) == [1, 2, 3, 4, 5, 6, 10]
        assert maps_of(table.at(old)) == STATES
        table.set_shred(None)
        table.append(pa.table({"id": [11]}))
        assert table.count() == 8

    def test_and_so_it_does_when_their_sidecars_go_too(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path)
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            for name in ("headers", "__map_shred_headers_0", "__map_shred_headers_1"):
                update.delete_column(name)
        table.refresh().set_shred(None)
        assert table.arrow().to_pylist() == [{"id": i} for i in range(len(STATES))]

    def test_a_new_map_of_the_same_name_has_sidecars_of_its_own(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.delete_column("headers")
        with foreign(table).update_schema() as update:
            update.add_column("headers", MapType(50, StringType(), 51, StringType(), value_required=False))
        table.refresh()
        assert maps_of(table) == [None] * len(STATES)
        assert ids_of(table, "headers['a'] = '1'") == []
        table.append(rows(STATES, 10))
        assert maps_of(table) == [None] * len(STATES) + STATES
        assert ids_of(table, "headers['a'] = '1'") == [15]
        assert len(sidecars_of(table)) == 4


class TestSidecarsThatOthersTouch:
    def test_a_dropped_sidecar_with_values_is_a_clear_error(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path)
        table.append(rows(STATES))
        old = head_id(table)
        with foreign(table).update_schema() as update:
            update.delete_column("__map_shred_headers_0")
        table.refresh()
        for ask in (table.arrow, lambda: table.count("headers['c'] = '3'"), lambda: table.delete("id = 1")):
            with pytest.raises(LakeError, match="field id 3, __map_shred_headers_0, which the table does not have"):
                ask()
        assert maps_of(table.at(old)) == STATES

    def test_a_dropped_copy_is_not_missed(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode="mirror")})
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.delete_column("__map_shred_headers_0")
        assert maps_of(table.refresh()) == STATES
        assert ids_of(table, "headers['a'] = '1'") == [5]
        table.append(rows(STATES, 10))  # it gets another one
        assert maps_of(table) == STATES * 2
        assert ids_of(table, "headers['a'] = '1'") == [5, 15]

    def test_a_sidecar_that_no_file_needs_may_go(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path)
        table.append(rows(STATES))
        table.set_shred({"headers": ["b"]})
        table.compact()
        with foreign(table).update_schema() as update:
            update.delete_column("__map_shred_headers_0")
        assert maps_of(table.refresh()) == STATES
        table.append(rows(STATES, 10))
        assert maps_of(table) == STATES * 2

    def test_a_renamed_sidecar_is_still_one(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.rename_column("__map_shred_headers_0", "odd")
        table.refresh()
        assert table.schema.names == ["id", "headers"]
        assert maps_of(table) == STATES
        table.append(rows(STATES, 10))
        table.compact()
        assert maps_of(table) == STATES * 2
        assert kept(table, "headers['a'] = '7'") == 0

    def test_columns_that_others_add(self, tmp_path: Path, mode: str) -> None:
        table = shredded_table(tmp_path, {"headers": Shred("a", mode=mode)})
        table.append(rows(STATES))
        with foreign(table).update_schema() as update:
            update.add_column("n", IntegerType())
            update.move_first("n")
        table.refresh()
        assert table.schema.names == ["n", "id", "headers"]
        foreign_append(table, rows(STATES, 10))
        table.append(rows(STATES, 20).append_column("n", pa.array([1] * len(STATES), pa.int32())))
        assert maps_of(table) == STATES * 3
        assert ids_of(table, "n = 1 AND headers['a'] = '1'") == [25]
        table.compact()
        assert maps_of(table) == STATES * 3


class TestValuesThatBecomeWider:
    @pytest.mark.parametrize(
        ("narrow", "wide", "given", "then", "small", "large"),
        [
            (IntegerType(), LongType(), pa.int32(), pa.int64(), [1, -5, 2**31 - 1], 2**40),
            (FloatType(), DoubleType(), pa.float32(), pa.float64(), [0.1, float("nan"), float("-inf")], 1e300),
            (DecimalType(9, 2), DecimalType(20, 2), pa.decimal128(9, 2), pa.decimal128(20, 2),
             [Decimal("1.25"), Decimal("-9999999.99"), Decimal("0.00")], Decimal("123456789012.34")),
        ],
        ids=["int", "float", "decimal"],
    )  # fmt: skip
    def test_old_files_are_read_and_new_ones_written(
        self,
        tmp_path: Path,
        mode: str,
        narrow: IcebergType,
        wide: IcebergType,
        given: pa.DataType,
        then: pa.DataType,
        small: list[Any],
        large: Any,
    ) -> None:
        inner = MapType(10, StringType(), 11, narrow, value_required=False)
        schema = Schema(
            NestedField(1, "id", LongType(), required=False), NestedField(2, "headers", inner, required=False)
        )  # fmt: skip
        plain = managed_table(tmp_path / "plain", schema)
        table = managed_table(tmp_path / "hot", schema, shred={"headers": Shred("a", "b", mode=mode)})
        first: list[Any] = [{"a": v, "c": v} for v in small] + [None, {}, {"a": None}]
        second = [{"a": large, "b": small[0], "c": large}, {"a": small[0]}]
        for each in (plain, table):
            for i in (0, 2, 4):
                each.append(rows(first[i : i + 2], i, pa.map_(pa.string(), given)))
            with foreign(each).update_schema() as update:
                update.update_column(("headers", "value"), wide)
            each.refresh()
        self.check(table, plain)
        foreign_append(table, rows(second, 40, pa.map_(pa.string(), then)))  # by somebody, before Penstock writes
        foreign_append(plain, rows(second, 40, pa.map_(pa.string(), then)))
        self.check(table, plain)
        for each in (plain, table):
            each.append(rows(second, 50, pa.map_(pa.string(), then)))
        self.check(table, plain)
        assert all(
            table.table.schema().find_field(name).field_type == wide and table.table.schema().find_field(name).doc
            for name in sidecars_of(table)
        )
        assert kept(table, f"headers['a'] = {literal(large)}") == 2
        for each in (plain, table):
            each.delete("id = 51")
            each.compact()
        self.check(table, plain)
        assert is_complete(table)

    @staticmethod
    def check(table: ManagedTable, plain: ManagedTable) -> None:
        expected = [m and dict(sorted(m.items())) for m in maps_of(plain)]
        assert str([m and dict(sorted(m.items())) for m in maps_of(table)]) == str(expected)
        keys = table.arrow(columns=["id", "headers['a']"]).sort_by("id")
        assert str(keys.column(1).to_pylist()) == str([None if m is None else m.get("a") for m in expected])
        assert keys.schema.field(1).type == table.schema.field("headers").type.item_type
        for where in ("headers['a'] > 0", "headers['a'] = 1", "headers['a'] < 0", "headers['a'] IS NULL",
                      "headers['a'] >= 1000000", "headers['a'] = headers['c']"):  # fmt: skip
            assert ids_of(table, where) == ids_of(plain, where), where
            assert table.count(where) == plain.count(where), where


def literal(value: Any) -> str:
    return f"{value}D" if isinstance(value, float) else str(value)


def test_a_rule_for_a_column_that_is_no_map_any_more_does_not_stop_writes(tmp_path: Path) -> None:
    table = shredded_table(tmp_path)
    with foreign(table).update_schema() as update:
        update.delete_column("headers")
    with foreign(table).update_schema() as update:
        update.add_column("headers", StringType())
    table.refresh()
    with pytest.warns(PenstockWarning, match="no keys of headers are split off: .* no map"):
        table.append(pa.table({"id": [1], "headers": ["x"]}))
    assert table.arrow().to_pylist() == [{"id": 1, "headers": "x"}]
    with pytest.raises(SchemaError, match="no map"):
        table.set_shred({"headers": ["a"]})
