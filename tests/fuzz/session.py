"""Spark for the fuzzer: one session that judges and one, attached, that is judged, both set up for each world."""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
from tests.fixtures.spark_settings import COMPILED, INTERPRETED

SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the second: an exception of Java in a task, such as an overflow
_START = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
# Spark's optimizer takes `CAST(ts AS timestamp_ntz) <= c` for `ts <= CAST(c AS timestamp)`, which has another answer in
# an hour that the clock shows twice. What the expression means is judged, not what that rule makes of it.
_EXCLUDED = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
# Thousands of different texts fill the heap with what the parser remembers of them, and with the texts of plans.
_QUIET = {
    "spark.sql.optimizer.excludedRules": _EXCLUDED,
    "spark.sql.alwaysInlineCommonExpr": "true",
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "30000",
    "spark.sql.maxPlanStringLength": "200",
    "spark.sql.debug.maxToStringFields": "1",
}
SETTINGS: dict[str, dict[str, str]] = {
    "default": {},
    "ansi off": {"spark.sql.ansi.enabled": "false"},
    "pushdown off": {"spark.sql.parquet.filterPushdown": "false"},
    "row reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "case sensitive": {"spark.sql.caseSensitive": "true"},
    "field ids": {"spark.sql.parquet.fieldId.read.enabled": "true"},
    "adaptive off": {"spark.sql.adaptive.enabled": "false"},
    # Without generated code Spark fails to evaluate a dynamic filter of a column that is no partition column, which a
    # union of a partitioned and an unpartitioned scan has.
    "interpreted": INTERPRETED | {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"},
}
_DEFAULTS = {
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.adaptive.enabled": "true",
    **COMPILED,
}
_OF_MEANING = ("spark.sql.ansi.enabled", "spark.sql.caseSensitive", "spark.sql.session.timeZone")


@dataclass
class Sessions:
    """The judge's session, and the one through which Penstock is asked."""

    judge: SparkSession
    judged: Any
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def set_up(self, zone: str, setting: str = "default") -> None:
        """The zone for both, and the settings; of those the judge gets only what changes answers."""
        for name, value in (_DEFAULTS | SETTINGS[setting] | {"spark.sql.session.timeZone": zone}).items():
            self.judged.conf.set(name, value)
        for name in _OF_MEANING:
            self.judge.conf.set(name, self.judged.conf.get(name))

    def attach(self, lake: Any) -> str:
        """The name of a catalog that is this lake, for Penstock's session."""
        name = f"fuzzed_{next(self._numbers)}"
        penstock.attach(self.judged, lake, name)
        return name


def sessions(spark: SparkSession | None = None) -> Sessions:
    """Both sessions in one JVM, which is started unless there is one."""
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark = spark or _start()
    judge = spark.newSession()
    for name, value in (_QUIET | INTERPRETED).items():
        judge.conf.set(name, value)
    judged = penstock.attach(spark.newSession())
    for name, value in _QUIET.items():
        judged.conf.set(name, value)
    return Sessions(judge, judged)


def _start() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, value in _START.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark
