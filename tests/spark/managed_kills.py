"""Work on a managed table that is meant to be killed: as a program of its own, or beside a thread that kills workers.

Before each step the state that it leads to is written to a journal; the table must always be in a state that is there.
A state is a set of ids: a step adds some, replaces those of an app, or only moves rows (compaction).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import penstock
from penstock.lake.maintain import compact as compaction
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import changed_files as writing

COLUMNS = "id bigint, app string, day int"
STEPS = ("append", "overwrite", "append", "delete", "append", "compact")


def open_table(warehouse: Path) -> ManagedTable:
    """The table, made when there is none."""
    lake = penstock.connect(warehouse)
    if "web.t" in lake.tables():
        found = lake.table("web.t")
        assert isinstance(found, ManagedTable)
        return found
    return lake.create_table("web.t", COLUMNS, ["day", "app"], coalesce=penstock.Coalesce("app", below="2KB"))


def ids_of(table: ManagedTable) -> list[int]:
    """The state of the table: its ids; one that is there twice is seen twice."""
    found: list[int] = sorted(table.refresh().arrow(columns=["id"])["id"].to_pylist())
    return found


def step(spark: Any, table: ManagedTable, kind: str, ids: list[int]) -> tuple[list[int], Any]:
    """The state that a step leads to, and the step itself."""
    first = max(ids, default=-1) + 1
    new = spark.range(first, first + 400, 1, 2).selectExpr("id", f"{_APP} AS app", "int(id % 3) AS day")
    match kind:
        case "append":
            return sorted([*ids, *range(first, first + 400)]), lambda: table.append(new)
        case "overwrite":
            kept = [i for i in ids if _app(i) != "app1"]
            put = [i for i in range(first, first + 400) if _app(i) == "app1"]
            return sorted([*kept, *put]), lambda: table.overwrite(new.where("app = 'app1'"), where="app = 'app1'")
        case "delete":
            return [i for i in ids if _app(i) != "app3"], lambda: table.delete("app = 'app3'")
        case _:
            return ids, lambda: table.compact()


_APP = "if(id % 2 = 0, 'huge', concat('app', id % 7))"


def _app(i: int) -> str:
    return "huge" if i % 2 == 0 else f"app{i % 7}"


def everything_in_spark() -> None:
    """Even the smallest rewrite runs in Spark's tasks."""
    writing.LOCALLY = compaction.LOCALLY = -1


def main(warehouse: Path, journal: Path) -> None:
    """Steps without an end, as a program that is killed."""
    everything_in_spark()
    spark = penstock.session(master="local[2]", **SETTINGS)
    table = open_table(warehouse)
    spark.range(10).count()
    with journal.open("a") as states:
        for number in range(10_000):
            after, run = step(spark, table, STEPS[number % len(STEPS)], ids_of(table))
            states.write(json.dumps(after) + "\n")
            states.flush()
            os.fsync(states.fileno())
            print("step", flush=True)
            run()


SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}


def while_workers_die(spark: Any, warehouse: str, kills: int, seed: int) -> dict[str, Any]:
    """Steps during each of which a Python worker of this Spark is killed; what happened."""
    everything_in_spark()
    rng = random.Random(seed)
    table = open_table(Path(warehouse))
    told = {"failed": 0, "killed": 0, "wrong": 0, "steps": 0}
    seconds = 0.5
    while told["killed"] < kills and told["steps"] < 4 * kills:
        before = ids_of(table)
        after, run = step(spark, table, STEPS[told["steps"] % len(STEPS)], before)
        told["steps"] += 1
        over = threading.Event()
        killer = threading.Thread(target=kill_one, args=(rng, seconds, over, told))
        start = time.monotonic()
        killer.start()
        try:
            run()
        except Exception:
            told["failed"] += 1
        over.set()
        killer.join()
        seconds = max(0.2, 0.9 * (time.monotonic() - start))
        if ids_of(table) not in (before, after):
            told["wrong"] += 1
    table.sweep(older_than="0 seconds", force=True)
    return told


def kill_one(rng: random.Random, seconds: float, over: threading.Event, told: dict[str, int]) -> None:
    """Kill a worker at a random moment, or the first that comes after it; none when the step is over before."""
    over.wait(rng.uniform(0, seconds))
    while not over.is_set():
        if kill_worker(rng):
            told["killed"] += 1
            return
        over.wait(0.02)


def kill_worker(rng: random.Random) -> int:
    """Kill -9 one Python worker below this process; how many were killed."""
    found = [pid for pid in descendants(os.getpid()) if b"pyspark.worker" in _read(pid, "cmdline")]
    workers = [pid for pid in found if parent_of(pid) in found]  # the other one is the daemon that starts them
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
    main(Path(sys.argv[1]), Path(sys.argv[2]))
