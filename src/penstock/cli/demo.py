"""The demo: plan queries over a small generated event log and show what was read, what was not, and why.

Then the log is written to a lake in a temporary folder, twice: each partition with files of its own, and with small
partitions sharing files.

Everything that is printed was measured in the run. Every query is also answered without pruning, and the two answers
are compared before a number is shown.
"""

from __future__ import annotations

import json as jsonlib
import sys
import tempfile
import time
from typing import Any

DAYS, APPS, ROWS = 14, 20, 120_000
QUERIES = (
    "app = 'app-03' AND ts >= '2026-05-17' AND ts < '2026-05-19'",
    "user_id IN (17, 4711, 90210) AND ts >= '2026-05-20'",
    "cast(ts AS date) = '2026-05-14' AND (app LIKE 'app-1%' OR status >= 500)",
    "NOT (app <> 'app-00' OR duration_ms < 900)",
    "checksum(path) = 7 AND app IN ('app-18', 'app-19')",
)

ONE = "app = 'app-03' AND ts >= '2026-05-17' AND ts < '2026-05-18'"


def run(json: bool = False) -> None:
    """Generate the log, plan and answer the queries, print the report."""
    from penstock.tables.memory import MemoryTable

    if not json:
        print(
            f"generating {ROWS:,} events, {DAYS} days x {APPS} apps, partitioned by day(ts), app",
            file=sys.stderr,
        )
    rows = _events()
    table = MemoryTable.from_rows(rows, partition_by=["day(ts)", "app"], rows_per_file=500)
    plans = [(where, table.plan(where)) for where in QUERIES]
    for where, _ in plans[:-1]:  # the last one calls a function that only the user's Spark would know
        _check_answer(table, where)
    stored = _stored(table, rows)
    if json:
        print(jsonlib.dumps({"queries": [plan.report.to_dict() for _, plan in plans], "tables": stored}, indent=2))
        return
    _print_plans(plans)
    _print_stored(stored)


def _events() -> Any:
    """A skewed log: a few apps have most of the events, users come in ranges, a few paths and statuses."""
    import numpy as np
    import pyarrow as pa

    from penstock.predicate.types import TIMESTAMP

    random = np.random.default_rng(20260514)
    weights = 1 / np.arange(1, APPS + 1) ** 1.3
    app = random.choice(APPS, ROWS, p=weights / weights.sum())
    day = 20587 * 86_400_000_000  # 2026-05-14
    ts = np.sort(day + random.integers(0, DAYS * 86_400_000_000, ROWS))
    user = random.integers(0, 100_000, ROWS)
    order = np.lexsort((user, app, ts // 86_400_000_000))  # sorted by user within a file's partition
    return pa.table(
        {
            "ts": pa.array(ts[order]).view(pa.timestamp("us")).cast(TIMESTAMP),
            "app": pa.array([f"app-{i:02d}" for i in range(APPS)]).take(pa.array(app[order])),
            "user_id": user[order],
            "status": random.choice([200, 200, 200, 200, 304, 404, 500], ROWS).astype(np.int32),
            "duration_ms": random.gamma(2.0, 120.0, ROWS),
            "path": pa.array([f"/p/{i}" for i in range(500)]).take(pa.array(random.integers(0, 500, ROWS))),
        }
    )


def _check_answer(table: Any, where: str) -> None:
    """The rows found through the plan must be those found by looking at every row."""
    from penstock.predicate.bind import bind_text
    from penstock.predicate.evaluate import filter_table

    pruned, full = table.arrow(where), filter_table(bind_text(where, table.schema), table.rows())
    if not pruned.equals(full):
        raise AssertionError(f"pruning changed the answer of {where}")


def _stored(table: Any, rows: Any) -> list[dict[str, Any]]:
    """The log as two tables of a lake, and what they cost."""
    from penstock.tables.lake import connect

    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        lake = connect(folder)
        for name, rule in (("files of their own", None), ("small ones share files", ["app"])):
            made = lake.create_table(f"web.log{len(found)}", rows.schema, ["day(ts)", "app"], coalesce=rule)
            start = time.perf_counter()
            made.append(rows)
            written = time.perf_counter() - start
            plan = made.plan(ONE)
            start = time.perf_counter()
            answers = [made.count(where) for where in QUERIES[:-1]]
            asked = time.perf_counter() - start
            if answers != [table.arrow(where).num_rows for where in QUERIES[:-1]]:
                raise AssertionError("the written table has another answer")
            files = made.plan().report.files
            found.append(
                {
                    "partitions": name,
                    "files": files.total,
                    "bytes": files.bytes,
                    "write_seconds": written,
                    "files_for_one_app_and_day": plan.report.files.kept,
                    "queries_seconds": asked,
                }
            )
    return found


def _print_stored(stored: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable(title=f"the same log in a lake, {DAYS * APPS} partitions", title_justify="left")
    for name in ("partitions have", "files", "bytes", "written in", "files for one app and day", "the queries"):
        shown.add_column(name, justify="left" if name.startswith("part") else "right")
    for each in stored:
        numbers = (each["files"], each["bytes"])
        shown.add_row(
            each["partitions"],
            *(f"{n:,}" for n in numbers),
            f"{each['write_seconds']:.2f} s",
            f"{each['files_for_one_app_and_day']}",
            f"{each['queries_seconds'] * 1000:.0f} ms",
        )
    Console().print(shown)


def _print_plans(plans: list[tuple[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console()
    for where, plan in plans:
        console.rule(f"[bold]{where}", align="left")
        console.print(plan.explain(), highlight=False, markup=False)
    summary = RichTable(title="what each query reads", title_justify="left")
    for name in ("query", "files read", "of", "match whole", "rows read", "planned in"):
        summary.add_column(name, justify="left" if name == "query" else "right")
    for where, plan in plans:
        files = plan.report.files
        row = (files.kept, files.total, files.whole, files.rows_kept)
        summary.add_row(where, *(f"{n:,}" for n in row), f"{plan.report.seconds * 1000:.1f} ms")
    console.print(summary)
