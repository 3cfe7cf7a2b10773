"""How long does it take to make a table of a Parquet tree where it lies, and how much memory?

    make bench ONLY=adopt                        20,000 files
    PENSTOCK_BENCH_FILES=100000 make bench ONLY=adopt

Files of 50 rows and eight columns below `dt=…/app=…`. Penstock's `lake.adopt`, the same again when nothing is new, and
again when 1 % of the files are; PyIceberg's `add_files` on 500 of the files, as all of them would take too long (the
path has the partition values, so its table is not partitioned). They are compared by CPU time, which other work on the
machine does not change. Each runs in a process of its own, whose largest size counts. Afterwards the table is asked for
rows and files that are known.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import penstock

FILES = int(os.environ.get("PENSTOCK_BENCH_FILES", "20000"))
APPS, ROWS, OF_PEER = 20, 50, 500
MORE = max(1, FILES // 100)
PARTITION_BY = "dt date, app string"


class Ran(NamedTuple):
    """What one process took, and what it found."""

    seconds: float
    cpu: float  # the same without waiting for other processes
    megabytes: float
    found: tuple[int, ...]


def write_file(root: str, number: int) -> None:
    """File number so many: its ids follow those of the one before."""
    day, app = divmod(number // 5, APPS)
    ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
    texts = pa.array([f"session {number} {i}" for i in range(ROWS)])
    columns = {"id": ids, "session": texts} | {f"n{i}": pa.array([number + i] * ROWS, pa.int32()) for i in range(6)}
    place = Path(root) / f"dt={2000 + day // 336}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}" / f"app=app-{app:02}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), place / f"part-{number:07}.parquet")


def adopted(home: str) -> tuple[int, ...]:
    """Adopt the tree; how many files and rows were new."""
    done = penstock.connect(f"{home}/lake").adopt(f"{home}/tree", "web.events", PARTITION_BY, coalesce=["app"])
    return done.files, done.rows


def asked(home: str) -> tuple[int, ...]:
    """All rows, those of one id, and the files planned for one id and for one partition."""
    table: Any = penstock.connect(f"{home}/lake").table("web.events")
    some = f"id = {FILES * ROWS // 2}"
    partition = len(table.plan("dt = '2000-01-01' AND app = 'app-07'").files)
    return table.count(), len(table.arrow(some)), len(table.plan(some).files), partition


def by_pyiceberg(home: str) -> tuple[int, ...]:
    """PyIceberg's `add_files` of the first files."""
    from pyiceberg.catalog.sql import SqlCatalog

    os.makedirs(f"{home}/peer")
    catalog = SqlCatalog("peer", uri=f"sqlite:///{home}/peer/catalog.db", warehouse=f"file://{home}/peer")
    catalog.create_namespace("web")
    files = sorted(map(str, Path(home, "tree").rglob("*.parquet")))[:OF_PEER]
    table = catalog.create_table("web.events", pq.read_schema(files[0]))
    table.add_files(files, check_duplicate_files=False)
    return len(files), table.scan().count()


def alone(work: Callable[[str], tuple[int, ...]], home: str) -> Ran:
    """Run something in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(work, home, there))
    process.start()
    there.close()
    ran: Ran = here.recv()
    process.join()
    return ran


def _measure(work: Callable[[str], tuple[int, ...]], home: str, sink: Any) -> None:
    start, before = time.perf_counter(), time.process_time()
    found = work(home)
    seconds, cpu = time.perf_counter() - start, time.process_time() - before
    sink.send(Ran(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, found))


def main() -> None:
    """Run, check, print."""
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    os.environ["PENSTOCK_CACHE_DIR"] = f"{home}/cache"
    try:
        for number in range(FILES):
            write_file(f"{home}/tree", number)
        peer = alone(by_pyiceberg, home)
        assert peer.found == (OF_PEER, OF_PEER * ROWS), peer
        first, second = alone(adopted, home), alone(adopted, home)
        assert (first.found, second.found) == ((FILES, FILES * ROWS), (0, 0)), (first, second)
        for number in range(FILES, FILES + MORE):
            write_file(f"{home}/tree", number)
        third = alone(adopted, home)
        assert third.found == (MORE, MORE * ROWS), third
        query = alone(asked, home)
        assert query.found == ((FILES + MORE) * ROWS, 1, 1, 5), query
        print(f"{FILES:,} files of {ROWS} rows and 8 columns")
        for what, ran in (("adopt", first), ("nothing new", second), (f"{MORE:,} files new", third)):
            print(f"{what:>16}: {ran.seconds:6.1f} s, {ran.cpu:6.1f} s of CPU, {ran.megabytes:6.0f} MB")
        ours, theirs = first.cpu / FILES * 1_000, peer.cpu / OF_PEER * 1_000
        print(f"  CPU a file: {ours:.2f} ms; PyIceberg's add_files {theirs:.2f} ms, {theirs / ours:.1f}x")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
