"""Writes to a branch move the branch alone; writers of several branches at once lose nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyiceberg.exceptions import BadRequestError

from penstock import Coalesce
from penstock.errors import LakeError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import files_below, managed_table, reachable, reopened
from tests.fixtures.managed_writers import rows
from tests.fixtures.processes import PATIENCE

SCHEMA = "id bigint, app string"


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
    table.append(rows([(1, "a"), (2, "b"), (3, "c")]))
    table.create_branch("audit")
    return table


def ids(table: Any) -> list[int]:
    return sorted(table.arrow()["id"].to_pylist())


def ids_by_pyiceberg(table: ManagedTable, ref: str) -> list[int]:
    newest = table.table.catalog.load_table(table.table.name())
    return sorted(newest.scan().use_ref(ref).to_arrow()["id"].to_pylist())


def total(table: ManagedTable) -> int:
    return int(table.table.metadata.current_snapshot().summary.additional_properties["total-records"])


def test_every_write_to_a_branch_leaves_main_as_it_was(table: ManagedTable) -> None:
    audit, main = table.at_branch("audit"), table.table.metadata.current_snapshot_id
    writes = [
        (lambda: audit.append(rows([(4, "a")])), [1, 2, 3, 4]),
        (lambda: audit.append(rows([(5, "d")])), [1, 2, 3, 4, 5]),
        (lambda: audit.overwrite(rows([(6, "c")]), "app = 'c'"), [1, 2, 4, 5, 6]),
        (lambda: audit.overwrite(rows([(7, "d")]), dynamic=True), [1, 2, 4, 6, 7]),
        (lambda: audit.delete("id = 1"), [2, 4, 6, 7]),
        (lambda: audit.delete("app = 'd'"), [2, 4, 6]),
        (lambda: audit.compact(), [2, 4, 6]),
        (lambda: audit.overwrite(rows([(8, "a")])), [8]),
    ]
    for write, expected in writes:
        write()
        assert ids(audit) == ids(table.at("audit").refresh()) == ids_by_pyiceberg(table, "audit") == expected
        assert total(audit) == len(expected)
        assert ids(table.refresh()) == ids_by_pyiceberg(table, "main") == [1, 2, 3]
        assert table.table.metadata.current_snapshot_id == main


def test_a_branch_is_planned_at_its_head(table: ManagedTable) -> None:
    audit = table.at_branch("audit")
    audit.append(rows([(4, "z")]))
    assert len(audit.plan("app = 'z'").files) == 1
    assert len(table.refresh().plan("app = 'z'").files) == 0
    assert (audit.count(), audit.maximum("id"), audit.branch, table.branch) == (4, 4, "audit", "main")
    assert len(audit.partitions()) == len(table.partitions()) + 1
    assert audit.key != table.key


def test_a_branch_sees_what_others_write_to_it(table: ManagedTable, tmp_path: Path) -> None:
    audit = table.at_branch("audit")
    reopened(tmp_path).at_branch("audit").append(rows([(4, "a")]))
    table.append(rows([(5, "a")]))
    assert ids(audit) == [1, 2, 3]
    assert ids(audit.refresh()) == [1, 2, 3, 4]
    audit.append(rows([(6, "a")]))
    assert ids(audit) == [1, 2, 3, 4, 6]


def test_the_past_of_a_branch_is_its_own(table: ManagedTable) -> None:
    audit = table.at_branch("audit")
    audit.append(rows([(4, "a")]))
    audit.append(rows([(5, "a")]))
    table.append(rows([(9, "a")]))
    first, second, third = audit.history()["snapshot_id"].to_pylist()
    assert third == audit.version.snapshot_id
    audit.rollback(second)
    assert ids(audit) == ids_by_pyiceberg(table, "audit") == [1, 2, 3, 4]
    assert ids(audit.at(first)) == [1, 2, 3]
    assert ids(table.refresh()) == [1, 2, 3, 9]
    with pytest.raises(LakeError, match=r"was never current on audit of web.t"):
        audit.rollback(table.version.snapshot_id)


def test_main_is_the_table_itself(table: ManagedTable) -> None:
    table.at_branch("audit").at_branch("main").append(rows([(4, "a")]))
    assert ids(table.refresh()) == [1, 2, 3, 4]
    assert ids(table.at_branch("audit")) == [1, 2, 3]


def test_a_branch_that_does_not_exist_or_is_a_tag_is_an_error(table: ManagedTable) -> None:
    table.create_tag("eod")
    with pytest.raises(LakeError, match=r"web.t has no branch 'aduit'; there are: audit, main"):
        table.at_branch("aduit")
    with pytest.raises(LakeError, match=r"web.t has no branch 'eod': 'eod' is a tag; there are: audit, main"):
        table.at_branch("eod")


def test_a_snapshot_of_a_branch_is_not_written(table: ManagedTable) -> None:
    with pytest.raises(LakeError, match=r"a branch is written by at_branch\('audit'\)"):
        table.at("audit").append(rows([(4, "a")]))


def test_snapshots_and_files_are_those_of_the_table(table: ManagedTable) -> None:
    audit = table.at_branch("audit")
    for remove in (audit.expire, audit.sweep):
        with pytest.raises(LakeError, match=r"this is the branch 'audit' of web.t, and snapshots and files"):
            remove()


def test_a_branch_that_was_dropped_is_not_written(table: ManagedTable, tmp_path: Path) -> None:
    audit = table.at_branch("audit")
    table.drop_branch("audit")
    before = files_below(tmp_path)
    with pytest.raises(LakeError, match=r"web.t has no branch 'audit'; there are: main"):
        audit.append(rows([(4, "a")]))
    assert files_below(tmp_path) == before


def test_a_branch_that_is_dropped_while_rows_are_written_leaves_no_file(
    table: ManagedTable, tmp_path: Path, monkeypatch: Any
) -> None:
    audit, original, first = table.at_branch("audit"), type(table.table.catalog).commit_table, iter([True])

    def dropped(catalog: Any, *arguments: Any) -> Any:
        if next(first, False):
            reopened(tmp_path).drop_branch("audit")
        return original(catalog, *arguments)

    monkeypatch.setattr(type(table.table.catalog), "commit_table", dropped)
    with pytest.raises(LakeError, match=r"web.t has no branch 'audit'; there are: main"):
        audit.append(rows([(4, "a")]))
    left = {path for path in files_below(tmp_path) - reachable(table) if not path.endswith(".metadata.json")}
    assert not left


def test_an_object_of_a_branch_that_it_drops_is_the_table(table: ManagedTable) -> None:
    audit = table.at_branch("audit")
    audit.drop_branch("audit")
    assert (audit.branch, ids(audit)) == ("main", [1, 2, 3])


@pytest.mark.parametrize("as_server", [False, True])
def test_a_commit_that_another_branch_overtook_is_made_again(
    table: ManagedTable, tmp_path: Path, monkeypatch: Any, as_server: bool
) -> None:
    """Both branches are where they were expected, but the number of the snapshot is taken."""
    refused: list[str] = []
    audit, original, first = table.at_branch("audit"), type(table.table.catalog).commit_table, iter([True])

    def overtaken(catalog: Any, *arguments: Any) -> Any:
        if next(first, False):
            reopened(tmp_path).append(rows([(9, "a")]))
        try:
            return original(catalog, *arguments)
        except ValueError as error:
            refused.append(str(error))
            if as_server:
                raise BadRequestError(str(error)) from None
            raise

    monkeypatch.setattr(type(table.table.catalog), "commit_table", overtaken)
    audit.append(rows([(4, "a")]))
    assert ["older than last sequence number" in text for text in refused] == [True]
    assert ids(audit) == ids_by_pyiceberg(table, "audit") == [1, 2, 3, 4]
    assert ids(table.refresh()) == [1, 2, 3, 9]
    left = {path for path in files_below(tmp_path) - reachable(table) if not path.endswith(".metadata.json")}
    assert not left


def test_deletes_on_a_branch_meet_rows_that_others_appended_to_it(
    table: ManagedTable, tmp_path: Path, monkeypatch: Any
) -> None:
    audit, original, first = table.at_branch("audit"), type(table.table.catalog).commit_table, iter([True])

    def overtaken(catalog: Any, *arguments: Any) -> Any:
        if next(first, False):
            reopened(tmp_path).at_branch("audit").append(rows([(10, "a"), (11, "a")]))
        return original(catalog, *arguments)

    monkeypatch.setattr(type(table.table.catalog), "commit_table", overtaken)
    audit.delete("app = 'a' AND id <> 11")
    assert ids(audit) == ids_by_pyiceberg(table, "audit") == [2, 3, 11]
    assert ids(table.refresh()) == [1, 2, 3]


def test_writers_of_two_branches_lose_nothing(table: ManagedTable, tmp_path: Path) -> None:
    writers, commits = ("main", "audit", "main", "audit"), 5
    barrier = Barrier(len(writers))

    def write(number: int) -> None:
        branch = reopened(tmp_path).at_branch(writers[number])
        barrier.wait(PATIENCE)
        for i in range(commits):
            branch.append(rows([(100 * (number + 1) + i, "abc"[i % 3])]))
            branch.delete(f"id = {100 * (number + 1) + i - 1}")

    with ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(write, number) for number in range(len(writers))]:
            done.result()
    last = {name: [100 * (i + 1) + commits - 1 for i, at in enumerate(writers) if at == name] for name in writers}
    for name in ("main", "audit"):
        expected = sorted([1, 2, 3, *last[name]])
        branch = table.at_branch(name)
        assert ids(branch) == ids_by_pyiceberg(table, name) == expected
        assert total(branch) == len(expected)
    left = {path for path in files_below(tmp_path) - reachable(table) if not path.endswith(".metadata.json")}
    assert not left
