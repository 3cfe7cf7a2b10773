"""What does one trigger of a stream cost when 1,000, 10,000 and 50,000 partitions exist and 1 % match?

    make bench ONLY=stream_trigger                              under 5 minutes
    PENSTOCK_BENCH_ALL=1 make bench ONLY=stream_trigger         with all of Spark's listings of 50,000 directories
    PENSTOCK_BENCH_PARTITIONS=1000 PENSTOCK_BENCH_ROWS=20000 make bench ONLY=stream_trigger

A stream has caught up. Then 100 partitions are born with one small file each, and one of them matches. Measured is the
one trigger that reads them, by Spark's progress: its seconds, those in which new files are found, and the rows that
entered the query before any filter of Spark's. On S3 (`rclone serve s3` on loopback) List requests are those that the
server saw, a page of 1,000 names each; on the disk they are directories. What is left after the filter is checked for
every engine, and that with Penstock no row of another partition enters the query. An idle trigger finds nothing.

- Penstock follows the directories, a coalesced managed table, and an Iceberg table with a file for each partition.
- Spark's file source follows the same directories, with `.where(…)`. It starts with a checkpoint in which one fresh
  file stands, and the files that exist are ten days old: it ignores them by their age (`maxFileAge`). That favours it,
  since it keeps no memory of them; it still lists them. A query of it has one trigger (`once`), so that it does not see
  half of the new files. It lists directories on the disk with a task each, up to 10,000 by default; shown is also how
  long it takes with 8 tasks. On S3 it asks for all names below the root, a page after the other. The filter prunes the
  new files that it found.
- Iceberg's Spark runtime follows the same Iceberg table, with `.where(…)`, in a Spark 4.1 of its own.

Times are the best of three triggers after a first one, and of one trigger for Spark's file source, in a session that
has run such a query before. Partitions of an Iceberg table with a file each are at most 10,000: to write 50,000
takes a minute. On S3 there is only the coalesced one, and no Iceberg runtime, which needs more jars for it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import penstock
from benchmarks import _streams
from benchmarks._streams import Trigger, Watched, with_rows
from penstock.lake.lake import Lake
from penstock.storage.s3_storage import hadoop_options
from tests.interop.iceberg_judge import IcebergJudge, close_shared_judge, shared_judge
from tests.s3.server import KEY_ID, SECRET, S3Server
from tools.fetch_jars import Unavailable, fetch

SIZES = tuple(int(n) for n in os.environ.get("PENSTOCK_BENCH_PARTITIONS", "1000,10000,50000").split(","))
ALL = os.environ.get("PENSTOCK_BENCH_ALL") == "1"
MOST_FILES, MOST_LISTS = 10_000, 10_000  # of an Iceberg table; of directories that Spark lists in its slow way
WARM = 500
BORN, OLD_ROWS, REPEATS = 100, 3, 3
NEW_ROWS = int(os.environ.get("PENSTOCK_BENCH_ROWS", "3"))  # of each new file
LINKS = 50_000  # of one file; file systems have a limit
OLD = 10 * 86_400
FEW_TASKS, MANY_TASKS = 8, 10_000  # with which Spark lists directories at most; many is its default
WHERE = "app LIKE '07-%'"
COLUMNS = "x bigint, app string"
LOCAL_PAUSE, S3_PAUSE = "200 milliseconds", "2 seconds"
TARGET = 10
Row = tuple[Any, ...]


def app_of(number: int) -> str:
    """The partition of a number; one of a hundred matches."""
    return f"{number % 100:02d}-{number:06d}"


def matching(first: int, many: int) -> list[Row]:
    """The rows of the partitions that match, among many."""
    return [(x, app_of(i)) for i in range(first, first + many) if i % 100 == 7 for x in range(NEW_ROWS)]


@dataclass(frozen=True)
class Result:
    """One engine: its best trigger that reads what is new, and an idle one."""

    engine: str
    trigger: Trigger
    lists: int
    files: int
    idle: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is Penstock's."""
        return self.engine.startswith("penstock")


@dataclass
class Directories:
    """A Hive layout on the disk, perhaps behind a server: `born` more partitions than there were are there now."""

    home: Path
    root: Path
    partitions: int
    server: S3Server | None = None
    born: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Old files in all partitions, as links to a few."""
        self.root.mkdir()
        for i in range(self.partitions):
            original = self.home / f"{self.root.name}-old-{i // LINKS}.parquet"
            if i % LINKS == 0:
                _write(original, OLD_ROWS)
                _make_old(original)
            (self.root / f"app={app_of(i)}").mkdir()
            os.link(original, self.root / f"app={app_of(i)}" / "old.parquet")

    @property
    def url(self) -> str:
        """Where it is, as Penstock writes it."""
        return str(self.root) if self.server is None else self.server.url(self.root)

    def lists(self) -> int:
        """The List requests so far."""
        return 0 if self.server is None else self.server.list_requests()

    def grow(self) -> None:
        """A hundred more partitions; the one that matches comes last."""
        first = self.partitions + self.born
        self.born += BORN
        numbers = sorted(range(first, first + BORN), key=lambda i: i % 100 == 7)
        original = self.home / f"{self.root.name}-{first}.parquet"
        _write(original, NEW_ROWS)
        if self.server is None:
            for i in numbers:
                (self.root / f"app={app_of(i)}").mkdir()
                os.link(original, self.root / f"app={app_of(i)}" / "new.parquet")
        else:
            self._upload([f"app={app_of(i)}/new.parquet" for i in numbers], original.read_bytes())

    def age(self) -> None:
        """Make the new files old; on the disk only."""
        for original in self.home.glob(f"{self.root.name}-[0-9]*.parquet"):
            _make_old(original)

    def _upload(self, names: list[str], content: bytes) -> None:
        """Through the server, which remembers what it listed."""
        assert self.server is not None
        storage = _client(self.server)
        root = self.url.removeprefix("s3://")

        def put(name: str) -> None:
            with storage.open_output_stream(f"{root}/{name}") as file:
                file.write(content)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, names[:-1]))
        put(names[-1])


@dataclass
class Table:
    """A table of a lake, to which partitions come."""

    table: Any
    partitions: int
    server: S3Server | None = None
    born: int = field(default=0, init=False)
    own_lists: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._append(0, self.partitions, OLD_ROWS)

    def lists(self) -> int:
        """The List requests so far, without those of writing."""
        return 0 if self.server is None else self.server.list_requests() - self.own_lists

    def grow(self) -> None:
        """A hundred more partitions, in one commit."""
        before = self.lists()
        self._append(self.partitions + self.born, BORN, NEW_ROWS)
        self.own_lists += self.lists() - before
        self.born += BORN

    def _append(self, first: int, many: int, rows: int) -> None:
        apps = [app_of(i) for i in range(first, first + many) for _ in range(rows)]
        self.table.append(pa.table({"x": pa.array(list(range(rows)) * many, pa.int64()), "app": apps}))


def _write(path: Path, rows: int) -> None:
    pq.write_table(pa.table({"x": pa.array(range(rows), pa.int64())}), path)


def _make_old(path: Path) -> None:
    os.utime(path, (time.time() - OLD,) * 2)


def _client(server: S3Server) -> Any:
    return pafs.S3FileSystem(
        access_key=KEY_ID, secret_key=SECRET, endpoint_override=server.endpoint, region="us-east-1"
    )


def penstock_result(engine: str, rows: Any, place: Directories | Table, checkpoint: Path) -> Result:
    """Penstock, in a running query."""
    watched = Watched(rows, checkpoint, processingTime=LOCAL_PAUSE if place.server is None else S3_PAUSE)
    try:
        first, found = place.partitions + place.born, list[tuple[Trigger, int]]()
        for _ in range(1 + REPEATS):
            before, listed = watched.next_idle(), place.lists()
            place.grow()
            triggers = watched.next_rows(before)
            found.append((with_rows(triggers), round((place.lists() - listed) / len(triggers))))
        assert sorted(watched.rows, key=lambda row: row[::-1]) == matching(first, len(found) * BORN), watched.rows
        assert [trigger.rows for trigger, _ in found] == [NEW_ROWS] * len(found), "a foreign row came in"
        idle = min(trigger.seconds for trigger in watched.triggers() if trigger.is_idle)
    finally:
        watched.end()
    trigger, requests = min(found[1:], key=lambda each: each[0].seconds)
    seen, now = trigger.source["latestOffset"]["list_calls"], trigger.source["endOffset"]
    return Result(engine, trigger, max(requests, seen), int(now["batch"]["files"]), idle)


def spark_name(tasks: int) -> str:
    """Spark's file source, by how it lists."""
    return f"Spark's file source, {tasks:,}"


def spark_result(spark: Any, place: Directories, checkpoint: Path, tasks: int) -> Result:
    """Spark's file source, in a query of one trigger that lists with at most so many tasks."""
    setting = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(setting, str(FEW_TASKS))  # it also lists when it is asked for a DataFrame, which is not measured
    rows = spark.readStream.schema(COLUMNS).parquet(place.url.replace("s3://", "s3a://")).where(WHERE)
    spark.conf.set(setting, str(tasks))
    first = place.partitions + place.born
    place.grow()
    before = place.lists()
    watched = Watched(rows, checkpoint, once=True)
    watched.query.awaitTermination()
    (trigger,) = watched.triggers()
    assert sorted(watched.rows, key=lambda row: row[::-1]) == matching(first, BORN), watched.rows
    lists = place.partitions + place.born + 1 if place.server is None else place.lists() - before
    return Result(spark_name(tasks), trigger, lists, trigger.rows // NEW_ROWS)


def iceberg_result(judge: IcebergJudge, name: str, place: Table, checkpoint: Path) -> Result:
    """Iceberg's Spark runtime, in a running query in its own process."""
    judge.ask(_streams.begin_iceberg, f"penstock.{name}", WHERE, str(checkpoint), LOCAL_PAUSE)
    first, found = place.partitions + place.born, list[Trigger]()
    for _ in range(1 + REPEATS):
        before = judge.ask(_streams.next_idle)
        place.grow()
        triggers, rows = judge.ask(_streams.next_rows, before)
        found.append(with_rows(triggers))
    judge.ask(_streams.end)
    assert sorted(rows, key=lambda row: row[::-1]) == matching(first, len(found) * BORN), rows
    best = min(found[1:], key=lambda trigger: trigger.seconds)
    return Result("Iceberg's Spark runtime", best, 0, best.rows // NEW_ROWS)


@dataclass(frozen=True)
class Bench:
    """What all measurements share: a Spark, a server if it can read from it, and Iceberg's runtime if there is one."""

    home: Path
    spark: Any
    server: S3Server | None
    lake: Lake
    judge: IcebergJudge | None

    def local(self, partitions: int) -> list[Result]:
        """All engines on the disk."""
        results = [*self.directories(Directories(self.home, self.home / f"t{partitions}", partitions))]
        results.append(self.table("coalesced", self.lake, partitions)[0])
        if partitions > MOST_FILES:
            print(f"left out: an Iceberg table of {partitions:,} files")
            return results
        plain, place = self.table("own files", self.lake, partitions)
        results.append(plain)
        if self.judge is not None:
            checkpoint = self.home / f"iceberg-{partitions}"
            results.append(iceberg_result(self.judge, place.table.name, place, checkpoint))
        return results

    def remote(self, partitions: int) -> list[Result]:
        """The engines that read from S3 here."""
        assert self.server is not None
        place = Directories(self.home, self.server.new_bucket() / "t", partitions, self.server)
        folder = self.home / f"catalog-{partitions}"
        folder.mkdir()
        url = self.server.url(self.server.new_bucket())
        storage = self.server.properties
        catalog = SqlCatalog("penstock", uri=f"sqlite:///{folder}/catalog.db", warehouse=url, **storage)
        lake = penstock.connect(catalog=catalog)
        return [*self.directories(place), self.table("coalesced", lake, partitions, self.server)[0]]

    def directories(self, place: Directories) -> Iterator[Result]:
        """Spark's file source and Penstock on one layout."""
        name, many = f"{'disk' if place.server is None else 's3'}-{place.partitions}", place.partitions
        for tasks in (FEW_TASKS, MANY_TASKS) if place.server is None else (MANY_TASKS,):
            if tasks == MANY_TASKS and many > MOST_LISTS and not ALL:
                print(f"left out: {spark_name(tasks)}, {name} (PENSTOCK_BENCH_ALL=1 has it)")
                continue
            yield self.by_spark(place, tasks, f"spark-{name}-{tasks}")
            place.age()
        storage = None if place.server is None else place.server.properties
        table = penstock.hive(place.url, "app string", "x bigint", storage=storage)
        rows = table.stream(self.spark, WHERE, starting="latest", poll_seconds=0)
        yield penstock_result("penstock, directories", rows, place, self.home / f"ours-{name}")

    def by_spark(self, place: Directories, tasks: int, name: str) -> Result:
        """Spark's file source, with a checkpoint in which one fresh file stands."""
        if place.server is not None:  # it remembers directories: Spark shall not be the first to ask
            _client(place.server).get_file_info(pafs.FileSelector(place.url.removeprefix("s3://"), recursive=True))
        shutil.copytree(self.home / "seed", self.home / name)
        return spark_result(self.spark, place, self.home / name, tasks)

    def warm_up(self) -> None:
        """The first query of a session is no measure."""
        self.by_spark(Directories(self.home, self.home / "warm", WARM), FEW_TASKS, "spark-warm")
        if self.server is not None:
            place = Directories(self.home, self.server.new_bucket() / "warm-s3", WARM, self.server)
            self.by_spark(place, MANY_TASKS, "spark-warm-s3")

    def table(self, kind: str, lake: Lake, partitions: int, server: S3Server | None = None) -> tuple[Result, Table]:
        """Penstock on a table of a lake, whose partitions share files or not."""
        name = f"web.{kind.replace(' ', '_')}_{partitions}"
        rule = ["app"] if kind == "coalesced" else None
        place = Table(lake.create_table(name, COLUMNS, ["app"], coalesce=rule), partitions, server)
        rows = place.table.stream(self.spark, WHERE, starting="latest", poll_seconds=0)
        checkpoint = self.home / f"{name}-{'disk' if server is None else 's3'}"
        return penstock_result(f"penstock, Iceberg, {kind}", rows, place, checkpoint), place


def seed(spark: Any, home: Path) -> None:
    """A checkpoint of Spark's file source in which one fresh file stands."""
    (home / "fresh" / "app=00").mkdir(parents=True)
    _write(home / "fresh" / "app=00" / "fresh.parquet", OLD_ROWS)
    rows = spark.readStream.schema(COLUMNS).parquet(str(home / "fresh"))
    watched = Watched(rows, home / "seed", once=True)
    watched.query.awaitTermination()
    assert len(watched.rows) == OLD_ROWS


def show(title: str, results: list[Result]) -> None:
    """One table; ratios are against Penstock on the same data."""
    print(f"\n{title}, {BORN} are born with {NEW_ROWS:,} rows each, 1 of them matches")
    heads = "".join(f"{head:>11}" for head in ("trigger", "finding", "idle"))
    print(f"{'engine':<30}{heads}{'ratio':>8}{'List calls':>12}{'files':>7}{'rows in':>9}")
    ours = None
    for r in sorted(results, key=_order):
        ours = r.trigger.seconds if r.is_ours else ours
        assert ours is not None
        idle = "-" if r.idle is None else f"{r.idle * 1e3:,.0f} ms"
        times = f"{r.trigger.seconds * 1e3:>8,.0f} ms{r.trigger.finding * 1e3:>8,.0f} ms{idle:>11}"
        ratio = f"{r.trigger.seconds / ours:.1f}x"
        print(f"{r.engine:<30}{times}{ratio:>8}{r.lists:>12,}{r.files:>7,}{r.trigger.rows:>9,}", flush=True)
    for peer in (r for r in results if not r.is_ours):
        before = [r for r in results if r.is_ours and _order(r) < _order(peer)]
        slower = peer.trigger.seconds / max(before, key=_order).trigger.seconds
        print(f"against {peer.engine}: {slower:.1f}x (target {TARGET}x)", flush=True)


_ORDER = ("penstock, directories", "Spark's", "penstock, Iceberg, coalesced", "penstock, Iceberg, own", "Iceberg's")


def _order(result: Result) -> int:
    """Penstock before the peer that reads the same data."""
    return next(i for i, name in enumerate(_ORDER) if result.engine.startswith(name))


def start_judge(lake: Lake) -> IcebergJudge | None:
    """Iceberg's runtime on the catalog of the lake."""
    assert lake.warehouse is not None
    try:
        judge = shared_judge(lake.warehouse)
    except Unavailable as reason:
        print(f"left out: Iceberg's Spark runtime: {reason}")
        return None
    judge.ask(_streams.use_catalog, str(lake.warehouse))
    return judge


@contextmanager
def started(home: Path) -> Iterator[Bench]:
    """Everything that must be stopped again."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
    server = None
    try:
        settings["spark.jars"] = ",".join(map(str, fetch("hadoop-aws")))
        server = S3Server(home)
        options = hadoop_options(server.properties)
        settings |= {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}
    except Unavailable as reason:
        print(f"left out: S3: {reason}")
    spark = penstock.session(master="local[2]", **settings)
    try:
        _streams.tell_every_trigger(spark)
        seed(spark, home)
        lake = penstock.connect(home / "lake")
        yield Bench(home, spark, server, lake, start_judge(lake))
    finally:
        close_shared_judge()
        spark.stop()
        if server is not None:
            server.stop()


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        with started(home) as bench:
            bench.warm_up()
            for partitions in SIZES:
                show(f"disk, {partitions:,} partitions", bench.local(partitions))
            for partitions in SIZES if bench.server is not None else ():
                show(f"S3, {partitions:,} partitions", bench.remote(partitions))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
