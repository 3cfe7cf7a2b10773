"""The one place where tables reach up to Spark: `table.dataframe(spark)` and `lake.sql(…)` are promises.

The import waits inside the function, so that tables plan where neither Spark nor Java is installed.
"""

from __future__ import annotations

from typing import Any


def dataframe(table: Any, spark: Any, where: str | None = None) -> Any:
    """The table as a lazy DataFrame; with `where`, filtered."""
    from penstock.spark.scan.dataframe import dataframe as scan

    return scan(table, spark, where)


def hive_relations(table: Any) -> Any:
    """How Spark reads a Hive layout."""
    from penstock.spark.scan.hive_scan import HiveRelations

    return HiveRelations(table)


def iceberg_relations(table: Any) -> Any:
    """How Spark reads an Iceberg table."""
    from penstock.spark.scan.iceberg_scan import IcebergRelations

    return IcebergRelations(table)


def stream(table: Any, spark: Any, options: Any) -> Any:
    """The table as a streaming DataFrame."""
    from penstock.spark.stream.stream_reader import stream as follow

    return follow(table, spark, options)


def sql(lake: Any, text: str, spark: Any = None) -> Any:
    """A query over the tables of a lake, as a DataFrame."""
    from penstock.spark.session.lake_sql import run_sql

    return run_sql(lake, text, spark)


def write(job: Any, df: Any) -> Any:
    """Write the rows of a DataFrame as data files, in Spark's tasks."""
    from penstock.spark.write.write_job import write_dataframe

    return write_dataframe(job, df)


def sample(df: Any, names: Any, rows: int) -> Any:
    """Some rows of a DataFrame, as Arrow's."""
    from penstock.spark.write.write_job import sample as take

    return take(df, names, rows)


def schema_of(df: Any) -> Any:
    """Arrow's schema of a DataFrame."""
    from penstock.spark.write.write_job import arrow_schema

    return arrow_schema(df.schema)


def rewrite(job: Any, table: Any) -> Any:
    """Write all rows of a table as data files again, in Spark's tasks."""
    from penstock.spark.write.write_job import rewrite_table

    return rewrite_table(job, table)


def map_files(tasks: Any, work: Any) -> Any:
    """Do something with each of some files, in Spark's tasks; the answers, or errors, in the files' order."""
    from penstock.spark.write.write_job import map_files as run

    return run(tasks, work)


def merge(table: Any, builder: Any) -> Any:
    """A merge of a Spark DataFrame."""
    from penstock.spark.write.merge_frames import merge_frames

    return merge_frames(table, builder)
