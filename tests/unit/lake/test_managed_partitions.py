"""Logical partitions as `partitions()` shows them: where each lies, with exact rows, whatever file holds them."""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from penstock.errors import UnknownColumnError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.iceberg_deletes import delete_positions
from tests.fixtures.managed_tables import entries, managed_table, reopened

SCHEMA = "day int, app string, n bigint"
OWN = penstock.Coalesce("app", values=["a", "b", "c", "d"])


def rows(*given: tuple[int | None, str | None, int]) -> pa.Table:
    """Day and app, so many times; n counts on."""
    flat = [(day, app) for day, app, count in given for _ in range(count)]
    days, apps = [day for day, _ in flat], [app for _, app in flat]
    return pa.table({"day": pa.array(days, pa.int32()), "app": pa.array(apps, pa.string()), "n": range(len(flat))})


def made(root: Path, *parts: pa.Table, coalesce: Any = OWN) -> ManagedTable:
    table = managed_table(root, SCHEMA, ["day", "app"], coalesce=coalesce)
    for part in parts:
        table.append(part)
    return table


def shown(table: Any, where: str | None = None) -> dict[Any, tuple[int, int, int]]:
    """Rows, files and shared files by day and app."""
    found = table.partitions(where).to_pylist()
    assert all(row["shared"] == (row["shared_files"] > 0) for row in found)
    told = {(row["day"], row["app"]): (row["rows"], row["files"], row["shared_files"]) for row in found}
    assert len(told) == len(found)
    return told


def test_each_logical_partition_of_a_shared_file_is_a_row(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5), (2, "a", 2), (2, None, 1), (1, "big", 7)))
    assert shown(table) == {
        (1, "a"): (3, 1, 1), (1, "b"): (5, 1, 1), (2, "a"): (2, 1, 0), (2, None): (1, 1, 0), (1, "big"): (7, 1, 0),
    }  # fmt: skip
    found = table.partitions()
    assert set(found["spec_id"].to_pylist()) == {table.table.metadata.default_spec_id}
    assert sum(found["bytes"].to_pylist()) == sum(file.size for file in table.plan().files)
    assert "small" not in str(found.to_pylist())


def test_the_name_of_a_partition_field_is_an_error_that_names_its_column(tmp_path: Path) -> None:
    table = managed_table(tmp_path, SCHEMA, ["bucket(4, n)"])
    for ask in (table.plan, table.partitions, table.arrow):
        with pytest.raises(UnknownColumnError, match=r"it is the partition field bucket\(4, n\): filter by its column"):
            ask("n_bucket = 1")


def test_the_bytes_of_a_shared_file_are_divided_by_rows_and_add_up(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 1), (1, "b", 2), (1, "c", 4)))
    (file,) = table.plan().files
    size = {row["app"]: row["bytes"] for row in table.partitions().to_pylist()}
    assert sum(size.values()) == file.size
    assert size == {"a": file.size // 7, "b": file.size * 3 // 7 - file.size // 7, "c": file.size - file.size * 3 // 7}


def test_a_partition_with_own_and_shared_files_is_one_row_that_counts_both(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5)))
    table.set_coalesce(None)
    table.append(rows((1, "a", 4)))
    table.append(rows((1, "a", 1)))
    assert shown(table) == {(1, "a"): (8, 3, 1), (1, "b"): (5, 1, 1)}


def test_files_are_told_by_what_was_recorded_in_them_not_by_the_rule(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5)))
    table.set_coalesce(penstock.Coalesce("day", "app", below="1MB"))
    table.append(rows((1, "a", 1), (2, "b", 1)))
    assert shown(table) == {(1, "a"): (4, 2, 2), (1, "b"): (5, 1, 1), (2, "b"): (1, 1, 1)}
    assert len({entry.data_file.spec_id for entry in entries(table)}) == 2


def test_a_predicate_leaves_out_the_other_partitions_of_a_shared_file(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5), (2, "a", 2), (2, "c", 2)))
    assert shown(table, "app = 'a'") == {(1, "a"): (3, 1, 1), (2, "a"): (2, 1, 1)}
    assert shown(table, "app = 'b' OR day = 2") == {(1, "b"): (5, 1, 1), (2, "a"): (2, 1, 1), (2, "c"): (2, 1, 1)}
    # n is at most 11: bounds of the file and the values of its members are taken together.
    assert shown(table, "app = 'c' OR n > 100") == {(2, "c"): (2, 1, 1)}
    assert shown(table, "n > 100") == {}
    every = [shown(table, where) for where in ("app < 'b'", "NOT (app < 'b')", "app < 'b' IS NULL")]
    assert sum(len(part) for part in every) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("rows"),
        lambda told: told["rows"].append(1),
        lambda told: told.update(rows=[1, 1]),
        lambda told: told.update(rows=["3", "5"]),
        lambda told: told.update(complete=False),
        lambda told: told.update(columns=[99]),
    ],
)
def test_a_text_that_does_not_count_all_rows_is_not_believed(
    tmp_path: Path, change: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.lake.write import data_files as files

    written = files.encode_logical

    def damaged(*given: Any, **named: Any) -> str:
        told = json.loads(written(*given, **named))
        change(told)
        return json.dumps(told)

    monkeypatch.setattr(files, "encode_logical", damaged)
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5)))
    found = table.partitions().to_pylist()
    assert [(row["day"], row["rows"], row["files"], row["shared"]) for row in found] == [(1, 8, 1, True)]


def test_hidden_partition_fields_and_every_kind_of_logical_value(tmp_path: Path) -> None:
    schema = "ts timestamp, d date, k decimal(5,2), b boolean"
    table = managed_table(tmp_path, schema, ["day(ts)", "d", "k", "b"], coalesce=["d", "k", "b"])
    moment = dt.datetime(2026, 5, 17, 10, tzinfo=dt.UTC)
    keys = [(dt.date(2026, 1, 1), "1.50", True), (dt.date(1969, 1, 1), "-2.00", False), (None, None, None)]
    arrays = {
        "ts": pa.array([moment] * 3, pa.timestamp("us", "UTC")),
        "d": pa.array([key[0] for key in keys]),
        "k": pa.array([key[1] for key in keys]).cast(pa.decimal128(5, 2)),
        "b": pa.array([key[2] for key in keys]),
    }
    table.append(pa.table(arrays))
    found = {(row["d"], str(row["k"]), row["b"], row["rows"]) for row in table.partitions().to_pylist()}
    assert found == {(d, str(k), b, 1) for d, k, b in keys}
    assert set(table.partitions()["ts_day"].to_pylist()) == {dt.date(2026, 5, 17)}


def test_deletes_of_a_coarse_partition_are_told_with_each_logical_partition_in_it(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5), (2, "a", 1), (2, "b", 1)))
    table.set_coalesce(None)
    table.append(rows((1, "a", 4)))
    of_rows = {task.rows: task.path for task in table.plan().files}
    for count, position in ((8, 0), (8, 1), (4, 0)):
        delete_positions(table.table, {of_rows[count]: [position]})
        table.refresh()
    found = {(row["day"], row["app"]): row["deletes"] for row in table.partitions().to_pylist()}
    # (1, a) lies in a shared file with two delete files and in one of its own with another.
    assert found == {(1, "a"): 3, (1, "b"): 2, (2, "a"): 0, (2, "b"): 0}


def test_partitions_of_an_older_snapshot_are_those_of_then(tmp_path: Path) -> None:
    table = made(tmp_path, rows((1, "a", 3), (1, "b", 5)))
    first = table.version.snapshot_id
    table.delete("app = 'a'")
    assert shown(table) == {(1, "b"): (5, 1, 0)}
    assert shown(table.at(first)) == {(1, "a"): (3, 1, 1), (1, "b"): (5, 1, 1)}


def test_sixty_thousand_logical_partitions_take_well_under_a_second(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    apps = [f"app-{i:04d}" for i in range(2_000)]
    days = np.repeat(np.arange(30, dtype=np.int32), 2_000)
    data = pa.table({"day": days, "app": pa.array(apps * 30), "n": random.integers(0, 9, len(days))})
    table = made(tmp_path, data, coalesce=penstock.Coalesce("app"))
    fresh = reopened(tmp_path)
    start = time.process_time()
    found = fresh.partitions()
    assert time.process_time() - start < 2  # 0.3 s alone on a core
    assert (found.num_rows, len(table.plan().files)) == (60_000, 30)
    assert set(found["rows"].to_pylist()) == {1}


class TestFilesWithoutARecord:
    @pytest.fixture
    def table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManagedTable:
        """A recorded file with null among its apps, and two that say nothing of theirs."""
        from penstock.lake.write import data_files as files

        table = made(tmp_path, rows((1, "a", 3), (1, None, 2)), coalesce=penstock.Coalesce("app", below="1MB"))
        monkeypatch.setattr(files, "encode_logical", lambda *given, **named: None)
        table.append(rows((1, "b", 1), (1, "c", 1), (2, "d", 2), (2, "e", 2)))
        monkeypatch.undo()
        return table

    def test_their_partitions_are_unknown_and_not_null(self, table: ManagedTable) -> None:
        found = [(row["day"], row["app"], row["rows"], row["unknown"]) for row in table.partitions().to_pylist()]
        assert sorted(found, key=str) == [
            (1, "a", 3, []), (1, None, 2, ["app"]), (1, None, 2, []), (2, None, 4, ["app"]),
        ]  # fmt: skip
        null = table.partitions("day = 1 AND app IS NULL").to_pylist()
        assert [(row["rows"], row["unknown"]) for row in null] == [(2, [])], "bounds rule the others out"

    def test_the_command_line_says_so(self, table: ManagedTable, tmp_path: Path) -> None:
        del table
        run = CliRunner().invoke(main, ["partitions", "web.t", "--warehouse", str(tmp_path)])
        lines = [line for line in run.output.splitlines() if "│ 1 " in line or "│   1 " in line]
        assert sum("unknown" in line for line in lines) == 1
        assert sum("NULL" in line for line in lines) == 1
        assert "unknown" not in run.output.splitlines()[1], "it is no column of its own"
        told = CliRunner().invoke(main, ["partitions", "web.t", "--json", "--warehouse", str(tmp_path)])
        assert sorted(str(row["unknown"]) for row in json.loads(told.output)) == ["['app']", "['app']", "[]", "[]"]

    def test_explain_names_them_and_what_mends_it(self, table: ManagedTable, tmp_path: Path) -> None:
        (path,) = [task.path for task in table.plan("day = 1").files if task.logical is None]
        (note,) = table.plan("app = 'b' AND day = 1").report.notes
        assert note == (
            "1 shared file could not be pruned, because its record of logical partitions is missing: "
            f"{path}; table.compact(), or penstock compact, writes it"
        )
        (note,) = table.plan("app IN ('b', 'd')").report.notes
        assert note.startswith("2 shared files could not be pruned, because their records are missing: ")
        assert note in table.plan("app IN ('b', 'd')").explain()
        told = CliRunner().invoke(
            main, ["explain", "web.t", "--where", "app IN ('b', 'd')", "--warehouse", str(tmp_path)]
        )
        assert "2 shared files could not be pruned" in told.output
        assert table.plan("day = 1").report.notes == (), "nothing was asked of the logical column"
        assert table.plan("app = 'x'").report.notes == (), "bounds rule them out"
        table.compact()
        assert table.plan("app IN ('b', 'd')").report.notes == ()
        assert all(row["unknown"] == [] for row in table.partitions().to_pylist())
        assert table.partitions().num_rows == 6

    def test_only_the_first_paths_of_many_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from penstock.lake.write import data_files as files

        monkeypatch.setattr(files, "encode_logical", lambda *given, **named: None)
        table = made(tmp_path, coalesce=penstock.Coalesce("app", below="1MB"))
        table.append(rows(*((day, app, 1) for day in range(5) for app in "ab")))
        (note,) = table.plan("app = 'a'").report.notes
        assert note.startswith("5 shared files could not be pruned")
        assert note.count(".parquet") == 3

    def test_they_are_unknown_where_no_file_has_a_record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from penstock.lake.write import data_files as files

        monkeypatch.setattr(files, "encode_logical", lambda *given, **named: None)
        table = made(tmp_path, rows((1, "a", 3), (1, "b", 2)), coalesce=penstock.Coalesce("app", below="1MB"))
        assert [(row["day"], row["app"], row["unknown"]) for row in table.partitions().to_pylist()] == [
            (1, None, ["app"])
        ]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_the_last_second_of_a_day_before_1970_belongs_to_that_day(tmp_path: Path, kind: str) -> None:
    table = managed_table(tmp_path, f"ts {kind}", ["day(ts)"])
    micros = [-12_219_292_800_000_002, -12_219_292_800_000_000, -1, 0]
    table.append(pa.table({"ts": pa.array(micros).cast(table.schema.field("ts").type)}))
    assert table.plan().report.files.total == 4
    for where in ("ts < '1582-10-15'", "ts >= '1582-10-15' AND ts < '1582-10-16'", "CAST(ts AS date) = '1969-12-31'"):
        assert (table.count(where), len(table.plan(where).files)) == (1, 1)
