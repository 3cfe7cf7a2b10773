"""Logical partitions that share files: which files are planned, and that only the rows asked for are touched."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Coalesce
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import data_files as files
from tests.fixtures.managed_tables import (
    bag,
    entries,
    files_below,
    head_id,
    local,
    managed_table,
    reachable,
    reopened,
    tuples_of,
)

SCHEMA = "id bigint, app string, n int"


def rows(apps: list[str | None], first: int = 0) -> pa.Table:
    ids = range(first, first + len(apps))
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "app": pa.array(apps, pa.string()), "n": pa.array(ids, pa.int32())}
    )


def ids(table: Any, where: str | None = None) -> list[int]:
    return sorted(table.arrow(where)["id"].to_pylist())


def judged_ids(table: ManagedTable) -> list[int]:
    """What PyIceberg reads."""
    return sorted(table.table.scan().to_arrow()["id"].to_pylist())


def shared(root: Path, *parts: list[str | None], **options: Any) -> ManagedTable:
    """A table with one shared file for each part."""
    table = managed_table(root, SCHEMA, ["app"], coalesce=Coalesce("app", **options))
    first = 0
    for apps in parts:
        table.append(rows(apps, first))
        first += len(apps)
    return table


def recording(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """Let files be written with another text in their manifest entries."""
    monkeypatch.setattr(files, "encode_logical", lambda *args, **options: text)


class TestWhatIsRecorded:
    def test_files_are_skipped_by_their_tuples_alone(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "c", "e"], ["b", "d", "f"])
        assert tuples_of(table) == [[("a",), ("c",), ("e",)], [("b",), ("d",), ("f",)]]
        assert tuples_of(table, "app = 'c'") == [[("a",), ("c",), ("e",)]]
        assert tuples_of(table, "app IN ('b', 'f')") == [[("b",), ("d",), ("f",)]]
        assert tuples_of(table, "app = 'bb'") == []
        assert len(tuples_of(table, "app <> 'a'")) == 2
        assert ids(table, "app = 'c'") == [1]

    def test_a_shared_file_lies_in_one_physical_partition_and_under_the_coarse_spec(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, day date, app string", ["day", "app"], coalesce=["app"])
        day = dt.date(2026, 5, 17)
        table.append(pa.table({"id": [1, 2], "day": [day, day], "app": ["a", "b"]}))
        (task,) = table.plan().files
        assert "/day=2026-05-17/app=%5B%23small%5D/" in task.path
        assert task.spec_id != table.table.spec().spec_id == 0
        assert list(task.partition) == ["day"]
        assert [field.name for field in table.table.spec().fields] == ["day", "app"]
        assert pq.read_table(local(task.path))["app"].to_pylist() == ["a", "b"]

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            (None, True),
            ('{"complete": false, "columns": [2], "tuples": []}', True),
            ('{"complete": false, "columns": [2], "tuples": [["b"]]}', True),
            ('{"complete": true, "columns": [2], "tuples": []}', False),
            ('{"complete": true, "columns": [2], "tuples": [["b"]]}', False),
            ('{"complete": true, "columns": [2], "tuples": [["b"], ["zz"]]}', True),
            ('{"complete": true, "columns": [99], "tuples": [["b"]]}', True),
            ("{damaged", True),
            ("", True),
        ],
    )
    def test_absent_or_incomplete_keeps_and_complete_without_the_tuple_skips(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, kept: bool
    ) -> None:
        recording(monkeypatch, text)
        table = shared(tmp_path, ["a", "zz", "b", "zzz"])
        assert len(table.plan("app = 'zz'").files) == int(kept)
        assert ids(table, "app = 'zz'") == ([1] if kept else [])
        says_nothing = text is not None and text.startswith('{"complete": true') and '"tuples": []' in text
        assert ids(table) == ([] if says_nothing else [0, 1, 2, 3])

    @pytest.mark.parametrize("text", [None, '{"complete": false, "columns": [2], "tuples": []}', "{damaged"])
    def test_writes_read_the_rows_of_files_that_do_not_tell_their_tuples(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
    ) -> None:
        recording(monkeypatch, text)
        table = shared(tmp_path, ["a", "b", "c"], ["a", "d"])
        monkeypatch.undo()
        table.overwrite(rows(["a"], 10), dynamic=True)
        assert ids(table) == [1, 2, 4, 10]
        table.delete("app = 'b'")
        assert ids(table) == [2, 4, 10]
        table.compact()
        assert ids(table) == judged_ids(table) == [2, 4, 10]
        assert tuples_of(table) == [[("a",), ("c",), ("d",)]], "what was incomplete is complete now"

    def test_tuples_of_two_columns_are_tested_jointly(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, a string, b int", ["a", "b"], coalesce=["a", "b"])
        pairs = [("A", 1), ("B", 2), (None, 3), ("C", None)]
        table.append(pa.table({
            "id": list(range(4)), "a": [a for a, _ in pairs], "b": pa.array([b for _, b in pairs], pa.int32())
        }))  # fmt: skip
        assert len(list(entries(table))) == 1
        kept = {
            "a = 'A' AND b = 1": [0],
            "a = 'A' AND b = 2": None,
            "a = 'B' AND b = 1": None,
            "a IS NULL AND b = 3": [2],
            "a IS NULL AND b = 1": None,
            "a IS NULL AND b IS NULL": None,
            "a = 'C' AND b IS NULL": [3],
            "a = 'C' AND b <=> NULL": [3],
            "a <> 'A' AND b = 1": None,
            "a = 'A' OR b = 2": [0, 1],
            "(a, b) IN (('A', 2), ('B', 2))": [1],
        }
        for where, found in kept.items():
            assert len(table.plan(where).files) == (found is not None), where
            assert ids(table, where) == (found or []), where

    def test_null_in_a_tuple_is_neither_text_nor_the_name_of_a_default_partition(self, tmp_path: Path) -> None:
        table = shared(tmp_path, [None, "a"], ["null", "__HIVE_DEFAULT_PARTITION__", ""])
        assert ids(table, "app IS NULL") == [0]
        assert tuples_of(table, "app IS NULL") == [[("a",), (None,)]]
        assert tuples_of(table, "app = 'null'") == [[("",), ("__HIVE_DEFAULT_PARTITION__",), ("null",)]]
        assert ids(table, "app = '__HIVE_DEFAULT_PARTITION__'") == [3]
        assert ids(table, "app IS NOT NULL") == [1, 2, 3, 4]
        assert ids(table, "app <> 'a'") == [2, 3, 4]
        assert len(table.plan("app <> 'a'").files) == 1, "of the first only null is left, which is neither"
        assert ids(table, "app NOT IN ('a', 'null')") == [3, 4]
        table.delete("app IS NULL")
        assert ids(table) == [1, 2, 3, 4]

    def test_predicates_over_a_logical_and_a_data_column_use_both(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b"], ["b", "c"])
        kept = {
            "app = 'b' AND n = 1": [1], "app = 'b' AND n >= 2": [2], "app = 'a' AND n = 3": None,
            "app = 'c' OR n = 0": [0, 3], "concat(app, cast(n AS string)) = 'b2'": [2],
        }  # fmt: skip
        for where, found in kept.items():
            assert ids(table, where) == (found or []), where
        assert [len(table.plan(where).files) for where in kept] == [1, 1, 0, 2, 2]

    def test_a_user_value_that_looks_like_the_physical_name_is_only_itself(self, tmp_path: Path) -> None:
        rules = [None, Coalesce("app"), Coalesce("app", values=["a"]), Coalesce("app", values=["[#small]"])]
        for i, rule in enumerate(rules):
            table = managed_table(tmp_path / str(i), SCHEMA, ["app"], coalesce=rule)
            table.append(rows(["[#small]", "a", "b", "%5B%23small%5D", None]))
            assert ids(table, "app = '[#small]'") == [0]
            assert ids(table, "app = '%5B%23small%5D'") == [3]
            assert table.arrow("app = '[#small]'")["app"].to_pylist() == ["[#small]"]
            table.overwrite(rows(["[#small]"], 10), dynamic=True)
            assert ids(table) == judged_ids(table) == [1, 2, 3, 4, 10]
            table.delete("app = '[#small]'")
            assert ids(table) == judged_ids(table) == [1, 2, 3, 4]
            table.compact()
            assert ids(table) == judged_ids(table) == [1, 2, 3, 4]

    def test_the_physical_name_never_leaks(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b"], ["c"])
        assert ids(table, "app = '[#small]'") == []
        assert len(table.plan("app = '[#small]'").files) == 0
        assert "[#small]" not in str(table.arrow().to_pylist())
        assert "[#small]" not in str(table.partitions().to_pylist())
        assert sorted(row["app"] for row in table.partitions().to_pylist()) == ["a", "b", "c"]
        assert (table.minimum("app"), table.maximum("app")) == ("a", "c")


class TestRuleChanges:
    def test_files_of_an_old_rule_are_found_by_what_was_recorded_in_them(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b", "c"])
        table.set_coalesce(None)
        table.append(rows(["a", "b"], 10))
        table.set_coalesce(Coalesce("app", values=["b", "c"]))
        table.append(rows(["a", "b", "c"], 20))
        assert tuples_of(table, "app = 'a'").count(None) == 2
        found = {where: len(table.plan(where).files) for where in ("app = 'a'", "app = 'b'", "app = 'c'", "app = 'd'")}
        assert found == {"app = 'a'": 3, "app = 'b'": 3, "app = 'c'": 2, "app = 'd'": 0}
        assert ids(table, "app = 'a'") == [0, 10, 20]
        table.overwrite(rows(["b"], 30), dynamic=True)
        assert ids(table) == judged_ids(table) == [0, 2, 10, 20, 22, 30]

    def test_a_rule_over_other_columns_reads_and_rewrites_the_older_files(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, a string, b string", ["a", "b"], coalesce=["a"])

        def some(first: int) -> pa.Table:
            return pa.table({"id": [first, first + 1, first + 2], "a": ["x", "y", "x"], "b": ["p", "p", "q"]})

        for i, rule in enumerate((["a"], ["b"], ["a", "b"], ["b", "a"], None)):
            table.set_coalesce(rule)
            table.append(some(10 * i))
        assert ids(table, "a = 'x' AND b = 'p'") == [0, 10, 20, 30, 40]
        assert len(table.plan("a = 'y' AND b = 'q'").files) == 0
        for rule in (["b"], ["a", "b"], ["a"], None):
            table.set_coalesce(rule)
            table.overwrite(pa.table({"id": [99], "a": ["x"], "b": ["p"]}), dynamic=True)
            expected = [1, 2, 11, 12, 21, 22, 31, 32, 41, 42, 99]
            assert ids(table) == judged_ids(table) == expected
            table.compact()
            assert ids(table) == judged_ids(table) == expected
            assert len(table.plan("a = 'y' AND b = 'q'").files) == 0

    def test_time_travel_sees_the_mapping_of_each_snapshot(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b", "c"])
        moments: list[tuple[int | None, list[int], int | None]] = [(head_id(table), [0, 1, 2], 1)]
        table.set_coalesce(None)
        table.append(rows(["a"], 10))
        moments.append((head_id(table), [0, 1, 2, 10], 2))
        table.compact()
        moments.append((head_id(table), [0, 1, 2, 10], None))
        table.set_coalesce(Coalesce("app"))
        table.compact()
        moments.append((head_id(table), [0, 1, 2, 10], 1))
        table.delete("app = 'a'")
        moments.append((head_id(table), [1, 2], 0))
        assert len({snapshot for snapshot, _, _ in moments}) == 5
        for snapshot, expected, planned in moments:
            old = table.at(snapshot)
            assert ids(old) == expected
            assert ids(old, "app = 'a'") == [i for i in expected if i in (0, 10)]
            assert planned is None or len(old.plan("app = 'a'").files) == planned
        shapes = [tuples_of(table.at(snapshot)) for snapshot, _, _ in moments]  # type: ignore[arg-type]
        every = [("a",), ("b",), ("c",)]
        assert [*shapes[:2], *shapes[3:]] == [[every], [None, every], [every], [every[1:]]]
        assert set(map(str, shapes[2])) == {"None"}, "no file is shared there"


class TestOperations:
    def test_nothing_of_one_logical_partition_touches_a_row_of_another_in_the_same_file(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b", "a", None], ["b", "c"])
        table.delete("app = 'a'")
        assert ids(table) == judged_ids(table) == [1, 3, 4, 5]
        table.overwrite(rows(["b", "d"], 10), "app IN ('b', 'd')")
        assert ids(table) == judged_ids(table) == [3, 5, 10, 11]
        table.overwrite(rows(["d"], 20), dynamic=True)
        assert ids(table) == judged_ids(table) == [3, 5, 10, 20]
        table.overwrite(rows(["e"], 30), "app IS NULL OR app = 'e'")
        assert ids(table) == judged_ids(table) == [5, 10, 20, 30]
        table.compact()
        table.expire(older_than=dt.timedelta(0))
        table.sweep(older_than=dt.timedelta(0), force=True)
        assert ids(table) == ids(reopened(tmp_path)) == judged_ids(table) == [5, 10, 20, 30]
        assert files_below(tmp_path) == reachable(table)

    def test_a_delete_rewrites_only_the_shared_files_that_have_the_partition(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b"], ["b", "c"], ["c", "d"])
        before = {task.path: task.logical for task in table.plan().files}
        table.delete("app = 'b'")
        after = {task.path: task.logical for task in table.plan().files}
        kept = set(before) & set(after)
        assert [before[path].tuples for path in kept] == [(("c",), ("d",))]  # type: ignore[union-attr]
        assert tuples_of(table) == [[("a",)], [("c",), ("d",)], [("c",)]]

    def test_a_delete_of_whole_files_reads_none_of_them(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
        table.append(rows(["a", "b", "c", "d"]))
        table.append(rows(["a", "e"], 10))
        for task in table.plan("app IN ('a', 'b', 'c')").files:
            Path(local(task.path)).write_bytes(b"no Parquet")
        table.delete("app IN ('a', 'b') OR app = 'c'")
        assert ids(table) == judged_ids(table) == [3, 11]
        summary = table.table.metadata.current_snapshot().summary
        assert summary.operation.value == "delete"
        assert summary.additional_properties["deleted-data-files"] == "3"
        for task in table.plan("app = 'e'").files:
            Path(local(task.path)).write_bytes(b"no Parquet")
        table.overwrite(rows(["e"], 20), dynamic=True)
        assert ids(table) == judged_ids(table) == [3, 20]
        for task in table.plan().files:
            Path(local(task.path)).write_bytes(b"no Parquet")
        table.overwrite(rows(["z"], 30))
        assert ids(table) == judged_ids(table) == [30]

    def test_a_dynamic_overwrite_replaces_exactly_the_partitions_of_the_new_rows(self, tmp_path: Path) -> None:
        schema = "id bigint, ts timestamp, app string"
        table = managed_table(tmp_path, schema, ["day(ts)", "app"], coalesce=Coalesce("app", values=["a", "b"]))

        def at(i: int, day: int, hour: int, app: str | None) -> dict[str, Any]:
            return {"id": i, "ts": dt.datetime(2026, 5, day, hour, tzinfo=dt.UTC), "app": app}

        kinds = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("app", pa.string())])
        first = [
            at(0, 1, 0, "a"),
            at(1, 1, 23, "b"),
            at(2, 2, 0, "a"),
            at(3, 1, 5, "c"),
            at(4, 2, 5, "c"),
            at(5, 1, 1, None),
        ]
        table.append(pa.Table.from_pylist(first, kinds))
        table.overwrite(pa.Table.from_pylist([at(10, 1, 7, "a"), at(11, 2, 7, "c")], kinds), dynamic=True)
        assert ids(table) == judged_ids(table) == [1, 2, 3, 5, 10, 11]
        table.overwrite(pa.Table.from_pylist([at(20, 1, 7, None), at(21, 3, 7, "a")], kinds), dynamic=True)
        assert ids(table) == judged_ids(table) == [1, 2, 3, 10, 11, 20, 21]

    def test_manifests_that_another_writer_rewrote_lose_the_field_and_results_stay_right(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "c"], ["b", "d"])
        assert len(table.plan("app = 'b'").files) == 1
        other = table.table
        settings = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "1"}
        other.transaction().set_properties(settings).commit_transaction()
        other.append(rows(["b"], 10).cast(other.schema().as_arrow()))
        table.refresh()
        assert tuples_of(table).count(None) == 3, "PyIceberg keeps no field that it does not know"
        assert len(table.plan("app = 'b'").files) == 3
        assert len(table.plan("app = 'zz'").files) == 0, "bounds still help"
        assert ids(table, "app = 'b'") == [2, 10]
        table.overwrite(rows(["b"], 20), dynamic=True)
        assert ids(table) == judged_ids(table) == [0, 1, 3, 20]
        table.compact()
        assert tuples_of(table) == [[("a",), ("b",), ("c",), ("d",)]]
        assert ids(table) == judged_ids(table) == [0, 1, 3, 20]

    def test_compaction_unites_tuples_and_puts_small_files_together(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b"], ["b", "c"], ["d"])
        done = table.compact()
        assert (done.files_before, done.files_after) == (3, 1)
        assert tuples_of(table) == [[("a",), ("b",), ("c",), ("d",)]]
        (task,) = table.plan().files
        read = pq.read_table(local(task.path))["app"].to_pylist()
        assert read == sorted(read), "a shared file is sorted by its logical values"
        assert ids(table) == judged_ids(table) == [0, 1, 2, 3, 4]

    def test_the_counts_of_rows_in_a_shared_file_are_those_of_its_rows(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b", "a", None, "a"])
        table.delete("id = 0")
        partitions = {row["app"]: row["rows"] for row in table.partitions().to_pylist()}
        assert partitions == {"a": 2, "b": 1, None: 1}

    def test_a_partition_that_grew_gets_files_of_its_own_and_one_that_shrank_is_folded_in(self, tmp_path: Path) -> None:
        table = shared(tmp_path, ["a", "b", "c"], below=4_000)
        assert tuples_of(table) == [[("a",), ("b",), ("c",)]]
        table.append(rows(["a"] * 3_000, 1_000))
        assert tuples_of(table, "app = 'a'") == [None, [("a",), ("b",), ("c",)]], "the new rows are large enough"
        everything = bag(table.arrow())
        table.compact()
        assert bag(table.arrow()) == everything
        assert tuples_of(table) == [None, [("b",), ("c",)]]
        assert tuples_of(table, "app = 'a'") == [None]
        table.delete("app = 'a' AND id > 1010")
        assert ids(table, "app = 'a'") == [0, *range(1000, 1011)]
        assert table.compact().folded == 1
        assert tuples_of(table) == [[("a",), ("b",), ("c",)]]
        assert ids(table) == judged_ids(table) == [0, 1, 2, *range(1000, 1011)]

    def test_a_partition_is_measured_with_what_the_table_holds_of_it(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", below=20_000))
        for i in range(6):
            table.append(rows(["a"] * 1_000, 1_000 * i))
        kinds = tuples_of(table)
        assert None in kinds, "it outgrew the rule at some append"
        assert [("a",)] in kinds, "and was small at first"
        assert table.count("app = 'a'") == 6_000

    def test_many_small_values_are_packed_by_range_so_that_each_lies_in_one_file(self, tmp_path: Path) -> None:
        table = managed_table(
            tmp_path, SCHEMA, ["app"], coalesce=["app"], properties={"write.target-file-size-bytes": "2000"}
        )
        apps = [f"app{i:03}" for i in range(400) for _ in range(5)]
        table.append(rows(apps))
        found = tuples_of(table)
        assert len(found) > 3
        ranges = sorted((min(each), max(each)) for each in found if each is not None)
        assert all(high < low for (_, high), (low, _) in pairwise(ranges))
        assert all(len(table.plan(f"app = '{app}'").files) == 1 for app in ("app000", "app123", "app399"))


def test_the_text_in_the_manifest_is_as_documented(tmp_path: Path) -> None:
    table = shared(tmp_path, ["b", "a", None, "b"])
    (manifest,) = table.table.metadata.current_snapshot().manifests(table.table.io)
    with open(local(manifest.manifest_path), "rb") as file:
        (entry,) = fastavro.reader(file)
    told = json.loads(entry["data_file"]["logical_partition_values"])
    assert entry["data_file"]["map_shredding"] is None
    assert told["complete"] is True
    assert told["columns"] == [2]
    assert dict(zip(map(str, told["tuples"]), told["rows"], strict=True)) == {"['b']": 2, "['a']": 1, "[None]": 1}


def test_a_file_that_is_written_twice_by_one_compaction_counts_once(tmp_path: Path) -> None:
    table = shared(tmp_path, ["a", "b", "c"])
    table.set_coalesce(None)
    table.append(rows(["a", "b", "c"], 3))
    done = table.compact()
    assert str(done).startswith("4 of 4 files became 3")
    assert (done.files_before, done.rewritten, done.written, done.files_after) == (4, 4, 3, 3)
    assert done.bytes_written == sum(task.size or 0 for task in table.plan().files)
