"""An Iceberg schema as Spark's relation has it, and the projection above that makes the table's own columns of it.

The relation has what Parquet files hold, by field id (`parquet.field.id`); the projection gives the columns their names
and whatever Spark's reader cannot do itself:

| column | in the relation | above it |
|---|---|---|
| uuid | binary | its text with hyphens |
| default of a binary, uuid or nested field | null in files without it | the default, by a flag of the file |
| any other default | `EXISTS_DEFAULT` | |
| fields of a struct whose names are shared | surrogates | a cast, which goes by position |
| unknown | not there | NULL |
| time | an error that names the column | |

Filters that reach the relation speak of its columns; `Shape.meanings` says what they mean in the table's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.sql_text import literal_sql, quote_name, quote_text
from penstock.expr.tree import Literal
from penstock.expr.types import is_nested, type_name
from penstock.formats.format_registry import DEFAULT
from penstock.maps.shredded_file import State
from penstock.spark.scan.iceberg_filters import UUID_PARTS, UUID_PATTERN, MapKey, Meanings
from penstock.spark.scan.iceberg_names import ABSENT, Naming, all_fields, surrogate
from penstock.spark.scan.iceberg_shredded import SidecarColumn
from penstock.tables.iceberg.metadata.schema_columns import arrow_type

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType, NestedField

FIELD_ID = DEFAULT.spark_field_id
_OF_FILES = frozenset({"uuid", "binary"})  # defaults of these fail in Spark's reader; fixed[n] too


@dataclass(frozen=True)
class Shape:
    """The columns of one relation: `fields` of the schema, of which those in `values` come with each file."""

    fields: tuple[NestedField, ...]  # PyIceberg's
    naming: Naming
    values: frozenset[int]  # ids of partition columns
    sidecars: tuple[SidecarColumn, ...] = ()  # of maps among the fields; what filters mean goes by them

    def names(self, field: NestedField) -> tuple[str, ...]:
        """The columns of the relation that a column of the table is made of."""
        return (self.naming.top(field)[0],) if field.field_id in self.values else self.naming.top(field)

    @cached_property
    def flagged(self) -> tuple[int, ...]:
        """The fields whose default is filled in above the relation, by their place among the flags."""
        ids = []
        for field in self._data:
            inside = [f for _, f in all_fields(field.field_type, field.field_id)]
            ids += [f.field_id for f in inside if f.initial_default is not None]
            if field.initial_default is not None and not self._is_native(field):
                ids.append(field.field_id)
        if len(ids) > 63:
            raise LakeError(f"{len(ids)} columns have defaults that Spark cannot fill in, and 63 are supported")
        return tuple(ids)

    @property
    def _data(self) -> list[NestedField]:
        own = [field for field in self.fields if field.field_id not in self.values]
        return own + [sidecar.field for sidecar in self.sidecars]

    def _is_native(self, field: NestedField) -> bool:
        kind = str(field.field_type)
        return self.naming.by_id and kind not in _OF_FILES and not kind.startswith("fixed")

    def data(self) -> Any:
        """The columns that are read from files, as Spark's StructType."""
        from pyspark.sql.types import StructType

        return StructType([column for field in self._data for column in self._columns(field)])

    def partitions(self) -> Any:
        """The columns that come with files, as Spark's StructType."""
        from pyspark.sql.types import StructField, StructType

        by_value = [field for field in self.fields if field.field_id in self.values]
        return StructType([StructField(self.names(f)[0], _spark_type(f.field_type, f.name), True) for f in by_value])

    def _columns(self, field: NestedField) -> Iterator[Any]:
        from pyspark.sql.types import StructField

        if str(field.field_type) == "unknown":
            return
        metadata = self._field_metadata(field)
        if field.initial_default is not None and self._is_native(field):
            text = default_sql(field)
            metadata |= {"EXISTS_DEFAULT": text, "CURRENT_DEFAULT": text}
        kind = self._type(field.field_type, field.field_id, False, field.name)
        for name in self.names(field):
            yield StructField(name, kind, True, metadata)

    def _field_metadata(self, field: NestedField) -> dict[str, Any]:
        return {FIELD_ID: field.field_id} if self.naming.by_id else {}

    def _type(self, kind: IcebergType, parent: int, repeated: bool, path: str) -> Any:
        """The Spark type that files are read with."""
        from pyiceberg import types
        from pyspark.sql import types as spark

        match kind:
            case types.StructType():
                return spark.StructType([self._nested(f, parent, repeated, path) for f in kind.fields])
            case types.ListType():
                element = self._type(kind.element_type, kind.element_id, True, f"{path}.element")
                return spark.ArrayType(element, True)
            case types.MapType():
                key = self._type(kind.key_type, kind.key_id, True, f"{path}.key")
                return spark.MapType(key, self._type(kind.value_type, kind.value_id, True, f"{path}.value"), True)
            case types.UUIDType():
                return spark.BinaryType()
        return _spark_type(kind, path)

    def _nested(self, field: NestedField, parent: int, repeated: bool, path: str) -> Any:
        from pyspark.sql.types import StructField

        kind = self._type(field.field_type, field.field_id, repeated, f"{path}.{field.name}")
        return StructField(self.naming.nested(field, parent, repeated), kind, True, self._field_metadata(field))

    def shown(self, field: NestedField) -> str:
        """A column of the table as Spark SQL over the relation's."""
        if field.field_id in self.values:
            return quote_name(self.names(field)[0])
        if str(field.field_type) == "unknown":
            return "NULL"
        names = [quote_name(name) for name in self.names(field)]
        raw = names[0] if len(names) == 1 else f"coalesce({', '.join(names)})"
        return self._filled(field, self._value(self._named(raw, field), field.field_type))

    def _filled(self, field: NestedField, value: str) -> str:
        if field.field_id not in self.flagged:
            return value
        bit = 1 << self.flagged.index(field.field_id)
        return f"if(({ABSENT} & {bit}L) <> 0, {default_sql(field)}, {value})"

    def _named(self, raw: str, field: NestedField) -> str:
        """A column whose fields have the table's names.

        Files without ids may lack fields, and nothing tells which: a cast to and fro keeps Spark from reading single
        fields, as the surrogates of `iceberg_names.py` do elsewhere.
        """
        kind = field.field_type
        if not self.naming.by_id and _has_struct(kind):
            raw = f"CAST({raw} AS {read_type(kind, hidden=True)})"
            return f"CAST({raw} AS {read_type(kind)})"
        return f"CAST({raw} AS {read_type(kind)})" if self.is_renamed(kind, field.field_id, False) else raw

    def _value(self, raw: str, kind: IcebergType, depth: int = 0) -> str:
        """A value as it is shown; only what differs is built anew."""
        from pyiceberg import types

        if not self._is_rebuilt(kind):
            return raw
        x, key = f"x{depth}", f"k{depth}"
        match kind:
            case types.StructType():
                parts = [part for f in kind.fields for part in (quote_text(f.name), self._part(raw, f, depth))]
                return f"if({raw} IS NULL, NULL, named_struct({', '.join(parts)}))"
            case types.ListType():
                return f"transform({raw}, {x} -> {self._value(x, kind.element_type, depth + 1)})"
            case types.MapType():
                values = f"transform_values({raw}, ({key}, {x}) -> {self._value(x, kind.value_type, depth + 1)})"
                return f"transform_keys({values}, ({key}, {x}) -> {self._value(key, kind.key_type, depth + 1)})"
        return f"lower(regexp_replace(hex({raw}), '{UUID_PATTERN}', '{UUID_PARTS}'))"

    def _part(self, struct: str, field: NestedField, depth: int) -> str:
        return self._filled(field, self._value(f"{struct}.{quote_name(field.name)}", field.field_type, depth))

    def _is_rebuilt(self, kind: IcebergType) -> bool:
        inside = [f for _, f in all_fields(kind, None)]
        return str(kind) == "uuid" or any(str(f.field_type) == "uuid" or f.field_id in self.flagged for f in inside)

    def is_renamed(self, kind: IcebergType, parent: int, repeated: bool) -> bool:
        """Whether a field inside is called otherwise in the relation."""
        from pyiceberg import types

        match kind:
            case types.StructType():
                return any(
                    self.naming.nested(f, parent, repeated) != f.name
                    or self.is_renamed(f.field_type, f.field_id, repeated)
                    for f in kind.fields
                )
            case types.ListType():
                return self.is_renamed(kind.element_type, kind.element_id, True)
            case types.MapType():
                return self.is_renamed(kind.key_type, kind.key_id, True) or self.is_renamed(
                    kind.value_type, kind.value_id, True
                )
        return False

    @cached_property
    def meanings(self) -> Meanings:
        """What the relation's columns mean to a filter."""
        plain: dict[str, str] = {}
        casted: dict[str, str] = {}
        uuids: dict[str, str] = {}
        several: dict[tuple[str, ...], str] = {}
        for field in self.fields:
            names = tuple(name.lower() for name in self.names(field))
            if field.field_id in self.flagged or str(field.field_type) == "unknown":
                continue
            if len(names) > 1:
                several[names] = field.name
            elif field.field_id in self.values:
                plain[names[0]] = field.name
            elif str(field.field_type) == "uuid":
                uuids[names[0]] = field.name
            elif not self._is_rebuilt(field.field_type) and (self.naming.by_id or not _has_struct(field.field_type)):
                renamed = self.is_renamed(field.field_type, field.field_id, False)
                (casted if renamed else plain)[names[0]] = field.name
        keys: dict[str, MapKey] = {}
        hot: dict[tuple[str, ...], set[str]] = {}
        for sidecar in self.sidecars:
            hot.setdefault(sidecar.path, set()).add(sidecar.key)
            if sidecar.state >= State.VALUE and str(sidecar.field.field_type) != "uuid":
                names = self.names(sidecar.field)
                keys |= {names[0].lower(): MapKey(sidecar.path, sidecar.key)} if len(names) == 1 else {}
        return Meanings(plain, casted, uuids, several, keys, {path: frozenset(own) for path, own in hot.items()})

    def value(self, sidecar: SidecarColumn) -> str:
        """A sidecar's values as the map shows them, as Spark SQL over the relation's columns."""
        text = self.shown(sidecar.field)
        return (
            text
            if sidecar.field.field_type == sidecar.value_type
            else f"CAST({text} AS {read_type(sidecar.value_type)})"
        )


def read_type(kind: IcebergType, *, hidden: bool = False) -> str:
    """The type that a column is read with, as DDL with the table's names; `hidden`: with names that nothing has."""
    from pyiceberg import types

    match kind:
        case types.StructType():
            named = [(surrogate(f.field_id) if hidden else f.name, f.field_type) for f in kind.fields]
            return f"struct<{','.join(f'{quoted(name)}:{read_type(t, hidden=hidden)}' for name, t in named)}>"
        case types.ListType():
            return f"array<{read_type(kind.element_type, hidden=hidden)}>"
        case types.MapType():
            key, value = (read_type(t, hidden=hidden) for t in (kind.key_type, kind.value_type))
            return f"map<{key},{value}>"
        case types.UUIDType():
            return "binary"
    return type_name(arrow_type(kind, "a field"))


def quoted(name: str) -> str:
    """A name as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _has_struct(kind: IcebergType) -> bool:
    return bool(kind.is_struct) or any(f.field_type.is_struct for _, f in all_fields(kind, None))


def _spark_type(kind: IcebergType, path: str) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type

    if str(kind) in ("time", "unknown"):
        raise LakeError(f"column {path} is a {kind}, which Spark cannot read", hint="read the table with table.arrow()")
    return from_arrow_type(arrow_type(kind, path), prefer_timestamp_ntz=True)


def default_sql(field: NestedField) -> str:
    """The default of a field as Spark SQL that means exactly it."""
    kind = arrow_type(field.field_type, field.name)
    if is_nested(kind) or pa.types.is_time(kind):
        message = f"a default of the type {field.field_type} is not supported"
        raise LakeError(message, hint="read the table with table.arrow()")
    value = str(field.initial_default) if kind == pa.string() else field.initial_default
    return literal_sql(Literal(from_arrow(pa.array([value], kind))[0], kind))
