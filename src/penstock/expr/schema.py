"""Schemas: Arrow schemas of normalised types, from DDL text, Arrow, or any object that can say what it is.

>>> as_schema("ts timestamp, app string NOT NULL, headers map<string,string>").names
['ts', 'app', 'headers']
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import SchemaError, close_name, shortened
from penstock.expr.types import MAX_PRECISION, TIMESTAMP, TIMESTAMP_NTZ, TYPE_NAMES, normalize

# By sqlglot's names of types, where they differ from Spark's.
_SIMPLE = {name.upper(): t for t, name in TYPE_NAMES.items()} | {
    "TEXT": pa.string(), "VARCHAR": pa.string(), "CHAR": pa.string(), "VARBINARY": pa.binary(), "NULL": pa.null(),
    "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMPLTZ": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}  # fmt: skip
_SPARK_NAMES = [
    "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint", "float", "real", "double",
    "decimal", "dec", "numeric", "string", "char", "character", "varchar", "binary", "date", "timestamp",
    "timestamp_ltz", "timestamp_ntz", "array", "map", "struct", "void",
]  # fmt: skip
_COMMON = "boolean, int, bigint, double, decimal(10,2), string, date, timestamp, map<string,string>, …"
_COLUMN = re.compile(r"\s*(?:`(?:``|[^`])+`|[^\s`]+)\s+([A-Za-z_]\w*)\s*(?:<(.*)>)?", re.DOTALL)
_CONSTRAINTS = (exp.NotNullColumnConstraint, exp.CommentColumnConstraint)
_TOP_COMMA = re.compile(r",(?![^(<]*[)>])")


def as_schema(source: Any) -> pa.Schema:
    """The schema of a DDL text, an Arrow schema, or a PyIceberg schema, with types normalised."""
    if isinstance(source, str):
        return _parse_ddl(source)
    if isinstance(source, pa.Schema):
        return pa.schema([f.with_type(normalize(f.type)) for f in source])
    if hasattr(source, "as_arrow"):
        return as_schema(source.as_arrow())
    raise SchemaError(f"expected a schema as DDL text, Arrow or Iceberg schema, not {type(source).__name__}")


def arrow_type(t: exp.DataType) -> pa.DataType | None:
    """The Arrow type of a sqlglot type; None where Spark has no such type."""
    name = t.this.name if hasattr(t.this, "name") else str(t.this)
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "DECIMAL":
        written = [str(p.name) for p in t.expressions]
        digits = [int(text) if text.isdecimal() and len(text) < 3 else MAX_PRECISION + 1 for text in written]
        precision, scale = (digits + [10, 0][len(digits) :])[:2] if digits else (10, 0)
        return pa.decimal128(precision, scale) if 0 <= scale <= precision <= MAX_PRECISION and precision > 0 else None
    inner = [arrow_type(part.args["kind"] if isinstance(part, exp.ColumnDef) else part) for part in t.expressions]
    if any(part is None for part in inner):
        return None
    if name == "STRUCT":
        return pa.struct([pa.field(part.name, i) for part, i in zip(t.expressions, inner, strict=True)])
    if name == "MAP" and len(inner) == 2:
        return pa.map_(inner[0], inner[1])
    if name == "ARRAY" and len(inner) == 1:
        return pa.list_(inner[0])
    return None


def check_names(fields: pa.Schema | list[pa.Field], place: str, kind: str = "columns") -> None:
    """An error for columns, or fields of one struct, that differ only in case: Spark and predicates ignore it."""
    names: dict[str, str] = {}
    for field in fields:
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name:
            message = f"{place}: {kind} {other!r} and {field.name!r} differ only in case, which is not supported"
            raise SchemaError(message, hint="rename one of them")
    for field in fields:
        inner = [field.type.field(i) for i in range(field.type.num_fields)]
        check_names(inner, place, f"fields of {field.name}:")


def _parse_ddl(text: str) -> pa.Schema:
    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except (SqlglotError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "nested too deep"
        message = f"cannot read the schema {shortened(text, 120)!r}: {reason}; write: name type, name type"
        raise _unknown_type(text) or SchemaError(message) from None
    columns = list(statement.this.expressions) if isinstance(statement.this, exp.Schema) else []
    fields = []
    for column in columns:
        kind = column.args.get("kind") if isinstance(column, exp.ColumnDef) else None
        t = arrow_type(kind) if kind is not None else None
        if t is None:
            message = (
                f"schema {shortened(text, 120)!r}: {column.sql(dialect='spark')!r} is not a column: write: name type"
            )
            raise _unknown_type(text) or SchemaError(message)
        constraints = [constraint.kind for constraint in column.args.get("constraints") or ()]
        required = any(isinstance(each, exp.NotNullColumnConstraint) for each in constraints)
        comment = next((each.name for each in constraints if isinstance(each, exp.CommentColumnConstraint)), None)
        other = next((each for each in constraints if not isinstance(each, _CONSTRAINTS)), None)
        if other is not None:
            message = f"schema {shortened(text, 120)!r}: {column.name} has {other.sql(dialect='spark')}"
            raise SchemaError(message, hint="only NOT NULL and COMMENT can stand behind a type")
        metadata = None if comment is None else {"doc": comment}
        fields.append(pa.field(column.name, t, nullable=not required, metadata=metadata))
    if not fields:
        raise SchemaError(f"the schema {shortened(text, 120)!r} has no columns; write: name type, name type")
    names = [f.name.lower() for f in fields]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise SchemaError(f"schema {shortened(text, 120)!r}: column {twice!r} appears twice")
    return pa.schema(fields)


def _unknown_type(text: str) -> SchemaError | None:
    """The error for the first word in the place of a type that is not a type; None when all are types."""
    for column in _TOP_COMMA.split(text):
        match = _COLUMN.match(column)
        inner = [] if match is None or "struct" in column.lower() else re.findall(r"[A-Za-z_]\w*", match[2] or "")
        names = [] if match is None else [match[1], *inner]
        unknown = next((name for name in names if name.lower() not in _SPARK_NAMES), None)
        if unknown is not None:
            close = close_name(unknown, _SPARK_NAMES, 0.6)
            hint = f"did you mean {close}?" if close else f"one of {_COMMON}"
            return SchemaError(f"schema {shortened(text, 120)!r}: unknown type {unknown!r}", hint=hint)
    return None
