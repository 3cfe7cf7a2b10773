"""What the columns of an Iceberg table are called inside Spark's relation, so that no file's statistics are misread.

Spark reads a column by its field id, but it pushes filters to Parquet by *name*: in a file that has another column of
that name, row groups would be skipped by the wrong column's statistics, and rows would be lost without a word.

    schema 0: a (id 1), b (id 2)      schema 1: b (id 1), a (id 2)      filter: a = 5, meaning id 2
    a file of schema 0 has `a`, which is id 1: Parquet would skip its row groups by the values of id 1

So a field gets a name that no other field of its parent has had in any schema of the table:

| the field | its name in the relation | row groups are skipped |
|---|---|---|
| never renamed | its name | yes |
| renamed, no name shared | the oldest of its names | in files that have that name |
| every name shared with another field | `__penstock_<id>` | no, but rows are right |

Inside structs the present name is taken, or the surrogate. Where a struct has got or lost fields, all fields in that
column get surrogates: the cast that gives them their names back also keeps Spark from reading single fields, and a
struct of which a file has none of the wanted fields would be null to Spark, though it is not. A struct whose fields
were all replaced is an error for the same reason.

The schemas that a table's metadata lists are its history only while none was removed; where one is missing (a gap in
their ids, or a column id that none of them has), every name might have stood for anything, and all fields get
surrogates.

Files without field ids are found by the names of the table's name mapping, which gives each name to one field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.schema import make_compatible_name
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField

from penstock.errors import LakeError

# Columns that come with files besides the table's own; plans show them.
DELETED = "deleted positions of the file"
LISTED = "deletes by value of the file"  # the numbers of those that apply to it
ABSENT = "absent fields of the file"  # which columns with a default it does not have
NUMBER = "number of the delete by value"
_RESERVED = frozenset({"_metadata", "_spec_id", DELETED, LISTED, ABSENT, NUMBER})


@dataclass(frozen=True)
class ById:
    """Names for files that have field ids."""

    names: Mapping[int | None, Mapping[int, tuple[str, ...]]]  # by parent, then by id, the oldest first
    complete: bool
    changed: frozenset[int] = frozenset()  # fields in columns with a struct that has got or lost fields
    replaced: frozenset[int] = frozenset()  # structs of which two schemas have no field in common
    by_id: bool = True

    def top(self, field: NestedField) -> tuple[str, ...]:
        """The names under which a column may stand in files: here, the oldest that is this column's alone."""
        own = self._own(field.field_id, None, self.names.get(None, {}).get(field.field_id, (field.name,)))
        return (own or surrogate(field.field_id),)

    def nested(self, field: NestedField, parent: int, repeated: bool) -> str:
        """The present name, where it is this field's alone; filters never reach what is repeated, in lists and maps."""
        if parent in self.replaced:
            message = f"the fields beside {field.name!r} were replaced, so Spark would read older structs as null"
            raise LakeError(message, hint="read the table with table.arrow()")
        if not self.complete or field.field_id in self.changed:
            return surrogate(field.field_id)
        if repeated:
            return str(field.name)
        return self._own(field.field_id, parent, (field.name,)) or surrogate(field.field_id)

    def _own(self, field_id: int, parent: int | None, names: Sequence[str]) -> str | None:
        if not self.complete:
            return None
        others = [spelled for i, known in self.names.get(parent, {}).items() if i != field_id for spelled in known]
        taken = {name for other in others for name in _spellings(other)} | (_RESERVED if parent is None else set())
        return next((_in_files(n, parent) for n in names if not _spellings(n) & taken), None)


def surrogate(field_id: int) -> str:
    """A name that no file has."""
    return f"__penstock_{field_id}"


def _in_files(name: str, parent: int | None) -> str:
    """As writers spell it in Parquet; nested names stay, so that nothing has to be renamed back."""
    return make_compatible_name(name) if parent is None else name


def _spellings(name: str) -> set[str]:
    """How a file may spell a name, as Spark compares names: writers escape what Avro does not allow."""
    return {name.lower(), make_compatible_name(name).lower()}


def names_by_id(metadata: TableMetadata) -> ById:
    """The names for files with ids, by the schemas that the table has had."""
    names: defaultdict[int | None, defaultdict[int, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    structs: defaultdict[int, set[frozenset[int]]] = defaultdict(set)  # the fields that each has had
    columns: defaultdict[int, set[int]] = defaultdict(set)  # everything that was in each, itself included
    schemas = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    for schema in schemas:
        for parent, field in all_fields(schema.as_struct(), None):
            names[parent][field.field_id][field.name] = None
            if field.field_type.is_struct:
                structs[field.field_id].add(frozenset(inner.field_id for inner in field.field_type.fields))
        for column in schema.fields:
            inside = all_fields(column.field_type, column.field_id)
            columns[column.field_id] |= {column.field_id, *(field.field_id for _, field in inside)}
    ids = {field_id for fields in names.values() for field_id in fields}
    numbered = [schema.schema_id for schema in schemas] == list(range(len(schemas)))
    complete = numbered and ids >= set(range(1, metadata.last_column_id + 1))
    uneven = {struct for struct, had in structs.items() if len(had) > 1}
    changed = frozenset(i for inside in columns.values() if inside & uneven for i in inside)
    replaced = frozenset(i for i, had in structs.items() if any(not (a & b) for a in had for b in had))
    by_parent = {parent: {i: tuple(own) for i, own in fields.items()} for parent, fields in names.items()}
    return ById(by_parent, complete, changed, replaced)


def all_fields(kind: Any, parent: int | None) -> Iterator[tuple[int | None, Any]]:
    """All fields below a type, with the id of what they lie in."""
    fields: tuple[Any, ...] = ()
    if kind.is_struct:
        fields = kind.fields
    elif hasattr(kind, "element_field"):
        fields = (kind.element_field,)
    elif hasattr(kind, "key_field"):
        fields = (kind.key_field, kind.value_field)
    for field in fields:
        yield parent, field
        yield from all_fields(field.field_type, field.field_id)


@dataclass(frozen=True)
class ByName:
    """Names for files that have no field ids."""

    names: Mapping[int, tuple[str, ...]]
    by_id: bool = False

    def top(self, field: NestedField) -> tuple[str, ...]:
        """The names of the mapping; one that no file has where the mapping does not know the column."""
        return self.names.get(field.field_id) or (surrogate(field.field_id),)

    def nested(self, field: NestedField, parent: int, repeated: bool) -> str:
        """The one name of the mapping."""
        names = self.names.get(field.field_id) or (surrogate(field.field_id),)
        if len(names) > 1:
            message = f"the nested field {field.name!r} has the names {', '.join(names)} in the table's name mapping"
            raise LakeError(f"{message}, and only columns may have several", hint="read it with table.arrow()")
        return names[0]


Naming = ById | ByName


def names_of_mapping(mapping: Any) -> ByName:
    """The names for files without ids, by the table's name mapping."""
    return ByName({i: _differing(names) for i, names in _mapped(mapping.root) if i is not None})


def _differing(names: Sequence[str]) -> tuple[str, ...]:
    """Names without those that are another one to Spark's reader, which ignores case."""
    return tuple({name.lower(): name for name in reversed(names)}.values())[::-1]


def _mapped(fields: Any) -> Iterator[tuple[int | None, Sequence[str]]]:
    for field in fields:
        yield field.field_id, field.names
        yield from _mapped(field.fields)
