"""Files on Spark Connect, where nothing but their paths can be given, and no reader of ours.

Without one (`SafeFilters.java`) a filter such as `d > 1e9` would skip the row groups whose statistics leave NaN out.
So float columns stand behind a function that Spark does not push to files: `nanvl(d, d)` has the value of `d`, and
filters on it are evaluated on rows only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.expr.types import is_float
from penstock.formats.file_format import FileFormat


def load(
    spark: SparkSession, file_format: FileFormat, schema: Any, options: Mapping[str, str], paths: Sequence[str]
) -> DataFrame:
    """The rows of files of one format."""
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).options(**options).format(file_format.spark_source).load(list(paths))


def guarded(value: Column, t: pa.DataType) -> Column:
    """A value with its floats guarded; filters never reach what is inside lists and maps."""
    if is_float(t):
        return F.nanvl(value, value)
    if not has_floats(t):
        return value
    parts = [guarded(value.getField(f.name), f.type).alias(f.name) for f in t]
    return F.when(value.isNotNull(), F.struct(*parts))


def has_floats(t: pa.DataType) -> bool:
    """Whether a filter can reach a float in values of a type."""
    return is_float(t) or (pa.types.is_struct(t) and any(has_floats(f.type) for f in t))
