"""What bounds of sidecars skip, and what they never skip."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, MapType, NestedField, StringType, StructType

from penstock import Shred
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import local
from tests.fixtures.shredding import (
    MAP,
    foreign_append,
    ids_of,
    kept,
    records,
    rows,
    shredded_table,
    sidecars_of,
)

MODES = ["move", "mirror"]


@pytest.fixture(scope="module", params=MODES)
def four(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ManagedTable:
    """Four files, each with its own values; nothing more is written to them."""
    table = shredded_table(tmp_path_factory.mktemp("four"), {"headers": Shred("a", "b", mode=request.param)})
    for i in range(4):
        table.append(rows([{"a": f"v{i}", "c": "x"}, {"a": f"v{i}z"}], 10 * i))
    return table


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
