"""Old snapshots go, and with them the files that nobody else needs; all others stay, and every row with them."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile

import penstock
from penstock.errors import ConflictError, LakeError
from penstock.lake.commit import commit as commits
from penstock.lake.maintain import expire as expiring
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import bag, files_below, local, managed_table, reachable, reopened, snapshot_ids

NOW = dt.timedelta(0)


def rows(start: int, *apps: str) -> pa.Table:
    return pa.table({"app": list(apps), "n": pa.array(range(start, start + len(apps)), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    """Three commits: two appends of shared files, and a delete that rewrites the first of them."""
    made = managed_table(tmp_path, "app string, n bigint", ["app"], coalesce=["app"])
    made.append(rows(0, "a", "b"))
    made.append(rows(2, "b", "c"))
    made.delete("app = 'a'")
    return made


def parquet(root: Path) -> set[str]:
    return {path for path in files_below(root) if path.endswith(".parquet")}


def test_only_files_of_expired_snapshots_go(table: ManagedTable, tmp_path: Path) -> None:
    before, everything = files_below(tmp_path), bag(table.arrow())
    first, second, last = snapshot_ids(table)
    dropped = {task.path for task in table.at(first).plan().files}
    shared = {task.path for task in table.at(second).plan().files} - dropped
    done = table.expire(NOW)
    gone = before - files_below(tmp_path)
    assert snapshot_ids(table) == [last]
    # The file of the first append is in no snapshot any more; that of the second is, though its snapshot has expired.
    assert {path for path in gone if path.endswith(".parquet")} == {local(path) for path in dropped}
    assert {local(path) for path in shared} <= parquet(tmp_path)
    assert (done.snapshots, done.files) == (2, len(gone)) == (2, 4)  # two lists, a manifest and a data file
    assert done.to_dict() == {"snapshots": 2, "files": 4, "bytes": done.bytes}
    assert bag(table.arrow()) == bag(reopened(tmp_path).arrow()) == everything
    assert reachable(table) <= files_below(tmp_path)
    with pytest.raises(LakeError, match="no snapshot"):
        table.at(first).plan()


def test_a_file_that_an_old_and_a_new_manifest_name_stays(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(rows(0, "a", "b"))  # two files in one manifest
    table.delete("app = 'a'")  # which is written anew with the other one
    (old,), (new,) = ({m.manifest_path for m in s.manifests(table.table.io)} for s in table.table.metadata.snapshots)
    (staying,) = [local(task.path) for task in table.plan().files]
    assert old != new
    assert table.expire(NOW).files == 3  # the list, the manifest and the file of `a`
    assert parquet(tmp_path) == {staying}
    assert reopened(tmp_path).arrow().to_pylist() == [{"app": "b", "n": 1}]


def test_the_bytes_are_those_of_the_files(table: ManagedTable, tmp_path: Path) -> None:
    size = {path: Path(path).stat().st_size for path in files_below(tmp_path)}
    done = table.expire(NOW)
    assert done.bytes == sum(size[path] for path in set(size) - files_below(tmp_path))


def test_nothing_happens_to_young_snapshots(table: ManagedTable, tmp_path: Path) -> None:
    before, place = files_below(tmp_path), table.table.metadata_location
    assert table.expire() == table.expire("1 hour") == expiring.Expired(0, 0, 0)
    assert (files_below(tmp_path), table.table.metadata_location) == (before, place)


def test_tags_survive_with_all_their_rows(table: ManagedTable, tmp_path: Path) -> None:
    first, _, last = snapshot_ids(table)
    table.table.manage_snapshots().create_tag(first, "first").commit()
    table.refresh()
    then = bag(table.at("first").arrow())
    assert table.expire(NOW).snapshots == 1
    assert snapshot_ids(table) == [first, last]
    assert set(table.table.metadata.refs) == {"first", "main"}
    assert bag(reopened(tmp_path).at("first").arrow()) == then
    assert parquet(tmp_path) == {path for path in reachable(table) if path.endswith(".parquet")}


def test_a_branch_keeps_its_head_and_what_its_settings_ask_for(table: ManagedTable) -> None:
    first, second, last = snapshot_ids(table)
    table.table.manage_snapshots().create_branch(second, "audit", min_snapshots_to_keep=2).commit()
    assert table.expire(NOW).snapshots == 0
    assert snapshot_ids(table) == [first, second, last]
    table.table.manage_snapshots().remove_branch("audit").commit()
    table.refresh()
    table.table.manage_snapshots().create_branch(second, "audit", max_snapshot_age_ms=3_600_000).commit()
    assert table.expire(NOW).snapshots == 0
    table.refresh()
    table.table.manage_snapshots().remove_branch("audit").commit()
    table.refresh()
    table.table.manage_snapshots().create_branch(second, "audit").commit()
    assert table.expire(NOW).snapshots == 1
    assert snapshot_ids(table) == [second, last]


def test_keep_last_holds_the_newest_of_the_branch(table: ManagedTable) -> None:
    _, second, last = snapshot_ids(table)
    assert table.expire(NOW, keep_last=2).snapshots == 1
    assert snapshot_ids(table) == [second, last]
    for wrong in (0, -1, True, "2"):
        with pytest.raises(LakeError, match="keep_last is"):
            table.expire(NOW, keep_last=wrong)


def test_a_moment_divides_the_snapshots(table: ManagedTable) -> None:
    first, second, last = table.table.metadata.snapshots
    between = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
    assert table.expire(between).snapshots == (1 if first.timestamp_ms < second.timestamp_ms else 0)
    assert snapshot_ids(table)[-2:] == [second.snapshot_id, last.snapshot_id]


@pytest.mark.parametrize("age", ["", "soon", "5", "5 fortnights", "days", "-1 days", 7, "2999-01-01", "9e9 days", None])
def test_what_is_no_age_is_said(table: ManagedTable, age: Any) -> None:
    with pytest.raises(LakeError, match=r"is no age|in the future|further back"):
        table.expire(age)


@pytest.mark.parametrize(
    ("age", "seconds"),
    [
        ("7 days", 604_800), ("12 hours", 43_200), ("1 Week", 604_800), ("90min", 5_400), ("1.5h", 5_400),
        (dt.timedelta(minutes=2), 120), ("2026-05-16T12:00:00+00:00", 43_200), (dt.datetime(2026, 5, 16), 86_400),
    ],
)  # fmt: skip
def test_ages_are_read(age: Any, seconds: int) -> None:
    now = dt.datetime(2026, 5, 17, tzinfo=dt.UTC)
    assert now - expiring.moment(age, now) == dt.timedelta(seconds=seconds)


def test_a_table_whose_files_others_use_is_left_alone(table: ManagedTable, tmp_path: Path) -> None:
    with table.table.transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    before = files_below(tmp_path)
    for ask in (lambda: table.expire(NOW), lambda: table.sweep(NOW, force=True)):
        with pytest.raises(LakeError, match=r"gc\.enabled = false"):
            ask()
    assert files_below(tmp_path) == before


def test_statistics_of_expired_snapshots_go_too(table: ManagedTable, tmp_path: Path) -> None:
    first, _, last = snapshot_ids(table)
    paths = {}
    with table.table.update_statistics() as update:
        for i in (first, last):
            paths[i] = Path(local(table.table.metadata.location)) / "metadata" / f"{i}.puffin"
            paths[i].write_bytes(b"12345")
            told = {"snapshot-id": i, "statistics-path": f"file:{paths[i]}", "file-size-in-bytes": 5}
            update.set_statistics(StatisticsFile(**told, **{"file-footer-size-in-bytes": 1, "blob-metadata": []}))
    from pyiceberg.table.update import SetPartitionStatisticsUpdate

    partitions = Path(local(table.table.metadata.location)) / "metadata" / "partitions.parquet"
    partitions.write_bytes(b"123")
    told = {"snapshot-id": first, "statistics-path": str(partitions), "file-size-in-bytes": 3}
    set_it = SetPartitionStatisticsUpdate(**{"partition-statistics": PartitionStatisticsFile(**told)})
    table.table.catalog.commit_table(table.table, (), (set_it,))
    assert table.expire(NOW).files == 4 + 2
    assert not paths[first].exists()
    assert not partitions.exists()
    assert paths[last].exists()
    assert [s.snapshot_id for s in table.table.metadata.statistics] == [last]
    assert table.table.metadata.partition_statistics == []


def test_an_append_in_between_survives(table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, committed = reopened(tmp_path), expiring.update
    calls = []

    def overtaken(*given: Any) -> Any:
        if not calls:
            calls.append(1)
            other.append(rows(4, "z"))
        return committed(*given)

    monkeypatch.setattr(expiring, "update", overtaken)
    assert table.expire(NOW).snapshots == 3  # the one that was current at first has become old
    assert bag(table.arrow()) == bag(reopened(tmp_path).arrow())
    assert table.count() == 4
    assert reachable(table) <= files_below(tmp_path)


def test_a_tag_made_in_between_holds_its_snapshot(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, attempts = expiring.update, []

    def overtaken(*given: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            reopened(tmp_path).table.manage_snapshots().create_tag(snapshot_ids(table)[0], "held").commit()
            raise CommitFailedException("overtaken")
        return committed(*given)

    monkeypatch.setattr(expiring, "update", overtaken)
    assert table.expire(NOW).snapshots == 1
    assert table.at("held").count() == 2


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_ref_made_between_the_choice_and_the_commit_holds_its_snapshot(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    committed, first, calls = expiring.update, snapshot_ids(table)[0], []

    def meanwhile(*given: Any) -> Any:
        if not calls:
            calls.append(1)
            refs = reopened(tmp_path).table.manage_snapshots()
            getattr(refs, f"create_{kind}")(first, "held").commit()
        return committed(*given)

    monkeypatch.setattr(expiring, "update", meanwhile)
    assert table.expire(NOW).snapshots == 1
    assert "held" in table.table.metadata.refs
    assert table.at("held").count() == 2
    assert reachable(table) <= files_below(tmp_path)


def test_a_ref_that_a_catalog_removed_all_the_same_is_said_and_no_file_goes(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A REST catalog does not check a requirement that there are no other refs."""
    committed, first = expiring.update, snapshot_ids(table)[0]

    def meanwhile(given: Any, requirements: Any, *others: Any) -> Any:
        reopened(tmp_path).table.manage_snapshots().create_tag(first, "held").commit()
        return committed(given, requirements[1:], *others)

    monkeypatch.setattr(expiring, "update", meanwhile)
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match="held was created while its snapshot was removed; no file was removed"):
        table.expire(NOW)
    assert before <= files_below(tmp_path)


def test_files_outside_of_the_tables_folders_and_those_that_others_need_stay(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path)
    table = lake.create_table("web.t", "n bigint")
    outside, shared = tmp_path / "outside.parquet", tmp_path / "web" / "t" / "data" / "shared.parquet"
    exports = tmp_path / "web" / "t" / "exports"
    exported = exports / "app=a" / "x.parquet"
    for path in (outside, shared, exported):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": pa.array([1], pa.int64())}), path)
    table.table.add_files([str(outside), str(shared), str(exported)])
    other = lake.catalog.create_table("web.other", pa.schema({"n": pa.int64()}))
    other.add_files([str(shared)])
    lake.register("web.exports", penstock.hive(exports, "app string", "n bigint"))
    table.overwrite(pa.table({"n": [2]}))
    table.overwrite(pa.table({"n": [3]}))
    done = lake.table("web.t").expire(NOW)  # type: ignore[union-attr]
    assert done.snapshots > 1
    assert outside.exists()
    assert shared.exists()
    assert exported.exists()
    assert [path.name for path in (tmp_path / "web" / "t" / "data").glob("*.parquet")].count("shared.parquet") == 1
    assert len(list((tmp_path / "web" / "t" / "data").glob("*.parquet"))) == 2, "what is its own goes"


def test_a_commit_that_fails_deletes_nothing(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_below(tmp_path)

    def fails(*_: Any) -> Any:
        raise OSError("the network is gone")

    monkeypatch.setattr(expiring, "update", fails)
    with pytest.raises(LakeError, match="the catalog did not take the commit: the network is gone; no file"):
        table.expire(NOW)

    def conflicts(*_: Any) -> Any:
        raise CommitFailedException("busy")

    monkeypatch.setattr(expiring, "update", conflicts)
    monkeypatch.setattr(commits, "_ATTEMPTS", 3)
    with pytest.raises(ConflictError, match="other writers were faster"):
        table.expire(NOW)
    assert files_below(tmp_path) == before
    assert len(snapshot_ids(table.refresh())) == 3


def test_files_of_a_snapshot_that_is_damaged_are_left_to_sweep(table: ManagedTable, tmp_path: Path) -> None:
    first = table.table.metadata.snapshots[0]
    Path(local(first.manifest_list)).unlink()
    from penstock.tables.iceberg.metadata.catalogs import _lists

    _lists.cache_clear()
    damaged = reopened(tmp_path)
    with pytest.raises(LakeError, match="2 snapshots were removed, but no file was"):
        damaged.expire(NOW)
    assert len(snapshot_ids(reopened(tmp_path))) == 1
    assert reopened(tmp_path).sweep(NOW, force=True).files == 3
    assert reopened(tmp_path).count() == 3


def test_an_empty_table_and_an_old_version(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "n bigint")
    assert table.expire(NOW).snapshots == 0
    table.append(pa.table({"n": [1]}))
    with pytest.raises(LakeError, match="cannot be written"):
        table.at(snapshot_ids(table)[0]).expire(NOW)
    assert isinstance(penstock.connect(tmp_path).table("web.t").expire("5 days"), expiring.Expired)


@pytest.mark.parametrize("move", ["append", "rollback"])
def test_a_time_whose_snapshot_has_expired_is_not_that_of_an_older_one(tmp_path: Path, move: str) -> None:
    table = managed_table(tmp_path, "id bigint")
    for i in range(2):
        table.append(pa.table({"id": [i]}))
    table.create_tag("kept", snapshot_ids(table)[1])
    for i in range(2, 4):
        table.append(pa.table({"id": [i]}))
    if move == "rollback":
        table.rollback(snapshot_ids(table)[0])
    log = [(entry.snapshot_id, entry.timestamp_ms) for entry in table.table.metadata.snapshot_log]
    times = [dt.datetime.fromtimestamp(millis / 1000, dt.UTC) for _, millis in log]
    counts = [table.at(time).count() for time in times]
    assert counts == [1, 2, 3, 4, *([1] if move == "rollback" else [])]
    before = dict(zip(times, counts, strict=True))
    table.expire("0 seconds")
    for time, count in before.items():
        try:
            assert table.at(time).count() == count, "the same rows, or an error"
        except LakeError as error:
            assert re.search("may have expired|had no snapshot|has expired", str(error))  # noqa: PT017
    with pytest.raises(LakeError, match=r"what was current at .* may have expired"):
        table.at(times[2]).count()
    assert table.at(times[-1]).count() == counts[-1]
    assert table.at("kept").count() == 2
