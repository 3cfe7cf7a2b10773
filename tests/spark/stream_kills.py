"""A pipeline of two hops that is meant to be killed: directories → a managed table → another one, as a program."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import penstock
from penstock.lake.managed_table import ManagedTable

SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.ui.showConsoleProgress": "false"}
TABLES = ("web.middle", "web.target")


def make(root: Path) -> None:
    """The two tables that are written, and the directory that is read."""
    lake = penstock.connect(root / "lake")
    for name in TABLES:
        lake.create_table(name, "id bigint, app string", ["app"], coalesce="app")
    (root / "source" / "app=a0").mkdir(parents=True)


def table(root: Path, name: str) -> ManagedTable:
    """One of the tables."""
    found = penstock.connect(root / "lake").table(name)
    assert isinstance(found, ManagedTable)
    return found


def hops(spark: Any, root: Path, finish: bool) -> list[Any]:
    """The two streams; the first one reads a part of the directories. To finish, there are no limits."""
    source = penstock.hive(root / "source", "app string", "id bigint")
    rows = source.stream(spark, where="app LIKE 'a%'", max_files_per_trigger=None if finish else 2, poll_seconds=0.05)
    again = table(root, "web.middle").stream(spark, max_files_per_trigger=None if finish else 3, poll_seconds=0.05)
    return [_into(rows, root, "web.middle"), _into(again, root, "web.target")]


def _into(rows: Any, root: Path, name: str) -> Any:
    out = rows.writeStream.format("penstock").option("warehouse", str(root / "lake")).option("table", name)
    return out.option("checkpointLocation", str(root / "checkpoints" / name))


def main(root: Path, finish: bool) -> None:
    """Both hops at once, without an end; or, to finish, one after the other until all is read."""
    spark = penstock.session(master="local[2]", **SETTINGS)
    streams = hops(spark, root, finish)
    if finish:
        for stream in streams:
            stream.trigger(availableNow=True).start().awaitTermination()
        return
    queries = [stream.trigger(processingTime="0 seconds").start() for stream in streams]
    print("running", flush=True)
    done: list[Any] = [None, None]
    while all(query.isActive for query in queries):
        time.sleep(0.02)
        batches = [query.lastProgress and query.lastProgress.batchId for query in queries]
        if batches != done:
            print("batch", flush=True)
            done = batches
    for query in queries:
        query.awaitTermination(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] == ["finish"])
