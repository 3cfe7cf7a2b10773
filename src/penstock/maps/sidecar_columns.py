"""Sidecars in the schema of an Iceberg table: real, optional columns that people do not see.

They are columns of the schema because another engine that compacts the table writes the columns that the schema has
and no others. What a sidecar holds is said in its documentation and, in case that gets lost, in a table property:

    __map_shred_headers_0   {"sidecar of": 4, "key": "content-type", "mode": "move"}

The map is named by its field id, so a renamed map keeps its sidecars. The number in the name is never used again for
another key, and a sidecar never changes its mode: a key that changes to `mirror` gets another sidecar.

What a sidecar means does not depend on who wrote the file. `move`: the value of the key is the sidecar's, or else the
map's. `mirror`: the map's; the sidecar is a copy, to be used where the file is known to be Penstock's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from penstock.errors import LakeError, SchemaError
from penstock.maps.name_lists import read_object
from penstock.maps.shred_rule import COLUMNS, MIRROR, MOVE, Shred

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.types import IcebergType, MapType, NestedField, StructType

KNOWN = "penstock.map.shredding.sidecars"
STEM = "__map_shred_"
_NAME = re.compile(rf"{STEM}.+_\d+")


@dataclass(frozen=True)
class Sidecar:
    """The column of one key of a map: `id` and `name` are its own, `source` is the map's field id."""

    id: int
    name: str
    source: int
    key: str
    mode: str

    @property
    def doc(self) -> str:
        """What the schema says of it."""
        return json.dumps({"sidecar of": self.source, "key": self.key, "mode": self.mode}, ensure_ascii=False)


def read_sidecars(schema: Schema, properties: Mapping[str, str]) -> tuple[Sidecar, ...]:
    """The sidecars of a schema (PyIceberg's), those of maps that were dropped included, whatever they are called now.

    A column with a sidecar's name of which nothing is known makes its map unreadable in a table that is shredded: an
    error. In any other table it is a column like others.
    """
    known = read_object(properties.get(KNOWN))
    named = [field for field in schema.fields if is_reserved(field.name) or str(field.field_id) in known]
    if not named:
        return ()
    sidecars = [_read(field, known) for field in named]
    lost = next((field.name for field, sidecar in zip(named, sidecars, strict=True) if sidecar is None), None)
    if lost is not None and (COLUMNS in properties or any(sidecars)):
        message = f"column {lost} is a sidecar, and neither its documentation nor {KNOWN} says of which key"
        raise LakeError(message, hint="restore one of them from an older version of the table's metadata")
    return tuple(sidecar for sidecar in sidecars if sidecar is not None)


def check_complete(metadata: TableMetadata, schema: Schema, lost: Iterable[int]) -> None:
    """An error when values of a map that a schema has lie in sidecars that it does not have: somebody dropped them.

    `lost` are field ids of such sidecars. Those of maps that are gone too, and mere copies, are not missed.
    """
    known = read_object(metadata.properties.get(KNOWN))
    for field_id in lost:
        field = next((f for older in metadata.schemas for f in older.fields if f.field_id == field_id), None)
        sidecar = None if field is None else _read(field, known)
        if sidecar is None or (sidecar.mode == MOVE and path_of(schema, sidecar) is not None):
            message = f"values of a map lie in the column with field id {field_id}"
            message += "" if field is None else f", {field.name}"
            hint = "read a snapshot from before it was dropped, or restore the table's metadata"
            raise LakeError(f"{message}, which the table does not have any more", hint=hint)


def _read(field: NestedField, known: Mapping[str, Any]) -> Sidecar | None:
    for described in (read_object(field.doc), known.get(str(field.field_id))):
        if isinstance(described, dict):
            source, key, mode = (described.get(name) for name in ("sidecar of", "key", "mode"))
            if isinstance(source, int) and isinstance(key, str) and mode in (MOVE, MIRROR):
                return Sidecar(field.field_id, field.name, source, key, mode)
    return None


def known_property(sidecars: Iterable[Sidecar]) -> dict[str, str]:
    """The property that repeats what the documentation of sidecars says."""
    documents = {str(sidecar.id): json.loads(sidecar.doc) for sidecar in sidecars}
    return {KNOWN: json.dumps(documents, ensure_ascii=False)}


def is_reserved(name: str) -> bool:
    """Whether only a sidecar may be called so."""
    return _NAME.fullmatch(name) is not None


def check_names(names: Iterable[str]) -> None:
    """An error when a column has a sidecar's name."""
    taken = next((name for name in names if is_reserved(name)), None)
    if taken is not None:
        raise SchemaError(
            f"column {taken!r} is called like a sidecar", hint=f"names that begin with {STEM} are kept free"
        )


def visible(schema: Schema, sidecars: Sequence[Sidecar]) -> Schema:
    """A schema without its sidecars."""
    if not sidecars:
        return schema
    from pyiceberg.schema import Schema

    hidden = {sidecar.id for sidecar in sidecars}
    fields = [field for field in schema.fields if field.field_id not in hidden]
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=schema.identifier_field_ids)


def source_map(schema: Schema, column: str) -> NestedField:
    """The field of a map whose keys can be split off, by its name or path; an error says what it is instead."""
    try:
        field = schema.find_field(column, case_sensitive=False)
    except ValueError:
        known = ", ".join(".".join(path) for path, _ in shreddable_maps(schema)) or "none"
        raise SchemaError(f"shred: no column {column!r}", hint=f"maps are: {known}") from None
    path = path_to(schema.fields, field.field_id)
    if path is None:
        raise SchemaError(
            f"shred: {column!r} lies in a list or a map", hint="only maps in columns and structs can be split"
        )
    kind = field.field_type
    if not _is_map(kind):
        raise SchemaError(f"shred: {column!r} is a {kind} and no map", hint="name a map with text keys")
    if not _is_shreddable(kind):
        message = f"shred: {column!r} is a {kind}; keys have to be texts, and values plain"
        raise SchemaError(message, hint="name another map")
    return field


def map_path(schema: Schema, column: str) -> tuple[str, ...] | None:
    """The path of a rule's map; None where no map can be split: another engine may have changed the table."""
    try:
        return path_to(schema.fields, source_map(schema, column).field_id)
    except SchemaError:
        return None


def _is_map(kind: IcebergType) -> TypeGuard[MapType]:
    from pyiceberg.types import MapType

    return isinstance(kind, MapType)


def shreddable_maps(schema: Schema) -> list[tuple[tuple[str, ...], NestedField]]:
    """The maps of a schema whose keys can be split off, with their paths."""
    return [(path, field) for path, field in _through_structs(schema.fields) if _is_shreddable(field.field_type)]


def _is_shreddable(kind: IcebergType) -> bool:
    return _is_map(kind) and str(kind.key_type) == "string" and kind.value_type.is_primitive


def path_to(fields: Iterable[NestedField], field_id: int) -> tuple[str, ...] | None:
    """The way to a field through structs alone."""
    return next((path for path, field in _through_structs(fields) if field.field_id == field_id), None)


def _through_structs(
    fields: Iterable[NestedField], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    """Fields and those inside structs, with their paths."""
    for field in fields:
        path = (*above, field.name)
        yield path, field
        if field.field_type.is_struct:
            yield from _through_structs(cast("StructType", field.field_type).fields, path)


def path_of(schema: Schema, sidecar: Sidecar) -> tuple[str, ...] | None:
    """The path of a sidecar's map; None when that was dropped."""
    return path_to(schema.fields, sidecar.source)


def value_type(schema: Schema, sidecar: Sidecar) -> IcebergType:
    """Iceberg's type of the values of a sidecar's map, which may have become wider than the sidecar's own."""
    kind = schema.find_field(sidecar.source).field_type
    assert _is_map(kind)  # or it had no sidecar
    return kind.value_type


def missing(
    schema: Schema, sidecars: Sequence[Sidecar], hot: Mapping[str, tuple[Shred, Sequence[str]]]
) -> list[Sidecar]:
    """The sidecars that rules want and a schema does not have; their ids are only given when they are added.

    `hot` has the rule of each map with its keys: those of the rule, or those that were chosen.
    """
    have = {(sidecar.source, sidecar.key, sidecar.mode) for sidecar in sidecars}
    taken = {field.name for field in schema.fields}
    added: list[Sidecar] = []
    for column, (rule, keys) in hot.items():
        field = source_map(schema, column)
        for key in keys:
            if (field.field_id, key, rule.mode) not in have:
                stem = f"{STEM}{column.replace('.', '_')}_"
                name = next(f"{stem}{i}" for i in count() if f"{stem}{i}" not in taken)
                taken.add(name)
                added.append(Sidecar(-1, name, field.field_id, key, rule.mode))
    return added
