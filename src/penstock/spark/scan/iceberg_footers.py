"""What the footers of data files say about field ids; read only where a table's metadata leaves it open.

A table with a name mapping may have files with field ids and files without; a column whose default Spark cannot fill in
needs to know which files lack it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO

from penstock.formats.file_format import AS_STORED
from penstock.formats.format_registry import iceberg_format_of
from penstock.storage.storage import clear_read_errors
from penstock.tables.iceberg.scan.delete_files import DAMAGED


@dataclass(frozen=True, slots=True)
class Footer:
    """The fields of a file: whether they have ids, and which fields there are, by id or by path of names."""

    has_ids: bool
    ids: frozenset[int]
    paths: frozenset[tuple[str, ...]]


def read_footer(path: str, io: FileIO) -> Footer:
    """The fields of one file."""
    with clear_read_errors(path, DAMAGED), io.new_input(path).open() as file:
        schema = iceberg_format_of(path).open(file, AS_STORED).schema
    fields = list(_fields(schema, ()))
    key = iceberg_format_of(path).field_id
    ids = frozenset(int(f.metadata[key]) for _, f in fields if f.metadata and key in f.metadata)
    return Footer(bool(ids), ids, frozenset(path for path, _ in fields))


def _fields(parent: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All fields, with their paths; what is repeated is called as name mappings call it."""
    for field in parent:
        path = (*above, field.name)
        yield path, field
        yield from _inside(field.type, path)


def _inside(kind: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if pa.types.is_struct(kind):
        yield from _fields(kind, path)
    elif pa.types.is_map(kind):
        for name, field in (("key", kind.key_field), ("value", kind.item_field)):
            yield (*path, name), field
            yield from _inside(field.type, (*path, name))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield (*path, "element"), kind.value_field
        yield from _inside(kind.value_type, (*path, "element"))


def ids_in(footer: Footer, mapping: Any) -> frozenset[int]:
    """The ids of the fields that a file has; by the table's name mapping where the file says none."""
    if footer.has_ids or mapping is None:
        return footer.ids
    return frozenset(_mapped(mapping.root, (), footer.paths))


def _mapped(fields: Any, above: tuple[str, ...], paths: frozenset[tuple[str, ...]]) -> Iterator[int]:
    for field in fields:
        for name in field.names:
            if (*above, name) in paths:
                if field.field_id is not None:
                    yield field.field_id
                yield from _mapped(field.fields, (*above, name), paths)
