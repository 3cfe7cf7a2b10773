"""Writes with a run id: each is committed once, whoever does it, however often, and however it fails."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from penstock.errors import LakeError, SchemaError
from penstock.lake.commit import once
from penstock.lake.commit.commit import UnknownOutcomeError
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write.write_result import WriteResult
from tests.fixtures.managed_tables import files_below, managed_table, reachable, reopened, snapshot_ids

ROWS = pa.table({"id": [1, 2], "n": [10, 20]})
WRITES: dict[str, Callable[[ManagedTable, str | None], WriteResult]] = {
    "append": lambda table, run_id: table.append(ROWS, run_id=run_id),
    "append that merges": lambda table, run_id: table.append(
        ROWS.append_column("m", [[1, 1]]), merge_schema=True, run_id=run_id
    ),
    "overwrite": lambda table, run_id: table.overwrite(ROWS, run_id=run_id),
    "overwrite where": lambda table, run_id: table.overwrite(ROWS, "id < 3", run_id=run_id),
    "overwrite dynamic": lambda table, run_id: table.overwrite(ROWS, dynamic=True, run_id=run_id),
    "delete": lambda table, run_id: table.delete("id = 5", run_id=run_id),
    "update": lambda table, run_id: table.update({"n": "n * 2"}, run_id=run_id),
    "upsert": lambda table, run_id: table.upsert(ROWS, "id", run_id=run_id),
    "merge": lambda table, run_id: (
        table.merge(ROWS, "id", run_id=run_id).when_matched_update({"n": "n + 1"}).when_not_matched_insert().execute()
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made = managed_table(tmp_path, "id bigint, n bigint", ["id"])
    made.append(pa.table({"id": [1, 5, 6], "n": [1, 5, 6]}))
    return made


def state(table: ManagedTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.refresh().arrow(columns=["id", "n"]).to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row["n"]))


def left_over(root: Path, table: ManagedTable) -> set[str]:
    """Files that nothing leads to, without the catalog's own."""
    return {path for path in files_below(root) - reachable(table) if not path.endswith(".metadata.json")}


@pytest.mark.parametrize("kind", WRITES)
def test_a_run_that_is_started_again_changes_nothing_and_says_so(
    table: ManagedTable, tmp_path: Path, kind: str
) -> None:
    first = WRITES[kind](table, "night")
    assert not first.already_committed
    before, files, columns = state(table), files_below(tmp_path), table.schema.names
    again = WRITES[kind](reopened(tmp_path), "night")
    assert again == WriteResult(first.snapshot_id, already_committed=True)
    assert str(again) == f"already committed by snapshot {first.snapshot_id}, nothing changed"
    assert (state(table), files_below(tmp_path), table.schema.names) == (before, files, columns)
    assert WRITES["append"](table, "next night").rows_added == 2, "another run is another one"


@pytest.mark.parametrize("kind", WRITES)
def test_two_processes_that_do_the_same_run_at_once_commit_it_once(
    table: ManagedTable, tmp_path: Path, kind: str
) -> None:
    alone = managed_table(tmp_path / "alone", "id bigint, n bigint", ["id"])
    alone.append(pa.table({"id": [1, 5, 6], "n": [1, 5, 6]}))
    WRITES[kind](alone, None)
    start = Barrier(4)

    def run(_: int) -> WriteResult:
        own = reopened(tmp_path)
        start.wait()
        return WRITES[kind](own, "night")

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(4)))
    assert sorted(result.already_committed for result in results) == [False, True, True, True]
    assert {result.snapshot_id for result in results} == {snapshot_ids(table.refresh())[-1]}
    assert state(table) == state(alone)
    assert not left_over(tmp_path, table) - files_below(tmp_path / "alone")


def test_a_run_is_known_when_its_snapshot_has_expired(table: ManagedTable) -> None:
    first = table.append(ROWS, run_id="night")
    table.append(ROWS)
    assert table.committed_run("night") == first.snapshot_id
    table.expire(timedelta(0))
    assert first.snapshot_id not in snapshot_ids(table)
    assert table.committed_run("night") == first.snapshot_id
    assert table.append(ROWS, run_id="night").already_committed
    assert table.count() == 7


def test_a_run_that_was_rolled_back_is_committed_again(table: ManagedTable) -> None:
    before = snapshot_ids(table)[-1]
    table.append(ROWS, run_id="night")
    table.rollback(before)
    assert table.committed_run("night") is None
    second = table.append(ROWS, run_id="night")
    assert (second.rows_added, table.count()) == (2, 5)
    assert table.append(ROWS, run_id="night").already_committed


def test_a_run_that_was_rolled_back_is_not_there_when_its_snapshot_has_expired_either(table: ManagedTable) -> None:
    before = snapshot_ids(table)[-1]
    table.append(ROWS, run_id="night")
    table.rollback(before)
    table.append(ROWS, run_id="other night")
    table.expire(timedelta(0))
    assert table.committed_run("night") is None
    assert table.committed_run("other night") is not None
    assert not table.append(ROWS, run_id="night").already_committed


def test_a_rollback_that_is_undone_brings_the_run_back(table: ManagedTable) -> None:
    before = snapshot_ids(table)[-1]
    first = table.append(ROWS, run_id="night")
    moved = table.rollback(before)
    table.rollback(moved.previous_snapshot_id)
    assert table.append(ROWS, run_id="night").snapshot_id == first.snapshot_id


def test_a_run_on_a_branch_is_one_of_the_table_when_it_is_published(table: ManagedTable) -> None:
    table.create_branch("audit")
    audit = table.at_branch("audit")
    first = audit.append(ROWS, run_id="night")
    assert audit.append(ROWS, run_id="night").already_committed
    assert table.committed_run("night") is None
    table.fast_forward("main", to="audit")
    assert table.append(ROWS, run_id="night") == WriteResult(first.snapshot_id, already_committed=True)
    table.drop_branch("audit")
    table.append(ROWS)
    table.expire(timedelta(0))
    assert table.append(ROWS, run_id="night").already_committed


def test_a_run_on_a_branch_that_was_dropped_is_committed_again(table: ManagedTable) -> None:
    for expires in (False, True):
        table.create_branch("audit")
        assert table.at_branch("audit").append(ROWS, run_id="night").rows_added == 2
        table.drop_branch("audit")
        if expires:
            table.append(ROWS)
            table.expire(timedelta(0))
    assert table.append(ROWS, run_id="night").rows_added == 2


def test_where_the_history_is_cut_off_a_run_counts_as_committed(table: ManagedTable) -> None:
    """The run's snapshot is kept by a tag, one between it and the current one has expired."""
    first = table.append(ROWS, run_id="night")
    table.create_tag("keep")
    table.append(ROWS)
    table.append(ROWS)
    table.expire(timedelta(0))
    assert first.snapshot_id in snapshot_ids(table)
    assert table.append(ROWS, run_id="night").already_committed
    table.drop_tag("keep")
    table.expire(timedelta(0))
    assert first.snapshot_id not in snapshot_ids(table)
    assert table.append(ROWS, run_id="night").already_committed


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "not taken"])
def test_after_a_commit_of_which_nobody_knows_the_next_attempt_settles_it(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    commit, load = SqlCatalog.commit_table, SqlCatalog.load_table

    def gone(*_: Any) -> Any:
        raise ConnectionResetError("the connection was reset")

    def lost(self: SqlCatalog, *args: Any) -> Any:
        if taken:
            commit(self, *args)
        monkeypatch.setattr(SqlCatalog, "load_table", gone)
        raise ConnectionResetError("the connection was reset")

    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    with pytest.raises(UnknownOutcomeError):
        table.append(ROWS, run_id="night")
    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    monkeypatch.setattr(SqlCatalog, "load_table", load)
    assert reopened(tmp_path).append(ROWS, run_id="night").already_committed is taken
    assert reopened(tmp_path).count() == 5


def test_a_run_that_finds_nothing_to_do_commits_nothing(table: ManagedTable) -> None:
    assert table.delete("id = 99", run_id="night") == WriteResult()
    assert table.committed_run("night") is None


def test_only_the_newest_runs_are_remembered_beyond_their_snapshots(
    table: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "_MOST_RUNS", 2)
    clock = iter(range(1_000))
    changed = once.Run.properties

    def later(self: once.Run, metadata: Any, snapshot: Any) -> Any:
        moment = snapshot.timestamp_ms + 1_000 * next(clock)
        return changed(self, metadata, snapshot.model_copy(update={"timestamp_ms": moment}))

    monkeypatch.setattr(once.Run, "properties", later)
    for night in ("1", "2", "3"):
        table.append(ROWS, run_id=night)
    names = {name for name in table.table.metadata.properties if name.startswith("penstock.run.")}
    assert names == {"penstock.run.2", "penstock.run.3"}
    assert table.append(ROWS, run_id="1").already_committed, "its snapshot is still there"
    table.append(ROWS)
    table.expire(timedelta(0))
    assert [table.committed_run(night) is None for night in ("1", "2", "3")] == [True, False, False]


@pytest.mark.parametrize("run_id", ["", "  ", "a\nb", "x" * 201, 7])
def test_a_run_has_a_name(table: ManagedTable, tmp_path: Path, run_id: Any) -> None:
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match=r"invalid run_id=.*; give a text of 1 to 200 characters"):
        table.append(ROWS, run_id=run_id)
    assert files_below(tmp_path) == before


def test_a_property_that_names_no_snapshot_is_an_error_that_says_so(table: ManagedTable) -> None:
    table.set_properties({"penstock.run.night": "yesterday"})
    with pytest.raises(LakeError, match=r"penstock\.run\.night is 'yesterday', which is no number of a snapshot; set"):
        table.append(ROWS, run_id="night")


def test_a_run_that_fails_can_be_started_again(table: ManagedTable) -> None:
    with pytest.raises(SchemaError):
        table.append(pa.table({"id": ["x"]}), run_id="night")
    assert table.append(ROWS, run_id="night").rows_added == 2


# What rows may be


class Stream:
    """Rows of a library that has only Arrow's C interface."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows,
        lambda rows: rows.to_batches()[0],
        lambda rows: rows.to_reader(),
        lambda rows: rows.to_pandas(),
        lambda rows: rows.to_pandas().set_axis([7, 8], axis=0),
        pl.from_arrow,
        Stream,
    ],
    ids=["Arrow", "a batch", "a reader", "pandas", "pandas with an index", "Polars", "a C stream"],
)
@pytest.mark.parametrize("write", ["append", "overwrite", "upsert"])
def test_rows_of_any_library(table: ManagedTable, write: str, convert: Callable[[pa.Table], Any]) -> None:
    rows = convert(pa.table({"id": [7, 8], "n": [70, 80]}))
    done = table.upsert(rows, "id") if write == "upsert" else getattr(table, write)(rows)
    assert done.rows_added == 2
    assert table.count("id > 6") == 2
    assert table.count() == (2 if write == "overwrite" else 5)


def test_what_are_no_rows_is_an_error(table: ManagedTable) -> None:
    with pytest.raises(LakeError, match=r"rows are a Spark DataFrame, an Arrow table, .* found list"):
        table.append([{"id": 1}])
