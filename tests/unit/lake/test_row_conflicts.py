"""Changes of rows while others write: what is planned again, what is left alone, and that no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from penstock.lake.maintain import compact as compaction
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import writes
from tests.fixtures.managed_tables import managed_table, reopened
from tests.fixtures.processes import PATIENCE

COMMANDS = ("delete", "update", "merge")
ON_READ = {f"write.{command}.mode": "merge-on-read" for command in COMMANDS}
SNAPSHOT = {f"write.{command}.isolation-level": "snapshot" for command in COMMANDS}
MODES = {"copy-on-write": dict[str, str](), "merge-on-read": ON_READ}
Write = Callable[[Any], Any]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> dict[str, str]:
    return MODES[request.param]


def rows(*ids: int, n: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([n] * len(ids), pa.int64())})


def made(root: Path, properties: dict[str, str]) -> ManagedTable:
    table = managed_table(root, "id bigint, n bigint", properties=properties)
    table.append(rows(1, 2, 3))
    table.append(rows(11, 12, 13))
    return table


def held(table: Any) -> list[tuple[int, int]]:
    own = sorted((row["id"], row["n"]) for row in table.refresh().arrow().to_pylist())
    theirs = sorted((row["id"], row["n"]) for row in table.table.scan().to_arrow().to_pylist())
    assert own == theirs
    return own


def between(monkeypatch: pytest.MonkeyPatch, root: Path, module: Any, other: Write) -> None:
    """Another writer commits once, after the next change was planned and written, and before it is committed."""
    commit, waiting = module.commit_written, [other]

    def slow(*arguments: Any) -> Any:
        while waiting:
            waiting.pop()(reopened(root))
        return commit(*arguments)

    monkeypatch.setattr(module, "commit_written", slow)


OTHERS: dict[str, tuple[Write, list[tuple[int, int]]]] = {
    # what another writer does, and the rows when 100 is added to n where id <= 2 as well
    "deletes the row": (lambda t: t.delete("id = 2"), [(1, 100), (3, 0)]),
    "updates the row": (lambda t: t.update({"n": "n + 7"}, where="id = 2"), [(1, 100), (2, 107), (3, 0)]),
    "updates a row beside it": (lambda t: t.update({"n": 7}, where="id = 3"), [(1, 100), (2, 100), (3, 7)]),
    "merges the row": (lambda t: t.upsert(rows(2, n=9), on="id"), [(1, 100), (2, 109), (3, 0)]),
    "compacts": (lambda t: t.compact(), [(1, 100), (2, 100), (3, 0)]),
    "removes all": (lambda t: t.delete("id < 10"), []),
}


SELDOM = {"updates a row beside it", "merges the row"}


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize(
    "other", [pytest.param(each, marks=[pytest.mark.slow] if each in SELDOM else []) for each in OTHERS]
)
def test_changes_of_one_file_at_once_are_both_there(
    tmp_path: Path, mode: dict[str, str], isolation: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, {**mode, **(SNAPSHOT if isolation == "snapshot" else {})})
    write, expected = OTHERS[other]
    between(monkeypatch, tmp_path, writes, write)
    result = table.update({"n": "n + 100"}, where="id <= 2")
    assert held(table) == [*expected, (11, 0), (12, 0), (13, 0)]
    assert (result.retries, result.rows_updated) == (bool(expected), sum(n >= 100 for _, n in expected))


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_rows_that_others_add_are_changed_too_with_serializable_isolation(
    tmp_path: Path, mode: dict[str, str], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[tuple[Write, list[tuple[int, int]], list[tuple[int, int]]]] = [
        # a change, and what it makes of a row 2 that is added meanwhile, by both levels
        (lambda t: t.update({"n": 5}, where="id = 2"), [(2, 5), (2, 5)], [(2, 0), (2, 5)]),
        (lambda t: t.delete("id = 2"), [], [(2, 0)]),
        (lambda t: t.upsert(rows(2, n=5), on="id"), [(2, 5), (2, 5)], [(2, 0), (2, 5)]),
    ]
    for i, (change, serializable, snapshot) in enumerate(changes):
        root = tmp_path / str(i)
        table = made(root, {**mode, **(SNAPSHOT if level == "snapshot" else {})})
        with monkeypatch.context() as patch:
            between(patch, root, writes, lambda other: other.append(rows(2)))
            result = change(table)
        assert [row for row in held(table) if row[0] == 2] == (snapshot if level == "snapshot" else serializable)
        assert result.retries == 1


def test_files_that_cannot_hold_a_match_are_no_conflict(
    tmp_path: Path, mode: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, mode)
    plans = []
    find = writes.ByPredicate.find

    def counted(self: Any, now: Any) -> Any:
        plans.append(now.version.snapshot_id)
        return find(self, now)

    def others(other: Any) -> None:
        other.append(rows(500))
        other.delete("id = 11")

    between(monkeypatch, tmp_path, writes, others)
    monkeypatch.setattr(writes.ByPredicate, "find", counted)
    base = table.version.snapshot_id
    table.delete("id = 2")
    assert held(table) == [(1, 0), (3, 0), (12, 0), (13, 0), (500, 0)]
    assert plans[0] == base
    assert len([each for each in plans if each == plans[0]]) >= 1
    files = list(tmp_path.rglob("*.parquet"))
    needed = {task.path for s in table.snapshots()["snapshot_id"].to_pylist() for task in table.plan(snapshot=s).files}
    deletes = {
        d.path for s in table.snapshots()["snapshot_id"].to_pylist() for t in table.plan(snapshot=s).files
        for d in t.deletes
    }  # fmt: skip
    assert len(files) == len(needed | deletes), "nothing was written twice"


def test_a_compaction_does_not_lose_rows_that_are_marked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, ON_READ)
    between(monkeypatch, tmp_path, compaction, lambda other: other.delete("id IN (2, 12)"))
    done = table.compact()
    assert held(table) == [(1, 0), (3, 0), (11, 0), (13, 0)]
    assert not any(task.deletes for task in table.plan().files)
    assert done.written == 1


def test_a_compaction_keeps_delete_files_that_a_rollback_needs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, ON_READ)
    table.delete("id = 2")
    before = table.version.snapshot_id
    table.delete("id < 10")  # the whole file; now the delete file applies to nothing
    between(monkeypatch, tmp_path, compaction, lambda other: other.rollback(before))
    table.compact("id > 10")
    assert held(table) == [(1, 0), (3, 0), (11, 0), (12, 0), (13, 0)]


def test_a_change_that_was_planned_with_deletes_notices_a_rollback(
    tmp_path: Path, mode: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, {**mode, **SNAPSHOT, "write.delete.mode": "merge-on-read"})
    before = table.version.snapshot_id
    table.delete("id = 2")
    between(monkeypatch, tmp_path, writes, lambda other: other.rollback(before))
    table.update({"n": 5}, where="id = 3")
    assert held(table) == [(1, 0), (2, 0), (3, 5), (11, 0), (12, 0), (13, 0)]


@pytest.mark.parametrize("writers", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_writers_that_count_up_the_same_rows_lose_no_step(tmp_path: Path, mode: dict[str, str], writers: int) -> None:
    """Each merges keys that some of the others merge too: every row counts the merges that met it."""
    table = managed_table(tmp_path, "id bigint, n bigint", properties=mode)
    table.append(rows(*range(6)))
    barrier, steps = Barrier(writers), 3

    def run(number: int) -> None:
        own = reopened(tmp_path)
        barrier.wait(PATIENCE)
        for step in range(steps):
            keys = rows(*(key for key in range(10) if (key + number + step) % 2))
            merge = own.merge(keys, on="id").when_matched_update({"n": "n + 1"})
            merge.when_not_matched_insert({"id": "id", "n": "1"}).execute()

    with ThreadPoolExecutor(writers) as pool:
        for done in [pool.submit(run, number) for number in range(writers)]:
            done.result()
    counts = {key: sum((key + i + step) % 2 for i in range(writers) for step in range(steps)) for key in range(10)}
    assert held(table) == sorted(counts.items())
