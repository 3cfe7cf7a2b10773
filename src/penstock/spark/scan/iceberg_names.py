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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import LakeError

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import NestedField

DELETED = "__penstock_deleted"  # the positions that are gone, of a file
LISTED = "__penstock_listed"  # the numbers of the equality deletes that apply to a file
ABSENT = "__penstock_absent"  # which columns with a default a file does not have
NUMBER = "__penstock_number"  # the number of an equality delete file
_RESERVED = frozenset({"_metadata", DELETED, LISTED, ABSENT, NUMBER})


class Naming(Protocol):
    """Names inside a relation."""

    @property
    def by_id(self) -> bool:
        """Whether files are read by field id."""

    def top(self, field: NestedField) -> tuple[str, ...]:
        """The names under which a column may stand in files; more than one only where reading is by name."""

    def nested(self, field: NestedField, parent: int, repeated: bool) -> str:
        """The name of a field inside a struct; filters never reach what is repeated (inside lists and maps)."""


@dataclass(frozen=True)
class ById:
    """Names for files that have field ids."""

    names: Mapping[int | None, Mapping[int, tuple[str, ...]]]  # by parent, then by id, the oldest first
    complete: bool
    changed: frozenset[int] = frozenset()  # fields in columns with a struct that has got or lost fields
    replaced: frozenset[int] = frozenset()  # structs of which two schemas have no field in common
    by_id: bool = True

    def top(self, field: NestedField) -> tuple[str, ...]:
        """The oldest name that is this column's alone."""
        own = self._own(field.field_id, None, self.names.get(None, {}).get(field.field_id, (field.name,)))
        return (own or surrogate(field.field_id),)

    def nested(self, field: NestedField, parent: int, repeated: bool) -> str:
        """The present name, where it is this field's alone."""
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
    from pyiceberg.schema import make_compatible_name

    return make_compatible_name(name) if parent is None else name


def _spellings(name: str) -> set[str]:
    """How a file may spell a name, as Spark compares names: writers escape what Avro does not allow."""
    from pyiceberg.schema import make_compatible_name

    return {name.lower(), make_compatible_name(name).lower()}


def names_by_id(metadata: TableMetadata) -> ById:
    """The names for files with ids, by the schemas that the table has had."""
    by_parent: dict[int | None, dict[int, list[str]]] = {}
    structs = _Structs()
    schemas = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
    for schema in schemas:
        structs.add(schema)
        for parent, field in all_fields(schema.as_struct(), None):
            names = by_parent.setdefault(parent, {}).setdefault(field.field_id, [])
            if field.name not in names:
                names.append(field.name)
    ids = {field_id for fields in by_parent.values() for field_id in fields}
    numbered = [schema.schema_id for schema in schemas] == list(range(len(schemas)))
    complete = numbered and ids >= set(range(1, metadata.last_column_id + 1))
    names_found = {p: {i: tuple(n) for i, n in fields.items()} for p, fields in by_parent.items()}
    return ById(names_found, complete, structs.changed(), structs.replaced())


class _Structs:
    """The fields that each struct has had, schema by schema."""

    def __init__(self) -> None:
        self._had: dict[int, list[frozenset[int]]] = {}
        self._inside: dict[int, set[int]] = {}  # by column: everything in it, itself included

    def add(self, schema: Schema) -> None:
        """What a schema's structs have."""
        for column in schema.fields:
            inside = self._inside.setdefault(column.field_id, {column.field_id})
            inside.update(field.field_id for _, field in all_fields(column.field_type, column.field_id))
            for _, field in ((None, column), *all_fields(column.field_type, column.field_id)):
                if field.field_type.is_struct:
                    self._had.setdefault(field.field_id, []).append(
                        frozenset(f.field_id for f in field.field_type.fields)
                    )

    def changed(self) -> frozenset[int]:
        """All fields in columns with a struct that was not always the same."""
        uneven = {struct for struct, had in self._had.items() if len(set(had)) > 1}
        return frozenset(i for inside in self._inside.values() if inside & uneven for i in inside)

    def replaced(self) -> frozenset[int]:
        """Structs of which two schemas have no field in common."""
        return frozenset(
            struct for struct, had in self._had.items() if any(not (a & b) for a in set(had) for b in set(had))
        )


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


def names_of_mapping(mapping: Any) -> ByName:
    """The names for files without ids, by the table's name mapping."""
    return ByName({i: tuple(names) for i, names in _mapped(mapping.root) if i is not None})


def _mapped(fields: Any) -> Iterator[tuple[int | None, Sequence[str]]]:
    for field in fields:
        yield field.field_id, field.names
        yield from _mapped(field.fields)
