"""Hot keys that are found by the rows that are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Shred
from penstock.errors import SchemaError
from penstock.formats.manifest_record import SidecarRecord
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.shredding import (
    MAP,
    ids_of,
    maps_array,
    maps_of,
    records,
    rows,
    shredded_table,
    sidecars_of,
)


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

    def test_rows_without_one_map_still_choose_the_keys_of_another(self, tmp_path: Path) -> None:
        kinds = "id bigint, headers map<string,string>, other map<string,string>"
        table = shredded_table(tmp_path, {"headers": "auto", "other": "auto"}, kinds)
        table.append(pa.table({"id": [1]}))
        table.append(pa.table({"headers": maps_array([{"x": "1"}] * 10)}))
        assert self.chosen(table) == ["x"]
        assert table.count("headers['x'] = '1' AND other IS NULL") == 10

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (pa.table({"id": [1], "headers": ["x"]}), "headers is a map<string,string> and was given as string"),
            (
                pa.table({"id": [1], "headers": pa.array([[(1, "x")]], pa.map_(pa.int32(), pa.string()))}),
                "headers.key is a string and was given as int",
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
        assert records(table) == [
            SidecarRecord(frozenset(value), frozenset(value)) for value in _own(table, ["x"], ["q"])
        ]


def _own(table: ManagedTable, *keys: Sequence[str]) -> list[set[int]]:
    """The sidecars of keys; of files that come in any order, as the plan has them."""
    wanted = [{s.id for s in sidecars_of(table).values() if s.key in own} for own in keys]
    first = records(table)[0]
    return wanted if first is not None and first.value == wanted[0] else wanted[::-1]
