"""Values of an Iceberg schema as text of Spark SQL that means exactly them."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from penstock.errors import LakeError
from penstock.expr.types import type_name
from penstock.tables.iceberg.metadata.schema_columns import arrow_type


def literal(value: Any, kind: Any = None) -> str:
    """A value of an Iceberg type; without a type, a text.

    >>> from pyiceberg.types import DecimalType, LongType
    >>> literal(5, LongType()), literal("it's"), literal("1.50", DecimalType(5, 2))
    ("CAST('5' AS bigint)", "'it\\\\'s'", "CAST('1.50' AS decimal(5,2))")
    """
    name = "string" if kind is None else str(kind)
    match name:
        case "string" | "uuid":
            return _text(str(value))
        case "date":
            return f"DATE'{value.isoformat()}'"
        case "timestamp":
            return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
        case "timestamptz":
            return f"TIMESTAMP_LTZ'{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}+00:00'"
        case "boolean":
            return str(value).lower()
        case "int" | "long" | "float" | "double":
            return f"CAST('{value}' AS {type_name(arrow_type(kind, name))})"
    if name.startswith("decimal"):
        return f"CAST('{value}' AS {type_name(arrow_type(kind, name))})"
    if name == "binary" or name.startswith("fixed"):
        return f"X'{value.hex()}'"
    raise LakeError(f"a default of the type {name} is not supported", hint="read the table with table.arrow()")


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
