"""How much work is a point query on a Hive layout of 10,000 and 50,000 directories?

    make bench ONLY=hive_point_query

Directories `day=0 … n-1`, one small file each on the disk and four on S3. Asked are the rows of one directory; with no
predicate at all, every directory must be listed. Peers read the same directories in the same run: Spark,
pyarrow.dataset, polars and DuckDB. For each: seconds to plan (where the engine has a step that can be told apart),
seconds for the whole answer, and on S3 the List requests that a real server (`rclone serve s3` on loopback) saw. Every
answer is checked before a number is printed.

A List request answers with at most 1,000 names, whatever lists. Left out on S3: polars, which does not read from this
server ("non-partial response when range requested").
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import penstock
from benchmarks._timing import best
from tests.s3.server import KEY_ID, SECRET, S3Server

SIZES = (10_000, 50_000)
REPEATS = 3
TARGET = 10
FILE_ROWS = 3
S3_FILES = 4
LINKS = 50_000  # of one file; file systems have a limit


@dataclass(frozen=True)
class Result:
    """Best times of one engine, and the List requests of its last run."""

    engine: str
    plan: float | None
    total: float
    lists: int | None = None


def build(root: Path, directories: int, files: int = 1) -> None:
    """The same small file in each of many directories, as links to it."""
    table = pa.table({"x": list(range(FILE_ROWS)), "y": ["a"] * FILE_ROWS})
    for i in range(directories):
        folder = root / f"day={i}"
        folder.mkdir()
        for j in range(files):
            number = i * files + j
            original = root.parent / f"{root.name}-{number // LINKS}.parquet"
            if number % LINKS == 0:
                pq.write_table(table, original)
            os.link(original, folder / f"part-{j}.parquet")


@dataclass(frozen=True)
class Lake:
    """The directories that all engines read."""

    url: str
    directories: int
    files: int = 1
    server: S3Server | None = None

    @property
    def day(self) -> int:
        """The one directory that is asked for."""
        return self.directories // 2

    @property
    def rows(self) -> int:
        """The rows in it."""
        return FILE_ROWS * self.files

    def measure(self, engine: str, plan: Callable[[], int] | None, whole: Callable[[], int]) -> Result:
        """Time to plan and to answer, and the List requests of one planning or answer."""
        repeats = REPEATS if self.directories <= SIZES[0] else 1
        planning = None if plan is None else best(plan, self.files, repeats)
        total = best(whole, self.rows, repeats)
        if self.server is None:
            return Result(engine, planning, total)
        before = self.server.list_requests()
        (plan or whole)()
        return Result(engine, planning, total, self.server.list_requests() - before)


def penstock_result(lake: Lake) -> Result:
    """Penstock: planning alone, then planning and reading."""
    storage = lake.server.properties if lake.server else None
    table = penstock.hive(lake.url, "day int", storage=storage)
    where = f"day = {lake.day}"
    return lake.measure("penstock", lambda: len(table.plan(where).files), lambda: int(table.arrow(where).num_rows))


def pyarrow_result(lake: Lake) -> Result:
    """pyarrow.dataset: discovery, then the filtered read."""
    partitioning = ds.partitioning(pa.schema([("day", pa.int32())]), flavor="hive")
    wanted = ds.field("day") == lake.day
    filesystem: Any = pafs.LocalFileSystem()
    if lake.server is not None:
        endpoint = lake.server.endpoint
        filesystem = pafs.S3FileSystem(
            access_key=KEY_ID, secret_key=SECRET, endpoint_override=endpoint, region="us-east-1"
        )

    def discover() -> Any:
        root = lake.url.removeprefix("s3://")
        return ds.dataset(root, filesystem=filesystem, partitioning=partitioning, format="parquet")

    return lake.measure(
        "pyarrow.dataset",
        lambda: len(list(discover().get_fragments(wanted))),
        lambda: int(discover().to_table(filter=wanted).num_rows),
    )


def polars_result(lake: Lake) -> Result:
    """polars: one lazy scan with a filter."""
    import polars as pl

    def run() -> int:
        scan = pl.scan_parquet(f"{lake.url}/*/*.parquet", hive_partitioning=True)
        return int(scan.filter(pl.col("day") == lake.day).collect().height)

    return lake.measure("polars", None, run)


def duckdb_result(lake: Lake) -> Result:
    """DuckDB: a query over a glob; on S3 with its httpfs extension, from the package that carries it."""
    import duckdb
    import duckdb_extension_httpfs

    connection = duckdb.connect()
    if lake.server is not None:
        (extension,) = Path(duckdb_extension_httpfs.__path__[0]).rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
        endpoint = lake.server.endpoint.removeprefix("http://")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY_ID}', SECRET '{SECRET}', ENDPOINT '{endpoint}', "
            "URL_STYLE 'path', USE_SSL false, REGION 'us-east-1')"
        )
    text = (
        f"SELECT count(*) FROM read_parquet('{lake.url}/*/*.parquet', hive_partitioning = true) WHERE day = {lake.day}"
    )
    return lake.measure("DuckDB", None, lambda: int(connection.execute(text).fetchall()[0][0]))


def spark_results(lake: Lake) -> tuple[Result, Result, Result, Result]:
    """Spark's own listing, and Penstock under the same Spark: the point query, then all directories."""
    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
    spark = penstock.session(master="local[2]", **settings)
    try:
        table = penstock.hive(lake.url, "day int", "x bigint, y string", max_lists=lake.directories + 1)
        everything = FILE_ROWS * lake.directories
        point = f"day = {lake.day}"

        def theirs() -> Any:
            return spark.read.schema("x bigint, y string, day int").parquet(lake.url)

        def ours() -> Any:
            return table.dataframe(spark)

        def listed_by_spark() -> int:
            return FILE_ROWS * len(theirs().inputFiles())

        def listed_by_penstock() -> int:
            return FILE_ROWS * len(table.plan().files)

        best(lambda: ours().where(point).count(), lake.rows, REPEATS)  # the first query of a session is no measure
        return (
            Result("Spark", None, best(lambda: theirs().where(point).count(), lake.rows, 1)),
            Result("penstock on Spark", None, best(lambda: ours().where(point).count(), lake.rows, REPEATS)),
            Result(
                "Spark",
                best(listed_by_spark, everything, 1),
                best(lambda: theirs().count(), everything, 1),
            ),
            Result(
                "penstock on Spark",
                best(listed_by_penstock, everything, 1),
                best(lambda: ours().count(), everything, 1),
            ),
        )
    finally:
        spark.stop()


def show(title: str, results: list[Result]) -> None:
    """One table; ratios are against the fastest peer's planning, or its whole query where it has no planning step."""
    print(f"\n{title}")
    print(f"{'engine':<34}{'plan':>12}{'whole query':>14}{'List calls':>12}")
    for r in results:
        plan = f"{r.plan * 1e3:,.1f} ms" if r.plan is not None else "-"
        print(f"{r.engine:<34}{plan:>12}{r.total * 1e3:>11,.1f} ms{'-' if r.lists is None else f'{r.lists:,}':>12}")
    ours = next(r for r in results if r.engine == "penstock")
    peers = [r.plan if r.plan is not None else r.total for r in results if not r.engine.startswith("penstock")]
    assert ours.plan is not None
    print(f"planning: {min(peers) / ours.plan:,.0f}x the fastest peer (target {TARGET}x)", flush=True)


def local(directories: int) -> None:
    """All engines on a local directory."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        root = home / "t"
        root.mkdir()
        build(root, directories)
        lake = Lake(str(root), directories)
        plain, pruned, all_theirs, all_ours = spark_results(lake)
        results = [penstock_result(lake), pyarrow_result(lake), polars_result(lake), duckdb_result(lake), plain, pruned]
        show(f"local, {directories:,} directories, one of them asked for", results)
        print("no predicate, so that every directory is listed:")
        for result in (all_theirs, all_ours):
            print(f"  {result.engine:<20} listing {result.plan:>6.2f} s   count(*) {result.total:>6.2f} s", flush=True)
    finally:
        shutil.rmtree(home)


def remote(directories: int) -> None:
    """The engines that speak S3 by themselves."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    server = S3Server(home)
    try:
        root = server.new_bucket() / "t"
        root.mkdir()
        build(root, directories, S3_FILES)
        lake = Lake(server.url(root), directories, S3_FILES, server)
        results = [penstock_result(lake), pyarrow_result(lake), duckdb_result(lake)]
        show(f"S3, {directories:,} directories, one of them asked for", results)
    finally:
        server.stop()
        shutil.rmtree(home)


def main() -> None:
    """Run, check, print."""
    warnings.simplefilter("ignore", penstock.PenstockWarning)  # that 50,000 partitions match is what is asked here
    for directories in SIZES:
        local(directories)
    for directories in SIZES:
        remote(directories)


if __name__ == "__main__":
    main()
