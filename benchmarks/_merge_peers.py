"""Iceberg's Spark runtime and Delta Lake as they merge: processes of their own, on the newest Spark that both have.

The functions run in those processes; their first argument is the session.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.interop.spark_process import SparkProcess
from tools.fetch_jars import fetch, fetch_delta_peer, fetch_iceberg_judge

MERGE = (
    "MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


def start_iceberg(warehouse: Path) -> SparkProcess:
    """Iceberg's runtime on the embedded catalog of a warehouse."""
    pyspark, jars = fetch_iceberg_judge()
    catalog = "spark.sql.catalog.penstock"  # the name that it has in the database
    config = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        f"{catalog}.warehouse": f"file://{warehouse}",
    }
    return SparkProcess([*jars, *fetch("sqlite-jdbc")], SETTINGS | config, pyspark=pyspark)


def start_delta() -> SparkProcess:
    """Delta Lake."""
    pyspark, jars = fetch_delta_peer()
    config = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    return SparkProcess(jars, SETTINGS | config, pyspark=pyspark)


def convert(spark: Any, folder: str) -> None:
    """Make Parquet files a table of Delta Lake, with statistics of all columns."""
    spark.sql(f"CONVERT TO DELTA parquet.`{folder}`")


def merge(spark: Any, table: str, source: str) -> float:
    """Merge the rows of a Parquet file into a table; the seconds."""
    start = time.perf_counter()
    spark.read.parquet(source).createOrReplaceTempView("source")
    spark.sql(MERGE.format(table=table)).collect()
    return time.perf_counter() - start


def run(spark: Any, statement: str) -> None:
    """A statement that is not measured."""
    spark.sql(statement).collect()


def files_of(spark: Any, table: str) -> Sequence[str]:
    """The files that a query of a table reads."""
    return list(spark.table(table).inputFiles())
