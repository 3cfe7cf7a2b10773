"""What does the scan of an Iceberg table cost, against Spark's own reader on the same files?

    make bench ONLY=scan_overhead

The same Parquet files, eight million rows of eight columns in sixteen files, are read through Penstock, through
`spark.read.parquet` and through Iceberg's Spark runtime: one column, all columns, and a selective filter. Runs take
turns, the best of each counts. Iceberg's runtime runs on the newest Spark that it supports, in a process of its own;
its ratio is against `spark.read.parquet` in that same process. Every answer is checked against Arrow's.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog

import penstock
from tests.interop.iceberg_judge import IcebergJudge
from tools.fetch_jars import Unavailable, fetch_iceberg_judge

FILES, ROWS = 16, 500_000
ROUNDS = 7
TARGET = 1.05
COLUMNS = ["id", "day", "user_id", "amount", "price", "app", "session", "flag"]
QUERIES = {
    "one column": "SELECT sum(amount) FROM {table}",
    "all columns": "SELECT sum(id) + sum(day) + sum(user_id) + sum(amount) + count(app) + count(session)"
    " + count_if(flag) + cast(sum(price) AS bigint) FROM {table}",
    "a selective filter": "SELECT sum(amount) FROM {table} WHERE id >= 4200000 AND id < 4201000",
}


def answers(rows: pa.Table) -> dict[str, int]:
    """What Arrow says."""
    return {
        "one column": pc.sum(rows["amount"]).as_py(),
        "all columns": _everything(rows),
        "a selective filter": pc.sum(rows["amount"].slice(4_200_000, 1_000)).as_py(),
    }


def _everything(rows: pa.Table) -> int:
    sums = sum(pc.sum(rows[name]).as_py() for name in ("id", "day", "user_id", "amount"))
    counts = 2 * rows.num_rows + pc.sum(rows["flag"]).as_py()
    return int(sums + counts + int(pc.sum(rows["price"]).as_py()))


def make_rows(number: int) -> pa.Table:
    """The rows of one file."""
    rng = np.random.default_rng(number)
    ids = np.arange(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {
            "id": ids,
            "day": pa.array(ids // 100_000, pa.int32()),
            "user_id": rng.integers(0, 1_000_000, ROWS),
            "amount": rng.integers(0, 10_000, ROWS),
            "price": np.round(rng.random(ROWS) * 64) / 64,  # sums of these are exact
            "app": pa.array([f"app-{i:03d}" for i in range(200)]).take(pa.array(rng.integers(0, 200, ROWS))),
            "session": pa.array([f"{i:016x}" for i in range(5_000)]).take(pa.array(rng.integers(0, 5_000, ROWS))),
            "flag": rng.random(ROWS) < 0.5,
        }
    )


def build(home: Path) -> tuple[Any, list[str], dict[str, Any]]:
    """The table, its files and the answers."""
    catalog = SqlCatalog("penstock", uri=f"sqlite:///{home / 'catalog.db'}", warehouse=f"file://{home}")
    catalog.create_namespace("web")
    parts = [make_rows(i) for i in range(FILES)]
    table = catalog.create_table("web.events", parts[0].schema)
    for part in parts:
        table.append(part)
    files = [task.file.file_path for task in table.scan().plan_files()]
    return table, files, answers(pa.concat_tables(parts))


def race(runners: Mapping[str, Callable[[], Any]], expected: Any) -> dict[str, float]:
    """The best time of each, taking turns."""
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runners.items():
            start = time.perf_counter()
            found = run()
            best[name] = min(best[name], time.perf_counter() - start)
            assert found == expected, f"{name}: {found}, expected {expected}"
    return best


def ask(spark: Any, view: str, text: str) -> Any:
    """The one value that a query answers with."""
    return spark.sql(text.format(table=view)).collect()[0][0]


def judged(spark: Any, metadata: str, files: list[str], expected: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The same race inside of the judge's process: plain Spark against Iceberg's runtime."""
    spark.read.format("iceberg").load(metadata).createOrReplaceTempView("theirs")
    spark.read.parquet(*files).createOrReplaceTempView("plain")
    for name, value in {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}.items():
        spark.conf.set(name, value)  # as any user has them
    return {
        name: race({view: partial(ask, spark, view, text) for view in ("plain", "theirs")}, expected[name])
        for name, text in QUERIES.items()
    }


def of_the_runtime(home: Path, metadata: str, files: list[str], expected: dict[str, Any]) -> dict[str, Any] | None:
    try:
        pyspark, jars = fetch_iceberg_judge()
    except Unavailable as reason:
        print(f"without Iceberg's Spark runtime: {reason}")
        return None
    judge = IcebergJudge(pyspark, jars, home / "judge")
    try:
        return judge.ask(judged, metadata, files, expected)
    finally:
        judge.close()


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        table, files, expected = build(home)
        theirs = of_the_runtime(home, table.metadata_location, files, expected)
        settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
        spark = penstock.session(master="local[2]", **settings)
        penstock.connect(home).table("web.events").dataframe(spark).createOrReplaceTempView("ours")
        spark.read.parquet(*files).createOrReplaceTempView("plain")
        print(f"{FILES * ROWS:,} rows in {FILES} files")
        print(f"{'query':<22}{'Spark':>10}{'Penstock':>12}{'ratio':>8}{'Iceberg runtime / its Spark':>32}")
        for name, text in QUERIES.items():
            best = race({view: partial(ask, spark, view, text) for view in ("plain", "ours")}, expected[name])
            peer = "-" if theirs is None else f"{theirs[name]['theirs'] / theirs[name]['plain']:.2f}"
            times = f"{best['plain'] * 1e3:>7,.0f} ms{best['ours'] * 1e3:>9,.0f} ms{best['ours'] / best['plain']:>8.2f}"
            print(f"{name:<22}{times}{peer:>32}", flush=True)
        print(f"target: {TARGET}x plain Spark")
        spark.stop()
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
