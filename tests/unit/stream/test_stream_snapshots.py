"""Streams over Iceberg tables: which snapshots bring rows, what changes are, and where a stream may begin."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

import penstock
from penstock.errors import LakeError, PenstockWarning, SchemaError
from penstock.lake.managed_table import ManagedTable
from penstock.stream.feed import Limit
from tests.fixtures.iceberg_deletes import append_with_deletes, data_files, delete_equal, delete_positions
from tests.fixtures.managed_tables import managed_table, reopened
from tests.unit.stream.conftest import SCHEMA, IcebergSource, ManagedSource, Stream, rows_of

Change = tuple[str, Any]


@pytest.fixture
def table(tmp_path: Path) -> IcebergSource:
    return IcebergSource(tmp_path)


@pytest.fixture
def managed(tmp_path: Path) -> ManagedSource:
    return ManagedSource(tmp_path)


def several(*parts: tuple[str | None, list[int]]) -> pa.Table:
    return pa.concat_tables([rows_of(app, ids) for app, ids in parts])


def changes(stream: Stream, files: int | None = None) -> Counter[Change]:
    """What one step brings, as kinds of changes with ids; all of one snapshot that is named."""
    step = stream.feed.step(stream.position, Limit(files))
    stream.position = step.end
    found: Counter[Change] = Counter()
    for work in step.work:
        for rows in stream.feed.rows().read(work):
            assert rows.schema.names[-2:] == ["_change_type", "_commit_snapshot_id"]
            assert set(rows["_commit_snapshot_id"].to_pylist()) == {work.snapshot}
            found.update(zip(rows["_change_type"].to_pylist(), rows["id"].to_pylist(), strict=True))
    return found


def test_only_files_that_were_added_are_read(table: IcebergSource) -> None:
    table.append(several(("A", [1]), ("B", [2])))
    stream = Stream(table)
    assert sorted(stream.poll()) == [1, 2]
    for i in range(3, 6):
        table.append(several(("A", [i]), ("B", [10 * i])))
        assert sorted(stream.poll()) == [i, 10 * i]
        assert len(stream.files) == 2


def test_manifests_that_are_merged_bring_no_file_twice(table: IcebergSource) -> None:
    with table.written.transaction() as change:
        change.set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
    stream = Stream(table)
    for i in range(5):
        table.add("A", [i])
        table.add("B", [10 + i])
        assert sorted(stream.poll()) == [i, 10 + i]
    snapshot = table.written.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.written.io)) < 5, "there are manifests with old and new files"


def test_manifests_that_penstock_merges_bring_no_file_twice(tmp_path: Path) -> None:
    properties = {"commit.manifest.min-count-to-merge": "2"}
    source = ManagedSource(tmp_path, {"coalesce": "app", "properties": properties})
    stream = Stream(source, "app = 'A'")
    for i in range(4):
        source.append(several(("A", [i]), ("B", [10 + i])))
        assert stream.poll() == [i]


def test_a_row_that_is_added_and_removed_by_one_snapshot_never_comes(table: IcebergSource) -> None:
    table.add("A", [1])
    stream = Stream(table)
    stream.poll()
    append_with_deletes(table.written, rows_of("A", [2, 3, 4]), [1])
    assert stream.poll() == [2, 4]
    assert sorted(Stream(table).poll()) == [1, 2, 4]


@pytest.mark.parametrize("kind", [IcebergSource, ManagedSource])
def test_a_snapshot_that_removes_rows_is_an_error_after_what_came_before(
    tmp_path: Path, kind: Callable[[Path], Any]
) -> None:
    source = kind(tmp_path)
    source.append(several(("A", [1, 2])))
    stream = Stream(source)
    stream.poll()
    source.add("A", [3])
    source.delete("id = 1")
    source.add("A", [4])
    assert stream.poll() == [3]
    for each in (stream, stream.restart()):
        with pytest.raises(LakeError, match=r"snapshot \d+ of web.t \((overwrite|delete)\) changes or removes"):
            each.poll()
    assert stream.restart(on_change="skip").poll() == [4]


def test_a_delete_of_pruned_partitions_does_not_stop_the_stream(table: IcebergSource) -> None:
    table.append(several(("A", [1]), ("B", [2, 3]), ("C", [4])))
    stream = Stream(table, "app = 'A'")
    stream.poll()
    table.delete("app = 'C'")
    table.delete("id = 2")
    delete_positions(table.written, {data_files(table.written)[-1].file_path: [0]}, named=True)
    table.add("A", [5])
    assert stream.poll() == [5]


def test_an_overwrite_of_pruned_partitions_still_brings_what_matches(managed: ManagedSource) -> None:
    managed.written.set_coalesce(None)
    managed.append(several(("A", [1]), ("B", [2])))
    stream = Stream(managed, "app = 'A'")
    stream.poll()
    managed.written.overwrite(several(("B", [3]), ("A", [4])), "app = 'B' OR id = 4")
    assert stream.poll() == [4]


def test_an_overwrite_that_is_passed_over_brings_nothing(managed: ManagedSource) -> None:
    managed.append(several(("A", [1]), ("B", [2])))
    stream = Stream(managed, on_change="skip")
    stream.poll()
    managed.written.overwrite(several(("B", [3])), "app = 'B'")
    managed.add("A", [4])
    assert stream.poll() == [4]


def test_changes_are_what_differs_and_not_what_was_carried_over(managed: ManagedSource) -> None:
    managed.append(several(("A", [1, 2, 2, 2]), ("B", [5])))
    stream = Stream(managed, on_change="changes")
    assert changes(stream) == Counter({("insert", 1): 1, ("insert", 2): 3, ("insert", 5): 1})
    managed.written.overwrite(several(("A", [2, 3])), "app = 'A'")
    assert changes(stream) == Counter({("delete", 1): 1, ("delete", 2): 2, ("insert", 3): 1})
    managed.delete("id = 5")
    assert changes(stream) == Counter({("delete", 5): 1})
    managed.written.compact()
    managed.add("A", [7])
    assert changes(stream) == Counter({("insert", 7): 1})


def test_changes_by_delete_files_are_rows_that_go(table: IcebergSource) -> None:
    table.append(several(("A", [1, 2, 3, 3])))
    stream = Stream(table, on_change="changes")
    changes(stream)
    (file,) = data_files(table.written)
    delete_positions(table.written, {file.file_path: [0, 2]})
    assert changes(stream) == Counter({("delete", 1): 1, ("delete", 3): 1})
    table.add("A", [3])
    assert changes(stream) == Counter({("insert", 3): 1})
    gone = next(file for file in data_files(table.written) if file.record_count == 4)
    ids = pa.table({"id": pa.array([3], pa.int64())})
    delete_equal(table.written, ids, [1], spec_id=gone.spec_id, partition=gone.partition)
    assert changes(stream) == Counter({("delete", 3): 2}), "what was deleted before is not deleted again"


def test_changes_are_those_of_matching_rows(managed: ManagedSource) -> None:
    managed.append(several(("A", [1, 2]), ("B", [3, 4])))
    stream = Stream(managed, "app = 'A' AND id > 1", on_change="changes")
    assert changes(stream) == Counter({("insert", 2): 1})
    managed.written.overwrite(several(("A", [1, 5]), ("B", [6])))
    assert changes(stream) == Counter({("delete", 2): 1, ("insert", 5): 1})


@pytest.mark.parametrize("rule", [None, "app"])
def test_changes_added_up_are_the_table(tmp_path: Path, rule: str | None) -> None:
    managed = ManagedSource(tmp_path, {"coalesce": rule})
    stream = Stream(managed, on_change="changes")
    managed.append(several(("A", [1, 1, 2]), ("B", [3]), (None, [4])))
    managed.delete("id = 1")
    managed.append(several(("A", [1, 5]), (None, [4])))
    managed.written.overwrite(several(("A", [2, 2])), dynamic=True)
    managed.written.compact()
    managed.delete("app IS NULL AND id = 4")
    found: Counter[Any] = Counter()
    for _ in range(10):
        for (kind, row), number in changes(stream, files=1).items():
            found[row] += number if kind == "insert" else -number
            assert found[row] >= 0, "nothing goes that was not there"
    assert +found == Counter(managed.table.arrow()["id"].to_pylist())


@pytest.mark.parametrize("rules", [({"m": ["a", "b"]}, None), (None, {"m": ["a", "b"]})])
def test_changes_of_maps_do_not_depend_on_the_order_of_their_entries(tmp_path: Path, rules: tuple[Any, Any]) -> None:
    table = managed_table(tmp_path, "id bigint, m map<string,string>", shred=rules[0])
    kind = pa.map_(pa.string(), pa.string())
    maps = pa.array([[("x", "1"), ("b", "2"), ("a", "3")], [("a", "4")], None], kind)
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "m": maps}))
    stream = Stream(_Opened(tmp_path), on_change="changes")  # type: ignore[arg-type]
    changes(stream)
    table.set_shred(rules[1])
    table.delete("id = 2")
    assert changes(stream) == Counter({("delete", 2): 1})


class _Opened:
    """A table by its root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def table(self) -> ManagedTable:
        return reopened(self.root)


def test_a_limit_of_bytes_holds_for_changes_too(managed: ManagedSource) -> None:
    managed.append(several(("A", list(range(8)))))
    stream = Stream(managed, on_change="changes")
    stream.poll()
    for i in range(3):
        managed.delete(f"id = {i}")
    size = stream.feed.step(stream.position, Limit(1)).work[0].size
    assert stream.drain(octets=size * 3 // 2) == [[0], [1], [2]]


def test_a_stream_begins_at_a_snapshot_a_tag_or_a_time_with_it(snapshots: Any) -> None:
    for i in range(4):
        snapshots.add("A", [i])
    made = sorted(snapshots.table.table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)
    written = snapshots.written.table if isinstance(snapshots, ManagedSource) else snapshots.written
    written.manage_snapshots().create_tag(made[1].snapshot_id, "march").commit()
    when = dt.datetime.fromtimestamp(made[2].timestamp_ms / 1000, dt.UTC)
    assert made[1].timestamp_ms < made[2].timestamp_ms, "two commits within a millisecond"
    assert Stream(snapshots, starting=made[2].snapshot_id).drain() == [[2, 3]]
    assert Stream(snapshots, starting=made[0].snapshot_id).drain(1) == [[0], [1], [2], [3]]
    assert Stream(snapshots, starting="march").drain(2) == [[1, 2], [3]]
    assert Stream(snapshots, starting=when).drain() == [[2, 3]]
    assert Stream(snapshots, starting=when + dt.timedelta(milliseconds=1)).drain() == [[3]]
    assert Stream(snapshots, starting="2000-01-01").drain() == [[0, 1, 2, 3]]
    assert Stream(snapshots, starting="2999-01-01").drain() == []


def test_a_time_is_in_the_zone_of_the_table(table: IcebergSource) -> None:
    table.add("A", [1])
    (snapshot,) = table.written.metadata.snapshots
    exact = dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC)
    late = exact + dt.timedelta(minutes=1)
    assert Stream(table, starting=exact.replace(tzinfo=None).isoformat()).drain() == [[1]]
    assert Stream(table, starting=late.replace(tzinfo=None).isoformat()).drain() == []
    zoned = late.astimezone(dt.timezone(dt.timedelta(hours=5))).isoformat()
    assert Stream(table, starting=zoned).drain() == []


def test_a_stream_begins_at_the_oldest_snapshot_that_is_left(managed: ManagedSource) -> None:
    for i in range(4):
        managed.add("A", [i])
    managed.written.expire(dt.timedelta(0), keep_last=2)
    oldest = managed.table.table.metadata.snapshots[0].snapshot_id
    assert Stream(managed, starting=oldest).drain(1) == [[2], [3]]
    with pytest.warns(PenstockWarning, match=f"before {oldest} have expired; the stream begins there"):
        stream = Stream(managed, starting="2000-01-01")
    stream.options["starting"] = "latest"
    assert stream.drain() == [[2, 3]]


def test_a_stream_does_not_begin_at_a_time_in_the_past_of_a_table(table: IcebergSource) -> None:
    table.add("A", [1])
    old = table.table.at(table.written.metadata.snapshots[0].snapshot_id)
    with pytest.raises(LakeError, match=r"as it was.*to which nothing comes"):
        Stream(_Given(old))  # type: ignore[arg-type]


def test_a_branch_is_followed(table: IcebergSource) -> None:
    table.add("A", [1])
    head = table.written.metadata.snapshots[0].snapshot_id
    table.written.manage_snapshots().create_branch(head, "audit").commit()
    stream = Stream(_Given(table.table.at("audit")))  # type: ignore[arg-type]
    assert stream.poll() == [1]
    table.add("A", [2])
    table.written.append(rows_of("A", [3]), branch="audit")
    assert stream.poll() == [3]


class _Given:
    """A table as it was opened."""

    def __init__(self, table: Any) -> None:
        self.table = table


def test_a_rollback_is_an_error(table: IcebergSource) -> None:
    table.add("A", [1])
    first = table.written.metadata.snapshots[0].snapshot_id
    table.add("A", [2])
    stream = Stream(table)
    assert sorted(stream.poll()) == [1, 2]
    table.written.manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(LakeError, match=r"which the table no longer comes from.*rolled back.*new checkpoint"):
        stream.poll()
    table.add("A", [3])
    with pytest.raises(LakeError, match="no longer comes from"):
        stream.restart().poll()


@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_rollback_while_the_files_of_a_snapshot_are_read_is_an_error(table: IcebergSource, starting: str) -> None:
    table.add("A", [1])
    first = table.written.metadata.snapshots[0].snapshot_id
    stream = Stream(table, starting="latest")
    table.append(several(("A", [2]), ("B", [3]), ("C", [4])))
    stream = Stream(table) if starting == "earliest" else stream
    stream.poll(1)
    table.written.manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(LakeError, match="no longer comes from"):
        stream.poll(1)


def test_an_added_column_is_no_matter_until_the_stream_is_started_again(table: IcebergSource) -> None:
    table.add("A", [1])
    stream = Stream(table)
    stream.poll()
    with table.written.update_schema() as change:
        change.add_column("extra", StringType())
    rows = rows_of("A", [2]).append_column("extra", pa.array(["x"]))
    table.append(rows)
    step = stream.feed.step(stream.position, Limit())
    (found,) = stream.feed.rows().read(step.work[0])
    assert found.schema.names == ["id", "app"]
    assert stream.restart().poll() == [2]
    assert stream.feed.schema.names == ["id", "app", "extra"]


@pytest.mark.parametrize("change", ["rename", "drop", "widen"])
def test_a_column_that_changes_while_the_stream_runs_is_an_error(tmp_path: Path, change: str) -> None:
    from tests.fixtures.iceberg_tables import create

    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table = create(tmp_path, schema)
    table.append(pa.table({"id": [1], "n": [1]}, schema=schema))
    stream = Stream(_Given(penstock.connect(tmp_path).table("web.t")))  # type: ignore[arg-type]
    assert stream.poll() == [1]
    with table.update_schema() as update:
        if change == "rename":
            update.rename_column("n", "m")
        elif change == "drop":
            update.delete_column("n")
        else:
            update.update_column("n", LongType())
    with pytest.raises(SchemaError, match=r"column n of web.t was int when the stream started.*start the stream again"):
        stream.poll()
    table.append(pa.table({"id": pa.array([2], pa.int64())}))
    stream.source = _Given(penstock.connect(tmp_path).table("web.t"))  # type: ignore[assignment]
    assert stream.restart().poll() == [2], "its checkpoint stays good"


def test_a_table_that_is_made_again_is_another_one(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    source.add("A", [1])
    stream = Stream(source)
    stream.poll()
    lake = penstock.connect(tmp_path)
    lake.catalog.drop_table("web.t")
    lake.create_table("web.t", SCHEMA, ["app"])
    with pytest.raises(LakeError, match="dropped and made again"):
        stream.poll()
    with pytest.raises(LakeError, match=r"the checkpoint is of web\.t"):
        stream.restart().poll()


def test_a_table_that_is_dropped_is_one_clear_line(managed: ManagedSource) -> None:
    managed.add("A", [1])
    stream = Stream(managed)
    stream.poll()
    penstock.connect(managed.root).catalog.drop_table("web.t")
    with pytest.raises(LakeError, match=r"web\.t cannot be opened: Table does not exist"):
        stream.poll()


def test_snapshots_without_a_match_move_the_position_when_they_are_many(table: IcebergSource) -> None:
    table.add("A", [0])
    stream = Stream(table, "app = 'A'")
    stream.poll()
    moves = 0
    for i in range(5):
        with table.written.transaction() as several_snapshots:
            for j in range(5):
                several_snapshots.append(rows_of("B", [5 * i + j]))
        before = stream.position
        assert stream.poll() == []
        moves += stream.position != before
    assert moves == 1
    table.add("A", [1])
    assert stream.restart().poll() == [1]
    assert stream.look.snapshots == 6, "the five after the position moved, and the one that matches"


def test_many_snapshots_come_one_file_at_a_time(managed: ManagedSource) -> None:
    stream = Stream(managed, "app = 'A'")
    for i in range(6):
        managed.append(several(("A", [i]), ("B", [100 + i])) if i % 2 else rows_of("B", [100 + i]))
    assert stream.poll(1) == [1]
    assert stream.look.pending_snapshots == 4
    assert stream.restart().drain(1) == [[3], [5]]


def test_a_snapshot_of_many_files_comes_in_parts(table: IcebergSource) -> None:
    stream = Stream(table, "app >= 'B'")
    table.append(several(*((chr(65 + i), [i]) for i in range(5))))
    table.append(several(*((chr(65 + i), [10 + i]) for i in range(5))))
    found = stream.drain(3)
    assert [len(batch) for batch in found] == [3, 3, 2]
    assert sorted(stream.got) == [1, 2, 3, 4, 11, 12, 13, 14]
    assert stream.position["total"]["files"] == 8


def test_rows_of_another_partition_in_a_shared_file_do_not_come(managed: ManagedSource) -> None:
    stream = Stream(managed, "app = 'A'")
    managed.append(several(("A", [1]), ("B", [2]), ("[#small]", [3])))
    managed.append(several(("B", [4]), ("C", [5])))
    assert stream.poll() == [1]
    assert (stream.look.files, stream.look.files_pruned) == (2, 1)


def test_a_table_of_format_version_1_is_followed(tmp_path: Path) -> None:
    managed = ManagedSource(tmp_path, {"coalesce": "app", "properties": {"format-version": "1"}})
    stream = Stream(managed)
    managed.add("A", [1])
    managed.add("B", [2])
    assert stream.drain(1) == [[1], [2]]
    managed.written.compact()
    managed.add("A", [3])
    assert stream.restart().drain() == [[3]]


def test_a_catalog_in_memory_cannot_be_followed(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("m", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("web")
    catalog.create_table("web.t", SCHEMA)
    with pytest.raises(LakeError, match="lives in the memory of this process"):
        Stream(_Given(penstock.connect(catalog=catalog).table("web.t")))  # type: ignore[arg-type]
