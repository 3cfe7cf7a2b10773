"""How long does it take to plan a scan of an Iceberg table of 10,000, 100,000 and 1,000,000 files?

    make bench ONLY=iceberg_planning

Only metadata exists: files of two specs in 1, 10 and 100 manifests (`_iceberg_metadata.py`). Penstock plans cold
(nothing kept), warm from disk (a new process would find the decoded manifests there), and warm in memory. Peers in the
same run: PyIceberg's `plan_files`, and Iceberg's own Java library inside of its Spark runtime, which plan from storage
every time. How many files must be kept is known from the arrays the table was made of; every answer is checked.

Of a million files PyIceberg plans two cases only: each takes it half a minute. Iceberg's Spark runtime is left out,
with the reason, where Maven Central or PyPI cannot be reached.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyiceberg.table import StaticTable
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

import penstock
from benchmarks._iceberg_metadata import FIRST_DAY, MICROS, ROWS, Made, build
from benchmarks._timing import best
from penstock.tables.iceberg.manifest.manifest_cache import default_cache
from penstock.tables.iceberg.metadata import catalogs as opening
from tests.interop.iceberg_judge import IcebergJudge
from tools.fetch_jars import Unavailable, fetch_iceberg_judge

SIZES = ((10_000, 1), (100_000, 10), (1_000_000, 100))
WARM, COLD = 300, 10
JAVA_WARM = 10
USER = 123_456_789


Test = tuple[str, str, Any]  # column, operator, value; times are microseconds


@dataclass(frozen=True)
class Case:
    """Tests that must all hold, and the files that hold a matching value as far as their metadata tells."""

    name: str
    tests: tuple[Test, ...]
    kept: Callable[[Made], Any]
    everywhere: bool = False

    @property
    def where(self) -> str:
        """In words that Spark and PyIceberg both understand."""
        return " AND ".join(f"{column} {operator} {_literal(column, value)}" for column, operator, value in self.tests)


def _literal(column: str, value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(_literal(column, one) for one in value)})"
    if column == "ts":
        return f"'{np.datetime64(value, 'us')}+00:00'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def between(first: int, last: int) -> tuple[Test, ...]:
    """Days, as a range of timestamps."""
    return ("ts", ">=", (FIRST_DAY + first) * MICROS), ("ts", "<", (FIRST_DAY + last) * MICROS)


def _days(made: Made, first: int, last: int) -> Any:
    return (made.day >= FIRST_DAY + first) & (made.day < FIRST_DAY + last)


def _app(made: Made, *apps: int) -> Any:
    return ~made.fine | np.isin(made.app, apps)


def _user(made: Made) -> Any:
    bucket = BucketTransform(64).transform(LongType())(USER)
    return (made.fine | (made.bucket == bucket)) & (made.user <= USER) & (made.user + 1_000_000 >= USER)


ONE_APP: Test = ("app", "=", "app-007")
MANY_APPS: Test = ("app", "IN", [f"app-{i:03d}" for i in range(20)])
CASES = (
    Case("point", (*between(700, 701), ONE_APP), lambda m: _days(m, 700, 701) & _app(m, 7), True),
    Case("range of a week", between(600, 607), lambda m: _days(m, 600, 607)),
    Case(
        "IN of 20 apps, a month",
        (*between(800, 830), MANY_APPS),
        lambda m: _days(m, 800, 830) & _app(m, *range(20)),
    ),
    Case("bucket and bounds", (("user_id", "=", USER),), _user),
    Case("bounds only", (("seq", "=", ROWS * 777 + 5),), lambda m: np.arange(m.files) == 777, True),
    Case("two specs", (*between(490, 510), ONE_APP), lambda m: _days(m, 490, 510) & _app(m, 7)),
)


def forget() -> None:
    """As in a new process: nothing in memory."""
    for kept in (default_cache, opening._lists, opening._batches):
        kept.cache_clear()


def java_plan(spark: Any, metadata: str, tests: tuple[Test, ...]) -> tuple[int, float]:
    """Files planned by Iceberg's Java library, and the seconds it took, without any work of Spark's."""
    iceberg = spark._jvm.org.apache.iceberg
    io = iceberg.hadoop.HadoopFileIO(spark._jsc.hadoopConfiguration())
    table = iceberg.BaseTable(iceberg.StaticTableOperations(metadata, io), "t")
    scan = table.newScan()
    names = {"=": "equal", ">=": "greaterThanOrEqual", "<": "lessThan", "IN": "in"}
    for column, operator, value in tests:
        given = spark._jvm.java.util.ArrayList(value) if isinstance(value, list) else value
        scan = scan.filter(getattr(iceberg.expressions.Expressions, names[operator])(column, given))
    start = time.perf_counter()
    tasks = scan.planFiles()
    count = iceberg.relocated.com.google.common.collect.Iterables.size(tasks)
    seconds = time.perf_counter() - start
    tasks.close()
    return int(count), seconds


def start_judge(home: Path) -> IcebergJudge | None:
    try:
        pyspark, jars = fetch_iceberg_judge()
    except Unavailable as reason:
        print(f"without Iceberg's Spark runtime: {reason}")
        return None
    return IcebergJudge(pyspark, jars, home)


def measure(made: Made, manifests: int, judge: IcebergJudge | None) -> None:
    """All cases over one table."""
    print(f"\n{made.files:,} files in {manifests} manifests")
    heads = ("files", "cold", "disk", "warm", "PyIceberg", "cold x", "warm x", "Java", "cold x", "warm x")
    print(f"{'predicate':<24}" + "".join(f"{head:>11}" for head in heads))
    theirs = StaticTable.from_metadata(str(made.metadata))
    for case in CASES:
        expected = int(case.kept(made).sum())
        cold, disk, warm = ours(made, case, expected)
        peer = java = None
        if made.files < SIZES[-1][0] or case.everywhere:
            peer = best(lambda c=case: len(list(theirs.scan(row_filter=c.where).plan_files())), expected, 1)  # type: ignore[misc]
        if judge is not None:
            answers = [judge.ask(java_plan, f"file://{made.metadata}", case.tests) for _ in range(3)]
            assert {count for count, _ in answers} == {expected}, f"Java planned {answers}, expected {expected}"
            java = min(seconds for _, seconds in answers)
        numbers = [f"{expected:,}", *map(_shown, (cold, disk, warm, peer)), _ratio(peer, cold), _ratio(peer, warm)]
        numbers += [_shown(java), _ratio(java, cold), _ratio(java, warm)]
        print(f"{case.name:<24}" + "".join(f"{number:>11}" for number in numbers), flush=True)
    kept = default_cache().nbytes / 2**20
    top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(
        f"memory: {kept:,.0f} MiB of decoded manifests and columns kept; {top:,.0f} MiB at most in this process so far"
    )


def ours(made: Made, case: Case, expected: int) -> tuple[float, float, float]:
    """Cold, warm from disk, warm in memory."""

    def plan() -> int:
        return len(penstock.iceberg(made.metadata).plan(case.where).files)

    with suppress(FileNotFoundError):
        shutil.rmtree(os.environ["PENSTOCK_CACHE_DIR"])
    forget()
    cold = best(plan, expected, 1)
    forget()
    disk = best(plan, expected, 1)
    table = penstock.iceberg(made.metadata)
    return cold, disk, best(lambda: len(table.plan(case.where).files), expected, 5)


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1e3:,.1f} ms"


def _ratio(theirs: float | None, ours: float) -> str:
    return "-" if theirs is None else f"{theirs / ours:,.1f}"


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    os.environ["PENSTOCK_CACHE_DIR"] = str(home / "cache")
    judge = start_judge(home / "judge")
    try:
        for files, manifests in SIZES:
            measure(build(home / str(files), files, manifests), manifests, judge)
            shutil.rmtree(home / str(files))
        print(f"\ntargets: {WARM}x PyIceberg warm, {COLD}x cold; {JAVA_WARM}x Java warm, 1x cold")
    finally:
        if judge is not None:
            judge.close()
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
