"""What do 60,000 skewed partitions cost: as directories, as an Iceberg table, and with small ones sharing files?

    make bench ONLY=skewed_partitions                          3 days; Spark needs 8 minutes for 60,000 directories
    PENSTOCK_BENCH_DAYS=30 make bench ONLY=skewed_partitions   all 30

Thirty days of 2,000 apps whose sizes follow Zipf's law, ten million rows. The same rows are written three times: by
Spark with `partitionBy` (Hive's layout, one file a directory), into an Iceberg table with identity partitions, and into
the same table with `coalesce=["app"]`. Then: files, bytes, the time to write, to plan, to read everything, and to
read a tiny, a middle and a huge app. Every answer is checked against Arrow's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import penstock
from benchmarks._timing import best

DAYS, APPS = int(os.environ.get("PENSTOCK_BENCH_DAYS", "3")), 2_000
ROWS = DAYS * 333_334
FIRST = date(2026, 5, 1)
ASKED = {"tiny": APPS - 1, "middle": APPS // 10, "huge": 0}
COLUMNS = "dt date, app string, user_id bigint, amount int, session string"
TARGETS = "target: 50x fewer files, 5x faster scan, a point query within 1.5x of a partition of its own"


def app_name(number: int) -> str:
    """Names in no order of size."""
    return f"app-{number * 7919 % 10_007:05d}"


def make_rows(day: int) -> pa.Table:
    """One day: every app at least once, the rest by Zipf's law."""
    rng = np.random.default_rng(day)
    rows = ROWS // DAYS
    weights = 1 / np.arange(1, APPS + 1)
    drawn = rng.choice(APPS, rows - APPS, p=weights / weights.sum())
    apps = np.concatenate([np.arange(APPS), drawn])
    rng.shuffle(apps)
    sessions = pa.array([f"{i:016x}" for i in range(50_000)])
    return pa.table(
        {
            "dt": pa.array([FIRST + timedelta(days=day)] * rows),
            "app": pa.array([app_name(i) for i in range(APPS)]).take(pa.array(apps)),
            "user_id": rng.integers(0, 1_000_000, rows),
            "amount": rng.integers(0, 10_000, rows).astype(np.int32),
            "session": sessions.take(pa.array(rng.integers(0, 50_000, rows))),
        }
    )


@dataclass
class Layout:
    """One way to store the rows, and what it cost."""

    name: str
    root: Path
    write: Callable[[Any], object]
    read: Callable[[], Any]
    plan: Callable[[str], int] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def files(self) -> list[Path]:
        """The data files."""
        return [path for path in self.root.rglob("*.parquet") if path.is_file()]


def build(home: Path) -> tuple[Path, dict[str, tuple[int, int]]]:
    """The rows in plain files, and for each query its sum and count."""
    source = home / "source"
    source.mkdir()
    total, counts = dict.fromkeys([*ASKED, "all"], 0), dict.fromkeys([*ASKED, "all"], 0)
    for day in range(DAYS):
        rows = make_rows(day)
        pq.write_table(rows, source / f"{day:02d}.parquet")
        for name in total:
            part = rows if name == "all" else rows.filter(pc.equal(rows["app"], app_name(ASKED[name])))
            total[name] += pc.sum(part["amount"]).as_py()
            counts[name] += part.num_rows
    return source, {name: (total[name], counts[name]) for name in total}


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """How long something takes, once."""
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def ask(df: Any) -> tuple[int, int]:
    """The sum and the count of some rows."""
    found = df.selectExpr("sum(amount)", "count(*)").collect()[0]
    return int(found[0]), int(found[1])


def layouts(home: Path, spark: Any) -> list[Layout]:
    """The three of them."""
    lake = penstock.connect(home / "lake")
    own = lake.create_table("web.own", COLUMNS, ["dt", "app"])
    shared = lake.create_table("web.shared", COLUMNS, ["dt", "app"], coalesce=["app"])

    def write_hive(df: Any) -> None:
        df.repartition("dt", "app").write.partitionBy("dt", "app").parquet(str(home / "hive"))

    def read_hive() -> Any:
        return spark.read.schema(COLUMNS).parquet(str(home / "hive"))

    found = [Layout("Hive, by Spark", home / "hive", write_hive, read_hive)]
    for name, table in (("Iceberg", own), ("coalesced", shared)):
        root = Path(table.table.metadata.location.removeprefix("file://"))
        read = lambda table=table: table.dataframe(spark)  # noqa: E731
        plan = lambda where, table=table: len(table.plan(where).files)  # noqa: E731
        found.append(Layout(name, root, table.append, read, plan))
    return found


def measure(layout: Layout, rows: Any, expected: dict[str, tuple[int, int]]) -> None:
    """Write, then ask; every answer is checked."""
    layout.seconds["write"], _ = timed(lambda: layout.write(rows))
    if layout.plan is not None:
        wanted = f"app = '{app_name(ASKED['tiny'])}' AND dt = DATE '{FIRST}'"
        layout.seconds["plan"] = best(partial(layout.plan, wanted), 1, 5)
    seconds, df = timed(layout.read)
    layout.seconds["open"] = seconds
    layout.seconds["scan"], found = timed(lambda: ask(df))
    assert found == expected["all"], f"{layout.name}: {found}"
    for name, app in ASKED.items():
        layout.seconds[name] = best(partial(ask, df.where(f"app = '{app_name(app)}'")), expected[name], 3)


def show(found: list[Layout]) -> None:
    """A table, and how the last compares with the others."""
    steps = ["write", "plan", "open", "scan", *ASKED]
    print(f"{'':<16}{'files':>9}{'MB':>8}" + "".join(f"{step:>11}" for step in steps))
    for layout in found:
        files = layout.files()
        size = sum(path.stat().st_size for path in files) / 1e6
        times = "".join(f"{layout.seconds[s] * 1e3:>8,.0f} ms" if s in layout.seconds else f"{'-':>11}" for s in steps)
        print(f"{layout.name:<16}{len(files):>9,}{size:>8,.0f}{times}", flush=True)
    ours = found[-1]
    for peer in found[:-1]:
        fewer = len(peer.files()) / len(ours.files())
        ratios = ", ".join(f"{s} {peer.seconds[s] / ours.seconds[s]:.1f}x" for s in steps if s in peer.seconds)
        print(f"against {peer.name}: {fewer:,.0f}x fewer files, {ratios}")
    print(TARGETS)


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        source, expected = build(home)
        settings = {"spark.sql.shuffle.partitions": "16", "spark.ui.showConsoleProgress": "false"}
        spark = penstock.session(master="local[2]", **settings, **{"spark.driver.memory": "6g"})
        rows = spark.read.parquet(str(source))
        assert rows.count() == expected["all"][1]
        found = layouts(home, spark)
        print(f"{expected['all'][1]:,} rows, {DAYS} days, {APPS:,} apps", flush=True)
        for layout in found:
            measure(layout, rows, expected)
            print(f"  {layout.name}: written in {layout.seconds['write']:.1f} s", flush=True)
        show(found)
        spark.stop()
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
