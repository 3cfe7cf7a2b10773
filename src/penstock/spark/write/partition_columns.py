"""Iceberg's transforms as Spark columns, so that rows can be counted and shuffled by the partition they belong to.

Everything is in UTC, whatever the session's zone is. Spark has no function that hashes as Iceberg's bucket does, and
none that truncates a decimal of 38 digits: these are computed in Python, on Arrow columns where Spark can (from 4.1).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, LongType
from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.expr.sql_text import quote_name
from penstock.expr.types import type_name
from penstock.maps.sidecar_columns import path_to
from penstock.prune.transforms import Transform, transform_of
from penstock.tables.iceberg.metadata.schema_columns import arrow_type

FLOATS = {"float": pa.float32(), "double": pa.float64()}  # partitions of these are counted by their text
_DAY, _HOUR = 86_400_000_000, 3_600_000_000


def partition_columns(schema: Schema, spec: PartitionSpec) -> list[Column]:
    """The value of each field of a spec, as columns over rows whose columns are the schema's."""
    return [_column(field, schema) for field in spec.fields]


def _column(field: PartitionField, schema: Schema) -> Column:
    """The transform as an expression; one that has none here is computed in Python."""
    kind = schema.find_field(field.source_id).field_type
    column = _source(schema, field.source_id)
    transform = transform_of(str(field.transform))
    match transform.name:
        case "identity":
            return column.cast("string") if str(kind) in FLOATS else column  # Spark would put -0.0 to 0.0
        case "void":
            return F.lit(None).cast("int")
        case "year":
            return F.year(_days(column, kind)) - F.lit(1970)
        case "month":
            days = _days(column, kind)
            return (F.year(days) - F.lit(1970)) * 12 + F.month(days) - 1
        case "day":
            return F.unix_date(_days(column, kind))
        case "hour" if str(kind) == "timestamp":
            return (F.unix_date(column.cast("date")).cast("bigint") * 24 + F.hour(column)).cast("int")
        case "hour":
            return _floor(F.unix_micros(column), _HOUR).cast("int")
        case "bucket":
            return _in_python(*_as_number(column, kind), transform)
        case "truncate" if not str(kind).startswith("decimal"):
            return _truncated(column, kind, transform.width)
        case _:  # Spark's difference of two decimals of 38 digits loses the last digit of their scale
            return _in_python(column, kind, transform)


def _source(schema: Schema, field_id: int) -> Column:
    first, *rest = path_to(schema.fields, field_id) or ()
    column = F.col(quote_name(first))
    for name in rest:
        column = column.getField(name)
    return column


def _days(column: Column, kind: IcebergType) -> Column:
    """The day of a time in UTC, as a date."""
    if str(kind) != "timestamptz":
        return column.cast("date")  # a date, or a time without a zone
    return F.date_from_unix_date(_floor(F.unix_micros(column), _DAY).cast("int"))


def _floor(number: Column, unit: int) -> Column:
    """Whole units, rounded down below zero too."""
    whole = F.lit(unit).cast("bigint")
    return F.call_function("div", number - F.pmod(number, whole), whole)


def _truncated(column: Column, kind: IcebergType, width: int) -> Column:
    text = str(kind)
    if text in ("string", "binary"):
        return F.substring(column, 1, width)
    bits = 32 if text == "int" else 64
    wide = column.cast("decimal(38,0)")
    down = wide - F.pmod(wide, F.lit(width).cast("decimal(38,0)"))
    wrapped = F.when(down < F.lit(-(2 ** (bits - 1))).cast("decimal(38,0)"), down + _number(2**bits))
    return wrapped.otherwise(down).cast("int" if text == "int" else "bigint")


def _number(value: int) -> Column:
    return F.lit(str(value)).cast("decimal(38,0)")


def _as_number(column: Column, kind: IcebergType) -> tuple[Column, IcebergType]:
    """A date or a time as the number that is hashed: Python, on Spark 4.0, would get it in the machine's zone."""
    match str(kind):
        case "date":
            return F.unix_date(column).cast("bigint"), LongType()
        case "timestamptz":
            return F.unix_micros(column), LongType()
        case "timestamp":
            seconds = F.hour(column) * 3600 + F.minute(column) * 60
            fraction = (F.extract(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
            days = F.unix_date(column.cast("date")).cast("bigint")
            return days * _DAY + seconds.cast("bigint") * 1_000_000 + fraction, LongType()
        case _:
            return column, kind


def _in_python(column: Column, kind: IcebergType, transform: Transform) -> Column:
    source = arrow_type(kind, transform.text)
    result = transform.result_type(source)
    spark_type = "int" if result in (None, pa.date32()) else type_name(result)
    if hasattr(F, "arrow_udf"):

        def transform_all(values: pa.Array) -> pa.Array:
            return transform.on_array(values, kind)

        transformed: Column = F.arrow_udf(transform_all, spark_type)(column)
        return transformed

    def transform_one(value: Any) -> Any:
        return transform.on_array(pa.array([value], source), kind)[0].as_py()  # 5.00E-10 may have a scale of 10

    return F.udf(transform_one, spark_type)(column)
