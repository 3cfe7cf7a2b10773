"""What does the catalog cost: attaching a lake, and a query by SQL against the same one by `table.dataframe`?

    make bench ONLY=sql_catalog

A coalesced table of 1,000 apps on 10 days. Each session is a process of its own: plain Spark gets the lake attached,
once with compiled classes in the cache and once without; then its first query goes through the catalog or through
`table.dataframe`. Later queries take turns in one session, and the best of each counts. Every answer is checked.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import penstock

APPS, DAYS, ROWS = 1_000, 10, 20
SESSIONS, ROUNDS = 5, 30
WHERE = "app = 'app-0007' AND day >= 3"
EXPECTED = (DAYS - 3) * ROWS


def build(home: Path) -> None:
    """The table."""
    lake = penstock.connect(home)
    table = lake.create_table("web.events", "day int, app string, n bigint", ["day", "app"], coalesce=["app"])
    apps = [f"app-{i:04}" for i in range(APPS) for _ in range(ROWS)]
    for day in range(DAYS):
        numbers = pa.array(range(len(apps)), pa.int64())
        table.append(pa.table({"day": pa.array([day] * len(apps), pa.int32()), "app": apps, "n": numbers}))


def by_sql(spark: Any, lake: Any) -> int:
    """The query through the catalog."""
    return int(spark.sql(f"SELECT count(n) FROM lake.web.events WHERE {WHERE}").first()[0])


def by_dataframe(spark: Any, lake: Any) -> int:
    """The same query on the table's DataFrame."""
    return int(lake.table("web.events").dataframe(spark).where(WHERE).selectExpr("count(n)").first()[0])


def timed(run: Callable[[], int]) -> float:
    start = time.perf_counter()
    answer = run()
    seconds = time.perf_counter() - start
    assert answer == EXPECTED, f"{answer}, expected {EXPECTED}"
    return seconds


def plain_session() -> Any:
    """A session that Penstock does not know yet, and that has done some work."""
    from pyspark.sql import SparkSession

    settings: dict[str, Any] = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.range(1_000).selectExpr("sum(id)").collect()
    return spark


def first(home: str, query: str) -> tuple[float, float]:
    """In a process of its own: seconds to attach the lake, and of the first query."""
    spark, lake = plain_session(), penstock.connect(home)
    start = time.perf_counter()
    penstock.attach(spark, lake)
    attached = time.perf_counter() - start
    run = by_sql if query == "sql" else by_dataframe
    seconds = timed(lambda: run(spark, lake))
    spark.stop()
    return attached, seconds


def later(home: str) -> tuple[float, float]:
    """In a process of its own: the best time of each way, taking turns."""
    spark, lake = plain_session(), penstock.connect(home)
    penstock.attach(spark, lake)
    times: dict[str, list[float]] = {"sql": [], "dataframe": []}
    for _ in range(ROUNDS):
        times["sql"].append(timed(lambda: by_sql(spark, lake)))
        times["dataframe"].append(timed(lambda: by_dataframe(spark, lake)))
    spark.stop()
    return min(times["sql"]), min(times["dataframe"])


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function answers in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    os.environ["PENSTOCK_CACHE_DIR"] = str(home / "cache")
    try:
        build(home / "lake")
        place = str(home / "lake")
        cold, _ = alone(first, place, "sql")
        runs = [(alone(first, place, "sql"), alone(first, place, "dataframe")) for _ in range(SESSIONS)]
        attached = median(run[0][0] for run in runs)
        sql, frame = median(run[0][1] for run in runs), median(run[1][1] for run in runs)
        ratio = f"{sql / frame:.2f}x that of table.dataframe; target: 1.05x"
        print(f"attach, classes compiled   {cold * 1e3:>8,.0f} ms")
        print(f"attach, classes kept       {attached * 1e3:>8,.0f} ms   target: 1,000 ms")
        print(f"first query by SQL         {sql * 1e3:>8,.0f} ms   {ratio}")
        sql, frame = alone(later, place)
        print(f"later queries by SQL       {sql * 1e3:>8,.0f} ms   {sql / frame:.2f}x those of table.dataframe")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
