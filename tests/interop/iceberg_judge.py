"""Iceberg's own Spark runtime, in a process of its own and on a PySpark of its own.

Iceberg publishes its runtime later than Spark comes out, so it does not run on the tests' PySpark; where both come from
is in `tools/fetch_jars.py`. Its catalog `lake` is one of folders; a table in any other folder
is registered.

All tests of a process share one (`shared_judge`): until its JVM is warm, half a minute is gone.

A scan is one job for a few predicates, each with a filter of its own that Iceberg is given; the files that it plans
are those in the tasks it makes for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.fixtures.spark_settings import INTERPRETED
from tests.interop import spark_process
from tests.interop.spark_process import SparkProcess
from tools.fetch_jars import fetch, fetch_iceberg_judge

_SPARK = "org.apache.iceberg.spark"
QUESTION = "question_number"
ARMS = 12  # of a union: to plan one takes longer than in proportion to them


class IcebergJudge(SparkProcess):
    """Spark with Iceberg's runtime; tables are written below a folder."""

    def __init__(self, pyspark: Path, jars: Sequence[Path], warehouse: Path, memory: str = "1g") -> None:
        config = {
            "spark.sql.extensions": f"{_SPARK}.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": f"{_SPARK}.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(warehouse),
            "spark.sql.catalog.lake.cache-enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            **INTERPRETED,
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": memory,
            # Else a JVM that is warm leaves out what an error says, and the errors that are known are not recognised.
            "spark.driver.extraJavaOptions": "-XX:-OmitStackTraceInFastThrow",
        }
        super().__init__(jars, config, pyspark=pyspark)


_shared: list[IcebergJudge] = []


def shared_judge(warehouse: Path) -> IcebergJudge:
    """The one of this process, with a session of its own for who asks; `Unavailable` where it cannot be had."""
    if not _shared:
        pyspark, jars = fetch_iceberg_judge()
        _shared.append(IcebergJudge(pyspark, [*jars, *fetch("sqlite-jdbc")], warehouse))
    (process,) = _shared
    process.ask(_begin, str(warehouse))
    return process


def written_once(judge: IcebergJudge, warehouse: Path, write: Callable[..., Any]) -> Callable[[str], str]:
    """Tells where the metadata of a table in `web` is; the judge writes it when it is first asked for."""

    def find(name: str) -> str:
        folder = warehouse / "web" / name / "metadata"
        if not folder.exists():
            judge.ask(write, name)
        return str(folder / f"v{(folder / 'version-hint.text').read_text().strip()}.metadata.json")

    return find


def close_shared_judge() -> None:
    """End it, if it was ever started."""
    while _shared:
        _shared.pop().close()


def _begin(spark: Any, warehouse: str) -> None:
    """Go on in a new session: it has no views yet, and no catalogs but the one of folders."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.lake.warehouse", warehouse)
    spark_process._session[:] = [session]


def register(spark: Any, name: str, folder: str) -> None:
    """Make a table that somebody else wrote into a folder known as a view."""
    spark.read.format("iceberg").load(folder).createOrReplaceTempView(name)


def scan(spark: Any, table: str, wheres: Sequence[str], size: int = ARMS) -> tuple[pa.Table, list[int]]:
    """The rows that match each predicate, with the predicate's number in a column, and the number of files planned.

    `table` is a name, or a name with `VERSION AS OF …` behind it.
    """
    spark.sql(f"SELECT * FROM {table}").createOrReplaceTempView("scanned")  # else each arm loads the metadata again
    arms = [f"SELECT *, {i} AS `{QUESTION}` FROM scanned WHERE {where}" for i, where in enumerate(wheres)]
    files = [set[str]() for _ in wheres]
    found = []
    for start in range(0, len(arms), size):
        df = spark.sql(" UNION ALL ".join(arms[start : start + size]))
        for arm in _arms(df._jdf.queryExecution().sparkPlan()):
            number = re.search(rf"(\d+) AS {QUESTION}#", arm.toString())
            leaf = arm.collectLeaves().head()
            if number and leaf.getClass().getSimpleName() == "BatchScanExec":  # else the filter is never true
                files[int(number[1])] |= _files(leaf)
        found.append(df.toArrow())
    return pa.concat_tables(found), [len(each) for each in files]


def _arms(plan: Any) -> list[Any]:
    """The parts of a union; one that remains alone is no union any more."""
    if plan.getClass().getSimpleName() != "UnionExec":
        return [plan]
    parts = plan.children()
    return [parts.apply(i) for i in range(parts.size())]


def _files(scan: Any) -> set[str]:
    """The paths in the tasks that Iceberg makes for a scan."""
    groups = scan.scan().toBatch().planInputPartitions()
    return {task.file().location() for group in groups for task in group.taskGroup().tasks().toArray()}
