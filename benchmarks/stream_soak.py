"""Do memory and time per trigger stay flat while 10,000 partitions are born?

    make bench ONLY=stream_soak                                 under 5 minutes
    PENSTOCK_BENCH_ROUNDS=10 make bench ONLY=stream_soak

A hundred rounds of a hundred new partitions, of which one matches, once as directories and once as a managed table; a
streaming query of Spark reads each round in a trigger of its own. Recorded after each: the seconds of the trigger, the
memory of the Python process in which Spark keeps the source, the heap that Java uses after a collection (at the end of
each tenth), and the size of the position. The same is done without Spark. Shown are medians of tenths of the run, and
how the last tenth compares with the first. A position over directories holds names of files that match, up to 1,000.

Checked is what was delivered: every row of the partitions that match, once, and no other row entered the query.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from benchmarks._streams import Watched, remember_triggers, with_rows
from penstock.stream.feed import Limit
from penstock.stream.stream_options import StreamOptions

ROUNDS = int(os.environ.get("PENSTOCK_BENCH_ROUNDS", "100"))
BORN, FILE_ROWS = 100, 3
WHERE = "app LIKE '07-%'"
RUNNER = b"python_streaming_source_runner"
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Round:
    """What one round cost."""

    seconds: float
    finding: float
    memory: int
    position: int
    heap: int | None = None


def app_of(number: int) -> str:
    """The partition of a number; one of a hundred matches."""
    return f"{number % 100:02d}-{number:06d}"


def matching(rounds: int) -> list[Row]:
    """The rows that must be delivered."""
    return [(x, app_of(i)) for i in range(rounds * BORN) if i % 100 == 7 for x in range(FILE_ROWS)]


class Directories:
    """A Hive layout that grows."""

    name = "directories"

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / "directories"
        self.root.mkdir()
        self.table: Any = penstock.hive(self.root, "app string", "x bigint")

    def grow(self, number: int) -> None:
        """A round: links to one new file; the partition that matches comes last."""
        original = self.home / f"{number}.parquet"
        pq.write_table(pa.table({"x": pa.array(range(FILE_ROWS), pa.int64())}), original)
        for i in sorted(range(number * BORN, (number + 1) * BORN), key=lambda i: i % 100 == 7):
            (self.root / f"app={app_of(i)}").mkdir()
            os.link(original, self.root / f"app={app_of(i)}" / "0.parquet")


class Managed:
    """A coalesced table that grows."""

    name = "managed table"

    def __init__(self, home: Path) -> None:
        lake = penstock.connect(home / "lake")
        self.table: Any = lake.create_table("web.t", "x bigint, app string", ["app"], coalesce=["app"])

    def grow(self, number: int) -> None:
        """A round: one commit."""
        apps = [app_of(i) for i in range(number * BORN, (number + 1) * BORN) for _ in range(FILE_ROWS)]
        self.table.append(pa.table({"x": pa.array(list(range(FILE_ROWS)) * BORN, pa.int64()), "app": apps}))


Source = Directories | Managed


def without_spark(source: Source) -> list[Round]:
    """The source alone, as Spark's driver uses it: find what is new, then read it."""
    feed = source.table.feed(StreamOptions(where=WHERE, starting="latest"))
    at, found, rows = feed.start(), list[Round](), list[Row]()
    for number in range(ROUNDS):
        source.grow(number)
        start = time.perf_counter()
        step = feed.step(at, Limit())
        finding, at = time.perf_counter() - start, step.end
        reader = feed.rows()
        parts = [part for work in step.work for part in reader.read(work)]
        seconds = time.perf_counter() - start
        rows += [(row["x"], row["app"]) for part in parts for row in part.to_pylist()]
        found.append(Round(seconds, finding, _memory(os.getpid()), len(json.dumps(at))))
    assert sorted(rows, key=lambda row: row[::-1]) == matching(ROUNDS)
    return found


def with_spark(spark: Any, source: Source, checkpoint: Path) -> list[Round]:
    """A running query, one trigger for each round."""
    rows = source.table.stream(spark, WHERE, starting="latest", poll_seconds=0)
    known = _runners(os.getpid())
    watched = Watched(rows, checkpoint, processingTime="0 seconds")
    try:
        watched.query.processAllAvailable()
        (runner,) = _runners(os.getpid()) - known
        found = [_round(spark, watched, source, runner, number) for number in range(ROUNDS)]
    finally:
        watched.end()
    assert sorted(watched.rows, key=lambda row: row[::-1]) == matching(ROUNDS)
    return found


def _round(spark: Any, watched: Watched, source: Source, runner: int, number: int) -> Round:
    before = watched.triggers()[-1].number
    source.grow(number)
    watched.query.processAllAvailable()
    trigger = with_rows([each for each in watched.triggers() if each.number > before])
    assert trigger.rows == FILE_ROWS, f"{trigger.rows} rows came in"
    heap = _heap(spark) if (number + 1) % max(1, ROUNDS // 10) == 0 else None
    position = len(json.dumps(trigger.source["endOffset"]))
    return Round(trigger.seconds, trigger.finding, _memory(runner), position, heap)


def _heap(spark: Any) -> int:
    """What Java uses after a collection."""
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _memory(process: int) -> int:
    """What a process holds in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _runners(parent: int) -> set[int]:
    """The processes of streaming sources below a process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "stat").read_text()
        except OSError:  # it has ended
            continue
        children.setdefault(int(told.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    below, waiting = set[int](), [parent]
    while waiting:
        own = children.get(waiting.pop(), [])
        below.update(own)
        waiting += own
    return {process for process in below if RUNNER in _command(process)}


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def show(title: str, rounds: list[Round]) -> None:
    """A line for each tenth."""
    print(f"\n{title}: {len(rounds) * BORN:,} partitions, {len(rounds)} of them match")
    print(f"{'partitions':>12}{'trigger':>12}{'finding':>12}{'Python':>12}{'Java heap':>12}{'position':>12}")
    size = max(1, len(rounds) // 10)
    tenths = [rounds[i : i + size] for i in range(0, len(rounds), size)]
    for i, tenth in enumerate(tenths):
        heaps = [each.heap for each in tenth if each.heap is not None]
        heap = f"{heaps[-1] / 2**20:,.0f} MiB" if heaps else "-"
        times = f"{_of(tenth, 'seconds') * 1e3:>9,.1f} ms{_of(tenth, 'finding') * 1e3:>9,.1f} ms"
        memory = f"{_of(tenth, 'memory') / 2**20:,.0f} MiB"
        print(f"{(i + 1) * size * BORN:>12,}{times}{memory:>12}{heap:>12}{_of(tenth, 'position'):>10,.0f} B")
    parts = ("seconds", "finding", "memory", "position")
    ratios = [f"{part} {_of(tenths[-1], part) / _of(tenths[0], part):.2f}x" for part in parts]
    print(f"last tenth against the first: {', '.join(ratios)}", flush=True)


def _of(rounds: list[Round], name: str) -> float:
    """The median of a number."""
    return float(statistics.median(getattr(each, name) for each in rounds))


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    kinds: tuple[Callable[[Path], Source], ...] = (Directories, Managed)
    try:
        for i, kind in enumerate(kinds):
            folder = home / f"alone-{i}"
            folder.mkdir()
            source = kind(folder)
            show(f"{source.name}, without Spark", without_spark(source))
        settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
        spark = penstock.session(master="local[2]", **settings)
        try:
            remember_triggers(spark)
            for i, kind in enumerate(kinds):
                folder = home / f"spark-{i}"
                folder.mkdir()
                source = kind(folder)
                show(f"{source.name}, Spark", with_spark(spark, source, folder / "checkpoint"))
        finally:
            spark.stop()
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
