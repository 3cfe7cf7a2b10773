"""How much work is a point query on a Hive layout of 10,000 and 50,000 directories?

    make bench ONLY=hive_point_query

Directories `day=0 … n-1`, one small file each. Asked are the rows of one directory; with no predicate at all, every
directory must be listed. Peers read the same directories in the same run: Spark, pyarrow.dataset, polars and DuckDB.
For each: seconds to plan (where the engine has a step that can be told apart), seconds for the whole answer, and on S3
the List requests that a real S3 server (`rclone serve s3` on loopback) saw. Every answer is checked before a number is
printed.

On S3, Spark and DuckDB are left out: they need hadoop-aws and the httpfs extension, which the bench does not install.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

import penstock
from tests.s3.server import KEY_ID, SECRET, S3Server

SIZES = (10_000, 50_000)
REPEATS = 3
TARGET = 10
ROWS = 3


@dataclass(frozen=True)
class Result:
    """Best times of one engine, and the List requests of its last run."""

    engine: str
    plan: float | None
    total: float
    lists: int | None = None


def build(root: Path, directories: int) -> None:
    """The same small file in each of many directories."""
    file = root / "sample.parquet"
    pq.write_table(pa.table({"x": list(range(ROWS)), "y": ["a"] * ROWS}), file)
    content = file.read_bytes()
    file.unlink()
    for i in range(directories):
        folder = root / f"day={i}"
        folder.mkdir()
        (folder / "part-0.parquet").write_bytes(content)


def best(run: Callable[[], int], expected: int) -> float:
    """The best of a few runs, each with its answer checked."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - start)
        assert found == expected, f"{found} rows, expected {expected}"
    return min(times)


def penstock_results(
    open_table: Callable[[], Any], day: int, directories: int, lists: Callable[[], int] | None
) -> Result:
    """Penstock: planning alone, then planning and reading."""
    table = open_table()
    where = f"day = {day}"
    plan = best(lambda: ROWS * len(table.plan(where).files), ROWS)
    total = best(lambda: int(table.arrow(where).num_rows), ROWS)
    if lists is None:
        return Result("penstock", plan, total, table.plan(where).report.list_calls)
    before = lists()
    table.plan(where)
    return Result("penstock", plan, total, lists() - before)


def pyarrow_result(root: str, filesystem: Any, day: int, lists: Callable[[], int] | None) -> Result:
    """pyarrow.dataset: discovery, then the filtered read."""
    partitioning = ds.partitioning(pa.schema([("day", pa.int32())]), flavor="hive")

    def discover() -> Any:
        return ds.dataset(root, filesystem=filesystem, partitioning=partitioning, format="parquet")

    before = lists() if lists else 0
    plan = best(lambda: ROWS * len(list(discover().get_fragments(ds.field("day") == day))), ROWS)
    seen = (lists() - before) // REPEATS if lists else None
    total = best(lambda: int(discover().to_table(filter=ds.field("day") == day).num_rows), ROWS)
    return Result("pyarrow.dataset", plan, total, seen)


def polars_result(pattern: str, options: dict[str, str] | None, day: int, lists: Callable[[], int] | None) -> Result:
    """polars: one lazy scan with a filter."""
    import polars as pl

    def run() -> int:
        scan = pl.scan_parquet(pattern, hive_partitioning=True, storage_options=options)
        return int(scan.filter(pl.col("day") == day).collect().height)

    before = lists() if lists else 0
    total = best(run, ROWS)
    return Result("polars", None, total, (lists() - before) // REPEATS if lists else None)


def duckdb_result(root: str, day: int) -> Result:
    """DuckDB: a query over a glob."""
    import duckdb

    text = f"SELECT count(*) FROM read_parquet('{root}/*/*.parquet', hive_partitioning = true) WHERE day = {day}"
    connection = duckdb.connect()
    return Result("DuckDB", None, best(lambda: int(connection.execute(text).fetchall()[0][0]), ROWS))


def spark_results(root: str, day: int, directories: int) -> tuple[Result, Result, Result, Result]:
    """Spark's own listing, and Penstock under the same Spark: the point query, then all directories."""
    spark = penstock.session(master="local[2]", **{"spark.sql.shuffle.partitions": "2"})
    try:
        schema = "x bigint, y string, day int"

        def plain(where: str) -> int:
            return int(spark.read.schema(schema).parquet(root).where(where).count())

        def ours(where: str) -> int:
            table = penstock.hive(root, "day int", "x bigint, y string", max_lists=directories + 1)
            return int(table.dataframe(spark).where(where).count())

        point, everything = f"day = {day}", "TRUE"
        return (
            Result("Spark", None, best(lambda: plain(point), ROWS)),
            Result("penstock on Spark", None, best(lambda: ours(point), ROWS)),
            Result("Spark, no predicate", None, best(lambda: plain(everything), ROWS * directories)),
            Result("penstock on Spark, no predicate", None, best(lambda: ours(everything), ROWS * directories)),
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
    root = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        build(root, directories)
        day = directories // 2
        point, pruned, whole, ours = spark_results(str(root), day, directories)

        def open_table() -> Any:
            return penstock.hive(root, "day int", max_lists=directories + 1)

        results = [
            penstock_results(open_table, day, directories, None),
            pyarrow_result(str(root), pafs.LocalFileSystem(), day, None),
            polars_result(f"{root}/*/*.parquet", None, day, None),
            duckdb_result(str(root), day),
            point,
            pruned,
        ]
        show(f"local, {directories:,} directories, one of them asked for", results)
        print(f"every directory listed: Spark {whole.total:.2f} s, Penstock on Spark {ours.total:.2f} s")
    finally:
        shutil.rmtree(root)


def remote(directories: int) -> None:
    """The engines that speak S3 by themselves."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    server = S3Server(home)
    try:
        root = server.new_bucket() / "t"
        root.mkdir()
        build(root, directories)
        day, url = directories // 2, server.url(root)

        def open_table() -> Any:
            return penstock.hive(url, "day int", storage=server.properties, max_lists=directories + 1)

        filesystem = pafs.S3FileSystem(
            access_key=KEY_ID, secret_key=SECRET, endpoint_override=server.endpoint, region="us-east-1"
        )
        options = {
            "aws_access_key_id": KEY_ID,
            "aws_secret_access_key": SECRET,
            "aws_endpoint_url": server.endpoint,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
        results = [
            penstock_results(open_table, day, directories, server.list_requests),
            pyarrow_result(url.removeprefix("s3://"), filesystem, day, server.list_requests),
            polars_result(f"{url}/*/*.parquet", options, day, server.list_requests),
        ]
        show(f"S3, {directories:,} directories, one of them asked for", results)
    finally:
        server.stop()
        shutil.rmtree(home)


def main() -> None:
    """Run, check, print."""
    for directories in SIZES:
        local(directories)
    remote(SIZES[0])


if __name__ == "__main__":
    main()
