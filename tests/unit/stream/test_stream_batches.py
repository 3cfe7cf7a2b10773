"""Micro-batches of streams: each is in the table once, whoever runs its query, however often, and however it fails."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from penstock.errors import LakeError
from penstock.lake.commit.commit import UnknownOutcomeError
from penstock.lake.commit.once import StreamBatch
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import writes as write
from tests.fixtures.managed_tables import bag, files_below, head_id, managed_table, reachable, reopened, snapshot_ids
from tests.fixtures.managed_values import EVENTS, events

QUERY = "5d1f3c6e-0000-4000-8000-000000000001"
PROPERTY = f"penstock.stream.{QUERY}"


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    found = managed_table(tmp_path, EVENTS, ["app"], coalesce=["app"])
    write.prepare(found)  # the spec of shared files is a commit of its own
    return found


def add(root: Path, number: int, query: str = QUERY) -> bool:
    """What one run of a query does with a batch, in a process of its own; the rows are always those of the batch."""
    table = reopened(root)
    job = write.prepare(table)
    return write.add_batch(table, write.produce(job, events(number * 10)), StreamBatch(query, number))


def batches(table: ManagedTable) -> list[str | None]:
    """The batch of each snapshot."""
    snapshots = table.refresh().table.metadata.snapshots
    return [snapshot.summary.additional_properties.get("penstock.stream.batch-id") for snapshot in snapshots]


def property_of(table: ManagedTable) -> str | None:
    found: str | None = table.refresh().table.metadata.properties.get(PROPERTY)
    return found


def left_over(root: Path, table: ManagedTable) -> set[str]:
    """Files that nothing leads to, without the catalog's own."""
    return {path for path in files_below(root) - reachable(table) if not path.endswith(".metadata.json")}


def first_commit(monkeypatch: pytest.MonkeyPatch, change: Callable[[Callable[[], Any]], Any]) -> None:
    """Let the first commit that reaches the catalog go another way; `change` is given the commit itself."""
    commit = SqlCatalog.commit_table

    def changed(self: SqlCatalog, *args: Any) -> Any:
        monkeypatch.setattr(SqlCatalog, "commit_table", commit)
        return change(lambda: commit(self, *args))

    monkeypatch.setattr(SqlCatalog, "commit_table", changed)


def test_a_batch_that_comes_again_changes_nothing_and_leaves_no_file(table: ManagedTable, tmp_path: Path) -> None:
    assert add(tmp_path, 0)
    assert add(tmp_path, 1)
    before = files_below(tmp_path)
    assert not add(tmp_path, 1)
    assert not add(tmp_path, 0), "an earlier run that is late"
    assert files_below(tmp_path) == before
    assert batches(table) == ["0", "1"]
    assert property_of(table) == "1"
    assert table.table.metadata.current_snapshot().summary.additional_properties["penstock.stream.query-id"] == QUERY
    assert sorted(table.arrow()["id"].to_pylist()) == [0, 1, 2, 3, 10, 11, 12, 13]


def test_each_query_has_numbers_of_its_own(table: ManagedTable, tmp_path: Path) -> None:
    other = QUERY.replace("1", "2")
    assert add(tmp_path, 3)
    assert add(tmp_path, 0, other)
    assert add(tmp_path, 3, other)
    assert not add(tmp_path, 3)
    assert batches(table) == ["3", "0", "3"]


def test_another_run_that_commits_the_batch_between_the_look_and_the_commit_wins(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(commit: Callable[[], Any]) -> Any:
        assert add(tmp_path, 0)
        return commit()

    first_commit(monkeypatch, overtaken)
    assert not add(tmp_path, 0)
    assert batches(table) == ["0"]
    assert bag(table.arrow()) == bag(events())
    assert not left_over(tmp_path, table)


def test_two_runs_at_the_same_moment_commit_once(table: ManagedTable, tmp_path: Path) -> None:
    add(tmp_path, 0)
    start = Barrier(4)

    def run(_: int) -> bool:
        start.wait()
        return add(tmp_path, 1)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(run, range(4))) == [False, False, False, True]
    assert batches(table) == ["0", "1"]
    assert not left_over(tmp_path, table)


def test_a_batch_that_another_writer_overtook_is_committed_behind_it(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(commit: Callable[[], Any]) -> Any:
        reopened(tmp_path).append(events(100))
        return commit()

    first_commit(monkeypatch, overtaken)
    assert add(tmp_path, 0)
    assert (batches(table), property_of(table)) == ([None, "0"], "0")
    assert table.count() == 8
    assert not left_over(tmp_path, table)


def test_a_batch_is_known_when_its_snapshot_has_expired(table: ManagedTable, tmp_path: Path) -> None:
    add(tmp_path, 0)
    table.append(events(100))
    assert table.expire(timedelta(0)).snapshots == 1
    assert batches(table) == [None]
    assert not add(tmp_path, 0)
    assert table.refresh().count() == 8


def test_without_the_property_the_history_tells(table: ManagedTable, tmp_path: Path) -> None:
    add(tmp_path, 5)
    table.append(events(100))
    with table.refresh().table.transaction() as change:
        change.remove_properties(PROPERTY)
    assert not add(tmp_path, 5)
    assert not add(tmp_path, 4)
    assert add(tmp_path, 6)
    assert (batches(table), property_of(table)) == (["5", None, "6"], "6")


def test_a_snapshot_that_is_no_part_of_the_history_does_not_count(table: ManagedTable, tmp_path: Path) -> None:
    table.append(events(100))
    before = head_id(table)
    add(tmp_path, 0)
    now = table.refresh().table
    assert before is not None
    with now.transaction() as change:
        change.remove_properties(PROPERTY)
    now.refresh().manage_snapshots().rollback_to_snapshot(before).commit()
    assert add(tmp_path, 0)
    assert table.refresh().count() == 8


def test_a_commit_that_took_place_though_it_is_said_to_have_failed_keeps_its_files(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(commit: Callable[[], Any]) -> Any:
        commit()
        raise CommitFailedException("sent twice, and the second was overtaken by the first")

    first_commit(monkeypatch, taken)
    assert add(tmp_path, 0)
    assert batches(table) == ["0"]
    assert bag(table.arrow()) == bag(events())
    assert not left_over(tmp_path, table)


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "not taken"])
def test_a_commit_of_which_nobody_knows_removes_nothing_and_the_next_run_settles_it(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    load = SqlCatalog.load_table

    def gone(self: SqlCatalog, *args: Any) -> Any:
        raise ConnectionResetError("the connection was reset")

    def lost(commit: Callable[[], Any]) -> Any:
        if taken:
            commit()
        monkeypatch.setattr(SqlCatalog, "load_table", gone)
        raise ConnectionResetError("the connection was reset")

    first_commit(monkeypatch, lost)
    with pytest.raises(UnknownOutcomeError, match="the connection was reset"):
        add(tmp_path, 0)
    monkeypatch.setattr(SqlCatalog, "load_table", load)
    assert sum(path.endswith(".parquet") for path in files_below(tmp_path)) == 1
    assert add(tmp_path, 0) is not taken
    assert (batches(table), len(snapshot_ids(table))) == (["0"], 1)
    assert bag(table.arrow()) == bag(events())
    assert bool(left_over(tmp_path, table)) is not taken
    assert table.sweep(timedelta(0), force=True)
    assert not left_over(tmp_path, table)
    assert bag(table.refresh().arrow()) == bag(events())


def test_a_property_that_is_no_number_is_an_error_that_says_so(table: ManagedTable, tmp_path: Path) -> None:
    with table.refresh().table.transaction() as change:
        change.set_properties({PROPERTY: "many"})
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match=f"{PROPERTY} is 'many', which is no number of a batch; set it to"):
        add(tmp_path, 0)
    assert files_below(tmp_path) == before
