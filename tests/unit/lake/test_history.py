"""Tags, branches, rollback and fast-forward; PyIceberg reads what they leave."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.update import SetSnapshotRefUpdate

import penstock
from penstock.errors import LakeError, SchemaError
from penstock.lake.commit.commit import update
from penstock.lake.create import define
from penstock.lake.managed_table import ManagedTable
from penstock.lake.replace import Replacement
from tests.fixtures.managed_tables import files_below, head_id, managed_table, reachable, reopened, snapshot_ids
from tests.fixtures.managed_writers import rows

SCHEMA = "id bigint, app string"


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=["app"])
    table.append(rows([(1, "a"), (2, "b")]))
    return table


def ids(table: Any) -> list[int]:
    return sorted(table.arrow()["id"].to_pylist())


def ids_by_pyiceberg(table: ManagedTable, ref: str) -> list[int]:
    newest = table.table.catalog.load_table(table.table.name())
    return sorted(newest.scan().use_ref(ref).to_arrow()["id"].to_pylist())


def heads(table: ManagedTable) -> dict[str, int]:
    newest = table.table.catalog.load_table(table.table.name())
    return {name: ref.snapshot_id for name, ref in newest.metadata.refs.items()}


# What there was


def test_history_and_snapshots_have_the_columns_of_icebergs_tables(table: ManagedTable) -> None:
    table.append(rows([(3, "a")]))
    assert table.history().column_names == ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"]
    assert table.history()["snapshot_id"].to_pylist() == snapshot_ids(table)
    names = ["committed_at", "snapshot_id", "parent_id", "operation", "manifest_list", "summary"]
    assert table.snapshots().column_names == names
    assert table.snapshots()["operation"].to_pylist() == ["append", "append"]


def test_a_table_without_snapshots_has_an_empty_history(tmp_path: Path) -> None:
    table = managed_table(tmp_path, SCHEMA)
    assert (table.history().num_rows, table.snapshots().num_rows, table.refs().num_rows) == (0, 0, 0)


def test_history_shows_that_a_snapshot_was_rolled_back(table: ManagedTable) -> None:
    table.append(rows([(3, "a")]))
    first, second = snapshot_ids(table)
    table.rollback(first)
    history = table.history().to_pylist()
    assert [(row["snapshot_id"], row["is_current_ancestor"]) for row in history] == [
        (first, True),
        (second, False),
        (first, True),
    ]


# Rollback


def test_a_rollback_by_id_tag_or_time_brings_the_rows_back(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    moment = datetime.fromtimestamp(table.table.metadata.snapshot_log[0].timestamp_ms / 1000, UTC)
    table.create_tag("good")
    for to in (first, "good", moment, moment.isoformat()):
        table.append(rows([(3, "a")]))
        second = head_id(table)
        moved = table.rollback(to)
        assert (moved.previous_snapshot_id, moved.current_snapshot_id) == (second, first)
        assert ids(table) == ids(reopened(table_root(table))) == ids_by_pyiceberg(table, "main") == [1, 2]


def table_root(table: ManagedTable) -> Path:
    assert table.declarations.warehouse is not None
    return table.declarations.warehouse


def test_a_rollback_is_undone_by_another_one(table: ManagedTable) -> None:
    table.append(rows([(3, "a")]))
    first, second = snapshot_ids(table)
    table.rollback(first)
    assert str(table.rollback(second)) == f"main is at snapshot {second} now; it was at {first}"
    assert ids(table) == [1, 2, 3]


def test_a_rollback_of_a_branch_is_undone_by_another_one(table: ManagedTable) -> None:
    table.create_branch("audit")
    audit = table.at_branch("audit")
    for i in (3, 4):
        audit.append(rows([(i, "a")]))
    table.append(rows([(9, "a")]))
    first, middle, last = audit.history()["snapshot_id"].to_pylist()
    for snapshot, expected in ((first, [1, 2]), (last, [1, 2, 3, 4]), (middle, [1, 2, 3])):
        audit.rollback(snapshot)
        assert ids(audit) == ids_by_pyiceberg(table, "audit") == expected
    audit.rollback(first)
    with pytest.raises(LakeError, match=r"was never current on audit of web\.t"):
        audit.rollback("main")
    table.drop_branch("audit")
    with pytest.raises(LakeError, match=r"was never current on main of web\.t"):
        table.rollback(last)


def test_a_table_that_was_replaced_is_not_rolled_back_to_rows_without_columns(table: ManagedTable) -> None:
    before = head_id(table)
    definition = define("id bigint, name string", (), None, {}, {}, table.table.metadata)
    replacement = Replacement.of(table, definition)
    replacement.write(pa.table({"id": [7], "name": ["x"]}))
    replacement.commit()
    now = reopened(table_root(table))
    with pytest.raises(
        LakeError, match=r"web\.t was replaced since snapshot \d+, whose columns are all gone; read it with at"
    ):
        now.rollback(before)
    with pytest.raises(SchemaError, match=r"web\.t was replaced since snapshot \d+"):
        now.changes(before)
    assert (ids(now), ids(now.at(before))) == ([7], [1, 2])
    assert now.changes(before, before).num_rows == 0


def test_a_rollback_to_the_current_snapshot_commits_nothing(table: ManagedTable) -> None:
    before = table.table.metadata_location
    assert str(table.rollback(head_id(table))) == f"main is at snapshot {head_id(table)} already"
    assert table.refresh().table.metadata_location == before


def test_rows_are_written_on_top_of_a_rollback(table: ManagedTable) -> None:
    table.append(rows([(3, "a")]))
    table.rollback(snapshot_ids(table)[0])
    table.append(rows([(4, "b")]))
    table.delete("id = 1")
    table.compact()
    assert ids(table) == ids_by_pyiceberg(table, "main") == [2, 4]


@pytest.mark.parametrize(
    ("to", "message"),
    [
        (17, "web.t has no snapshot 17; there are 2, the newest: "),
        ("nightly", "web.t has no tag or branch 'nightly'; tags and branches: audit, main; a time is written "),
        ("2001-01-01", "web.t had no snapshot at 2001-01-01T00:00:00; there are 2, the newest: "),
        (None, "rollback has no snapshot; give an id, a time or a tag"),
        (True, "True is no snapshot; give an id, a time, a tag or a branch"),
        ("audit", "was never current on main of web.t; see its history; a branch is published by a fast-forward"),
    ],
)
def test_a_rollback_to_what_was_never_current_changes_nothing(table: ManagedTable, to: Any, message: str) -> None:
    table.create_branch("audit")
    table.at_branch("audit").append(rows([(3, "a")]))
    before = heads(table)
    with pytest.raises(LakeError) as error:
        table.rollback(to)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert heads(table) == before


# Tags and branches


def test_a_tag_keeps_its_snapshot_and_its_files(table: ManagedTable, tmp_path: Path) -> None:
    table.create_tag("eod")
    table.overwrite(rows([(9, "c")]))
    table.append(rows([(10, "c")]))
    table.expire("0 seconds")
    table.sweep("0 seconds", force=True)
    assert len(snapshot_ids(table)) == 2
    assert ids(table.at("eod")) == ids_by_pyiceberg(table, "eod") == [1, 2]
    table.drop_tag("eod")
    table.expire("0 seconds")
    assert len(snapshot_ids(table)) == 1
    table.sweep("0 seconds", force=True)
    assert files_below(tmp_path) <= reachable(table)


def test_a_branch_keeps_its_snapshots_and_files(table: ManagedTable) -> None:
    table.create_branch("audit")
    audit = table.at_branch("audit")
    audit.append(rows([(3, "a")]))
    audit.delete("id = 1")
    table.overwrite(rows([(9, "c")]))
    table.expire("0 seconds")
    table.sweep("0 seconds", force=True)
    assert ids(audit.refresh()) == ids_by_pyiceberg(table, "audit") == [2, 3]
    assert ids(table) == ids_by_pyiceberg(table, "main") == [9]


def test_refs_are_made_at_any_snapshot(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(3, "a")]))
    table.create_tag("by-id", first)
    table.create_tag("by-tag", "by-id")
    table.create_branch("by-now")
    second = head_id(table)
    assert heads(table) == {"main": second, "by-id": first, "by-tag": first, "by-now": second}
    kinds = dict(zip(table.refs()["name"].to_pylist(), table.refs()["type"].to_pylist(), strict=True))
    assert kinds == {"main": "BRANCH", "by-id": "TAG", "by-tag": "TAG", "by-now": "BRANCH"}


@pytest.mark.parametrize("name", ["", " a", "a ", "7", "2026-05-17", "2026-05-17 10:00", "a\nb", None])
@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_name_that_means_something_else_is_refused(table: ManagedTable, kind: str, name: Any) -> None:
    before = table.table.metadata_location
    with pytest.raises(LakeError, match=f"invalid {kind} name"):
        getattr(table, f"create_{kind}")(name)
    assert table.refresh().table.metadata_location == before


def test_refs_that_exist_are_not_made_again(table: ManagedTable) -> None:
    table.create_tag("eod")
    table.create_branch("audit")
    for make in (table.create_tag, table.create_branch):
        for name, kind in (("eod", "tag"), ("audit", "branch"), ("main", "branch")):
            with pytest.raises(LakeError, match=f"web.t has a {kind} '{name}' already; drop it first"):
                make(name)


def test_only_refs_that_exist_are_dropped(table: ManagedTable) -> None:
    table.create_tag("eod")
    table.create_branch("audit")
    with pytest.raises(LakeError, match=r"web.t has no tag 'audit'; there are: eod"):
        table.drop_tag("audit")
    with pytest.raises(LakeError, match=r"web.t has no branch 'eod'; there are: audit, main"):
        table.drop_branch("eod")
    with pytest.raises(LakeError, match="'main' is the table itself, and cannot be dropped"):
        table.drop_branch("main")
    table.drop_tag("eod")
    table.drop_branch("audit")
    assert list(heads(table)) == ["main"]


def test_a_table_without_snapshots_has_no_refs(tmp_path: Path) -> None:
    table = managed_table(tmp_path, SCHEMA)
    with pytest.raises(LakeError, match=r"web.t has no snapshot that a tag could point to; append rows first"):
        table.create_tag("eod")
    with pytest.raises(LakeError, match=r"web.t has no branch 'audit'; there are: none"):
        table.at_branch("audit")


# Fast-forward


def test_a_fast_forward_publishes_a_branch(table: ManagedTable) -> None:
    table.create_branch("audit")
    table.at_branch("audit").append(rows([(3, "a")]))
    before, after = heads(table)["main"], heads(table)["audit"]
    moved = table.fast_forward("main", to="audit")
    assert moved.to_dict() == {"branch": "main", "previous_snapshot_id": before, "current_snapshot_id": after}
    assert ids(table) == ids(reopened(table_root(table))) == ids_by_pyiceberg(table, "main") == [1, 2, 3]


def test_a_branch_catches_up_with_main(table: ManagedTable) -> None:
    table.create_branch("audit")
    table.append(rows([(3, "a")]))
    audit = table.at_branch("audit")
    audit.fast_forward("audit", to="main")
    assert ids(audit) == [1, 2, 3]


def test_branches_that_went_apart_are_not_fast_forwarded(table: ManagedTable) -> None:
    table.create_branch("audit")
    table.at_branch("audit").append(rows([(3, "a")]))
    table.append(rows([(4, "a")]))
    before = heads(table)
    for branch, to in (("main", "audit"), ("audit", "main")):
        message = f"{branch} of web.t cannot be fast-forwarded to {to}: {branch} has snapshots that {to} lacks"
        with pytest.raises(LakeError, match=message):
            table.fast_forward(branch, to=to)
    with pytest.raises(LakeError, match=r"web.t has no branch 'aduit'; there are: audit, main"):
        table.fast_forward("aduit", to="main")
    with pytest.raises(LakeError, match=r"web.t has no branch or tag 'aduit'; there are: audit, main"):
        table.fast_forward("main", to="aduit")
    assert heads(table) == before


def test_a_fast_forward_to_what_a_branch_has_says_so(table: ManagedTable) -> None:
    table.create_branch("audit")
    table.append(rows([(3, "a")]))
    with pytest.raises(LakeError, match="it has all snapshots of audit, and newer ones; there is nothing to publish"):
        table.fast_forward("main", to="audit")


def test_a_fast_forward_over_snapshots_that_expired_says_so(table: ManagedTable) -> None:
    table.create_branch("audit")
    for i in (3, 4):
        table.at_branch("audit").append(rows([(i, "a")]))
    table.expire("0 seconds")
    with pytest.raises(LakeError, match="the snapshots between both have expired; create the branch again at main"):
        table.fast_forward("main", to="audit")
    assert sorted(table.changes("main", "audit")["id"].to_pylist()) == [3, 4]


def test_settings_of_a_branch_stay_when_it_moves(table: ManagedTable) -> None:
    head = head_id(table)
    for name in ("main", "audit"):
        settings = {"max_snapshot_age_ms": 86_400_000, "min_snapshots_to_keep": 3, "max_ref_age_ms": 7}
        ref = {"ref_name": name, "type": "branch", "snapshot_id": head, **settings}
        update(table.refresh().table, (), [SetSnapshotRefUpdate.model_validate(ref)])
    table.refresh().append(rows([(3, "a")]))
    table.at_branch("audit").append(rows([(4, "a")]))
    table.rollback(head)
    for name in ("main", "audit"):
        ref = table.refresh().table.metadata.refs[name]
        assert (ref.max_snapshot_age_ms, ref.min_snapshots_to_keep, ref.max_ref_age_ms) == (86_400_000, 3, 7)


def test_a_rollback_is_made_again_when_another_writer_was_faster(table: ManagedTable, monkeypatch: Any) -> None:
    table.append(rows([(3, "a")]))
    first = snapshot_ids(table)[0]
    other, original, others = reopened(table_root(table)), type(table.table.catalog).commit_table, iter([True])

    def overtaken(catalog: Any, *arguments: Any) -> Any:
        if next(others, False):
            other.append(rows([(4, "a")]))
        return original(catalog, *arguments)

    monkeypatch.setattr(type(table.table.catalog), "commit_table", overtaken)
    table.rollback(first)
    assert ids(table) == [1, 2]
    assert len(snapshot_ids(table)) == 3


def test_history_is_of_iceberg_tables(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path)
    table = lake.create_table("web.wide", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1]}))
    lake.rename_table("web.wide", "web.other")
    other = lake.table("web.other")
    other.create_branch("audit")
    other.at_branch("audit").append(pa.table({"n": [2]}))
    assert other.at_branch("audit").count() == 2
