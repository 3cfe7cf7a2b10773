"""What do 1,000 and 100,000 rows that are merged into a table of 1,000 files cost: seconds, files opened and rewritten?

    make bench ONLY=merge                                       5 million rows in the table, under 5 minutes
    PENSTOCK_BENCH_ROWS=50000000 make bench ONLY=merge          50 million rows
    PENSTOCK_BENCH_ENGINES=Arrow,Iceberg make bench ONLY=merge  some engines: part of their names

A table of three narrow columns, its files side by side in the order of `id`. Nine of ten rows of the source have an id
of the table and update it, the others are new. Their ids are clustered, in 4 or 20 files, or scattered over all files.
Every engine rewrites files (copy on write), which is the default of each, and is told nothing but the key.

- Penstock by `table.upsert` of Arrow rows, without Spark; by `table.upsert` of a DataFrame; and by `MERGE INTO`.
- Iceberg's Spark runtime and Delta Lake by the same `MERGE INTO`, on the newest Spark that both support, in processes
  of their own. Iceberg's table is Penstock's under another name, Delta's is made of the same files (links to them).

The source is a Parquet file, and reading it counts. The kernel tells which of the table's files are opened; files are
rewritten when the table does not have them any more. DuckDB checks the rows of the new files after the first merge of
each case and engine; then engines take turns, and the best of all rounds counts. Between rounds the table is rolled
back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from benchmarks import _merge_peers as peers
from benchmarks._cpu_seconds import cpu_seconds
from benchmarks._opened_files import opened_files
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.writes import add_files, prepare
from tests.interop.spark_process import SparkProcess
from tools.fetch_jars import Unavailable

FILES = 1_000
ROWS = int(os.environ.get("PENSTOCK_BENCH_ROWS", "5000000"))
ENGINES = os.environ.get("PENSTOCK_BENCH_ENGINES", "").split(",")
CLUSTERED_ROUNDS, SCATTERED_ROUNDS = 3, 2
OURS, THEIRS = "web.ours", "web.theirs"
TARGETS = {1_000: 3.0, 100_000: 1.0}
NEW_VALUE = 5_000  # of updated and new rows; old ones are smaller
Ids = npt.NDArray[np.int64]
Answer = tuple[int, ...]


def rows_of(ids: Ids) -> pa.Table:
    """The rows of some ids."""
    mixed = (ids * 2_654_435_761) % 2**32
    return pa.table({"id": ids, "n": pa.array(mixed % 1_000, pa.int32()), "price": (mixed // 1_000 % 4_096) / 64})


@dataclass(frozen=True)
class Case:
    """Rows that are merged, and what the table says then."""

    rows: int
    spread: str
    source: pa.Table = field(repr=False)
    files: int  # with a row that the source meets
    expected: Answer

    @classmethod
    def of(cls, rows: int, spread: str, files: int) -> Case:
        """Ids of files next to each other, or of all; a tenth comes after those of the table."""
        met = rows * 9 // 10
        first = ROWS // FILES * (FILES // 2 if files < FILES else 0)
        ids = first + np.arange(met, dtype=np.int64) * (ROWS // FILES * files) // met
        new = np.arange(ROWS, ROWS + rows - met, dtype=np.int64)
        source = rows_of(np.concatenate([ids, new])).set_column(1, "n", pa.array([NEW_VALUE] * rows, pa.int32()))
        everything = answer_of_rows(np.arange(ROWS, dtype=np.int64))
        old, merged = answer_of_rows(ids), (rows, *(int(source[name].to_numpy().sum()) for name in ("id", "n")))
        expected = tuple(a - b + c for a, b, c in zip(everything, old, merged, strict=True))
        return cls(rows, spread, source, len(np.unique(ids // (ROWS // FILES))), expected)


def answer_of_rows(ids: Ids) -> Answer:
    """How many rows, and the sums of their columns."""
    return len(ids), int(ids.sum()), int(rows_of(ids)["n"].to_numpy().sum(dtype=np.int64))


def answer_of_files(files: Sequence[str]) -> Answer:
    """The same by DuckDB, over the files of a table."""
    paths = [path.removeprefix("file://").removeprefix("file:") for path in files]
    row = duckdb.execute("SELECT count(*), sum(id)::BIGINT, sum(n)::BIGINT FROM read_parquet(?)", [paths]).fetchone()
    assert row is not None
    return row


@dataclass
class Engine:
    """A way to merge into a table that is there."""

    name: str
    folder: Path  # of its files
    merge: Callable[[str], float]  # the rows of a Parquet file; the seconds
    files: Callable[[], Sequence[str]]
    roll_back: Callable[[], object]
    before: frozenset[str] = frozenset()  # the names of the files

    def __post_init__(self) -> None:
        self.before = frozenset(Path(path).name for path in self.files())

    def first_merge(self, case: Case, source: str) -> Result:
        """With its rows checked and its files counted."""
        with opened_files(self.folder) as opened:
            seconds, cpu = self.timed(source)
        files = self.files()
        answer = answer_of_files(files)
        assert answer == case.expected, f"{self.name}: {answer}, expected {case.expected}"
        rewritten = self.before - {Path(path).name for path in files}
        self.reset()
        return Result(self, seconds, cpu, len(opened & self.before), len(rewritten))

    def timed(self, source: str) -> tuple[float, float]:
        """The seconds of a merge, and those of the CPU."""
        before = cpu_seconds()
        return self.merge(source), cpu_seconds() - before

    def reset(self) -> None:
        """The table as it was, and no other files."""
        self.roll_back()
        for path in self.folder.glob("*.parquet"):
            if path.name not in self.before:
                path.unlink()


@dataclass
class Result:
    """What an engine did in one case."""

    engine: Engine
    seconds: float
    cpu: float
    opened: int
    rewritten: int

    def again(self, source: str) -> None:
        """Once more; the best counts."""
        seconds, cpu = self.engine.timed(source)
        self.seconds, self.cpu = min(self.seconds, seconds), min(self.cpu, cpu)
        self.engine.reset()


def build(home: Path) -> ManagedTable:
    """The table, each file written on its own."""
    table = penstock.connect(home).create_table(OURS, "id bigint, n int, price double")
    job, each = prepare(table), ROWS // FILES
    parts = (rows_of(np.arange(i * each, (i + 1) * each, dtype=np.int64)) for i in range(FILES))
    add_files(table, [file for part in parts for file in write_rows(job, [part])], {})
    table.refresh()
    table.table.catalog.register_table(tuple(THEIRS.split(".")), table.table.metadata_location)
    return table


def files_in_catalog(table: ManagedTable, name: str) -> list[str]:
    """The files of a table as PyIceberg plans them."""
    return [task.file.file_path for task in table.table.catalog.load_table(name).scan().plan_files()]


def penstock_engines(table: ManagedTable, spark: Any, lake: Any, folder: Path) -> list[Engine]:
    """The three ways of Penstock."""

    def timed(work: Callable[[str], Any], source: str) -> float:
        start = time.perf_counter()
        work(source)
        return time.perf_counter() - start

    def by_sql(source: str) -> None:
        spark.read.parquet(source).createOrReplaceTempView("source")
        lake.sql(peers.MERGE.format(table=OURS), spark)

    ways: dict[str, Callable[[str], Any]] = {
        "Penstock, Arrow": lambda source: table.upsert(pq.read_table(source), on="id"),
        "Penstock, DataFrame": lambda source: table.upsert(spark.read.parquet(source), on="id"),
        "Penstock, SQL": by_sql,
    }
    table.create_tag("before")
    files, back = partial(files_in_catalog, table, OURS), lambda: table.rollback("before")
    return [Engine(name, folder, partial(timed, way), files, back) for name, way in ways.items() if is_wanted(name)]


def iceberg_engine(table: ManagedTable, process: SparkProcess, folder: Path) -> Engine:
    """Iceberg's Spark runtime."""
    head = table.table.current_snapshot()
    assert head is not None
    name = f"penstock.{THEIRS}"
    back = f"CALL penstock.system.rollback_to_snapshot('{THEIRS}', {head.snapshot_id})"
    return Engine(
        "Iceberg's Spark runtime",
        folder,
        lambda source: process.ask(peers.merge, name, source),
        partial(files_in_catalog, table, THEIRS),
        lambda: process.ask(peers.run, back),
    )


def delta_engine(table: ManagedTable, process: SparkProcess, folder: Path) -> Engine:
    """Delta Lake."""
    folder.mkdir()
    for path in files_in_catalog(table, OURS):
        os.link(path.removeprefix("file://"), folder / Path(path).name)
    process.ask(peers.convert, str(folder))
    name = f"delta.`{folder}`"
    return Engine(
        "Delta Lake",
        folder,
        lambda source: process.ask(peers.merge, name, source),
        lambda: process.ask(peers.files_of, name),
        lambda: process.ask(peers.run, f"RESTORE TABLE {name} TO VERSION AS OF 0"),
    )


def is_wanted(name: str) -> bool:
    """Whether an engine takes part."""
    return any(part in name for part in ENGINES)


def measure(case: Case, engines: Sequence[Engine], source: str) -> list[Result]:
    """Each engine once with everything checked, then in turns."""
    results = [engine.first_merge(case, source) for engine in engines]
    for _ in range((CLUSTERED_ROUNDS if case.files < FILES // 2 else SCATTERED_ROUNDS) - 1):
        for result in results:
            result.again(source)
    return results


def show(case: Case, results: Sequence[Result]) -> None:
    """One case; ratios say how much longer a peer takes."""
    print(f"\n{case.rows:,} rows, ids {case.spread}: {case.files:,} of {FILES:,} files have a match")
    theirs = [result for result in results if not result.engine.name.startswith("Penstock")]
    heads = "".join(f"{f'{result.engine.name.split()[0]} / it':>16}" for result in theirs)
    print(f"{'engine':<26}{'seconds':>9}{'of CPU':>9}{'opened':>8}{'rewritten':>11}{heads}")
    for result in results:
        ratios = "".join(f"{f'{peer.seconds / result.seconds:.2f}x':>16}" for peer in theirs)
        counts = f"{result.opened:>8,}{result.rewritten:>11,}"
        print(f"{result.engine.name:<26}{result.seconds:>9.2f}{result.cpu:>9.2f}{counts}{ratios}", flush=True)
    print(f"target: at most {case.files + 1:,} files opened, {TARGETS[case.rows]:.0f}x against Iceberg's runtime")


@contextmanager
def started(home: Path) -> Iterator[list[Engine]]:
    """The engines on their tables, and all that must be stopped again."""
    lake, start = penstock.connect(home / "lake"), time.perf_counter()
    table = build(home / "lake")
    folder = Path(files_in_catalog(table, OURS)[0].removeprefix("file://")).parent
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    print(f"{ROWS:,} rows in {FILES:,} files, {size:,.0f} MiB, made in {time.perf_counter() - start:.0f} s")
    processes: list[SparkProcess] = []
    spark = penstock.session(master="local[2]", **peers.SETTINGS)
    try:
        engines = penstock_engines(table, spark, lake, folder)
        for name, begin, engine, place in (
            ("Iceberg's Spark runtime", partial(peers.start_iceberg, home / "lake"), iceberg_engine, folder),
            ("Delta Lake", peers.start_delta, delta_engine, home / "delta"),
        ):
            if is_wanted(name):
                try:
                    processes.append(begin())
                    engines.append(engine(table, processes[-1], place))
                except Unavailable as reason:
                    print(f"left out: {name}: {reason}")
        yield engines
    finally:
        for process in processes:
            process.close()
        spark.stop()


def cases() -> Iterator[Case]:
    """All of them."""
    for rows, clustered in ((1_000, 4), (100_000, 20)):
        for spread, files in (("clustered", clustered), ("scattered", FILES)):
            yield Case.of(rows, spread, files)


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        with started(home) as engines:
            for number, case in enumerate(cases()):
                source = str(home / f"source-{number}.parquet")
                pq.write_table(case.source, source)
                show(case, measure(case, engines, source))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
