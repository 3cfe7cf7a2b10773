"""An Iceberg schema as the core sees it: columns by name with Arrow types, and the way back to their field ids.

Names are for people; everything that a file or a manifest says is about an id. A column that was dropped and another
that got its name later are two things, and only the id tells them apart.

A uuid is its text, as Spark has no such type; its text sorts as its bytes do. Types that neither Spark nor the core
can hold (times in nanoseconds, variants, geometries) are said by name when a table that has them is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField, StructType

from penstock.errors import LakeError
from penstock.expr.tree import Column
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ

_SIMPLE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": TIMESTAMP_NTZ,
    "timestamptz": TIMESTAMP,
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "unknown": pa.null(),
}


@dataclass(frozen=True)
class Columns:
    """The columns of one schema of a table."""

    schema: Schema  # PyIceberg's

    @cached_property
    def _all(self) -> list[tuple[int, Column, IcebergType, bool]]:
        return list(_walk(self.schema.fields, (), True))

    @cached_property
    def key(self) -> str:
        """What makes two of them the same."""
        return repr([(column.path, i, str(kind), required) for i, column, kind, required in self._all])

    @cached_property
    def arrow(self) -> pa.Schema:
        """Names and types, as predicates and people use them."""
        return pa.schema([_field(field) for field in self.schema.fields])

    @cached_property
    def by_id(self) -> dict[int, Column]:
        """The columns and the fields of structs, by id; what lies in lists and maps has no column of its own."""
        return {field_id: column for field_id, column, _, _ in self._all}

    @cached_property
    def ids(self) -> dict[tuple[str, ...], tuple[int, IcebergType]]:
        """Id and Iceberg's type of each column, by its path."""
        return {column.path: (field_id, kind) for field_id, column, kind, _ in self._all}

    @cached_property
    def required(self) -> frozenset[tuple[str, ...]]:
        """The paths that no row can have NULL at: those of required fields in required structs."""
        return frozenset(column.path for _, column, _, required in self._all if required)


def _walk(
    fields: Iterable[NestedField], above: tuple[str, ...], required: bool
) -> Iterator[tuple[int, Column, IcebergType, bool]]:
    for field in fields:
        path, kind, always = (*above, field.name), field.field_type, required and field.required
        yield field.field_id, Column(path, arrow_type(kind, ".".join(path))), kind, always
        if isinstance(kind, StructType):
            yield from _walk(kind.fields, path, always)


def _field(field: NestedField) -> pa.Field:
    return pa.field(field.name, arrow_type(field.field_type, field.name), nullable=not field.required)


def arrow_type(kind: IcebergType, name: str) -> pa.DataType:
    """The Arrow type that stands for one of Iceberg's."""
    match kind:
        case types.StructType():
            return pa.struct([_field(field) for field in kind.fields])
        case types.ListType():
            return pa.list_(arrow_type(kind.element_type, f"{name}.element"))
        case types.MapType():
            return pa.map_(arrow_type(kind.key_type, f"{name}.key"), arrow_type(kind.value_type, f"{name}.value"))
        case types.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case types.FixedType():
            return pa.binary()
    simple = _SIMPLE.get(str(kind))
    if simple is None:
        raise LakeError(f"column {name} is a {kind}, which is not supported", hint="read the table without Penstock")
    return simple
