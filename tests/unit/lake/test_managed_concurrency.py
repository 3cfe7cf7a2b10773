"""Writers at once: nothing is lost or doubled, and what they did is some serial order of it."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

from penstock import Coalesce
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import files_below, managed_table, reachable, reopened, snapshot_ids
from tests.fixtures.managed_writers import APPS, Increment, Row, append_many, increment_many, rows
from tests.fixtures.processes import PATIENCE
from tests.fixtures.variants import variants

SCHEMA = "id bigint, app string"
RULES = {"own files": None, "shared files": Coalesce("app"), "both": Coalesce("app", values=["a", "b"])}


def found(table: Any) -> list[Row]:
    read = table.arrow()
    return sorted(zip(read["id"].to_pylist(), read["app"].to_pylist(), strict=True))


def run_processes(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]], timeout: float = 550) -> None:
    """One process for each set of arguments, all at once; an error where one of them fails."""
    processes = multiprocessing.get_context("spawn")
    started = [processes.Process(target=work, args=each) for each in arguments]
    for process in started:
        process.start()
    for process in started:
        process.join(timeout)
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
    assert codes == [0] * len(started)


def check_appended(table: ManagedTable, root: Path, workers: int, commits: int) -> None:
    assert len(snapshot_ids(table)) == workers * commits
    expected = [
        (worker * 1_000_000 + i * 10 + j, APPS[(i + j) % 4])
        for worker in range(workers)
        for i in range(commits)
        for j in range(3)
    ]
    assert found(table) == found(reopened(root)) == sorted(expected)
    assert table.table.scan().to_arrow().num_rows == len(expected)
    total = table.table.metadata.current_snapshot().summary.additional_properties["total-records"]
    assert int(total) == len(expected)
    left = {path for path in files_below(root) - reachable(table) if not path.endswith(".metadata.json")}
    assert not left, "attempts that were overtaken leave nothing but the catalog's own files"


@pytest.mark.parametrize(("workers", "commits"), [(2, 6), pytest.param(8, 25, marks=pytest.mark.slow)])
def test_processes_append_at_once_and_every_row_is_there_once(tmp_path: Path, workers: int, commits: int) -> None:
    table = managed_table(tmp_path, SCHEMA, ["app"], coalesce=Coalesce("app", values=["a", "b", "c"]))
    run_processes(append_many, [(str(tmp_path), i, commits) for i in range(workers)])
    check_appended(table.refresh(), tmp_path, workers, commits)


MODES = {
    "both": {"write.update.mode": "merge-on-read"},
    "copy-on-write": {},
    "merge-on-read": {f"write.{command}.mode": "merge-on-read" for command in ("update", "merge")},
}


@pytest.mark.parametrize(
    ("mode", "workers", "changes"),
    [("both", 2, 5), *(pytest.param(mode, 8, 20, marks=pytest.mark.slow) for mode in MODES)],
)
def test_processes_that_merge_into_the_same_keys_at_once_have_a_serial_order(
    tmp_path: Path, mode: str, workers: int, changes: int
) -> None:
    lake = tmp_path / "lake"
    table = managed_table(lake, f"{SCHEMA}, n bigint", ["app"], coalesce=Coalesce("app"), properties=MODES[mode])
    journals = [tmp_path / f"worker {i}" for i in range(workers)]
    run_processes(increment_many, [(str(lake), i, changes, str(path)) for i, path in enumerate(journals)])
    lines = [json.loads(line) for path in journals for line in path.read_text().splitlines()]
    assert len(lines) == workers * changes
    committed, state = list[str](), dict[int, int]()
    for snapshot in table.refresh().table.metadata.snapshots:
        change = Increment.of(*map(int, snapshot.summary.additional_properties["test.op"].split(".")))
        committed.append(change.name)
        state = change.apply(state)
        rows_there = table.at(snapshot.snapshot_id).arrow(columns=["id", "n"]).to_pylist()
        assert sorted((row["id"], row["n"]) for row in rows_there) == sorted(state.items()), committed
    assert sorted(committed) == sorted(line["change"] for line in lines if line.get("rows"))
    assert sum(state.values()) == sum(line.get("rows", 0) for line in lines)
    errors = [line["error"] for line in lines if "error" in line]
    print(f"{mode}: {len(committed)} commits of {len(lines)} changes, {len(errors)} errors, sum {sum(state.values())}")
    assert all(error.startswith("web.t was changed by other writers during all of ") for error in errors)
    assert len(errors) <= len(lines) // 20, f"changes find their turn: {errors}"


class Op:
    """One change, by the name that its snapshot carries."""

    def __init__(self, kind: str, new: Sequence[Row] = (), app: str = "") -> None:
        self.kind, self.new, self.app = kind, list(new), app

    def write(self, table: ManagedTable, name: str) -> None:
        told = {"test.op": name}
        if self.kind == "append":
            table.append(rows(self.new), properties=told)
        elif self.kind == "overwrite":
            table.overwrite(rows(self.new), f"app = '{self.app}'", properties=told)
        elif self.kind == "dynamic":
            table.overwrite(rows(self.new), dynamic=True, properties=told)
        elif self.kind == "delete":
            table.delete(f"app = '{self.app}'", properties=told)
        elif self.kind == "delete ids":
            table.delete("id % 3 = 0", properties=told)
        else:
            table.compact()

    def apply(self, state: list[Row]) -> list[Row]:
        replaced = {app for _, app in self.new}
        kept = {
            "append": lambda row: True,
            "overwrite": lambda row: row[1] != self.app,
            "dynamic": lambda row: row[1] not in replaced,
            "delete": lambda row: row[1] != self.app,
            "delete ids": lambda row: row[0] % 3 != 0,
        }[self.kind]
        return sorted([row for row in state if kept(row)] + self.new)


def at_once(root: Path, writers: Sequence[Sequence[Op]], opened: Callable[[], ManagedTable]) -> dict[str, Op]:
    """Every writer in a thread of its own, all of them let go together; the changes by name."""
    barrier = Barrier(len(writers))

    def run(number: int) -> None:
        table = opened()
        barrier.wait(PATIENCE)
        for i, op in enumerate(writers[number]):
            op.write(table, f"{number}.{i}")

    with ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(run, number) for number in range(len(writers))]:
            done.result()
    return {f"{number}.{i}": op for number, ops in enumerate(writers) for i, op in enumerate(ops)}


def check_serial(table: ManagedTable, ops: dict[str, Op], state: list[Row], before: int) -> list[str]:
    """Every snapshot is the one before it with one change applied; the order of the changes."""
    order = []
    for snapshot in table.refresh().table.metadata.snapshots[before:]:
        name = snapshot.summary.additional_properties.get("test.op")
        if name is None:
            assert snapshot.summary.operation.value == "replace"
        else:
            order.append(name)
            state = ops[name].apply(state)
        assert found(table.at(snapshot.snapshot_id)) == state, f"{name} after {order}"
    assert found(table) == state
    assert len(order) == len(set(order)), "no change is committed twice"
    without_effect = {"delete", "delete ids", "compact"}
    assert {name for name, op in ops.items() if op.kind not in without_effect} <= set(order), "none is lost"
    return order


def start(root: Path, rule: Any) -> tuple[ManagedTable, list[Row]]:
    table = managed_table(root, SCHEMA, ["app"], coalesce=rule)
    state = [(i, APPS[i % 4]) for i in range(12)]
    table.append(rows(state))
    return table, state


@pytest.mark.parametrize("rule", variants(RULES, every_run=2))
def test_an_overwrite_and_appends_of_the_same_partition_have_a_serial_order(tmp_path: Path, rule: str) -> None:
    table, state = start(tmp_path, RULES[rule])
    writers = [
        [Op("overwrite", [(100 + i, "a")], "a") for i in range(3)],
        [Op("append", [(200 + i, "a"), (210 + i, "b")]) for i in range(5)],
        [Op("append", [(300 + i, "c"), (310 + i, "a")]) for i in range(5)],
    ]
    ops = at_once(tmp_path, writers, lambda: reopened(tmp_path))
    order = check_serial(table, ops, state, 1)
    assert len(order) == 13


@pytest.mark.parametrize("kind", ["overwrite", "dynamic"])
@pytest.mark.parametrize("rule", variants(RULES, every_run=2))
def test_of_two_overwrites_of_a_partition_at_once_the_last_one_stays(tmp_path: Path, rule: str, kind: str) -> None:
    table, state = start(tmp_path, RULES[rule])
    writers = [[Op(kind, [(100 * (n + 1) + i, "a")], "a") for i in range(3)] for n in range(2)]
    order = check_serial(table, at_once(tmp_path, writers, lambda: reopened(tmp_path)), state, 1)
    assert len(order) == 6
    number, i = order[-1].split(".")
    assert [row for row in found(table) if row[1] == "a"] == [(100 * (int(number) + 1) + int(i), "a")]


@pytest.mark.parametrize("seed", variants(range(4), every_run=2))
def test_changes_of_every_kind_at_once_have_a_serial_order(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    table, state = start(tmp_path, rng.choice(list(RULES.values())))
    kinds = ["append", "overwrite", "dynamic", "delete", "delete ids", "compact"]
    writers = []
    for number in range(4):
        ops = []
        for i in range(4):
            new = [(1000 * (number + 1) + 10 * i + j, rng.choice(APPS)) for j in range(3)]
            kind = rng.choice(kinds)
            app = rng.choice(APPS)
            new = [(i, app) for i, _ in new] if kind == "overwrite" else new
            ops.append(Op(kind, new if kind in ("append", "overwrite", "dynamic") else [], app))
        writers.append(ops)
    check_serial(table, at_once(tmp_path, writers, lambda: reopened(tmp_path)), state, 1)


def test_threads_may_share_one_table_object(tmp_path: Path) -> None:
    table, state = start(tmp_path, Coalesce("app"))
    writers = [[Op("append", [(100 * (n + 1) + i, "a")]) for i in range(4)] for n in range(3)]
    writers.append([Op("overwrite", [(900 + i, "b")], "b") for i in range(3)])
    order = check_serial(table, at_once(tmp_path, writers, lambda: table), state, 1)
    assert len(order) == 15


def test_rules_that_are_changed_by_others_meanwhile_lose_nothing(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, app string, b string", ["app", "b"])
    rules = [["app"], ["b"], ["app", "b"], None]
    barrier = Barrier(4)

    def change() -> None:
        other = reopened(tmp_path)
        barrier.wait(PATIENCE)
        for i in range(8):
            other.set_coalesce(rules[i % 4])

    def append(number: int) -> None:
        other = reopened(tmp_path)
        barrier.wait(PATIENCE)
        for i in range(4):
            other.append(pa.table({"id": [10 * number + i], "app": [f"a{i % 2}"], "b": [f"b{number}"]}))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(change), *(pool.submit(append, number) for number in range(3))]:
            done.result()
    table.refresh()
    expected = sorted(10 * number + i for number in range(3) for i in range(4))
    assert sorted(table.arrow()["id"].to_pylist()) == expected
    assert sorted(table.table.scan().to_arrow()["id"].to_pylist()) == expected
    for number in range(3):
        assert sorted(table.arrow(f"b = 'b{number}'")["id"].to_pylist()) == [10 * number + i for i in range(4)]
    specs = [str([field.name for field in spec.fields]) for spec in table.table.metadata.partition_specs]
    assert len(specs) == len(set(specs)), "no spec twice"


@pytest.mark.parametrize("meanwhile", ["append", "set_coalesce"])
def test_specs_of_shared_files_that_others_change_meanwhile_stay_one_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    table = managed_table(tmp_path, "id bigint, app string, b string", ["app", "b"])
    table.set_coalesce(["app", "b"])
    rows = pa.table({"id": [1], "app": ["a"], "b": ["b"]})
    catalog = table.table.catalog
    commit_table = catalog.commit_table

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.undo()
        other = reopened(tmp_path)
        other.append(rows) if meanwhile == "append" else other.set_coalesce(["b"])
        return commit_table(*arguments)

    monkeypatch.setattr(catalog, "commit_table", overtaken)
    table.append(rows)
    specs = [spec.spec_id for spec in reopened(tmp_path).table.metadata.partition_specs]
    assert len(specs) == len(set(specs)) == (2 if meanwhile == "append" else 3)
    assert reopened(tmp_path).count() == (2 if meanwhile == "append" else 1)
