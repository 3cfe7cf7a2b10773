"""Where a stream over directories begins, in which order it reads, how much at once, and what it says to bad input."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import LakeError, LayoutError, PenstockError
from penstock.storage.storage import Storage
from penstock.stream.feed import Budget, Limit
from penstock.stream.stream_options import as_options
from tests.fixtures.hive_writer import write_file
from tests.unit.stream.conftest import BORN, HiveSource, IcebergSource, Source, Stream, paths_of, touch

LayoutOf = Callable[[str], HiveSource]
NULL = "__HIVE_DEFAULT_PARTITION__"


def moment(seconds: float) -> str:
    return dt.datetime.fromtimestamp(BORN + seconds, dt.UTC).isoformat()


def test_the_earliest_is_everything(source: Source) -> None:
    source.add("A", [1])
    source.add("B", [2])
    assert sorted(Stream(source, starting="earliest").poll()) == [1, 2]


def test_the_latest_is_what_comes(source: Source) -> None:
    source.add("A", [1])
    stream = Stream(source, starting="LATEST")
    assert stream.poll() == []
    source.add("A", [2])
    assert stream.restart().poll() == [2]


def test_the_latest_has_late_files_too(layout: HiveSource) -> None:
    layout.add("A", [1], at=100)
    stream = Stream(layout, starting="latest")
    layout.add("A", [2], at=5)
    layout.add("A", [3], at=100, name="0000.parquet")
    assert stream.poll() == [2, 3]


def test_the_latest_of_many_files_is_what_comes(layout: HiveSource) -> None:
    for i in range(6):
        layout.add("A", [i])
    stream = Stream(layout, starting="latest", remember_files=2)
    assert stream.poll() == []
    layout.add("A", [6])
    assert stream.poll() == [6]


@pytest.mark.parametrize("at", [10, 10.001, 9.999])
def test_a_time_is_inclusive(layout: HiveSource, at: float) -> None:
    layout.add("A", [1], at=9.999)
    layout.add("A", [2], at=10)
    layout.add("A", [3], at=10.001)
    assert Stream(layout, starting=moment(at)).poll() == [i for i, t in ((1, 9.999), (2, 10), (3, 10.001)) if t >= at]


def test_a_time_between_two_milliseconds_begins_at_the_second(layout: HiveSource) -> None:
    layout.add("A", [1], at=10)
    layout.add("A", [2], at=10.001)
    begin = dt.datetime.fromtimestamp(BORN + 10, dt.UTC) + dt.timedelta(microseconds=1)
    assert Stream(layout, starting=begin).poll() == [2]


def test_a_time_keeps_out_late_files_from_before_it(layout: HiveSource) -> None:
    stream = Stream(layout, starting=moment(10))
    layout.add("A", [1], at=20)
    assert stream.poll() == [1]
    layout.add("A", [2], at=5)
    layout.add("A", [3], at=15)
    assert stream.poll() == [3]
    everything = stream.feed.step(None, Limit()).end
    layout.add("A", [4], at=6)
    assert not stream.feed.step(everything, Limit()).work, "nor when Spark does not tell where the stream stands"


def test_a_partition_is_inclusive_and_typed(layout_of: LayoutOf) -> None:
    layout = layout_of("dt date, hr int")
    for where, i in (("16/hr=23", 1), ("17/hr=8", 2), ("17/hr=9", 3), ("17/hr=10", 4), ("18/hr=1", 5)):
        layout.add(f"dt=2026-05-{where}", [i])
    for null, i in ((f"dt={NULL}/hr=9", 6), (f"dt=2026-05-17/hr={NULL}", 7), (f"dt=2026-05-18/hr={NULL}", 8)):
        layout.add(null, [i])
    stream = Stream(layout, starting="dt=2026-05-17/hr=9", order="partition-name")
    assert stream.poll() == [3, 4, 8, 5]
    assert stream.look.list_calls == 1 + 2 + 4, "what is below is not listed"
    layout.add("dt=2026-05-17/hr=8", [9])
    layout.add("dt=2026-05-17/hr=9", [10])
    layout.add("dt=2026-05-19/hr=0", [11])
    assert stream.restart(starting="earliest").poll() == [10, 11], "the beginning stays with the checkpoint"


@pytest.mark.parametrize("text", ["dt=2026-05-17", "/dt=2026-05-17/", "DT=2026-05-17"])
def test_a_partition_of_the_first_level_is_all_of_it(layout_of: LayoutOf, text: str) -> None:
    layout = layout_of("dt date, hr int")
    layout.add("dt=2026-05-16/hr=9", [1])
    layout.add(f"dt=2026-05-17/hr={NULL}", [2])
    layout.add("dt=2026-05-17/hr=0", [3])
    assert Stream(layout, starting=text).poll() == [2, 3]


def test_a_partition_to_begin_at_may_have_an_odd_name(layout: HiveSource) -> None:
    names = ["US/CA", "it's", 'a"b\\c', "zürich", "日本"]
    for i, name in enumerate(sorted(names)):
        layout.add(name, [i])
    texts = [("app=US%2FCA", 0), ('app=a"b\\c', 1), ("app=it's", 2), ("app=zürich", 3), ("app=日本", 4)]
    for text, first in texts:
        assert Stream(layout, starting=text, order="partition-name").poll() == list(range(first, 5)), text


def test_escaped_and_foreign_names_are_read_once(layout: HiveSource) -> None:
    layout.add("app=US%2FCA", [1])
    layout.add("app=z%C3%BCrich", [2])
    layout.add("日本", [3])
    layout.add("app=%252F", [4])
    layout.add("app=a=b=c", [5])
    stream = Stream(layout, "app IN ('US/CA', 'zürich', '日本', '%2F', 'b=c')", order="partition-name")
    assert [len(batch) for batch in stream.drain(1)] == [1, 1, 1, 1]
    assert sorted(stream.got) == [1, 2, 3, 4]
    layout.add("app=US%2FCA", [6], name="Ünï 1.parquet")
    assert stream.restart().poll() == [6]


def test_files_are_read_in_the_order_of_their_times(layout: HiveSource) -> None:
    for app, at in (("C", 1), ("A", 3), ("B", 2), ("A", 2)):
        layout.add(app, [at * 100 + ord(app)], at=at)
    assert Stream(layout).drain(1) == [[167], [265], [266], [365]]


def test_partitions_of_null_and_nan_have_a_place(layout_of: LayoutOf) -> None:
    layout = layout_of("x double")
    for i, name in enumerate(["NaN", "1.5", "Infinity", NULL, "-2"]):
        layout.add(f"x={name}", [i])
        layout.add(f"x={name}", [i + 10])
    found = Stream(layout, order="partition-name").drain(1)
    assert [batch[0] for batch in found] == [3, 13, 4, 14, 1, 11, 2, 12, 0, 10]


def test_the_time_of_a_partition_is_that_of_its_date_and_hour(layout_of: LayoutOf) -> None:
    layout = layout_of("app string, day date, HR int")
    for where, i in (("b/day=2026-05-17/HR=9", 1), ("a/day=2026-05-17/HR=10", 2), ("z/day=2026-05-16/HR=23", 3)):
        layout.add(f"app={where}", [i])
    layout.add(f"app=q/day={NULL}/HR=1", [4])
    assert Stream(layout, order="partition-time").drain(1) == [[4], [3], [1], [2]], "without a time first"


def test_the_time_of_a_partition_is_that_of_a_pattern(layout_of: LayoutOf) -> None:
    layout = layout_of("month int, year int, app string")
    for where, i in (("2/year=2025/app=a", 1), ("1/year=2026/app=a", 2), ("12/year=2025/app=b", 3)):
        layout.add(f"month={where}", [i])
    layout.add("month=77/year=2026/app=a", [4])
    options = {"order": "partition-time", "partition_time": "{year}-{Month}-01"}
    assert Stream(layout, **options).drain(1) == [[4], [1], [3], [2]]
    assert Stream(layout, starting="2025-12-01", **options).poll() == [4, 3, 2], "the bound is in it"


def test_a_partition_time_to_begin_at_is_inclusive(layout_of: LayoutOf) -> None:
    layout = layout_of("dt date, hr int")
    for where, i in (("16/hr=23", 1), ("17/hr=8", 2), ("17/hr=9", 3), ("17/hr=10", 4), ("18/hr=0", 5)):
        layout.add(f"dt=2026-05-{where}", [i])
    stream = Stream(layout, starting="2026-05-17 09:00", order="partition-time")
    assert stream.poll() == [3, 4, 5]
    layout.add("dt=2026-05-17/hr=8", [6])
    layout.add("dt=2026-05-17/hr=9", [7])
    assert stream.restart().poll() == [7]


def test_an_order_that_changes_among_files_still_to_be_read_is_an_error(layout_of: LayoutOf) -> None:
    layout = layout_of("y int, m int, d int")
    for where, i in (("m=1/d=3", 1), ("m=2/d=2", 2), ("m=3/d=1", 3)):
        layout.add(f"y=2026/{where}", [i])
    stream = Stream(layout, order="partition-time", partition_time="{y}-{m}-{d}")
    assert stream.poll(1) == [1]
    with pytest.raises(LakeError, match="stands among files in the order"):
        stream.restart(partition_time="{y}-{d}-{m}").poll(1)
    with pytest.raises(LakeError, match="stands among files in the order"):
        stream.restart(order="partition-name", partition_time=None).poll(1)


def test_a_partition_is_not_read_before_its_marker(layout: HiveSource) -> None:
    layout.add("A", [1], at=1)
    layout.add("B", [2], at=2)
    layout.mark("app=B", at=3)
    stream = Stream(layout, marker="_SUCCESS")
    assert stream.poll() == [2]
    assert stream.look.incomplete_partitions == 1
    assert stream.poll() == []
    layout.mark("app=A", at=50)
    assert stream.poll() == [1]


def test_a_marked_partition_is_read_though_its_files_are_older_than_what_was_read(layout: HiveSource) -> None:
    layout.add("A", [1], at=1)
    for i in range(5):
        layout.add("B", [10 + i], at=20 + i)
    layout.mark("app=B", at=30)
    stream = Stream(layout, marker="_SUCCESS", remember_files=2)
    assert len(stream.poll()) == 5
    layout.mark("app=A", at=40)
    assert stream.poll() == [1]


def test_new_files_after_the_marker_come_once(layout: HiveSource) -> None:
    layout.add("A", [1], at=1)
    layout.mark("app=A", at=2)
    stream = Stream(layout, marker="_SUCCESS")
    assert stream.poll() == [1]
    layout.add("A", [2], at=3)
    assert stream.poll() == [2]
    layout.mark("app=A", at=10)
    assert stream.poll() == [], "a marker that is written again brings nothing"


@pytest.mark.parametrize("order", ["create-time", "partition-name"])
def test_a_marker_written_again_while_its_files_are_read_brings_none_twice(layout: HiveSource, order: str) -> None:
    for i in range(3):
        layout.add("A", [i])
    layout.mark("app=A", at=10)
    stream = Stream(layout, marker="_SUCCESS", order=order)
    assert stream.poll(1) == [0]
    layout.mark("app=A", at=20)
    assert stream.restart().drain(1) == [[1], [2]]


def test_a_marker_written_again_when_its_files_are_forgotten_brings_none_twice(layout: HiveSource) -> None:
    layout.add("A", [1])
    layout.mark("app=A", at=2)
    stream = Stream(layout, marker="_SUCCESS", remember_files=2)
    for i in range(4):
        layout.add("B", [10 + i], at=10 + i)
        layout.mark("app=B", at=10 + i)
        stream.poll()
    layout.mark("app=A", at=50)
    assert stream.poll() == []


def test_a_limit_of_files_and_of_bytes_lets_at_least_one_through(source: Source) -> None:
    for i in range(3):
        source.add("A", [i])
    stream = Stream(source)
    assert [len(stream.poll(files, octets)) for files, octets in ((1, None), (None, 1), (5, 10**9))] == [1, 1, 1]


def test_a_limit_of_bytes_is_what_fits(layout: HiveSource) -> None:
    sizes = [layout.add("A", [i]).stat().st_size for i in range(5)]
    stream = Stream(layout)
    assert len(set(sizes)) == 1
    assert [len(batch) for batch in stream.drain(octets=2 * sizes[0])] == [2, 2, 1]


def test_files_that_came_during_an_epoch_wait_for_the_next(layout: HiveSource) -> None:
    for app in "BD":
        layout.add(app, [ord(app)])
    stream = Stream(layout, order="partition-name")
    assert stream.poll(1) == [ord("B")]
    assert stream.look.pending_files == 1
    layout.add("A", [ord("A")])
    layout.add("C", [ord("C")])
    assert stream.drain(1) == [[ord("D")], [ord("A")], [ord("C")]]


def test_an_end_at_the_present_takes_no_later_files(layout: HiveSource) -> None:
    for i in range(3):
        layout.add("A", [i])
    stream = Stream(layout)
    stream.feed.stop_at_present()
    assert stream.poll(2) == [0, 1]
    layout.add("A", [3])
    assert stream.poll(2) == [2]
    assert stream.poll(2) == []
    assert stream.restart().poll() == [3]


def test_an_end_at_the_present_takes_no_later_snapshots(snapshots: Source) -> None:
    stream = Stream(snapshots)
    for i in range(3):
        snapshots.add("A", [i])
    stream.feed.stop_at_present()
    assert stream.poll(2) == [0, 1]
    snapshots.add("A", [3])
    assert stream.poll(2) == [2]
    assert stream.poll(2) == []
    assert stream.restart().poll() == [3]


def test_a_late_file_is_read_while_fewer_newer_ones_were_read_than_are_remembered(layout: HiveSource) -> None:
    stream = Stream(layout, remember_files=3)
    for i in range(10):
        layout.add("A", [i], at=10 * i)
        assert stream.poll() == [i]
    layout.add("A", [100], at=75)
    assert stream.restart().poll() == [100], "two are newer"
    layout.add("A", [101], at=80, name="z.parquet")
    assert stream.poll() == [101]
    layout.add("A", [102], at=1)
    assert stream.poll() == [], "ten are newer"


def test_what_is_remembered_does_not_grow(layout: HiveSource) -> None:
    stream = Stream(layout, remember_files=3)
    sizes = []
    for i in range(8):
        layout.add("A", [i])
        stream.poll()
        sizes.append(len(str(stream.position)))
    assert len(set(sizes[4:])) == 1


def test_a_file_that_is_taken_away_and_put_back_is_not_read_twice(layout: HiveSource) -> None:
    path = layout.add("A", [1])
    layout.add("A", [2])
    stream = Stream(layout)
    stream.poll()
    held = path.read_bytes()
    path.unlink()
    layout.add("A", [3])
    assert stream.poll() == [3]
    path.write_bytes(held)
    touch(path, BORN + 1)
    assert stream.poll() == []


def test_a_file_put_beside_the_partitions_is_an_error(layout: HiveSource) -> None:
    layout.add("A", [1])
    write_file(layout.root / "stray.parquet", pa.table({"id": pa.array([9], pa.int64())}))
    stream = Stream(layout)
    with pytest.raises(LayoutError, match=r"stray\.parquet is a file beside the partition directories of 'app'"):
        stream.poll()


def test_files_of_any_name_are_read_once_they_have_bytes(layout: HiveSource) -> None:
    layout.add("A", [1], name="000000_0")
    layout.add("A", [2], name="x.parquet._COPYING_")
    path = layout.root / "app=A" / "1.parq"
    path.touch()
    stream = Stream(layout)
    assert stream.poll() == [1]
    layout.add("A", [3], name="1.parq")
    assert stream.poll() == [3]


def test_a_marker_of_any_name_is_not_a_data_file(layout: HiveSource) -> None:
    layout.add("A", [1])
    stream = Stream(layout, marker="DONE")
    assert stream.poll() == []
    (layout.root / "app=A" / "DONE").write_text("yes")
    assert stream.poll() == [1]


def test_hidden_files_and_directories_are_not_read(layout: HiveSource) -> None:
    layout.add("A", [1])
    layout.add("A", [2], name="_tmp.parquet")
    layout.add("A", [3], name=".x.parquet")
    layout.add("_temporary/app=A", [4])
    assert Stream(layout).drain() == [[1]]


def test_a_directory_that_cannot_be_typed_is_an_error_unless_it_is_excluded(layout_of: LayoutOf) -> None:
    layout = layout_of("k int, app string")
    layout.add("k=1/app=A", [1])
    stream, other = Stream(layout), Stream(layout, "app = 'A'")
    stream.poll()
    layout.add("k=x/app=B", [2])
    with pytest.raises(LayoutError, match=r"k=x.*cannot be read as int"):
        stream.poll()
    assert other.poll() == [1]


def test_a_root_in_the_shape_of_another_is_not_the_same_table(tmp_path: Path) -> None:
    one, other = HiveSource(tmp_path / "data"), HiveSource(tmp_path / "data2")
    one.add("A", [1])
    other.add("A", [2])
    stream = Stream(one)
    assert stream.poll() == [1]
    stream.source = other
    with pytest.raises(LakeError, match=r"the checkpoint is of .*/data, and this is .*/data2"):
        stream.restart().poll()


def test_a_position_of_another_table_is_an_error(tmp_path: Path) -> None:
    layout, table = HiveSource(tmp_path / "layout"), IcebergSource(tmp_path)
    layout.add("A", [1])
    table.add("A", [2])
    one, other = Stream(layout), Stream(table)
    one.poll()
    other.poll()
    for stream, position in ((one, other.position), (other, one.position)):
        for ask in (lambda s, p: s.feed.step(p, Limit()), lambda s, p: s.feed.again(p, p)):
            with pytest.raises(LakeError, match="the checkpoint is of"):
                ask(stream, position)


@pytest.mark.parametrize("version", [2, "1", None])
def test_a_position_of_another_version_is_an_error(source: Source, version: Any) -> None:
    source.add("A", [1])
    stream = Stream(source)
    stream.poll()
    with pytest.raises(LakeError, match=f"position has version {version!r}, this Penstock reads 1"):
        stream.feed.step({**stream.position, "penstock": version}, Limit())


BAD = [
    ({"starting": "yesterday"}, "starting is 'yesterday'.*earliest, latest"),
    ({"starting": ""}, "starting is ''"),
    ({"starting": "hr=9"}, r"starting is 'hr=9', and partitions are dt=…/app=…"),
    ({"starting": "dt=2026-05-17/app=a/x=1"}, "and partitions are"),
    ({"starting": "dt=2026-13-01"}, "'2026-13-01' is no date"),
    ({"starting": "dt=%ZZ"}, "a % that is no escape"),
    ({"starting": f"dt={NULL}"}, "and partitions are"),
    ({"where": "dt = "}, "dt ="),
    ({"where": "nope = 1"}, "nope"),
    ({"columns": "nope"}, "nope"),
    ({"columns": "SELECT ,"}, "columns is"),
    ({"order": "size"}, "order is 'size'; one of create-time"),
    ({"order": "partition-time", "partition_time": "{year}"}, "'year' is no partition column"),
    ({"order": "partition-time", "partition_time": "2026"}, "name partition columns in braces"),
    ({"on_change": "changes"}, "does not tell which rows were changed"),
    ({"on_change": "never"}, "on_change is 'never'"),
    ({"on_missing": "never"}, "on_missing is 'never'"),
    ({"allow_filter_change": "perhaps"}, "write true or false"),
    ({"maxFilesPerTrigger": "0"}, "max_files_per_trigger is 0; give 1 or more"),
    ({"maxFilesPerTrigger": "many"}, "write a number"),
    ({"maxBytesPerTrigger": "1 parsec"}, "parsec"),
    ({"max_bytes_per_trigger": 0}, "max_bytes_per_trigger is 0"),
    ({"remember_files": -1}, "remember_files is -1"),
    ({"retry_seconds": "nan"}, "retry_seconds is"),
    ({"poll_seconds": "soon"}, "write a number"),
    ({"maxFiles": 3}, "a stream has no option 'maxFiles'"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_bad_options_are_one_clear_line(layout_of: LayoutOf, options: dict[str, Any], said: str) -> None:
    layout = layout_of("dt date, app string")
    layout.add("dt=2026-05-17/app=a", [1])
    with pytest.raises(PenstockError, match=said) as caught:
        Stream(layout, **options)
    assert "\n" not in str(caught.value).split("\n  ")[0]


def test_an_order_by_time_without_a_time_is_an_error(layout: HiveSource) -> None:
    layout.add("A", [1])
    with pytest.raises(LakeError, match=r"no partition column is a date or a timestamp.*partition_time"):
        Stream(layout, order="partition-time")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"starting": "app=A"}, "starting is 'app=A'.*partitions go to where"),
        ({"starting": "yesterday"}, "starting is 'yesterday'"),
        ({"starting": "12345"}, "has no snapshot 12345"),
        ({"order": "partition-name"}, "is an Iceberg table.*leave order"),
        ({"marker": "_SUCCESS"}, "is an Iceberg table"),
        ({"where": "nope = 1"}, "nope"),
        ({"where": "app = "}, "app ="),
    ],
)
def test_bad_options_for_an_iceberg_table_are_one_clear_line(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    source = IcebergSource(tmp_path)
    with pytest.raises(PenstockError, match=said):
        Stream(source, **options)


def test_options_may_be_texts_as_spark_gives_them() -> None:
    found = as_options({"maxFilesPerTrigger": "10", "MAXBYTESPERTRIGGER": "1mb", "allowfilterchange": "TRUE"})
    assert (found.max_files_per_trigger, found.max_bytes_per_trigger, found.allow_filter_change) == (10, 1 << 20, True)
    assert Limit.of(found) == Limit(10, 1 << 20)
    assert as_options({"where": None}).where is None


def test_a_budget_counts_over_several_calls() -> None:
    budget = Budget(Limit(files=3, bytes=100))
    assert [budget.take([60, 60]), budget.take([30]), budget.take([20]), budget.is_spent] == [1, 1, 0, False]
    assert [budget.take([1, 1]), budget.is_spent] == [1, True]


def test_a_poll_opens_no_file(layout: HiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.add("A", [1])
    stream = Stream(layout, "id = 1")
    monkeypatch.setattr(Storage, "open", lambda *_: pytest.fail("a file was opened"))
    assert len(paths_of(stream.feed.step(stream.position, Limit()).work)) == 1


def test_a_file_with_no_time_is_read(layout: HiveSource) -> None:
    path = layout.add("A", [1])
    os.utime(path, ns=(0, 0))
    stream = Stream(layout)
    assert stream.poll() == [1]
    assert stream.poll() == []
