"""Rows that change: keys of all types, odd names, old specs, deletes, hot keys, branches; and merge on read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError, PenstockError, SchemaError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.iceberg_deletes import data_files, delete_equal, delete_positions
from tests.fixtures.managed_tables import managed_table, reopened

ON_READ = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
MODES = {"copy-on-write": dict[str, str](), "merge-on-read": ON_READ}


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> dict[str, str]:
    return MODES[request.param]


def rows_of(table: Any, *names: str) -> list[tuple[Any, ...]]:
    """The rows as Penstock and PyIceberg read them."""
    own = [tuple(row.values()) for row in table.arrow(columns=list(names) or None).to_pylist()]
    theirs = table.table.scan(selected_fields=names or ("*",)).to_arrow().select(list(names or table.schema.names))
    assert sorted(map(repr, own)) == sorted(repr(tuple(row.values())) for row in theirs.to_pylist())
    return sorted(own, key=repr)


def paths(table: Any) -> set[str]:
    return set(table.plan().files.paths.to_pylist())


MOMENT = dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC)
KEYS: dict[str, tuple[list[Any], list[Any], list[int]]] = {
    # a key's type: the table's keys, those of the source, and which of the table's are met
    "decimal(9,2)": ([Decimal("1.10"), Decimal("-2.00"), None], [Decimal("-2.00"), None], [1]),
    "date": ([dt.date(1969, 12, 31), dt.date(2026, 5, 1)], [dt.date(1969, 12, 31)], [0]),
    "timestamp": ([MOMENT, MOMENT.replace(year=1900)], [MOMENT.replace(year=1900)], [1]),
    "timestamp_ntz": ([dt.datetime(2026, 5, 1), None], [dt.datetime(2026, 5, 1), None], [0]),
    "boolean": ([True, False, None], [False], [1]),
    "binary": ([b"", b"\xff", None], [b"\xff", b""], [0, 1]),
    "string": (["", "é", "e\u0301", None], ["é", None], [1]),
    "float": ([0.0, -0.0, float("nan"), float("inf")], [-0.0, float("nan")], [0, 1, 2]),
    "double": ([0.0, 0.1, float("nan"), float("-inf")], [0.0, float("-inf")], [0, 3]),
}


def test_an_update_to_a_map_or_a_list_may_match_no_row_of_a_file(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id int, m map<string, int>, l array<int>", properties=mode)
    table.append(pa.table({"id": pa.array([1, 3], pa.int32())}))
    assert table.update({"m": {"a": 1}, "l": [2]}, where="id = 2").rows_added == 0
    table.update({"m": {"a": 1}, "l": [2]}, where="id = 3")
    assert rows_of(table, "id", "l") == [(1, None), (3, [2])]
    assert table.arrow("id = 3")["m"].to_pylist() == [[("a", 1)]]


@pytest.mark.parametrize("kind", KEYS)
def test_keys_meet_by_their_values(tmp_path: Path, mode: dict[str, str], kind: str) -> None:
    own, others, met = KEYS[kind]
    table = managed_table(tmp_path, f"k {kind}, n int", properties=mode)
    to = table.schema.field("k").type
    for i, value in enumerate(own):  # each in a file of its own, so that files are pruned by their bounds
        table.append(pa.table({"k": pa.array([value], to), "n": pa.array([i], pa.int32())}))
    source = pa.table({"k": pa.array(others, to), "n": pa.array([100 + i for i in range(len(others))], pa.int32())})
    result = table.merge(source, on="K").when_matched_update({"n": "n + 10"}).when_not_matched_insert().execute()
    before = [i + 10 if i in met else i for i in range(len(own))]
    new = [n for n in sorted(row["n"] for row in table.arrow().to_pylist()) if n >= 100]
    assert sorted(row["n"] for row in table.arrow("n < 100").to_pylist()) == sorted(before)
    assert (result.rows_updated, result.rows_added) == (len(met), len(new))
    assert len(new) == sum(value is None for value in others)


@pytest.mark.parametrize("as_bytes", [True, False])
def test_keys_that_are_uuids_are_given_as_bytes_or_as_any_text_of_them(tmp_path: Path, as_bytes: bool) -> None:
    from uuid import UUID

    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField, UUIDType

    schema = Schema(NestedField(1, "u", UUIDType(), required=False), NestedField(2, "n", IntegerType(), required=False))
    table = managed_table(tmp_path, schema)
    one, two = UUID(int=10 << 100), UUID(int=11 << 100)
    kind: Any = pa.binary(16) if as_bytes else pa.string()

    def rows(values: list[UUID], n: int) -> pa.Table:
        texts = [value.bytes if as_bytes else str(value).upper() for value in values]
        return pa.table({"u": pa.array(texts, kind), "n": pa.array([n] * len(values), pa.int32())})

    table.append(rows([one], 1))
    result = table.upsert(rows([one, two], 2), on="u")
    assert (result.rows_added, result.rows_updated) == (1, 1)
    assert [row["n"] for row in table.arrow().to_pylist()] == [2, 2]
    if not as_bytes:
        with pytest.raises(SchemaError, match="value 'x', which is no uuid"):
            table.upsert(pa.table({"u": ["x"], "n": pa.array([1], pa.int32())}), on="u")


def test_rows_of_other_libraries_types_are_merged(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, app string, ts timestamp")
    source = pa.table(
        {
            "ID": pa.array([1, 2], pa.int16()),
            "App": pa.array(["a", "b"]).dictionary_encode(),
            "ts": pa.array([0, 1_000], pa.timestamp("ms", "Europe/Berlin")),
        }
    )
    assert table.upsert(source, on="id").rows_added == 2
    large = pa.table({"id": pa.array([2, 3]), "app": pa.array(["x", "y"], pa.large_string())})
    assert table.upsert(large, on="ID").rows_updated == 1
    assert [row[:2] for row in rows_of(table)] == [(1, "a"), (2, "x"), (3, "y")]


def test_columns_may_be_called_source_and_target(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id bigint, source string, target string", properties=mode)
    table.append(pa.table({"id": [1, 2, 3], "source": ["web", "app", "web"], "target": ["x", "y", "z"]}))
    new = pa.table({"id": [2, 9], "source": ["new", "newer"], "target": ["b", "c"]})
    assert table.upsert(new, on="id").rows_updated == 1
    assert rows_of(table) == [(1, "web", "x"), (2, "new", "b"), (3, "web", "z"), (9, "newer", "c")]
    by_source = pa.table({"source": ["web"], "id": [7]})
    result = (
        table.merge(by_source, on="source")
        .when_matched_update({"target": "concat(target.source, '-', source.source)"}, where="target.id > source.id - 6")
        .when_not_matched_by_source_delete(where="target.target = 'c' AND id = 9")
        .when_not_matched_by_source_update({"source": "concat(target.source, '!')"}, where="target.id = 2")
        .execute()
    )
    assert (result.rows_updated, result.rows_removed) == (2, 1)
    assert rows_of(table) == [(1, "web", "x"), (2, "new!", "b"), (3, "web", "web-web")]


def test_clauses_that_give_values_of_other_types_to_one_column(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id bigint, n bigint, x double", properties=mode)
    for start in (0, 3):
        table.append(pa.table({"id": [start, start + 1, start + 2], "n": [0, 0, 0], "x": [0.0, 0.0, 0.0]}))
    source = pa.table({"id": [0, 1, 2, 3, 7, 8], "n": pa.array([1, 2, 3, 4, 5, 6], pa.int8())})
    (
        table.merge(source, on="id")
        .when_matched_update({"n": "source.n"}, where="id IN (0, 3)")
        .when_matched_update({"n": "source.id * 100", "x": "CAST(1.5 AS float)"}, where="id = 1")
        .when_matched_update({"n": "7"})
        .when_not_matched_insert(where="n = 5")
        .when_not_matched_insert({"id": "id", "n": "id * 2"})
        .execute()
    )
    assert rows_of(table, "id", "n") == [(0, 1), (1, 100), (2, 7), (3, 4), (4, 0), (5, 0), (7, 5), (8, 16)]


def test_rows_move_between_partitions_of_an_evolved_table_with_deletes(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id bigint, app string, gone bigint, n bigint", ["app"], properties=mode)
    table.append(pa.table({"id": [1, 2, 3], "app": ["a", "a", "b"], "gone": [0, 0, 0], "n": [1, 2, 3]}))
    table.rename_column("app", "site")
    table.drop_column("gone")
    table.replace_partition_field("site", "bucket(2, id)")
    table.append(pa.table({"id": [4, 5], "site": ["b", None], "n": [4, 5]}))
    delete_positions(table.table, {data_files(table.table)[0].file_path: [0]})
    table = reopened(tmp_path)
    left = [row["id"] for row in table.arrow().sort_by("id").to_pylist()]
    assert len(left) == 4
    result = table.update({"id": "id + 10", "site": "'moved'"}, where="n > 1")
    assert result.rows_updated == sum(i > 1 for i in left)
    expected = [(i + 10, "moved", i) if i > 1 else (i, "a", i) for i in left]
    assert rows_of(table) == sorted(expected, key=repr)
    table.upsert(pa.table({"id": [left[-1] + 10, 99], "n": [0, 0]}), on="id")
    assert table.count("n = 0") == 2
    assert table.delete("site = 'moved'").rows_removed == sum(i > 1 for i in left)
    table.compact()
    assert {task.spec_id for task in table.plan().files} <= {table.table.metadata.default_spec_id}
    assert table.table.scan().to_arrow().num_rows == table.count()


def test_rows_that_are_deleted_already_are_neither_met_nor_counted(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id bigint, app string", ["app"], properties=mode)
    table.append(pa.table({"id": [1, 2, 3], "app": ["a", "a", "a"]}))
    (file,) = data_files(table.table)
    delete_positions(table.table, {file.file_path: [0]})
    delete_equal(table.table, pa.table({"id": [2]}), [1], spec_id=0, partition=file.partition)
    table = reopened(tmp_path)
    source = pa.table({"id": [1, 2, 3], "app": ["x", "y", "z"]})
    merge = table.merge(source, on="id").when_matched_update()
    assert merge.when_not_matched_insert(where="id = 1").execute().rows_updated == 1
    assert [tuple(row.values()) for row in table.arrow().sort_by("id").to_pylist()] == [(1, "x"), (3, "z")]


def test_a_file_that_goes_whole_counts_the_rows_that_it_still_had(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, app string", ["app"], properties=ON_READ)
    table.append(pa.table({"id": [1, 2, 3], "app": ["a", "a", "a"]}))
    assert table.delete("id = 2").rows_removed == 1
    assert table.delete("app = 'a'").rows_removed == 2
    assert table.plan().files.paths.to_pylist() == []


@pytest.mark.parametrize("shred_mode", ["move", "mirror"])
def test_hot_keys_follow_the_rows(tmp_path: Path, mode: dict[str, str], shred_mode: str) -> None:
    rule = penstock.Shred("a", "b", mode=shred_mode)
    table = managed_table(tmp_path, "id bigint, m map<string, string>", shred={"m": rule}, properties=mode)
    kind = pa.map_(pa.string(), pa.string())

    def rows(values: dict[int, Any]) -> pa.Table:
        return pa.table({"id": [*values], "m": pa.array(list(values.values()), kind)})

    table.append(rows({1: [("a", "1"), ("z", "9")], 2: [("b", None)], 3: None, 4: []}))
    table.upsert(rows({2: [("a", "2"), ("y", None)], 4: None, 5: [("b", "5")]}), on="id")
    expected = {1: [("a", "1"), ("z", "9")], 2: [("a", "2"), ("y", None)], 3: None, 4: None, 5: [("b", "5")]}

    def held() -> dict[int, Any]:
        read = table.arrow().to_pylist()
        return {row["id"]: None if row["m"] is None else sorted(row["m"], key=repr) for row in read}

    assert held() == expected
    assert table.count("m['a'] = '2'") == 1
    before = table.version.snapshot_id
    for twice in ({1: [("a", "1"), ("a", "2")]}, {9: [("a", "1"), ("a", "2")]}):
        with pytest.raises(PenstockError, match="a"):
            table.upsert(rows(twice), on="id")
    assert table.refresh().version.snapshot_id == before
    table.compact()
    assert held() == expected


def test_changes_of_a_branch_leave_main_alone(tmp_path: Path, mode: dict[str, str]) -> None:
    table = managed_table(tmp_path, "id bigint, n int", properties=mode)
    table.append(pa.table({"id": [1, 2, 3], "n": pa.array([0, 0, 0], pa.int32())}))
    table.create_branch("audit")
    audit = table.at_branch("audit")
    audit.upsert(pa.table({"id": [2, 9], "n": pa.array([5, 5], pa.int32())}), on="id")
    audit.update({"n": 8}, where="id = 3")
    audit.delete("id = 1")
    assert [tuple(row.values()) for row in audit.arrow().sort_by("id").to_pylist()] == [(2, 5), (3, 8), (9, 5)]
    assert rows_of(table.refresh()) == [(1, 0), (2, 0), (3, 0)]
    audit.compact()
    assert audit.count() == 3
    table.fast_forward("main", "audit")
    assert rows_of(table) == [(2, 5), (3, 8), (9, 5)]


def test_merges_that_cannot_be_done_are_one_clear_line(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, s struct<a: int>, n int")
    table.append(pa.table({"id": [1], "s": [{"a": 1}], "n": [1]}).cast(table.schema))
    struct = pa.table({"s": pa.array([{"a": 1}], table.schema.field("s").type)})
    twice = pa.table([pa.array([1]), pa.array([1])], names=["id", "ID"])
    cases: list[tuple[str, Any]] = [
        ("the key s is a struct<a: ?int>, by which rows are not matched", lambda: table.upsert(struct, on="s")),
        ("several columns of the rows", lambda: table.upsert(twice, on="id")),
        (
            "target is a row, not a value",
            lambda: (
                table.merge(pa.table({"id": [1]}), on="id")
                .when_not_matched_by_source_delete(where="target IS NULL")
                .execute()
            ),
        ),
    ]
    for message, call in cases:
        with pytest.raises(PenstockError, match=message) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
@pytest.mark.parametrize("setting", ["mode", "isolation-level"])
def test_a_mode_that_there_is_not_is_named(tmp_path: Path, command: str, setting: str) -> None:
    table = managed_table(tmp_path, "id bigint", properties={})
    table.append(pa.table({"id": [1]}))
    name = f"write.{command}.{setting}"
    with pytest.raises(LakeError, match=rf"{name} is 'mor': expected (copy-on-write or merge-on|serializable or sna)"):
        table.set_properties({name: "mor"})
    with pytest.raises(LakeError, match=rf"{name} is 'mor'"):
        managed_table(tmp_path / "other", "id bigint", properties={name: "mor"})
    with table.table.transaction() as change:  # as another engine sets it
        change.set_properties({name: "mor"})
    changes: dict[str, Any] = {
        "delete": lambda: table.delete("id = 1"),
        "update": lambda: table.update({"id": 2}),
        "merge": lambda: table.upsert(pa.table({"id": [1]}), on="id"),
    }
    table.refresh()
    with pytest.raises(LakeError, match=rf"{name} is 'mor'"):
        changes[command]()


def test_compaction_removes_delete_files_that_apply_to_nothing(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, app string", ["app"], properties=ON_READ)
    for app in ("a", "b", "c"):
        table.append(pa.table({"id": [1, 2, 3], "app": [app] * 3}))
    table.set_properties({"write.target-file-size-bytes": "1"})  # every file is large enough
    table.delete("id = 2 AND app <> 'c'")
    table.delete("id = 3 AND app = 'a'")
    before = paths(table)

    def totals() -> tuple[str, str]:
        summary = table.table.current_snapshot().summary.additional_properties
        return summary["total-delete-files"], summary.get("total-position-deletes", "0")

    assert totals() == ("3", "3")
    table.delete("app = 'b'")  # a file that goes whole leaves its delete file behind
    done = table.compact("app = 'b'")
    assert (done.rewritten, done.delete_files_removed) == (0, 1)
    assert "1 delete file removed" in str(done)
    assert totals() == ("2", "2")
    done = table.compact()
    assert (done.rewritten, done.written, done.delete_files_removed) == (1, 1, 2)
    assert len(before & paths(table)) == 1, "the file without deletes stays"
    assert totals() == ("0", "0")
    assert rows_of(table) == [(1, "a"), (1, "c"), (2, "c"), (3, "c")]
    assert str(table.compact()) == "nothing to compact"
    table.expire("0 seconds")
    left = list(Path(tmp_path).rglob("*-deletes.parquet"))
    assert not left, "expired snapshots take their delete files along"
    assert rows_of(table) == [(1, "a"), (1, "c"), (2, "c"), (3, "c")]


def test_sweep_keeps_delete_files_that_are_needed(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint", properties=ON_READ)
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    (needed,) = tmp_path.rglob("*-deletes.parquet")
    orphan = needed.with_name("orphan-deletes.parquet")
    orphan.write_bytes(needed.read_bytes())
    table.sweep("0 seconds", force=True)
    assert needed.exists()
    assert not orphan.exists()
    assert table.expire("0 seconds").snapshots == 1
    assert rows_of(table) == [(1,), (3,)]


def test_overwrites_copy_though_deletes_mark(tmp_path: Path) -> None:
    properties = {**ON_READ, "write.overwrite.mode": "merge-on-read"}
    table = managed_table(tmp_path, "id bigint, n bigint", properties=properties)
    table.append(pa.table({"id": [1, 2, 3], "n": [0, 0, 0]}))
    table.overwrite(pa.table({"id": [2], "n": [5]}), "id = 2")
    assert not any(task.deletes for task in table.plan().files)
    assert rows_of(table) == [(1, 0), (2, 5), (3, 0)]


def test_tables_of_version_1_copy_on_write(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, n bigint", properties={**ON_READ, "format-version": "1"})
    table.append(pa.table({"id": [1, 2, 3], "n": [0, 0, 0]}))
    table.delete("id = 2")
    assert not any(task.deletes for task in table.plan().files)
    assert rows_of(table) == [(1, 0), (3, 0)]


def test_many_new_values_are_written_where_their_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.lake.write import changed_files

    monkeypatch.setattr(changed_files, "_MOVED_BYTES", 0)
    for name, properties in MODES.items():
        table = managed_table(tmp_path / name, "id bigint, app string", ["app"], properties=properties)
        table.append(pa.table({"id": [1, 2, 3, 4], "app": ["a", "a", "b", "b"]}))
        assert table.update({"app": "'c'"}, where="id IN (1, 3)").files_added >= 3
        assert rows_of(table) == [(1, "c"), (2, "a"), (3, "c"), (4, "b")]


def test_statistics_of_a_table_with_deletes_are_right(tmp_path: Path) -> None:
    table: ManagedTable = managed_table(tmp_path, "id bigint, app string", ["app"], properties=ON_READ)
    table.append(pa.table({"id": [1, 2, 3, 4], "app": ["a", "a", "b", "b"]}))
    table.delete("id IN (2, 4)")
    assert table.count() == 2
    assert table.count("app = 'a'") == 1
    assert table.count("id > 1") == 1
    (a, b) = table.partitions().sort_by("app").to_pylist()
    assert [(row["files"], row["deletes"]) for row in (a, b)] == [(1, 1), (1, 1)]


def test_tables_of_version_3_are_refused_by_name_and_left_as_they_are(tmp_path: Path) -> None:
    import json
    from urllib.parse import urlsplit

    with pytest.raises(LakeError, match="tables of format version 3 can be read and not written yet"):
        managed_table(tmp_path, "id bigint", properties={"format-version": "3"})
    table = managed_table(tmp_path, "id bigint, n bigint", properties=ON_READ)
    with pytest.raises(LakeError, match=r"the format version of web.t cannot be changed"):
        table.set_properties({"format-version": "3"})
    table.append(pa.table({"id": [1, 2], "n": [0, 0]}))
    path = Path(urlsplit(table.table.metadata_location).path)  # as another engine upgrades it
    path.write_text(json.dumps({**json.loads(path.read_text()), "format-version": 3, "next-row-id": 0}))
    table = reopened(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    changes: list[Any] = [
        lambda: table.delete("id = 1"),
        lambda: table.update({"n": 1}),
        lambda: table.upsert(pa.table({"id": [1]}), on="id"),
        lambda: table.compact(),
    ]
    for change in changes:
        with pytest.raises(LakeError, match="the table has format version 3, which can be read and not written yet"):
            change()
    assert sorted(tmp_path.rglob("*")) == files
    assert table.count() == 2


LAID_OUT: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["app"]},
    "coalesced": {"partition_by": ["day(ts)", "app"], "coalesce": ["app"]},
    "shredded": {"shred": {"m": ["a"]}},
}


@pytest.mark.parametrize("layout", LAID_OUT)
def test_only_files_that_can_hold_a_match_are_opened(
    tmp_path: Path, mode: dict[str, str], layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.tables.iceberg.scan.reader import Reader

    schema = "id bigint, app string, ts timestamp, m map<string, string>, n bigint"
    table = managed_table(tmp_path, schema, properties=mode, **LAID_OUT[layout])
    for i in range(10):
        rows = {
            "id": [10 * i, 10 * i + 9],
            "app": [f"app{i}", f"app{9 - i}"] if layout == "coalesced" else [f"app{i}"] * 2,
            "ts": pa.array([i * 86_400_000_000] * 2, pa.timestamp("us", "UTC")),
            "m": pa.array([[("a", f"{i}")], [("b", f"{i}")]], pa.map_(pa.string(), pa.string())),
            "n": [0, 0],
        }
        table.append(pa.table(rows))
    assert len(paths(table)) == 10
    opened: list[str] = []
    read = Reader._read

    def counted(self: Any, path: str, *arguments: Any) -> Any:
        opened.append(path)
        return read(self, path, *arguments)

    monkeypatch.setattr(Reader, "_read", counted)
    by_app = 2 if layout == "coalesced" else 1  # app3 lies in two days
    changes: list[tuple[Any, int, int]] = [
        # a change, and how many files it opens and changes
        (lambda: table.update({"n": "n + 1"}, where="id = 39"), 1, 1),
        (lambda: table.upsert(pa.table({"id": [39, 40, 1000], "n": [7, 7, 7]}), on="id"), 2, 2),
        (lambda: table.update({"n": 1}, where="app = 'app3' AND id < 1000"), by_app, by_app),
        (lambda: table.update({"n": 2}, where="id = 35"), 1, 0),
        (lambda: table.merge(pa.table({"id": [20, 5]}), on="id").when_not_matched_insert().execute(), 2, 0),
        (lambda: table.delete("id = 69"), 1, 1),
    ]
    if layout == "shredded":
        changes.append((lambda: table.update({"n": 3}, where="m['a'] = '8'"), 1, 1))
    base = table.version.snapshot_id
    for number, (change, files, changed) in enumerate(changes):
        table.rollback(base)
        before = {task.path: task.deletes for task in table.plan().files}
        opened.clear()
        change()
        assert len(set(opened)) == files, number
        after = {task.path: task.deletes for task in table.plan().files}
        assert sum(before[path] != after.get(path) for path in before) == changed, number
