"""What a changed schema must keep to, so that the table is read and written after it as before.

| refused | because |
|---|---|
| fields of a struct that differ only in case | Spark and predicates ignore it, and the table could not be opened |
| a struct without fields | Parquet cannot hold it |
| a name that files without field ids have for another column | the values of that column would move to the new one |
| a name that a partition field has | metadata tables have one column for each field |
| a sort order, or identifier fields, without their column | other engines could not open the table |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from penstock.errors import SchemaError

_MAPPING = "schema.name-mapping.default"


def check_fields(fields: Sequence[NestedField], above: str = "") -> None:
    """An error for structs that files cannot hold, or in which a name means two fields."""
    names: dict[str, str] = {}
    for field in fields:
        other = names.get(field.name.lower())
        if other is not None:
            which = f"the fields {other!r} and {field.name!r} of {above}" if above else f"{other!r} and {field.name!r}"
            raise SchemaError(f"{which} have the same name, as case does not count", hint="rename one of them")
        names[field.name.lower()] = field.name
    if above and not fields:
        raise SchemaError(
            f"{above} is a struct without fields, which files cannot hold", hint="drop it as a whole, or leave it out"
        )
    for field in fields:
        _check_type(field.field_type, f"{above}.{field.name}" if above else field.name)


def _check_type(kind: IcebergType, path: str) -> None:
    match kind:
        case StructType():
            check_fields(kind.fields, path)
        case ListType():
            _check_type(kind.element_type, f"{path}.element")
        case MapType():
            _check_type(kind.key_type, f"{path}.key")
            _check_type(kind.value_type, f"{path}.value")


def check_mapping(before: TableMetadata, after: TableMetadata, table: str) -> None:
    """An error when a name that the files without field ids have means another column afterwards."""
    old, new = before.name_mapping(), after.name_mapping()
    if old is None or new is None:
        return
    kept = {field_id: set(names) for field_id, names in _names(list(new))}
    for field_id, names in _names(list(old)):
        moved = sorted(set(names) - kept.get(field_id, set()))
        if moved:
            column = before.schema().find_column_name(field_id) or "a column that was dropped"
            message = f"files of {table} without field ids have {column} under the name {moved[0]!r}"
            hint = f"choose another name; when no snapshot has such files any more, remove the property {_MAPPING}"
            raise SchemaError(message, hint=hint)


def _names(fields: Sequence[MappedField]) -> Iterator[tuple[int, list[str]]]:
    for field in fields:
        if field.field_id is not None:
            yield field.field_id, field.names
        yield from _names(field.fields)


def check_partition_names(specs: Sequence[PartitionSpec], name: str, field_id: int | None, table: str) -> None:
    """An error for a column that would be called like a partition field of another one."""
    for field in (field for spec in specs for field in spec.fields):
        own = field.source_id == field_id and str(field.transform) in ("identity", "void")
        if field.name == name and not own:
            message = f"{table} has, or had, a partition field {name!r} of another column"
            raise SchemaError(message, hint="choose another name")


def check_not_ordered(metadata: TableMetadata, ids: set[int], path: str, table: str) -> None:
    """An error for columns that are named by what only other engines set: a sort order, the identifier fields."""
    if ids & set(metadata.schema().identifier_field_ids):
        message = f"{path} is an identifier field of {table}"
        raise SchemaError(message, hint="change the identifier fields first, with the engine that set them")
    if ids & {field.source_id for field in metadata.sort_order().fields}:
        message = f"{path} is in the sort order of {table}"
        raise SchemaError(message, hint="change the sort order first, with the engine that set it")


def check_named(schema: Schema, field: NestedField, path: str) -> None:
    """An error for the element of a list, or the key or value of a map: they have no names or comments of their own."""
    above = schema._lazy_id_to_parent.get(field.field_id)
    if above is not None and not isinstance(schema.find_field(above).field_type, StructType):
        message = f"{path} is a part of a list or a map, which has no name or comment of its own"
        raise SchemaError(message, hint="name the column, or a field of a struct")


def is_wider(new: IcebergType, old: IcebergType) -> bool:
    """Whether every value of a type is one of another, and files that have it are read as that."""
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision < new.precision
        case _:
            return False
