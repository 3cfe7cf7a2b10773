"""Hive layouts for the Spark tests, plain Spark as their judge, and what a query's scan says it read.

The judge reads the same files with `spark.read.parquet`, the same schema and the same filter. It lists everything and
prunes with code that is not ours.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import penstock
from penstock.expr.types import type_name
from penstock.spark.scan import planner
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.spark_settings import COMPILED, INTERPRETED, settings
from tests.fixtures.variants import variants

NULL = "__HIVE_DEFAULT_PARTITION__"
DATA = {
    "id": pa.int64(),
    "x": pa.int32(),
    "tag": pa.string(),
    "st": pa.struct({"a": pa.int32(), "b": pa.string()}),
    "m": pa.map_(pa.string(), pa.string()),
    "arr": pa.list_(pa.int32()),
}
ROWS = 3  # in each file
EVALUATED = pytest.mark.parametrize(
    "evaluated", variants([INTERPRETED, COMPILED], every_run=1), ids=["interpreted", "compiled"]
)
QUESTION = "question_number"
_AS_IT_IS = frozenset(string.ascii_letters + string.digits + " ,+()!@$&;-_.<>|~`")


@dataclass
class Layout:
    """A table on disk, through Penstock and through plain Spark."""

    root: Path
    partition_by: str
    timezone: str = "UTC"
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def table(self) -> HiveTable:
        return penstock.hive(self.root, self.partition_by, pa.schema(DATA), timezone=self.timezone)

    @property
    def files(self) -> int:
        return sum(1 for _ in self.root.rglob("*.parquet"))

    def add(self, *values: str | None, name: str = "part 0.parquet") -> Path:
        """One file of three rows; a value is escaped as Hive escapes it, None is NULL."""
        keys = [part.split()[0] for part in self.partition_by.split(", ")]
        folder = self.root.joinpath(*(directory(k, v) for k, v in zip(keys, values, strict=True)))
        return self.add_in(folder, name)

    def add_in(self, folder: Path, name: str = "part 0.parquet") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(next(self.numbers)), folder / name)
        return folder / name

    def ours(self, spark: SparkSession) -> DataFrame:
        found: DataFrame = self.table.dataframe(spark)
        return found

    def plain(self, spark: SparkSession) -> DataFrame:
        table = self.table
        ddl = ", ".join(f"`{f.name}` {type_name(f.type)}" for f in table.schema)
        return spark.read.schema(ddl).option("basePath", str(self.root)).parquet(str(self.root))


def directory(key: str, value: str | None) -> str:
    """Named as Hive and Spark name it: what is not ASCII stays as it is."""
    text = NULL if value is None else "".join(c if c in _AS_IT_IS or ord(c) > 127 else f"%{ord(c):02X}" for c in value)
    return f"{key}={text}"


def rows(number: int) -> pa.Table:
    """Three rows that occur in no other file; nulls, nested values and maps with and without the key among them."""
    ids = [number * ROWS + i for i in range(ROWS)]
    return pa.table(
        {
            "id": ids,
            "x": [number, None, -number],
            "tag": ["a", f"t{number}", None],
            "st": [{"a": number, "b": "u"}, None, {"a": None, "b": "v"}],
            "m": [[("k", f"v{number}")], [], None],
            "arr": [[1, 2], [number], None],
        },
        schema=pa.schema(DATA),
    )


def answer(query: DataFrame) -> list[str]:
    """The rows in an order of their own, as text that tells types and nulls apart."""
    return sorted(str(shown(row)) for row in query.collect())


def shown(row: Row) -> list[Any]:
    # Spark keeps the scale that a directory has, 1.5 in a decimal(10,2); the value is the same.
    return [repr(value.normalize() if isinstance(value, Decimal) else value) for value in row]


@dataclass(frozen=True)
class Read:
    """What the scans of one executed query say of themselves."""

    files: tuple[int, ...]
    static_files: tuple[int, ...]
    rows: tuple[int, ...]
    scans: int
    reused: int
    broadcasts: int
    sort_merges: int

    @property
    def total(self) -> int:
        return sum(self.files)


def read_by(query: DataFrame) -> Read:
    """The metrics of a query that has been collected, from its own physical plan."""
    return _read(query._jdf.queryExecution().executedPlan())


def _read(plan: Any) -> Read:
    nodes = list(_nodes(plan))
    scans = [node for name, node in nodes if name == "FileSourceScanExec"]
    metrics = [scan.metrics() for scan in scans]
    return Read(
        files=tuple(m.apply("numFiles").value() for m in metrics),
        static_files=tuple(m.apply("staticFilesNum").value() for m in metrics if m.contains("staticFilesNum")),
        rows=tuple(m.apply("numOutputRows").value() for m in metrics),
        scans=len(scans),
        reused=sum(name == "ReusedExchangeExec" for name, _ in nodes),
        broadcasts=sum(name == "BroadcastHashJoinExec" for name, _ in nodes),
        sort_merges=sum(name == "SortMergeJoinExec" for name, _ in nodes),
    )


def _nodes(node: Any) -> Iterator[tuple[str, Any]]:
    name = node.getClass().getSimpleName()
    yield name, node
    if name == "AdaptiveSparkPlanExec":
        yield from _nodes(node.executedPlan())
    elif name.endswith("QueryStageExec"):
        yield from _nodes(node.plan())
    elif name == "InMemoryTableScanExec":
        yield from _nodes(node.relation().cachedPlan())
    elif name != "ReusedExchangeExec":  # what it points to is counted where it stands
        for plan in _sequence(node.children()):
            yield from _nodes(plan)
        for plan in _sequence(node.subqueries()):
            yield from _nodes(plan)


def _sequence(found: Any) -> list[Any]:
    return [found.apply(i) for i in range(found.size())]


@dataclass(frozen=True)
class Compared:
    """One query on both tables: what Penstock's scan read, how many rows came, how often Python was asked."""

    read: Read
    rows: int
    calls: int


def compare(spark: SparkSession, layout: Layout, query: Callable[[DataFrame], DataFrame]) -> Compared:
    """Run a query on both; the rows must be the same."""
    ours = query(layout.ours(spark))
    with counted_calls() as calls:
        found = answer(ours)
    expected = answer(query(layout.plain(spark)))
    if found != expected:
        missing, extra = set(expected) - set(found), set(found) - set(expected)
        raise AssertionError(f"{len(missing)} rows missing, {len(extra)} too many: {sorted(missing ^ extra)[:4]}")
    return Compared(read_by(ours), len(found), len(calls))


def compare_all(
    spark: SparkSession, layout: Layout, wheres: Sequence[str], evaluated: Mapping[str, str] = INTERPRETED
) -> dict[str, Compared]:
    """Several filters on both tables: each is planned for itself, and one job for each table reads what they all need.

    A job takes Spark longer than so few rows do, and to compile each filter even longer: that is for `compare` and for
    the slow run. The calls are those of all filters, shared out by their scans.
    """
    with settings(spark, evaluated):
        ours = _union(layout.ours(spark), wheres)
        with counted_calls() as calls:
            found = _answers(ours, len(wheres))
        expected = _answers(_union(layout.plain(spark), wheres), len(wheres))
        reads = _reads_of_arms(ours, len(wheres))
    assert len(calls) == sum(read.scans for read in reads), (len(calls), reads)
    wrong = {}
    for where, mine, theirs in zip(wheres, found, expected, strict=True):
        if mine != theirs:
            missing, extra = set(theirs) - set(mine), set(mine) - set(theirs)
            wrong[where] = f"{len(missing)} rows missing, {len(extra)} too many: {sorted(missing ^ extra)[:4]}"
    assert not wrong, wrong
    return {
        where: Compared(read, len(rows), read.scans) for where, read, rows in zip(wheres, reads, found, strict=True)
    }


def _union(df: DataFrame, wheres: Sequence[str]) -> DataFrame:
    arms = (df.where(where).withColumn(QUESTION, F.lit(i)) for i, where in enumerate(wheres))
    return reduce(DataFrame.unionAll, arms)


def _answers(query: DataFrame, count: int) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(count)]
    for row in query.collect():
        found[row[QUESTION]].append(str(shown(row)[:-1]))
    return [sorted(rows) for rows in found]


def _reads_of_arms(query: DataFrame, count: int) -> list[Read]:
    """What each arm of a union read; one whose filter is never true is not there any more."""
    plan = query._jdf.queryExecution().executedPlan()
    unions = [node for name, node in _nodes(plan) if name == "UnionExec"]
    arms = _sequence(unions[0].children()) if unions else [plan]
    numbers = [re.search(rf"(\d+) AS {QUESTION}#", arm.toString()) for arm in arms]
    found = {int(number[1]): _read(arm) for number, arm in zip(numbers, arms, strict=True) if number}
    return [found.get(i, Read((), (), (), 0, 0, 0, 0)) for i in range(count)]


class counted_calls:
    """The questions that Spark asks Python while the block runs."""

    def __enter__(self) -> list[str]:
        self.calls: list[str] = []
        self.answer = planner.answer
        planner.answer = lambda request, catalog: (self.calls.append(request), self.answer(request, catalog))[1]
        return self.calls

    def __exit__(self, *_: object) -> None:
        planner.answer = self.answer


def make(root: Path, partition_by: str, values: Sequence[Sequence[str | None]], timezone: str = "UTC") -> Layout:
    """A layout with one file for each combination of values."""
    layout = Layout(root, partition_by, timezone)
    for combination in values:
        layout.add(*combination)
    return layout
