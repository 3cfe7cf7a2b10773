"""The rows between two snapshots, against what PyIceberg reads of both; and which files are read for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from penstock import Coalesce
from penstock.errors import LakeError, PenstockError, SchemaError
from penstock.lake.managed_table import ManagedTable
from penstock.tables.iceberg.scan.reader import Reader
from tests.fixtures.iceberg_deletes import delete_equal, delete_positions
from tests.fixtures.managed_tables import managed_table, snapshot_ids
from tests.fixtures.managed_writers import rows
from tests.fixtures.variants import variants

SCHEMA = "id bigint, app string"
Change = tuple[int, str, str]


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
    table.append(rows([(1, "a"), (2, "b"), (3, "c"), (4, "c")]))
    return table


@pytest.fixture
def files_read(monkeypatch: Any) -> list[str]:
    read: list[str] = []
    original = Reader.file

    def file(self: Reader, task: Any, *arguments: Any) -> Any:
        read.append(task.path)
        return original(self, task, *arguments)

    monkeypatch.setattr(Reader, "file", file)
    return read


def tuples(found: pa.Table) -> Counter[Change]:
    return Counter(zip(*(found[name].to_pylist() for name in ("id", "app", "_change_type")), strict=True))


def expected(table: ManagedTable, from_: Any, to: Any) -> Counter[Change]:
    """By the rows that PyIceberg reads of both snapshots."""
    newest = table.table.catalog.load_table(table.table.name())
    before, after = Counter[Any](), Counter[Any]()
    for counts, snapshot in ((before, from_), (after, to)):
        if snapshot is not None:
            read = newest.scan(snapshot_id=snapshot).to_arrow()
            counts.update(zip(read["id"].to_pylist(), read["app"].to_pylist(), strict=True))
    inserted = {(*row, "insert"): number for row, number in (after - before).items()}
    return Counter({**inserted, **{(*row, "delete"): number for row, number in (before - after).items()}})


def test_rows_that_were_added_and_removed_are_told(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(5, "a")]))
    table.delete("id = 3")
    changes = table.changes(first)
    assert changes.column_names == ["id", "app", "_change_type"]
    assert tuples(changes) == {(5, "a", "insert"): 1, (3, "c", "delete"): 1}


def test_rows_that_were_added_and_removed_again_are_no_change(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(5, "a"), (5, "a")]))
    table.delete("id = 5")
    table.overwrite(rows([(3, "c"), (4, "c")]), "app = 'c'")
    assert table.changes(first).num_rows == 0


def test_equal_rows_are_counted(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(1, "a"), (1, "a")]))
    table.overwrite(rows([(3, "c"), (3, "c"), (3, "c")]), "app = 'c'")
    assert tuples(table.changes(first)) == {(1, "a", "insert"): 2, (3, "c", "insert"): 2, (4, "c", "delete"): 1}


def test_a_compaction_changes_nothing_and_is_not_read(table: ManagedTable, files_read: list[str]) -> None:
    (first,) = snapshot_ids(table)
    for i in range(3):
        table.append(rows([(10 + i, "a")]))
    appended = head = table.version.snapshot_id
    assert table.compact().rewritten
    before, after = snapshot_ids(table)[-2:]
    assert before == appended
    files_read.clear()
    assert table.changes(head).num_rows == 0
    assert files_read == []
    assert tuples(table.changes(first, after)) == {(10 + i, "a", "insert"): 1 for i in range(3)}
    assert len(files_read) == 3, "the files as they were appended, not those of the compaction"
    files_read.clear()
    table.append(rows([(20, "c")]))
    assert tuples(table.changes(head)) == {(20, "c", "insert"): 1}
    assert len(files_read) == 1


def test_only_files_that_differ_are_read(table: ManagedTable, files_read: list[str]) -> None:
    table.append(rows([(i, app) for i in range(5) for app in ("d", "e", "f")]))
    before = table.version.snapshot_id
    table.append(rows([(7, "d")]))
    files_read.clear()
    assert tuples(table.changes(before)) == {(7, "d", "insert"): 1}
    assert len(files_read) == 1
    table.delete("id = 3 AND app = 'e'")
    files_read.clear()
    assert tuples(table.changes(before)) == {(7, "d", "insert"): 1, (3, "e", "delete"): 1}
    assert len(files_read) == 3
    files_read.clear()
    assert tuples(table.changes(before, where="app = 'd'")) == {(7, "d", "insert"): 1}
    assert len(files_read) == 1


def test_a_predicate_chooses_among_the_changes(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.overwrite(rows([(1, "a"), (5, "a"), (6, "c")]))
    assert tuples(table.changes(first, where="id > 3")) == {
        (5, "a", "insert"): 1,
        (6, "c", "insert"): 1,
        (4, "c", "delete"): 1,
    }
    with pytest.raises(PenstockError, match="unknown column 'ap'"):
        table.changes(first, where="ap = 'a'")


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_rows_that_delete_files_remove_are_deleted(table: ManagedTable, files_read: list[str], kind: str) -> None:
    first = table.version.snapshot_id
    (path,) = table.plan("app = 'c'").files.paths.to_pylist()
    places = table.arrow("app = 'c'")["id"].to_pylist()
    if kind == "position":
        delete_positions(table.table.refresh(), {path: [places.index(4)]})
    else:
        delete_equal(table.table.refresh(), pa.table({"id": pa.array([4], pa.int64())}), [1])
    table.refresh()
    files_read.clear()
    assert tuples(table.changes(first)) == {(4, "c", "delete"): 1}
    assert files_read.count(path) == 2, "the file as it was, and as it is"
    assert kind == "equality" or len(files_read) == 2
    table.compact()
    assert tuples(table.changes(first)) == {(4, "c", "delete"): 1}
    assert tuples(table.changes(None, first)) == expected(table, None, first)


def test_changes_of_branches_that_went_apart_are_those_of_their_heads(table: ManagedTable) -> None:
    table.create_branch("audit")
    audit = table.at_branch("audit")
    audit.append(rows([(5, "a")]))
    table.append(rows([(6, "b")]))
    table.create_tag("eod")
    assert tuples(table.changes("main", "audit")) == {(5, "a", "insert"): 1, (6, "b", "delete"): 1}
    assert tuples(audit.refresh().changes("eod")) == {(5, "a", "insert"): 1, (6, "b", "delete"): 1}
    assert tuples(table.changes("audit")) == {(6, "b", "insert"): 1, (5, "a", "delete"): 1}
    assert table.changes("eod").num_rows == table.changes("audit", "audit").num_rows == 0


def test_what_a_rollback_took_away_is_told(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(5, "a")]))
    second = table.version.snapshot_id
    table.rollback(first)
    assert tuples(table.changes(second)) == {(5, "a", "delete"): 1}


def test_the_first_snapshot_that_is_kept_counts_all_its_rows(table: ManagedTable) -> None:
    table.append(rows([(5, "a")]))
    table.compact()
    head = table.version.snapshot_id
    table.expire("0 seconds")
    assert snapshot_ids(table) == [head]
    assert tuples(table.changes(None)) == expected(table, None, head)
    assert table.changes(None).num_rows == 5


def test_a_snapshot_that_expired_is_named(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    table.append(rows([(5, "a")]))
    table.expire("0 seconds")
    for arguments in ((first,), (None, first)):
        with pytest.raises(LakeError, match=rf"web.t has no snapshot {first}; there are 1, the newest: "):
            table.changes(*arguments)


def test_changes_around_a_snapshot_that_expired_are_those_between_both(table: ManagedTable) -> None:
    table.create_tag("eod")
    table.append(rows([(5, "a")]))
    table.compact()
    table.delete("id = 1")
    table.append(rows([(6, "a")]))
    table.expire("0 seconds")
    assert len(snapshot_ids(table)) == 2
    assert tuples(table.changes("eod")) == {(5, "a", "insert"): 1, (6, "a", "insert"): 1, (1, "a", "delete"): 1}


def test_a_table_without_rows_has_no_changes(tmp_path: Path) -> None:
    table = managed_table(tmp_path, SCHEMA)
    assert table.changes(None).schema.names == ["id", "app", "_change_type"]
    assert table.changes(None).num_rows == 0


def test_a_column_of_that_name_is_refused(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, _Change_Type string")
    with pytest.raises(SchemaError, match=r"web.t has a column _change_type"):
        table.changes(None)


def test_both_sides_are_read_by_the_newer_schema(table: ManagedTable) -> None:
    (first,) = snapshot_ids(table)
    with table.table.update_schema() as change:
        change.add_column("n", LongType())
        change.rename_column("app", "name")
    table.refresh().append(pa.table({"id": [5], "name": ["a"], "n": [7]}))
    found = table.changes(first)
    assert found.to_pylist() == [{"id": 5, "name": "a", "n": 7, "_change_type": "insert"}]
    assert table.changes(None).num_rows == 5


def test_hot_keys_of_maps_are_parts_of_rows(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    table = managed_table(tmp_path, "id bigint, m map<string, string>", shred={"m": ["a"]})
    maps = [[("a", "x"), ("b", "y")], None, [], [("a", None)], [("b", "y")]]
    table.append(pa.table({"id": [1, 2, 3, 4, 5], "m": pa.array(maps, kind)}))
    first = table.version.snapshot_id
    table.set_shred(None)
    table.delete("id = 3")
    table.overwrite(pa.table({"id": [1], "m": pa.array([[("b", "y"), ("a", "x")]], kind)}), "id = 1")
    changes = table.changes(first)
    assert [(row["id"], row["_change_type"]) for row in changes.to_pylist()] == [(3, "delete")]


KINDS: Sequence[tuple[str, pa.DataType, Sequence[Any]]] = [
    ("double", pa.float64(), [float("nan"), 0.0, 1.5]),
    ("decimal(10, 2)", pa.decimal128(10, 2), [None]),
    ("array<string>", pa.list_(pa.string()), [["a"], [], None, ["a", None], [None]]),
    (
        "struct<x: int, y: array<int>>",
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))]),
        [{"x": 1, "y": [1]}, {"x": 1, "y": None}, None, {"x": None, "y": []}],
    ),
    (
        "map<string, array<double>>",
        pa.map_(pa.string(), pa.list_(pa.float64())),
        [[("a", [1.0])], [("a", [1.0, float("nan")]), ("b", None)], [], None],
    ),
    ("binary", pa.binary(), [b"", b"a", None]),
    ("timestamp", pa.timestamp("us", "UTC"), [None]),
]


@pytest.mark.parametrize(("ddl", "kind", "values"), KINDS, ids=[ddl for ddl, _, _ in KINDS])
def test_rows_of_every_type_cancel_out_when_they_are_rewritten(
    tmp_path: Path, ddl: str, kind: pa.DataType, values: Sequence[Any]
) -> None:
    table = managed_table(tmp_path, f"id bigint, v {ddl}")
    table.append(pa.table({"id": range(len(values)), "v": pa.array(values, kind)}))
    first = table.version.snapshot_id
    table.append(pa.table({"id": [99], "v": pa.array([values[0]], kind)}))
    table.overwrite(pa.table({"id": range(len(values)), "v": pa.array(values, kind)}), "id < 99")
    assert [(row["id"], row["_change_type"]) for row in table.changes(first).to_pylist()] == [(99, "insert")]
    table.overwrite(pa.table({"id": range(len(values)), "v": pa.array([*values[1:], values[0]], kind)}), "id < 99")
    number = 1 + 2 * (len(values) if len(values) > 1 else 0)
    assert table.changes(first).num_rows == number


@pytest.mark.parametrize("seed", variants(range(6), every_run=2))
def test_random_histories_have_the_changes_that_pyiceberg_reads(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
    table.append(rows([(1, "a")]))
    table.create_branch("audit")
    for _ in range(12):
        branch = table.at_branch(rng.choice(["main", "main", "audit"]))
        new = rows([(rng.randrange(6), rng.choice("abcd")) for _ in range(rng.randrange(1, 5))])
        match rng.randrange(6):
            case 0 | 1:
                branch.append(new)
            case 2:
                branch.delete(f"id = {rng.randrange(6)}")
            case 3:
                branch.overwrite(new, dynamic=True)
            case 4:
                branch.compact()
            case _:
                branch.rollback(rng.choice(branch.history()["snapshot_id"].to_pylist()))
    table.refresh()
    known = snapshot_ids(table)
    for _ in range(12):
        from_, to = rng.choice([None, *known]), rng.choice(known)
        assert tuples(table.changes(from_, to)) == expected(table, from_, to), (from_, to)
