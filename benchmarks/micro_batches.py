"""What does one small batch a minute leave behind after an hour?

    make bench ONLY=micro_batches

Sixty batches of 20,000 rows, each with rows of 200 apps of skewed sizes, are appended one after the other: to Hive's
layout (by PyArrow), to an Iceberg table with identity partitions, and to the same table with `coalesce=["app"]`. Then:
files, the time of all appends, the time to plan one app and to read it, and to read everything; for the last one also
after `compact()`. Every answer is checked.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import penstock
from benchmarks._timing import best

BATCHES, ROWS, APPS = 60, 20_000, 200
COLUMNS = "dt date, app string, user_id bigint, amount int"
DAY, ASKED = date(2026, 5, 17), "app-0199"


def make_batch(number: int) -> pa.Table:
    """A minute's rows: every app at least once."""
    rng = np.random.default_rng(number)
    weights = 1 / np.arange(1, APPS + 1)
    drawn = rng.choice(APPS, ROWS - APPS, p=weights / weights.sum())
    apps = pa.array([f"app-{i:04d}" for i in range(APPS)])
    return pa.table(
        {
            "dt": pa.array([DAY] * ROWS),
            "app": apps.take(pa.array(np.concatenate([np.arange(APPS), drawn]))),
            "user_id": rng.integers(0, 1_000_000, ROWS),
            "amount": rng.integers(0, 10_000, ROWS).astype(np.int32),
        }
    )


def total(rows: pa.Table) -> int:
    """What is asked of the rows."""
    return int(pc.sum(rows["amount"]).as_py())


def questions(table: Any, one: int, whole: int) -> list[tuple[Callable[[], int], int]]:
    """What is asked of each table, with the answers."""
    where = f"app = '{ASKED}'"
    return [
        (lambda: len(table.plan(where).files), len(table.plan(where).files)),
        (lambda: total(table.arrow(where, ["amount"])), one),
        (lambda: total(table.arrow(columns=["amount"])), whole),
    ]


def row(name: str, files: int, appended: float | None, run: list[tuple[Callable[[], int], int]]) -> list[float]:
    """One line of the result; the times of its queries."""
    times = [best(question, answer, 3) for question, answer in run]
    shown = "".join(f"{seconds * 1e3:>9,.1f} ms" for seconds in times)
    spent = f"{appended:>8.1f} s" if appended is not None else f"{'':>10}"
    print(f"{name:<24}{files:>8,}{spent}{shown}", flush=True)
    return times


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        batches = [make_batch(i) for i in range(BATCHES)]
        everything = pa.concat_tables(batches)
        whole, one = total(everything), total(everything.filter(pc.equal(everything["app"], ASKED)))
        print(f"{BATCHES} batches of {ROWS:,} rows, {APPS} apps")
        print(f"{'':<24}{'files':>8}{'appends':>10}{'plan one':>12}{'read one':>12}{'read all':>12}")
        _hive(home, batches, one, whole)
        lake = penstock.connect(home / "lake")
        for name, rule in (("Iceberg", None), ("coalesced", ["app"])):
            table = lake.create_table(f"web.{name.lower()}", COLUMNS, ["dt", "app"], coalesce=rule)
            start = time.perf_counter()
            for batch in batches:
                table.append(batch)
            row(name, len(table.plan().files), time.perf_counter() - start, questions(table, one, whole))
            if rule is not None:
                start = time.perf_counter()
                told = table.compact()
                print(f"  compacted in {time.perf_counter() - start:.1f} s: {told}", flush=True)
                row(f"{name}, compacted", len(table.plan().files), None, questions(table, one, whole))
    finally:
        shutil.rmtree(home)


def _hive(home: Path, batches: list[pa.Table], one: int, whole: int) -> None:
    root = home / "hive"
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        name = f"{number:03d}-{{i}}.parquet"
        partitioning = ds.partitioning(pa.schema([("dt", pa.date32()), ("app", pa.string())]), flavor="hive")
        ds.write_dataset(
            batch, root, format="parquet", partitioning=partitioning, basename_template=name,
            existing_data_behavior="overwrite_or_ignore", max_partitions=2 * APPS, max_open_files=2 * APPS,
        )  # fmt: skip
    spent = time.perf_counter() - start
    table = penstock.hive(root, "dt date, app string", "user_id bigint, amount int")
    row("Hive, by PyArrow", len(table.plan().files), spent, questions(table, one, whole))


if __name__ == "__main__":
    main()
