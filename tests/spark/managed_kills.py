"""Work on a managed table that is meant to be killed: as a program of its own, or beside a thread that kills workers.

Before each step the state of the table and the one that it leads to are written to a journal: the table must be in one
of them whenever the step is interrupted.
A state says of each id how often its row was changed. A step adds rows, changes or replaces some, or only moves them
(compaction); a row that changes also moves to another partition.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock
from penstock.lake.maintain import compact as compaction
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import changed_files as writing
from penstock.spark.catalog import computed_changes

COLUMNS = "id bigint, app string, day int, n int"
CHANGES = ("merge", "update", "sql merge", "sql update", "merge of rows", "sql merge in tasks")
STEPS = ("append", *CHANGES[:3], "delete", *CHANGES[3:], "overwrite", "compact")
MODES = ("copy-on-write", "merge-on-read")
State = dict[int, int]


def open_table(warehouse: Path, mode: str = MODES[0]) -> ManagedTable:
    """The table, made when there is none."""
    lake = penstock.connect(warehouse)
    if "web.t" in lake.tables():
        table = lake.table("web.t")
        assert isinstance(table, ManagedTable)
        return table
    properties = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    rule = penstock.Coalesce("app", below="2KB")
    return lake.create_table("web.t", COLUMNS, ["day", "app"], coalesce=rule, properties=properties)


def state_of(table: ManagedTable) -> State:
    """The state of the table; an error when an id is there twice, or a row is not where its changes lead."""
    rows = table.refresh().arrow().to_pylist()
    assert all(row["day"] == (row["id"] + row["n"]) % 3 and row["app"] == _app(row["id"]) for row in rows)
    state = {row["id"]: row["n"] for row in rows}
    assert len(state) == len(rows)
    return state


def step(spark: Any, table: ManagedTable, kind: str, state: State) -> tuple[State, Callable[[], Any]]:
    """The state that a step leads to, and the step itself."""
    first = max(state, default=-1) + 1
    new = dict.fromkeys(range(first, first + 400), 0)
    match kind:
        case "append":
            return state | new, lambda: table.append(_rows(spark, list(new)))
        case "overwrite":
            kept = {i: n for i, n in state.items() if _app(i) != "app1"}
            put = {i: 0 for i in new if _app(i) == "app1"}
            return kept | put, lambda: table.overwrite(_rows(spark, list(put)), where="app = 'app1'")
        case "delete":
            return {i: n for i, n in state.items() if _app(i) != "app3"}, lambda: table.delete("app = 'app3'")
        case "compact":
            return state, lambda: table.compact()
    if "update" in kind:
        changed = [i for i in state if i % 5 == 1]
        return _changed(state, changed), _update(spark, table, kind)
    ids = [i for i in state if i % 5 == 2] + list(range(first, first + 100))
    return _changed(state, ids), _merge(spark, table, kind, ids)


_VALUES = {"n": "target.n + 1", "day": "(target.day + 1) % 3"}
_SET = ", ".join(f"{name} = {value}" for name, value in _VALUES.items())


def _changed(state: State, ids: list[int]) -> State:
    return state | {i: state.get(i, -1) + 1 for i in ids}


def _update(spark: Any, table: ManagedTable, kind: str) -> Callable[[], Any]:
    if kind == "update":
        values = {name: value.replace("target.", "") for name, value in _VALUES.items()}
        return lambda: table.update(values, where="id % 5 = 1")
    return lambda: _sql(spark, table, f"UPDATE web.t target SET {_SET} WHERE id % 5 = 1")


def _merge(spark: Any, table: ManagedTable, kind: str, ids: list[int]) -> Callable[[], Any]:
    rows = _rows(spark, ids)
    if not kind.startswith("sql"):
        source = rows.toArrow() if kind == "merge of rows" else rows
        return table.merge(source, on="id").when_matched_update(_VALUES).when_not_matched_insert().execute
    rows.createOrReplaceTempView("source")
    text = f"MERGE INTO web.t target USING source ON target.id = source.id WHEN MATCHED THEN UPDATE SET {_SET}"

    def run() -> None:
        rows_at_once = computed_changes._COLLECTED_ROWS
        computed_changes._COLLECTED_ROWS = 0 if kind.endswith("in tasks") else rows_at_once
        try:
            _sql(spark, table, f"{text} WHEN NOT MATCHED THEN INSERT *")
        finally:
            computed_changes._COLLECTED_ROWS = rows_at_once

    return run


def _sql(spark: Any, table: ManagedTable, text: str) -> None:
    assert table.declarations.warehouse is not None
    penstock.connect(table.declarations.warehouse).sql(text, spark)


def _rows(spark: Any, ids: list[int]) -> Any:
    """New rows, by two tasks."""
    ids_only = spark.createDataFrame(pa.table({"id": pa.array(ids, pa.int64())})).repartition(2)
    return ids_only.selectExpr("id", f"{_APP} AS app", "int(id % 3) AS day", "0 AS n")


_APP = "if(id % 2 = 0, 'huge', concat('app', id % 7))"


def _app(i: int) -> str:
    return "huge" if i % 2 == 0 else f"app{i % 7}"


def everything_in_spark() -> None:
    """Even the smallest rewrite runs in Spark's tasks."""
    writing.LOCALLY = compaction.LOCALLY = -1


def main(warehouse: Path, journal: Path, mode: str, begin: int) -> None:
    """Steps without an end, as a program that is killed; it says when each begins and when it is done."""
    everything_in_spark()
    spark = penstock.session(master="local[2]", **SETTINGS)
    table = open_table(warehouse, mode)
    spark.range(10).count()
    with journal.open("a") as states:
        for number in range(begin, 10_000):
            kind, before = STEPS[number % len(STEPS)], state_of(table)
            after, run = step(spark, table, kind, before)
            states.write(json.dumps([sorted(before.items()), sorted(after.items())]) + "\n")
            states.flush()
            os.fsync(states.fileno())
            print(kind, flush=True)
            run()
            print("done", flush=True)


SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}


def one_round(spark: Any, warehouse: str, mode: str, seed: int) -> dict[str, int]:
    """Each step once, during each of which a Python worker of this Spark is killed; what happened."""
    everything_in_spark()
    rng = random.Random(seed)
    table = open_table(Path(warehouse), mode)
    counts = dict.fromkeys((*STEPS, "failed", "wrong"), 0)
    for kind in STEPS:
        before = state_of(table)
        after, run = step(spark, table, kind, before)
        killer = Killer(spark, rng, _seconds.get(kind, 0.5))
        start = time.monotonic()
        killer.start()
        try:
            run()
        except Exception:
            counts["failed"] += 1
        killer.over.set()
        killer.join()
        _seconds[kind] = max(0.2, 0.9 * (time.monotonic() - start))
        counts[kind] += killer.has_hit
        counts["wrong"] += state_of(table) not in (before, after)
    return counts


_seconds: dict[str, float] = {}  # that a step took the last time


class Killer(threading.Thread):
    """Kills a worker at a random moment of a step at which Spark runs tasks; none when the step is over before."""

    def __init__(self, spark: Any, rng: random.Random, seconds: float) -> None:
        super().__init__()
        self.over = threading.Event()
        self.has_hit = False
        self._stages, self._rng = spark.sparkContext.statusTracker(), rng
        self._pause = rng.uniform(0, seconds)

    def run(self) -> None:
        """Wait, and kill."""
        self.over.wait(self._pause)
        while not self.over.is_set():
            if self._stages.getActiveStageIds() and kill_worker(self._rng):
                self.has_hit = not self.over.is_set()
                return
            self.over.wait(0.02)


def kill_worker(rng: random.Random) -> int:
    """Kill -9 one Python worker below this process; how many were killed."""
    python = [pid for pid in descendants(os.getpid()) if b"pyspark.worker" in _read(pid, "cmdline")]
    workers = [pid for pid in python if parent_of(pid) in python]  # the other one is the daemon that starts them
    if not workers:
        return 0
    os.kill(rng.choice(workers), signal.SIGKILL)
    return 1


def descendants(root: int) -> list[int]:
    """The processes below one."""
    parents = {int(name): parent_of(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found = [root]
    for above in found:
        found += [pid for pid, parent in parents.items() if parent == above]
    return found[1:]


def parent_of(pid: int) -> int:
    """The process that started one; 0 when it is gone."""
    stat = _read(pid, "stat")
    return int(stat.rsplit(b")", 1)[1].split()[1]) if stat else 0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
