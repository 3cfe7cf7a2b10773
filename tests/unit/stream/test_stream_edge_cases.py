"""The section "Streaming" of the edge cases, line by line, on every kind of table that it is about."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError, LayoutError, MissingError, PenstockWarning
from penstock.stream.feed import Limit
from penstock.stream.stream_options import as_options
from tests.unit.stream.conftest import (
    HiveSource,
    IcebergSource,
    ManagedSource,
    Source,
    Stream,
    ids_of,
    rows_of,
    stored,
    touch,
)


def test_a_matching_partition_born_after_the_start_is_read_and_another_never(source: Source) -> None:
    source.add("A", [1, 2])
    source.add("B", [3])
    stream = Stream(source, "app = 'A' OR app = 'C'")
    assert stream.poll() == [1, 2]
    source.add("C", [4])
    source.add("D", [5])
    source.add("B", [6])
    assert stream.poll() == [4]
    assert len(stream.files) == 1, "not one file of another partition"
    assert stream.poll() == []


def test_a_table_without_a_catalog_is_followed_by_its_folder(tmp_path: Path) -> None:
    source = IcebergSource(tmp_path, by_folder=True)
    source.add("A", [1])
    stream = Stream(source, "app = 'A'")
    assert stream.poll() == [1]
    source.append(pa.concat_tables([rows_of("B", [2]), rows_of("A", [3])]))
    source.add("A", [4])
    assert stream.restart().drain(1) == [[3], [4]]


def test_a_metadata_file_is_read_once_and_nothing_comes(tmp_path: Path) -> None:
    source = IcebergSource(tmp_path)
    source.add("A", [1])
    feed = penstock.iceberg(source.written.metadata_location.removeprefix("file://")).feed(as_options({}))
    step = feed.step(feed.start(), Limit())
    assert ids_of(feed, step.work) == [1]
    source.add("A", [2])
    assert not feed.step(step.end, Limit()).work


def test_only_branches_that_match_are_listed(layout: HiveSource) -> None:
    for app in "ABCDE":
        layout.add(app, [1])
    stream = Stream(layout, "app IN ('A', 'C')")
    stream.poll()
    look = stream.look
    assert (look.list_calls, look.partitions, look.partitions_pruned, look.files) == (3, 5, 3, 2)
    layout.add("F", [2])
    layout.add("C", [3])
    assert stream.poll() == [3]
    look = stream.look
    assert (look.list_calls, look.partitions, look.partitions_pruned, look.files) == (3, 6, 4, 3)


def test_branches_of_two_levels_are_listed_by_what_the_predicate_admits(
    layout_of: Callable[[str], HiveSource],
) -> None:
    layout = layout_of("dt date, hr int")
    for day in (16, 17):
        for hour in (9, 10, 11):
            layout.add(f"dt=2026-05-{day}/hr={hour}", [day * 100 + hour])
    stream = Stream(layout, "dt = '2026-05-17' AND hr >= 10")
    assert stream.poll() == [1710, 1711]
    assert stream.look.list_calls == 1 + 1 + 2
    layout.add("dt=2026-05-18/hr=10", [1810])
    layout.add("dt=2026-05-17/hr=12", [1712])
    assert stream.poll() == [1712]
    assert stream.look.list_calls == 1 + 1 + 3


def test_files_that_do_not_match_are_counted_as_pruned(snapshots: Source) -> None:
    stream = Stream(snapshots, "app = 'A'")
    snapshots.add("A", [1])
    snapshots.add("B", [2])
    snapshots.add("C", [3])
    assert stream.poll() == [1]
    assert (stream.look.snapshots, stream.look.files, stream.look.files_pruned) == (3, 3, 2)


def test_a_stream_at_which_nothing_matches_keeps_watching(source: Source) -> None:
    source.add("B", [1])
    stream = Stream(source, "app = 'A'")
    for i in range(3):
        assert stream.poll() == []
        source.add("B", [10 + i])
    source.add("A", [2])
    assert stream.poll() == [2]


def test_an_empty_table_is_watched(source: Source) -> None:
    stream = Stream(source)
    assert stream.poll() == []
    source.add("A", [1])
    assert stream.restart().poll() == [1]


def test_files_of_one_time_found_in_different_polls_come_once(layout: HiveSource) -> None:
    stream = Stream(layout)
    got = []
    for names in (["m"], ["a", "z"], ["b"], ["y", "c"]):
        for name in names:
            layout.add("A", [ord(name)], at=5, name=f"{name}.parquet")
        got.append([chr(i) for i in stream.poll()])
    assert got == [["m"], ["a", "z"], ["b"], ["c", "y"]]
    assert stream.poll() == []


def test_files_of_one_time_come_once_with_a_limit_of_one(layout: HiveSource) -> None:
    stream = Stream(layout)
    for name in "mz":
        layout.add("A", [ord(name)], at=5, name=f"{name}.parquet")
    assert stream.poll(1) == [ord("m")]
    layout.add("A", [ord("a")], at=5, name="a.parquet")
    assert stream.restart().drain(1) == [[ord("z")], [ord("a")]]


@pytest.mark.parametrize("kind", ["hr int", "hr bigint", "hr double", "hr decimal(4,1)"])
def test_partitions_are_ordered_by_type(layout_of: Callable[[str], HiveSource], kind: str) -> None:
    layout = layout_of(kind)
    for hour in (10, 9, 100, -1):
        layout.add(f"hr={hour}", [hour])
    assert Stream(layout, order="partition-name").drain(1) == [[-1], [9], [10], [100]]


def test_partitions_of_text_are_ordered_as_text(layout_of: Callable[[str], HiveSource]) -> None:
    layout = layout_of("hr string")
    for hour in (10, 9, 100):
        layout.add(f"hr={hour}", [hour])
    assert Stream(layout, order="partition-name").drain(1) == [[10], [100], [9]]


@pytest.mark.parametrize("order", ["create-time", "partition-name"])
def test_a_pruned_partition_never_moves_the_position_past_a_matching_one(
    layout_of: Callable[[str], HiveSource], order: str
) -> None:
    layout = layout_of("hr int, app string")
    layout.add("hr=20/app=B", [1], at=500)
    stream = Stream(layout, "app = 'A'", order=order)
    assert stream.poll() == []
    layout.add("hr=30/app=B", [2], at=600)
    layout.add("hr=5/app=A", [3], at=3)
    assert stream.poll() == [3]
    layout.add("hr=4/app=A", [4], at=2)
    layout.add("hr=40/app=B", [5], at=700)
    assert stream.restart().poll() == [4]


def test_new_files_in_a_partition_that_was_read_come_once(source: Source) -> None:
    stream = Stream(source, "app = 'A'")
    for i in range(4):
        source.add("A", [i])
        assert stream.poll() == [i]
        assert stream.poll() == []


@pytest.mark.parametrize("rows", [[2], [1, 2, 3]])
def test_a_file_that_is_written_again_is_an_error(layout: HiveSource, rows: list[int]) -> None:
    layout.add("A", [1], name="a.parquet")
    stream = Stream(layout)
    stream.poll()
    layout.add("A", rows, at=100, name="a.parquet")
    with pytest.raises(LayoutError, match=r"a\.parquet was written again after the stream had read it.*on_change"):
        stream.poll()
    with pytest.raises(LayoutError, match="was written again"):
        stream.restart().poll()


def test_a_file_that_is_written_again_is_said_once_and_left_out(layout: HiveSource) -> None:
    layout.add("A", [1], name="a.parquet")
    stream = Stream(layout, on_change="skip")
    stream.poll()
    layout.add("A", [2], at=100, name="a.parquet")
    layout.add("A", [3])
    with pytest.warns(PenstockWarning, match=r"a\.parquet was written again.*not read"):
        assert ids_of(stream.feed, stream.feed.step(stream.position, Limit()).work) == [3]
    assert stream.poll() == [3]
    assert stream.restart().poll() == []


@pytest.mark.parametrize("again", ["0001", "0003"])
def test_a_file_of_a_batch_in_several_parts_that_is_written_again_is_an_error(layout: HiveSource, again: str) -> None:
    for i in range(3):
        layout.add("A", [i])
    stream = Stream(layout)
    assert stream.poll(1) == [0]
    layout.add("A", [10], at=50, name=f"{again}.parquet")
    with pytest.raises(LayoutError, match="was written again while"):
        stream.poll(1)


def test_a_file_of_a_batch_in_several_parts_that_is_written_again_is_not_read_twice(layout: HiveSource) -> None:
    for i in range(3):
        layout.add("A", [i])
    stream = Stream(layout, on_change="skip")
    assert stream.poll(1) == [0]
    layout.add("A", [10], at=50, name="0001.parquet")
    with pytest.warns(PenstockWarning, match="was written again while"):
        assert stream.drain(1) == [[1], [2]]


def test_a_replay_does_not_read_a_file_that_was_read_before_and_written_again(layout: HiveSource) -> None:
    for i in range(3):
        layout.add("A", [i])
    stream = Stream(layout)
    stream.poll(2)
    assert stream.poll(2) == [2]
    layout.add("A", [10], at=50, name="0001.parquet")
    with pytest.raises(LayoutError, match="was written again while"):
        stream.replayed()
    with pytest.warns(PenstockWarning, match="was written again while"):
        assert stream.replayed(on_change="skip") == [2]


@pytest.mark.parametrize("files", [1, None])
def test_a_stream_may_be_restarted_at_every_step(source: Source, files: int | None) -> None:
    """`poll` reads every batch again in a fresh feed, which is the restart before the commit."""
    stream = Stream(source, "app != 'B'")
    for i in range(3):
        source.add("A", [10 * i])
        source.add("B", [10 * i + 1])
        source.add("C", [10 * i + 2])
        stream.restart().poll(files)
    while stream.restart().poll(files):
        pass
    assert sorted(stream.got) == [0, 2, 10, 12, 20, 22]


def test_a_crash_after_planning_loses_nothing(source: Source) -> None:
    stream = Stream(source)
    source.add("A", [1])
    stream.feed.step(stream.position, Limit())
    source.add("A", [2])
    assert sorted(stream.restart().poll()) == [1, 2]


def test_a_replay_reads_what_the_batch_had_and_not_what_came_since(source: Source) -> None:
    stream = Stream(source)
    source.add("A", [1])
    stream.poll()
    source.add("A", [2])
    source.add("B", [3])
    assert stream.replayed() == [1]
    assert sorted(stream.restart().poll()) == [2, 3]


@pytest.mark.parametrize("starting", ["latest", "earliest"])
def test_the_first_batch_is_the_same_though_the_beginning_is_asked_for_anew(source: Source, starting: str) -> None:
    """Spark keeps no position before the first batch."""
    source.add("A", [1])
    stream = Stream(source, starting=starting)
    source.add("A", [2])
    first = stream.poll()
    assert sorted(first) == ([2] if starting == "latest" else [1, 2])
    source.add("A", [3])
    feed = stream.fresh()
    assert ids_of(feed, feed.again(stored(feed.start()), stream.position)) == first
    assert stream.restart().poll() == [3]
    assert stream.position["total"]["files"] == len(first) + 1


def test_a_changed_predicate_is_refused(source: Source) -> None:
    source.add("A", [1])
    stream = Stream(source, "app = 'A'")
    stream.poll()
    stream.restart(where="app = 'B'")
    for ask in (stream.poll, stream.replayed):
        with pytest.raises(LakeError, match=r"made with the filter app = 'A', and now it is app = 'B'"):
            ask()


def test_the_same_predicate_in_other_words_is_none(source: Source) -> None:
    source.add("A", [1])
    stream = Stream(source, "app = 'A'")
    stream.poll()
    source.add("A", [2])
    assert stream.restart(where="  (app   =  'A') ").poll() == [2]


def test_an_allowed_predicate_filters_what_comes(source: Source) -> None:
    source.add("B", [1])
    source.add("A", [2])
    stream = Stream(source, "app = 'A'")
    assert stream.poll() == [2]
    stream.restart(where="app = 'B'", allow_filter_change=True)
    assert stream.poll() == []
    source.add("A", [3])
    source.add("B", [4])
    assert stream.restart().poll() == [4]
    source.add("B", [5])
    assert stream.restart(allow_filter_change=False).poll() == [5]


def test_an_allowed_predicate_with_new_files_at_once_reads_only_those(source: Source) -> None:
    source.add("B", [1])
    source.add("A", [2])
    stream = Stream(source, "app = 'A'")
    stream.poll()
    source.add("B", [3])
    assert stream.restart(where="app = 'B'", allow_filter_change=True).poll() == [3]


def test_a_predicate_is_not_changed_among_files_that_are_still_to_be_read(source: Source) -> None:
    for i in range(3):
        source.add("A", [i])
    stream = Stream(source, "app = 'A'")
    stream.poll(1)
    stream.restart(where="app = 'B'", allow_filter_change=True)
    with pytest.raises(LakeError, match=r"filter changed while files that were found with app = 'A'.*old filter"):
        stream.poll(1)


def test_a_predicate_is_not_changed_before_a_batch_of_a_layout_is_done(layout: HiveSource) -> None:
    layout.add("A", [1])
    stream = Stream(layout, "app = 'A'")
    stream.poll()
    with pytest.raises(LakeError, match=r"filter changed before a batch that was found with app = 'A' was done"):
        stream.replayed(where="app = 'B'", allow_filter_change=True)


def test_a_compaction_between_two_triggers_brings_no_row(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    stream = Stream(source, "app = 'A'")
    for i in range(3):
        source.append(pa.concat_tables([rows_of("A", [i]), rows_of("B", [100 + i])]))
    assert stream.poll(1) == [0]
    assert source.written.compact().files_after == 1
    source.add("A", [3])
    assert stream.restart().drain(1) == [[1], [2], [3]]
    source.written.compact()
    assert stream.drain() == []


def test_a_compaction_in_the_middle_of_a_table_that_is_read_whole_brings_no_row(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    for i in range(4):
        source.add("A", [i])
    stream = Stream(source)
    first = stream.poll(2)
    source.written.compact()
    assert sorted(first + stream.restart().poll() + stream.poll()) == [0, 1, 2, 3]


def test_an_expired_snapshot_that_was_not_read_is_an_error(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    source.add("A", [0])
    stream = Stream(source)
    stream.poll()
    for i in range(1, 4):
        source.add("A", [i])
    source.written.expire(dt.timedelta(0), keep_last=1)
    for each in (stream, stream.restart()):
        with pytest.raises(LakeError, match=r"expired before the stream had read them.*new checkpoint"):
            each.poll()


def test_the_first_snapshots_that_expire_before_they_were_read_are_an_error(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    stream = Stream(source)
    assert stream.poll() == []
    for i in range(3):
        source.add("A", [i])
    source.written.expire(dt.timedelta(0), keep_last=1)
    with pytest.raises(LakeError, match="after the beginning have expired before the stream had read them"):
        stream.poll()


def test_a_snapshot_that_expires_after_it_was_read_does_not_matter(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    source.add("A", [0])
    stream = Stream(source)
    stream.poll()
    source.add("A", [1])
    source.written.expire(dt.timedelta(0), keep_last=1)
    assert stream.restart().poll() == [1]
    source.add("A", [2])
    assert stream.poll() == [2]


def test_a_table_with_expired_snapshots_is_read_from_its_earliest_state(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    for i in range(4):
        source.add("A", [i])
    source.written.expire(dt.timedelta(0), keep_last=1)
    stream = Stream(source)
    source.add("A", [4])
    stream.drain(1)
    assert sorted(stream.got) == [0, 1, 2, 3, 4]


def test_a_snapshot_that_expires_while_its_files_are_read_is_an_error(tmp_path: Path) -> None:
    source = ManagedSource(tmp_path)
    for i in range(2):
        source.add("A", [i])
    stream = Stream(source)
    stream.poll(1)
    source.written.compact()
    source.add("A", [2])
    source.written.expire(dt.timedelta(0), keep_last=1)
    with pytest.raises(LakeError, match=r"snapshot \d+ of .* has expired before the stream had read it"):
        stream.restart().poll(1)


def test_a_partition_dropped_while_it_is_pending_is_passed_over(layout: HiveSource) -> None:
    for app in "ABC":
        layout.add(app, [ord(app)])
    stream = Stream(layout)
    assert stream.poll(1) == [ord("A")]
    shutil.rmtree(layout.root / "app=B")
    assert stream.restart().drain(1) == [[ord("C")]]
    layout.add("B", [1])
    assert stream.poll() == [1]


def test_all_partitions_dropped_while_they_are_pending_end_the_batch(layout: HiveSource) -> None:
    for app in "ABC":
        layout.add(app, [ord(app)])
    stream = Stream(layout)
    stream.poll(1)
    for app in "BC":
        shutil.rmtree(layout.root / f"app={app}")
    assert stream.restart().drain(1) == []
    layout.add("B", [1])
    assert stream.poll() == [1]


def test_a_partition_dropped_while_it_is_pending_in_a_table_stops_the_stream(tmp_path: Path) -> None:
    source = IcebergSource(tmp_path)
    stream = Stream(source)
    source.append(pa.concat_tables([rows_of(app, [ord(app)]) for app in "ABC"]))
    first = stream.poll(1)
    source.delete("app = 'A'")
    second = stream.restart().poll()
    assert sorted(first + second) == [ord(app) for app in "ABC"], "what the snapshot had, before the one that removes"
    with pytest.raises(LakeError, match="changes or removes rows"):
        stream.poll()


def test_a_file_that_vanished_before_a_replay_is_an_error(layout: HiveSource) -> None:
    gone = layout.add("A", [1])
    layout.add("A", [2])
    stream = Stream(layout)
    stream.poll()
    gone.unlink()
    with pytest.raises(MissingError, match=r"an unfinished batch had 2 files, and now it has 1.*on_missing"):
        stream.replayed()
    with pytest.warns(PenstockWarning, match="some vanished"):
        assert stream.replayed(on_missing="skip") == [2]


def test_a_file_that_was_written_again_before_a_replay_is_an_error(layout: HiveSource) -> None:
    layout.add("A", [1])
    stream = Stream(layout)
    stream.poll()
    touch(layout.root / "app=A" / "0001.parquet", 5_000)
    with pytest.raises(MissingError, match="written again"):
        stream.replayed()


def test_a_file_that_vanishes_before_a_task_reads_it(source: Source) -> None:
    source.add("A", [1])
    stream = Stream(source)
    step = stream.feed.step(stream.position, Limit())
    (task,) = step.work[0].tasks
    Path(task.path.removeprefix("file://")).unlink()
    with pytest.raises(MissingError, match=r"vanished|does not exist"):
        ids_of(stream.feed, step.work)
    skipping = stream.fresh(on_missing="skip")
    if not isinstance(source, HiveSource):  # which has no such file any more
        step = skipping.step(stream.position, Limit())
    with pytest.warns(PenstockWarning, match="is skipped"):
        assert ids_of(skipping, step.work) == []


def test_a_predicate_that_changes_with_time_is_not_frozen(layout_of: Callable[[str], HiveSource]) -> None:
    layout = layout_of("dt date")
    layout.add("dt=2026-05-17", [1])
    stream = Stream(layout, "dt >= current_date() AND id > 0")
    assert stream.feed.unchecked is not None
    assert stream.poll() == [1], "kept, for who reads it to check"
