"""Which of Spark's readers of files are there."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.formats.avro_file import AVRO


def has_avro(spark: SparkSession) -> bool:
    """Whether Spark reads Avro without a package."""
    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Class.forName(AVRO.spark_reader)
    except Exception:  # what py4j makes of a class that is not there
        return False
    return True
