"""What other writers do to a shredded table, and what they see of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from penstock import Shred
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.iceberg_deletes import data_files, delete_equal, delete_positions
from tests.fixtures.managed_tables import local, reopened
from tests.fixtures.shredding import (
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
