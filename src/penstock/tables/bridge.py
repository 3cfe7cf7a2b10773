"""The one place where tables reach up to Spark: `table.dataframe(spark)` and `lake.sql(…)` are promises.

The import waits inside the function, so that tables plan where neither Spark nor Java is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def _from_spark(module: str, name: str) -> Callable[..., Any]:
    """A name of a module that is imported when it is called."""
    return lambda *arguments: getattr(import_module(module), name)(*arguments)


dataframe = _from_spark("penstock.spark.scan.dataframe", "dataframe")  # (table, spark, where): a lazy DataFrame
hive_relations = _from_spark("penstock.spark.scan.hive_scan", "HiveRelations")  # (table): how Spark reads it
iceberg_relations = _from_spark("penstock.spark.scan.iceberg_scan", "IcebergRelations")  # (table): how Spark reads it
stream = _from_spark("penstock.spark.stream.stream_reader", "stream")  # (table, spark, options): a streaming DataFrame
sql = _from_spark("penstock.spark.session.lake_sql", "run_sql")  # (lake, text, spark): a query as a DataFrame
write = _from_spark("penstock.spark.write.write_job", "write_dataframe")  # (job, df): its rows as data files
sample = _from_spark("penstock.spark.write.write_job", "sample")  # (df, names, rows): some rows, as Arrow's
rewrite = _from_spark("penstock.spark.write.write_job", "rewrite_table")  # (job, table): all rows as data files again
map_files = _from_spark("penstock.spark.write.write_job", "map_files")  # (tasks, work): what it makes of each file
