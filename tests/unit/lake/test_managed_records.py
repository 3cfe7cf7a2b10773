"""Records of shared files: however many logical partitions there are, each file says all that it holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Coalesce
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import data_files as files
from tests.fixtures.managed_tables import entries, local, managed_table

MANY = 6_000


def rows(apps: int, each: int = 1, seed: int = 0) -> pa.Table:
    """Rows of so many apps, in no order."""
    names = [f"app-{i:05d}" for i in range(apps) for _ in range(each)]
    Random(seed).shuffle(names)
    return pa.table({"id": pa.array(range(len(names)), pa.int64()), "app": names})


def made(root: Path, *parts: pa.Table, properties: Any = None, **options: Any) -> ManagedTable:
    rule = Coalesce("app", **options)
    table = managed_table(root, "id bigint, app string", ["app"], coalesce=rule, properties=properties)
    for part in parts:
        table.append(part)
    return table


def apps_in_files(table: ManagedTable) -> dict[str, set[str]]:
    """The apps that each file has, read from the files."""
    paths = [entry.data_file.file_path for entry in entries(table)]
    return {path: set(pq.read_table(local(path))["app"].to_pylist()) for path in paths}


def recorded_apps(table: ManagedTable) -> dict[str, set[str]]:
    """The apps that each file is recorded to have."""
    tasks = table.plan().files
    assert all(task.logical is not None and task.logical.complete for task in tasks)
    return {task.path: {app for (app,) in task.logical.tuples} for task in tasks if task.logical is not None}


def check(table: ManagedTable, apps: int) -> None:
    """Each file says what it holds, one value is looked for where it is, and the partitions are all listed."""
    held = apps_in_files(table)
    assert recorded_apps(table) == held
    for app in Random(1).sample(sorted(set().union(*held.values())), 5):
        expected = {path for path, own in held.items() if app in own}
        assert {task.path for task in table.plan(f"app = '{app}'").files} == expected
    assert len(table.plan("app = 'app-00000x'").files) == 0
    listed = table.partitions()
    assert listed.num_rows == apps
    assert sum(listed["rows"].to_pylist()) == table.count()


def test_an_append_of_thousands_of_tiny_partitions_is_pruned_to_each_of_them(tmp_path: Path) -> None:
    table = made(tmp_path, rows(MANY))
    check(table, MANY)
    assert len(apps_in_files(table)) == 1


def test_a_compaction_keeps_what_files_have_recorded(tmp_path: Path) -> None:
    table = made(tmp_path)
    data = rows(MANY).sort_by("app")
    for start in range(0, MANY, MANY // 3):
        table.append(data.slice(start, MANY // 3))
    check(table, MANY)
    table.compact()
    check(table, MANY)
    assert len(apps_in_files(table)) == 1


def test_tens_of_thousands_of_logical_partitions_are_cut_into_few_files(tmp_path: Path) -> None:
    table = made(tmp_path, rows(30_000))
    check(table, 30_000)
    assert len(apps_in_files(table)) == 3
    assert str(table.compact()) == "nothing to compact"
    (manifest,) = table.table.metadata.current_snapshot().manifests(table.table.io)
    assert manifest.manifest_length < 30_000 * 20, "bytes of a logical partition in the manifest"


def test_files_are_cut_where_their_records_would_become_too_long(tmp_path: Path) -> None:
    table = made(tmp_path, rows(500, each=2), record_bytes="4KB")
    check(table, 500)
    held = apps_in_files(table)
    assert len(held) == 3, "500 apps of about 23 bytes"
    assert max(map(len, held.values())) - min(map(len, held.values())) <= 2, "files are alike"
    texts = [len(_text(table, path)) for path in held]
    assert max(texts) <= 4 << 10


def test_what_a_compaction_has_cut_it_leaves_alone(tmp_path: Path) -> None:
    table = made(tmp_path, rows(500), rows(500, seed=1), record_bytes="4KB")
    assert table.compact().files_after == 3
    check(table, 500)
    assert str(table.compact()) == "nothing to compact"
    table.append(rows(3))
    assert table.compact().rewritten == 0, "one small file beside others whose records are full"
    table.append(rows(3))
    done = table.compact()
    assert (done.rewritten, done.written) == (2, 1)
    check(table, 500)


SHORT = Coalesce("app", record_bytes="1KB")
CHANGES: dict[str, Callable[[ManagedTable], Any]] = {
    "delete": lambda table: table.delete("id % 7 = 0"),
    "overwrite of some rows": lambda table: table.overwrite(rows(0), where="id % 5 = 0"),
    "overwrite of partitions": lambda table: table.overwrite(rows(40), dynamic=True),
    "overwrite of all": lambda table: table.overwrite(rows(400)),
    "compact": lambda table: table.compact(),
    "another limit and compact": lambda table: (table.set_coalesce(SHORT), table.compact()),
    "another limit and delete": lambda table: (table.set_coalesce(SHORT), table.delete("id < 9")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_operation_makes_a_record_coarser(tmp_path: Path, change: str) -> None:
    table = made(tmp_path, rows(300), rows(200, each=2, seed=2), record_bytes="2KB")
    CHANGES[change](table)
    left = set(table.arrow()["app"].to_pylist())
    check(table, len(left))


@pytest.mark.parametrize("change", CHANGES)
def test_files_without_a_record_get_one_when_they_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(files, "encode_logical", lambda *args, **options: None)
        table = made(tmp_path, rows(300))
    table.set_coalesce(Coalesce("app", record_bytes="2KB"))
    CHANGES[change](table)
    left = set(table.arrow()["app"].to_pylist())
    check(table, len(left))


def test_a_record_of_one_value_may_be_longer_than_the_limit(tmp_path: Path) -> None:
    names = ["x" * 5_000, "y", "z" * 3_000]
    table = made(tmp_path, pa.table({"id": [1, 2, 3, 4], "app": [*names, names[0]]}), record_bytes="1KB")
    assert sorted(recorded_apps(table).values(), key=min) == [{name} for name in sorted(names)]
    assert [len(table.plan(f"app = '{name}'").files) for name in names] == [1, 1, 1]


def test_dates_that_no_record_can_name_get_files_of_their_own(tmp_path: Path) -> None:
    days = pa.array([5_000_000, -1_000_000, 0, 1, 2_932_896], pa.int32()).cast(pa.date32())
    table = managed_table(tmp_path, "id bigint, d date", ["d"], coalesce=["d"])
    table.append(pa.table({"id": [1, 2, 3, 4, 5], "d": days}))
    assert len(table.plan("d = DATE '1970-01-01'").files) == 1
    assert len(table.plan("d = DATE '9999-12-31'").files) == 1
    assert len(table.plan("d > DATE '9999-12-31'").files) == 1
    assert len(table.plan().files) == 3
    assert str(table.compact()) == "nothing to compact"


def test_zeros_of_both_signs_are_counted_together(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, x double", ["x"], coalesce=["x"])
    table.append(pa.table({"id": [1, 2, 3, 4], "x": [0.0, -0.0, 0.0, 1.0]}))
    assert sorted((row["x"], row["rows"]) for row in table.partitions().to_pylist()) == [(0.0, 3), (1.0, 1)]


def _text(table: ManagedTable, path: str) -> str:
    (task,) = [task for task in table.plan().files if task.path == path]
    assert task.logical is not None
    return json.dumps(task.logical.tuples)


def test_partitions_of_doubles_keep_their_values_when_a_manifest_is_written_again(tmp_path: Path) -> None:
    """PyIceberg's compiled decoder reads a double as a float: 0.1 became 0.10000000149, and its rows were not found."""
    values = [0.1, -1.5e300, 5e-324, 1e300]
    table = managed_table(tmp_path, "id bigint, x double", ["x"])
    table.append(pa.table({"id": pa.array(range(4), pa.int64()), "x": values}))
    table.delete("id = 3")
    assert {task.partition["x"].value for task in table.plan().files} == set(values[:3])
    for i, value in enumerate(values[:3]):
        where = f"x = {value!r}D"
        assert table.arrow(where).column("id").to_pylist() == [i]
        assert table.plan(where).report.files.kept == 1
