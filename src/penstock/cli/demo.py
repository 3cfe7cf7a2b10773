"""The demo: a log as it arrives, written three ways, asked the same questions, followed by a stream, and compacted.

    the log ──Spark──→ a Hive layout (Spark's own writer)      ┐
                   ──→ an Iceberg table, files by partition    ├─→ the same queries, in Spark ─→ one table, side by side
                   ──→ a Penstock table: small partitions      ┘
                       share files, hot headers are columns

Everything that is printed was measured in this run; the files that a query opens and the bytes that it reads are those
that Spark counted. The answers of all tables are compared before a number is shown.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from penstock.cli import options
from penstock.cli.output import echo, echo_json
from penstock.errors import PenstockError

STREAM, COMES = "app = 'app-11'", "app IN ('app-11', 'app-12', 'app-13', 'app-14')"
QUERIES = {
    "one app, two days": (
        "SELECT count(*), round(sum(duration_ms), 3) FROM {table} WHERE {where}",
        "app = 'app-07' AND ts >= '2026-05-17' AND ts < '2026-05-19'",
    ),
    "errors of small apps": (
        "SELECT app, count(*) FROM {table} WHERE {where} GROUP BY app ORDER BY app",
        "app IN ('app-21', 'app-25', 'app-29') AND status >= 500",
    ),
    "one header of one app": (
        "SELECT headers['agent'], count(*) FROM {table} WHERE {where} GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 5",
        "headers['country'] = 'DE' AND app = 'app-03'",
    ),
    "nearly all of it": (
        "SELECT status, count(*) FROM {table} WHERE {where} GROUP BY status ORDER BY status",
        f"NOT {COMES}",
    ),
}
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Of bytes that are read side by side Spark's counter knows nothing, and of a small read it counts a whole buffer.
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    "spark.buffer.size": "4096",
}


@dataclass
class Measured:
    """One way to keep the log, and what it costs."""

    name: str
    files: int = 0
    bytes: int = 0
    written_seconds: float | None = None
    files_opened: int = 0
    bytes_read: int = 0
    planning_seconds: float = 0.0
    query_seconds: float = 0.0
    answers: list[Any] = field(default_factory=list)


@click.command(short_help="Show Penstock at work on generated data.")
@click.option("--rows", default=500_000, show_default=True, help="How many events are generated.")
@click.option("--folder", help="Where everything is kept; a new temporary folder without it.")
@options.json
def demo(rows: int, folder: str | None, json: bool) -> None:
    """Show Penstock at work on generated data: written three ways, queried, streamed, compacted."""
    start = time.perf_counter()
    if rows < 1_000:
        raise PenstockError(f"{rows} rows are too few for all partitions", hint="give 1000 or more")
    if folder is not None and Path(folder).exists() and (not Path(folder).is_dir() or any(Path(folder).iterdir())):
        raise PenstockError(f"{folder} is not an empty folder", hint="give one that is empty or does not exist")
    home = Path(tempfile.mkdtemp(prefix="penstock-demo-") if folder is None else folder).absolute()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = _pipeline(home, rows)
    measured["seconds"] = time.perf_counter() - start
    if json:
        echo_json(measured)
    else:
        _print(measured)


def _pipeline(home: Path, rows: int) -> dict[str, Any]:
    from penstock.cli.demo_log import BATCHES, make_batches
    from penstock.lake.lake import connect
    from penstock.spark.session.process import LOG
    from penstock.spark.session.session import session

    home.mkdir(parents=True, exist_ok=True)
    os.environ[LOG] = str(home / "spark.log")
    with _step("starting Spark"):
        spark = session(**SETTINGS)
    with _step(f"generating {rows:,} events in {BATCHES} batches, the last with rows that come late"):
        frames = [_frame(spark, batch, home / "log" / str(i)) for i, batch in enumerate(make_batches(rows))]
    lake, root = connect(home / "lake"), home / "hive"

    def by_spark(text: str) -> Any:
        spark.read.parquet(str(root)).createOrReplaceTempView("by_spark")
        return spark.sql(text.replace("{table}", "by_spark"))

    def in_lake(name: str) -> Callable[[str], Any]:
        return lambda text: lake.sql(text.replace("{table}", name), spark)

    asks = [by_spark, in_lake("web.layout"), in_lake("web.plain"), in_lake("web.events")]
    tables = _written(lake, frames, root)
    for measured, ask in zip(tables, asks, strict=True):
        with _step(f"asking {len(QUERIES)} questions: {measured.name}"):
            _ask(spark, ask, measured)
    with _step(f"a stream of web.events where {STREAM}, while rows come"):
        stream = _follow(lake, spark, frames[0].where(COMES), home)
    compacted = Measured("… compacted")
    with _step("compacting web.events, and asking again"):
        events: Any = lake.table("web.events")
        with _timed(compacted):
            events.compact()
        _count(compacted, events)
        _ask(spark, asks[-1], compacted)
    tables.append(compacted)
    _check(tables)
    with _step("drawing the report"):
        page = _page(lake, home)
    spark.stop()
    return {"tables": [asdict(each) for each in tables], "stream": stream, "lake": str(home / "lake"), "report": page}


def _frame(spark: Any, rows: Any, folder: Path) -> Any:
    """A batch of the log as Spark reads it."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "rows.parquet")
    return spark.read.parquet(str(folder))


def _written(lake: Any, frames: Sequence[Any], root: Path) -> list[Measured]:
    """The log as a Hive layout, as an Iceberg table, and as a Penstock table; the layout stands for two readers."""
    from pyspark.sql import functions as F

    from penstock.tables.hive.hive_table import hive

    alone = Measured("Hive, Spark alone")
    with _step("writing a Hive layout with Spark's own partitionBy"):
        with _timed(alone):
            for frame in frames:
                rows = frame.withColumn("day", F.to_date("ts"))
                rows.write.mode("append").partitionBy("day", "app").parquet(str(root))
        _count(alone, lake.register("web.layout", hive(root, "day date, app string")))
    tables = [alone, replace(alone, name="Hive, Penstock", answers=[])]
    ours: dict[str, Any] = {"coalesce": "app", "shred": {"headers": ["country", "agent"]}}
    for name, title, rules in (("web.plain", "Iceberg, Penstock", {}), ("web.events", "Penstock table", ours)):
        tables.append(Measured(title))
        with _step(f"writing {name}: {title}"):
            table = lake.create_table(name, frames[0].schema, ["day(ts)", "app"], **rules)
            with _timed(tables[-1]):
                for frame in frames:
                    table.append(frame)
            _count(tables[-1], table)
    return tables


def _count(measured: Measured, table: Any) -> None:
    files = table.plan().report.files
    measured.files, measured.bytes = files.total, files.bytes


def _ask(spark: Any, ask: Callable[[str], Any], measured: Measured) -> None:
    """Ask all questions, after a first round that is no measure: code is compiled and caches are filled by it."""
    _run_queries(ask, Measured(measured.name))
    before = _read_so_far(spark)
    _run_queries(ask, measured)
    measured.bytes_read = _read_so_far(spark) - before


def _read_so_far(spark: Any) -> int:
    """The bytes that Spark's tasks have read from files."""
    store = spark._jsc.sc().statusStore()
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    return int(store.executorSummary("driver").totalInputBytes())


def _run_queries(ask: Callable[[str], Any], measured: Measured) -> None:
    """Ask all questions; the files, and the time to find them, are what Spark's scans counted."""
    for text, where in QUERIES.values():
        start = time.perf_counter()
        frame = ask(text.replace("{where}", where))
        opened = time.perf_counter()
        measured.answers.append([tuple(row) for row in frame.collect()])
        measured.query_seconds += time.perf_counter() - start
        measured.planning_seconds += opened - start
        for metrics in _scans(frame):
            measured.files_opened += metrics.get("numFiles", 0)
            measured.planning_seconds += metrics.get("metadataTime", 0) / 1000


def _scans(frame: Any) -> Iterator[dict[str, int]]:
    """What the scans of a query counted."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    for i in range(leaves.size()):
        metrics = leaves.apply(i).metrics()
        names = [name for name in ("numFiles", "metadataTime") if metrics.contains(name)]
        yield {name: int(metrics.apply(name).value()) for name in names}


def _follow(lake: Any, spark: Any, rows: Any, home: Path) -> dict[str, Any]:
    """A stream that begins now; rows of four apps come, and one of them is wanted."""
    from penstock.spark.stream.stream_report import stream_report

    events = lake.table("web.events")
    wanted, come = rows.where(STREAM).count(), rows.count()
    out = events.stream(spark, where=STREAM, starting="latest", poll_seconds=0.1).writeStream.format("noop")
    query = out.option("checkpointLocation", str(home / "checkpoint")).start()
    try:
        query.processAllAvailable()
        events.append(rows)
        query.processAllAvailable()
        reached = sum(progress.numInputRows for progress in query.recentProgress)
        report = stream_report(query)
    finally:
        query.stop()
    if reached != wanted:
        raise AssertionError(f"{reached} rows reached the stream, expected {wanted}")
    return {
        "where": STREAM,
        "rows_that_came": come,
        "rows_that_reached_it": reached,
        "files_read": report.sources[0].files,
    }


def _check(tables: Sequence[Measured]) -> None:
    """All tables hold the same rows: every question has one answer."""
    for measured in tables[1:]:
        if measured.answers != tables[0].answers:
            raise AssertionError(f"{measured.name} has another answer than {tables[0].name}")


def _page(lake: Any, home: Path) -> str:
    from penstock.report.page import page
    from penstock.report.page_data import Collector

    path = home / "report.html"
    path.write_text(page(Collector(lake.table("web.events")).look(QUERIES["one app, two days"][1])))
    return str(path)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from penstock.prune.plan_report import human_bytes

    title = f"the same log, and what {len(QUERIES)} questions with the same answers open and read"
    shown = Table(title=title, title_justify="left")
    shown.add_column("kept as")
    for name in ("files", "bytes", "written in", "opened", "read", "planned in", "answered in"):
        shown.add_column(name, justify="right")
    for each in result["tables"]:
        sizes = (f"{each['files']:,}", human_bytes(each["bytes"]), f"{each['written_seconds']:.1f} s")
        opened = (f"{each['files_opened']:,}", human_bytes(each["bytes_read"]))
        times = (f"{each['planning_seconds']:.2f} s", f"{each['query_seconds']:.2f} s")
        shown.add_row(each["name"], *sizes, *opened, *times)
    console = Console()
    console.width = max(console.width, 110)
    console.print(shown)
    stream = result["stream"]
    echo(
        f"the stream where {stream['where']}: of {stream['rows_that_came']:,} rows that came, "
        f"{stream['rows_that_reached_it']:,} were read, from {stream['files_read']:,} files"
    )
    echo(f"the lake is in {result['lake']}")
    echo(f"the report is {result['report']}")
    echo(f"all of it took {result['seconds']:.0f} s")


@contextmanager
def _step(doing: str) -> Iterator[None]:
    """Say on stderr what is done, and how long it took."""
    start = time.perf_counter()
    print(f"{doing} …", end=" ", file=sys.stderr, flush=True)
    yield
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


@contextmanager
def _timed(measured: Measured) -> Iterator[None]:
    start = time.perf_counter()
    yield
    measured.written_seconds = time.perf_counter() - start
