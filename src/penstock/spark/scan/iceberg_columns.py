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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg import types
from pyiceberg.types import IcebergType, NestedField
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructField, StructType

from penstock.errors import LakeError
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.sql_text import literal_sql, quote_name, quote_text
from penstock.expr.tree import Literal
from penstock.expr.types import is_nested, type_name
from penstock.formats.format_registry import ICEBERG_FORMATS
from penstock.maps.shredded_file import State
from penstock.spark.scan.iceberg_filters import UUID_PARTS, UUID_PATTERN, MapKey, Meanings
from penstock.spark.scan.iceberg_names import ABSENT, Naming, all_fields, surrogate
from penstock.spark.scan.iceberg_shredded import SidecarColumn
from penstock.spark.scan.shredded_map import with_maps
from penstock.tables.iceberg.metadata.schema_columns import arrow_type

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
        return StructType([column for field in self._data for column in self._columns(field)])

    def partitions(self) -> Any:
        """The columns that come with files, as Spark's StructType."""
        by_value = [field for field in self.fields if field.field_id in self.values]
        return StructType([StructField(self.names(f)[0], _spark_type(f.field_type, f.name), True) for f in by_value])

    def _columns(self, field: NestedField) -> Iterator[Any]:
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
        by_id = ICEBERG_FORMATS if self.naming.by_id else ()
        return {each.spark_field_id: field.field_id for each in by_id if each.spark_field_id}

    def _type(self, kind: IcebergType, parent: int, repeated: bool, path: str) -> Any:
        """The Spark type that files are read with."""
        match kind:
            case types.StructType():
                kinds = [self._type(f.field_type, f.field_id, repeated, f"{path}.{f.name}") for f in kind.fields]
                names = [self.naming.nested(f, parent, repeated) for f in kind.fields]
                metadata = map(self._field_metadata, kind.fields)
                return StructType([StructField(n, t, True, m) for n, t, m in zip(names, kinds, metadata, strict=True)])
            case types.ListType():
                element = self._type(kind.element_type, kind.element_id, True, f"{path}.element")
                return ArrayType(element, True)
            case types.MapType():
                key = self._type(kind.key_type, kind.key_id, True, f"{path}.key")
                return MapType(key, self._type(kind.value_type, kind.value_id, True, f"{path}.value"), True)
            case types.UUIDType():
                return BinaryType()
        return _spark_type(kind, path)

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
        return f"if(({quote_name(ABSENT)} & {bit}L) <> 0, {default_sql(field)}, {value})"

    def _named(self, raw: str, field: NestedField) -> str:
        """A column whose fields have the table's names.

        Files without ids may lack fields, and nothing tells which: a cast to and fro keeps Spark from reading single
        fields, as the surrogates of `iceberg_names.py` do elsewhere.
        """
        kind = field.field_type
        if not self.naming.by_id and _has_struct(kind):
            hidden = _ddl(kind, lambda inner, *_: surrogate(inner.field_id))
            return f"CAST(CAST({raw} AS {hidden}) AS {read_type(kind)})"
        return f"CAST({raw} AS {read_type(kind)})" if self.is_renamed(field) else raw

    def _value(self, raw: str, kind: IcebergType, depth: int = 0) -> str:
        """A value as it is shown; only what differs is built anew."""
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

    def is_renamed(self, field: NestedField) -> bool:
        """Whether a field inside is called otherwise in the relation."""
        kind = field.field_type
        return _has_struct(kind) and _ddl(kind, self.naming.nested, field.field_id) != read_type(kind)

    @cached_property
    def meanings(self) -> Meanings:
        """What the relation's columns mean to a filter."""
        columns: dict[str, tuple[str, int]] = {}
        uuids: dict[str, str] = {}
        several: dict[tuple[str, ...], str] = {}
        for field in self.fields:
            names = tuple(name.lower() for name in self.names(field))
            if field.field_id in self.flagged or str(field.field_type) == "unknown":
                continue
            if len(names) > 1:
                several[names] = field.name
            elif field.field_id in self.values:
                columns[names[0]] = field.name, 0
            elif str(field.field_type) == "uuid":
                uuids[names[0]] = field.name
            elif not self._is_rebuilt(field.field_type) and (self.naming.by_id or not _has_struct(field.field_type)):
                columns[names[0]] = field.name, int(self.is_renamed(field))
        keys: dict[str, MapKey] = {}
        hot: dict[tuple[str, ...], set[str]] = {}
        for sidecar in self.sidecars:
            hot.setdefault(sidecar.path, set()).add(sidecar.key)
            if sidecar.state >= State.VALUE and str(sidecar.field.field_type) != "uuid":
                names = self.names(sidecar.field)
                keys |= {names[0].lower(): MapKey(sidecar.path, sidecar.key)} if len(names) == 1 else {}
        return Meanings(columns, uuids, several, keys, {path: frozenset(own) for path, own in hot.items()})

    def column(self, spark: SparkSession, field: NestedField) -> Column:
        """A column of the table, its shredded maps whole."""
        sidecars: dict[tuple[str, ...], list[Any]] = {}
        for each in self.sidecars:
            sidecars.setdefault(each.path, []).append((each.key, F.expr(self._sidecar(each)), each.state_name))
        kind = arrow_type(field.field_type, field.name)
        return with_maps(spark, F.expr(self.shown(field)), kind, (field.name,), sidecars)

    def _sidecar(self, sidecar: SidecarColumn) -> str:
        """A sidecar's values as the map shows them, as Spark SQL over the relation's columns."""
        text = self.shown(sidecar.field)
        return (
            text
            if sidecar.field.field_type == sidecar.value_type
            else f"CAST({text} AS {read_type(sidecar.value_type)})"
        )


def read_type(kind: IcebergType) -> str:
    """The type that a column is read with, as DDL with the table's names."""
    return _ddl(kind, lambda field, *_: field.name)


def _ddl(kind: IcebergType, named: Callable[..., str], parent: int = 0, repeated: bool = False) -> str:
    """A type as DDL; names are those of `Naming.nested`, or others."""
    match kind:
        case types.StructType():
            names = [quoted(named(f, parent, repeated)) for f in kind.fields]
            inside = [_ddl(f.field_type, named, f.field_id, repeated) for f in kind.fields]
            return f"struct<{','.join(map(':'.join, zip(names, inside, strict=True)))}>"
        case types.ListType():
            return f"array<{_ddl(kind.element_type, named, kind.element_id, True)}>"
        case types.MapType():
            key = _ddl(kind.key_type, named, kind.key_id, True)
            return f"map<{key},{_ddl(kind.value_type, named, kind.value_id, True)}>"
        case types.UUIDType():
            return "binary"
    return type_name(arrow_type(kind, "a field"))


def quoted(name: str) -> str:
    """A name as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _has_struct(kind: IcebergType) -> bool:
    return bool(kind.is_struct) or any(f.field_type.is_struct for _, f in all_fields(kind, None))


def _spark_type(kind: IcebergType, path: str) -> Any:
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
