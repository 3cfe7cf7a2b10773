"""The type of a column as people write it: text, or a type of Arrow's, Iceberg's or Spark's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField

from penstock.errors import SchemaError
from penstock.expr.sql_text import quote_name
from penstock.expr.types import type_name
from penstock.lake.create import iceberg_schema
from penstock.lake.write.row_fit import core_type


def column_type(name: str, path: str, type: Any) -> tuple[IcebergType, bool, str | None]:
    """Iceberg's type, whether it is NOT NULL, and the comment that stands with it."""
    if isinstance(type, str):
        type = f"{quote_name(name)} {type}"
    elif isinstance(type, pa.DataType):
        type = pa.schema({name: type})
    elif isinstance(type, IcebergType):
        type = Schema(NestedField(1, name, type, required=False))
    elif hasattr(type, "simpleString"):  # Spark's
        type = f"{quote_name(name)} {type.simpleString()}"
    else:
        raise SchemaError(f"column {path}: {type!r} is no type", hint="write one, such as bigint")
    fields = iceberg_schema(type).fields
    if len(fields) != 1:
        raise SchemaError(f"column {path}: {len(fields)} types are given", hint="write one, such as bigint")
    return fields[0].field_type, fields[0].required, fields[0].doc


def type_text(kind: IcebergType) -> str:
    """A type as predicates and messages have it."""
    return type_name(core_type(kind))
