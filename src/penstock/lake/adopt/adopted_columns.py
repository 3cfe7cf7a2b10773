"""The columns of many files as those of one table, and the names by which readers find them in each file.

    a.parquet: id int,    App string         table: id bigint, App string, n int     (dt is in the path)
    b.parquet: id bigint, app string, n int  names: id → id, App → App and app, n → n

A type is widened where Iceberg has that: int to bigint, float to double, decimal to more digits of the same scale.
Every other difference is an error that names both files. Cases of a column's name are names of one column; inside of
structs they are an error, since readers have no two names for such a field.

A column of a file that the path has as well is not believed: it gets an id that no column of the table has or will
have, so that every reader passes over it and takes the value of the path. The same for one that the table has dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from penstock.errors import SchemaError
from penstock.expr.types import is_decimal, is_nested, normalize, type_name
from penstock.formats.parquet_footer import leaves_of
from penstock.lake.adopt.adoptable_types import wide_type

UNREAD = 2_000_000_000  # ids from here on are of columns that nobody reads; those of tables are counted from 1
_WIDER = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}
_HINT = "change the file, or leave it out and write its rows to the table: penstock ingest"


@dataclass
class Column:
    """A column, or a field inside of one: its names in files, its type, and who has it first."""

    name: str
    type: pa.DataType  # of a nested one only its kind counts
    first: str
    names: list[str] = field(default_factory=list)
    parts: list[Column] = field(default_factory=list)  # of a struct by name; element; key and value

    @classmethod
    def of(cls, name: str, kind: pa.DataType, first: str) -> Column:
        """A column as one file, or a table, has it."""
        column = cls(name, kind, first, [name])
        column.parts = [cls.of(name, part, first) for name, part in _parts(kind)]
        return column

    @property
    def arrow_type(self) -> pa.DataType:
        """Its type as Arrow's, those of its parts included."""
        if pa.types.is_struct(self.type):
            return pa.struct([pa.field(part.name, part.arrow_type) for part in self.parts])
        if pa.types.is_map(self.type):
            return pa.map_(*(part.arrow_type for part in self.parts))
        return pa.list_(self.parts[0].arrow_type) if pa.types.is_list(self.type) else self.type

    def take(self, kind: pa.DataType, url: str, path: str) -> None:
        """Make room for the type that a file has for it."""
        if self.type.id != kind.id or not is_nested(kind):
            self._take_leaf(kind, url, path)
        elif pa.types.is_struct(kind):
            for name, part in _parts(kind):
                self._take_part(name, part, url, f"{path}.{name}")
        else:
            for known, (name, part) in zip(self.parts, _parts(kind), strict=True):
                if name == "key" and known.arrow_type != part:
                    raise self._conflict(kind, url, path)
                known.take(part, url, f"{path}.{name}")

    def mapped(self, own: NestedField) -> MappedField:
        """Its names for readers; `own` is what the table has it as."""
        inner = {f.name: f for f in _fields(own.field_type)}
        parts = [part.mapped(inner[part.name]) for part in self.parts]
        return MappedField(field_id=own.field_id, names=self.names, fields=parts)  # type: ignore[call-arg]

    def ids(self, own: NestedField, kind: pa.DataType) -> Iterator[tuple[int, IcebergType]]:
        """Ids and types of the columns that a file has for it, which is of this type there."""
        if not is_nested(kind):
            yield own.field_id, own.field_type
        inner = {f.name: f for f in _fields(own.field_type)}
        by_name = {part.name: part for part in self.parts}
        for name, part in _parts(kind):
            yield from by_name[name].ids(inner[name], part)

    def _take_leaf(self, kind: pa.DataType, url: str, path: str) -> None:
        if kind == self.type or _is_wider(self.type, kind):
            return
        if not _is_wider(kind, self.type):
            raise self._conflict(kind, url, path)
        self.type = kind

    def _take_part(self, name: str, kind: pa.DataType, url: str, path: str) -> None:
        known = next((part for part in self.parts if part.name.lower() == name.lower()), None)
        if known is None:
            self.parts.append(Column.of(name, kind, url))
        elif known.name != name:
            message = f"{url}: field {path}, and {known.first} has it as {known.name!r}: inside of structs case counts"
            raise SchemaError(message, hint=_HINT)
        else:
            known.take(kind, url, path)

    def _conflict(self, kind: pa.DataType, url: str, path: str) -> SchemaError:
        file_type, known = type_name(kind), type_name(self.arrow_type)
        return SchemaError(f"{url}: column {path} is {file_type}, and {self.first} has {known}", hint=_HINT)


@dataclass
class Columns:
    """The columns of a table to be, or of one with those of more files."""

    columns: list[Column] = field(default_factory=list)
    unread: dict[str, tuple[int, list[str]]] = field(default_factory=dict)  # by name in lower case: id, names in files
    dropped: list[MappedField] = field(default_factory=list)  # what a table says of columns that it had

    @classmethod
    def of_partitions(cls, names: Sequence[str]) -> Columns:
        """Those of a new table that has these columns in the path."""
        return cls([], {name.lower(): (UNREAD + i, []) for i, name in enumerate(names)})

    @classmethod
    def of_table(cls, schema: Schema, mapping: NameMapping | None, names: Sequence[str], table: str) -> Columns:
        """Those of a table that exists."""
        known = {each.field_id: each for each in mapping or () if each.field_id is not None}
        in_path, columns = {name.lower() for name in names}, Columns()
        for own in schema.fields:
            if own.name.lower() in in_path:
                columns.unread[own.name.lower()] = (UNREAD + own.field_id, [])
            else:
                names_in_files = known[own.field_id].names if own.field_id in known else [own.name]
                columns.columns.append(_of_field(own, table, names_in_files))
        for i in known.keys() - {own.field_id for own in schema.fields}:
            if i < UNREAD:
                columns.dropped.append(known[i])
            for name in known[i].names:
                columns.unread.setdefault(name.lower(), (i, []))[1].append(name)
        return columns

    def take(self, schema: pa.Schema, url: str) -> None:
        """Make room for the columns of a file."""
        for own in schema:
            known = self.find(own.name)
            if own.name.lower() in self.unread and known is None:
                self._pass_over(own, url)
            elif known is None:
                self.columns.append(Column.of(own.name, own.type, url))
            else:
                known.names += [own.name] if own.name not in known.names else []
                known.take(own.type, url, own.name)

    def find(self, name: str) -> Column | None:
        """The column that a file has under a name."""
        for column in self.columns:
            if name in column.names or name.lower() in (known.lower() for known in column.names):
                return column
        return None

    def _pass_over(self, own: pa.Field, url: str) -> None:
        field_id, names = self.unread[own.name.lower()]
        if is_nested(own.type) and field_id >= UNREAD:
            message = f"{url}: column {own.name} is {type_name(own.type)}, and the path has a value of that name"
            raise SchemaError(message, hint=_HINT)
        names += [own.name] if own.name not in names else []

    def schema(self) -> pa.Schema:
        """The columns of the files."""
        return pa.schema([pa.field(column.name, column.arrow_type) for column in self.columns])

    def mapping(self, schema: Schema) -> NameMapping:
        """The names by which readers find the columns of a table in files without ids."""
        own = {each.name: each for each in schema.fields}
        mapped = [column.mapped(own[column.name]) for column in self.columns]
        unread = {i: names for i, names in self.unread.values() if names and i >= UNREAD}
        mapped += [MappedField(field_id=i, names=names) for i, names in unread.items()]  # type: ignore[call-arg]
        return NameMapping([*mapped, *self.dropped])

    def ids(self, schema: Schema, file: pa.Schema) -> list[tuple[int, IcebergType] | None]:
        """Of each column of a file the id and the type that a table has for it; None for one that is passed over."""
        own = {each.name: each for each in schema.fields}
        ids: list[tuple[int, IcebergType] | None] = []
        for each in file:
            column = self.find(each.name)
            if column is None:
                ids += [None] * len(leaves_of(pa.schema([each])))
            else:
                ids += column.ids(own[column.name], each.type)
        return ids


def _of_field(own: NestedField, table: str, names: Sequence[str]) -> Column:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    kind = wide_type(normalize(schema_to_pyarrow(own.field_type, include_field_ids=False)))
    column = Column.of(own.name, kind, table)
    column.names = list(names)
    return column


def _parts(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [(part.name, part.type) for part in kind]
    if pa.types.is_map(kind):
        return [("key", kind.key_type), ("value", kind.item_type)]
    return [("element", kind.value_type)] if pa.types.is_list(kind) else []


def _fields(kind: IcebergType) -> tuple[NestedField, ...]:
    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return (kind.element_field,)
        case MapType():
            return (kind.key_field, kind.value_field)
    return ()


def _is_wider(wide: pa.DataType, narrow: pa.DataType) -> bool:
    if is_decimal(wide) and is_decimal(narrow):
        return bool(wide.scale == narrow.scale and wide.precision > narrow.precision)
    return (narrow, wide) in _WIDER
