"""Which of Spark's readers of files are there."""

from __future__ import annotations

from pyspark.sql import SparkSession


def has_avro(spark: SparkSession) -> bool:
    """Whether Spark reads Avro without a package."""
    try:
        spark.read.format("avro").schema("a int").load([])
    except Exception:  # Spark names the package, in other words in each version
        return False
    return True
