"""Spark's own reader over files that Python plans, one relation for each format of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError
from penstock.formats.file_format import FileFormat
from penstock.formats.format_registry import ICEBERG_FORMATS
from penstock.spark.scan.planner import RelationFiles, remember
from penstock.spark.session.java_classes import new
from penstock.spark.session.session import gateway_of

# Spark's row-based reader looks for its setting in the session, and reads by name without a word otherwise.
FIELD_IDS = {each.spark_field_ids: "true" for each in ICEBERG_FORMATS if each.spark_field_ids}


def find_field_ids(spark: SparkSession) -> None:
    """Let Spark find columns by field id."""
    for name, value in FIELD_IDS.items():
        spark.conf.set(name, value)


def relation(
    spark: SparkSession,
    key: str,
    source: RelationFiles,
    file_format: FileFormat,
    partitions: Any,
    data: Any,
    options: Mapping[str, str],
) -> DataFrame:
    """The rows of a source's files; `partitions` and `data` are Java's StructTypes."""
    gateway = gateway_of(spark)
    name = remember(f"{key} {file_format.name}", source)
    index = new(gateway, "PenstockIndex", name, partitions, _reader(gateway, file_format))
    return DataFrame(index.dataFrame(spark._jsparkSession, data, options), spark)


def _reader(gateway: Any, file_format: FileFormat) -> Any:
    """Spark's reader of a format: one that a class of ours looks after, or as it is."""
    if "." not in file_format.spark_reader:
        return new(gateway, file_format.spark_reader)
    try:
        return new(gateway, "SparkReader", file_format.spark_reader)
    except Py4JJavaError as error:
        if file_format.spark_package and "ClassNotFoundException" in str(error):
            raise _without_package(gateway, file_format) from None
        raise


def _without_package(gateway: Any, file_format: FileFormat) -> PenstockError:
    package = f"{file_format.spark_package}:{gateway.jvm.org.apache.spark.SparkContext.getOrCreate().version()}"
    message = f"Spark cannot read {file_format.title} files: {file_format.spark_package} is not on its class path"
    hint = f"start Spark with the configuration spark.jars.packages={package}, or use table.arrow()"
    return PenstockError(message, hint=hint)
