"""Tables that are made: a schema, what it is partitioned by, and properties."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import Transform, parse_transform
from pyiceberg.types import NestedField

from penstock.errors import LakeError, SchemaError, name_hint
from penstock.expr.schema import as_schema
from penstock.lake.layout.coalesce import Coalesce
from penstock.lake.layout.table_layout import Layout, rule_properties
from penstock.lake.schema_checks import check_fields
from penstock.lake.write.data_files import file_format
from penstock.lake.write.new_sidecars import schema_with_sidecars
from penstock.lake.write.write_modes import check_modes
from penstock.maps.shred_rule import Shred
from penstock.maps.sidecar_columns import path_to
from penstock.prune.transforms import transform_of
from penstock.tables.partitioning import parse_field

_SMALL_INTEGERS = {pa.int8(), pa.int16()}


@dataclass(frozen=True)
class Definition:
    """A table's schema with its sidecars, its partition spec, and its properties with those of its rules."""

    schema: Schema
    spec: PartitionSpec
    properties: Mapping[str, str]


def define(
    schema: Any,
    partition_by: str | Sequence[str],
    rule: Coalesce | None,
    shred: Mapping[str, Shred],
    properties: Mapping[str, str],
    replaced: TableMetadata | None = None,
) -> Definition:
    """What a table is made from, or replaced by; errors in any part of it are raised here."""
    if int(properties.get("format-version", 2)) > 2:
        message = f"tables of format version {properties['format-version']} can be read and not written yet"
        raise LakeError(message, hint="make it one of version 2")
    file_format(properties)
    check_modes(properties)
    last_id, last_field_id = (replaced.last_column_id, replaced.last_partition_id) if replaced else (0, None)
    iceberg, hot = schema_with_sidecars(iceberg_schema(schema), shred, last_id)
    spec = partition_spec(iceberg, partition_by, last_field_id)
    if rule is not None:
        hot |= rule_properties(Layout(iceberg, spec), [spec], rule)
    return Definition(iceberg, spec, {**properties, **hot})


def iceberg_schema(schema: Any) -> Schema:
    """Iceberg's schema of DDL text, of Arrow's, Iceberg's or Spark's schema."""
    from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _pyarrow_to_schema_without_ids

    if isinstance(schema, Schema):
        check_fields(schema.fields)
        return assign_fresh_schema_ids(schema)
    if hasattr(schema, "simpleString") and hasattr(schema, "toDDL"):
        schema = schema.toDDL()
    arrow = as_schema(schema)
    void = next((f.name for f in arrow if pa.types.is_null(f.type)), None)
    if void is not None:
        raise SchemaError(f"column {void} has no type: all of its values are NULL", hint="cast it to a type")
    known = pa.schema([f.with_type(_known(f.type)) for f in arrow])
    twice = next((name for i, name in enumerate(known.names) if name in known.names[:i]), None)
    if twice is not None:
        raise SchemaError(f"column {twice!r} is given twice", hint="rename one of them")
    for field in known:
        try:
            _pyarrow_to_schema_without_ids(pa.schema([field]))
        except (UnsupportedPyArrowTypeException, ValueError, TypeError):
            message = f"column {field.name} is of type {field.type}, which tables do not have"
            raise SchemaError(message, hint="cast it to a type such as bigint, string or timestamp") from None
    made = _pyarrow_to_schema_without_ids(known)
    check_fields(made.fields)
    return assign_fresh_schema_ids(made)


def partition_spec(
    schema: Schema, partition_by: str | Sequence[str], last_field_id: int | None = None
) -> PartitionSpec:
    """A spec out of texts such as `app`, `day(ts)`, `bucket(16, user_id)`, `truncate(4, name)`.

    Its fields are numbered behind the last one that the table has had.
    """
    first = PARTITION_FIELD_ID_START if last_field_id is None else last_field_id + 1
    fields, names = [], set[str]()
    for i, text in enumerate(_texts(partition_by)):
        column, source, applied = partition_source(schema, text)
        name = transform_of(str(applied)).field_name(column)
        if name.lower() in names:
            raise SchemaError(f"partition_by names {name} twice", hint="name each once")
        names.add(name.lower())
        fields.append(PartitionField(source.field_id, first + i, applied, name))
    return PartitionSpec(*fields)


def partition_source(schema: Schema, text: str) -> tuple[str, NestedField, Transform[Any, Any]]:
    """The column of a partition field as it is written, the field that it is, and Iceberg's transform of it."""
    written, transform = parse_field(text)
    column = written.strip("`")
    source, applied = _source(schema, column, text), parse_transform(transform.text)
    if not applied.can_transform(source.field_type):
        message = f"partition_by {text!r}: {column} is a {source.field_type}, which has no {transform.name}"
        raise SchemaError(message, hint="choose another transform or column")
    if path_to(schema.fields, source.field_id) is None:
        message = f"partition_by {text!r}: {column} lies in a list or a map"
        raise SchemaError(message, hint="choose a column, or a field of a struct")
    return column, source, applied


def _texts(partition_by: str | Sequence[str]) -> list[str]:
    if not isinstance(partition_by, str):
        return list(partition_by)
    return [part.strip() for part in re.split(r",(?![^(]*\))", partition_by) if part.strip()]


def _source(schema: Schema, column: str, text: str) -> NestedField:
    try:
        return schema.find_field(column, case_sensitive=False)
    except ValueError:
        hint = name_hint(column, [field.name for field in schema.fields])
        raise SchemaError(f"partition_by {text!r}: no column {column!r}", hint=hint) from None


def _known(kind: pa.DataType) -> pa.DataType:
    """Types that Iceberg does not have, as the next larger one."""
    if kind in _SMALL_INTEGERS:
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(_known(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_known(kind.key_type), _known(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_known(f.type)) for f in kind])
    return kind
