"""Deleted rows of Iceberg files, for Spark.

*Positions* (position deletes and deletion vectors) come with each file as a Roaring bitmap, in a hidden partition
value, and Spark's filter drops the rows whose `_metadata.row_index` is in it. *Equality deletes* are a relation of
their own: one row for each deleted key with the number of its delete file; a data file carries the numbers of the
delete files that apply to it, and a left anti join drops the rows whose key is listed by one of them. Which delete
applies to which file is decided in `tables/iceberg/scan/delete_files.py`, here as for `table.arrow()`.

Only files with deletes go this way: they are a branch of their own beside the clean ones.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.types import NestedField

from penstock.errors import LakeError
from penstock.formats.file_format import IcebergFormat
from penstock.formats.format_registry import DEFAULT, iceberg_format
from penstock.prune.delete_file import DeleteFile
from penstock.spark.scan.iceberg_storage import Places, spark_path
from penstock.spark.scan.planner import as_answer, by_partition
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.scan_plan import Sources, delete_batches

_EQUALITY = 2
_HEADER = 12  # of a 64-bit bitmap that has one part: a count of eight bytes, a key of four


@dataclass(frozen=True)
class EqualityDelete:
    """One equality delete file, with the number that data files know it by."""

    number: int
    path: str
    size: int
    ids: tuple[int, ...]
    format: IcebergFormat


@dataclass(frozen=True)
class LiveDeletes:
    """The delete files of a version, as far as a scan must know them before it is planned."""

    positions: bool
    equality: tuple[EqualityDelete, ...]

    def __bool__(self) -> bool:
        return self.positions or bool(self.equality)

    def groups(self) -> dict[tuple[tuple[int, ...], IcebergFormat], list[EqualityDelete]]:
        """Equality deletes that one relation reads: by the columns that they compare, and their format."""
        groups: dict[tuple[tuple[int, ...], IcebergFormat], list[EqualityDelete]] = {}
        for delete in self.equality:
            groups.setdefault((tuple(sorted(delete.ids)), delete.format), []).append(delete)
        return groups


def live_deletes(version: Version, sources: Sources) -> LiveDeletes:
    """The delete files of a version; their manifests are read, which every plan needs anyway."""
    listed, positions = [], False
    for batch in delete_batches(version, sources):
        names = ("content", "file_path", "file_size_in_bytes", "equality_ids", "file_format")
        for content, path, size, ids, form in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            if content != _EQUALITY:
                positions = True
                continue
            known = iceberg_format(form)
            if known is None:
                message = f"equality deletes in {form} are not supported ({path})"
                raise LakeError(message, hint=f"rewrite the table's delete files as {DEFAULT.title}")
            listed.append((path, size, tuple(ids or ()), known))
    numbered = [EqualityDelete(i, *delete) for i, delete in enumerate(sorted(listed, key=lambda each: each[:3]))]
    return LiveDeletes(positions, tuple(numbered))


@dataclass(frozen=True)
class EqualityFiles:
    """The delete files of one set of columns, for their relation."""

    deletes: tuple[EqualityDelete, ...]
    places: Places = field(repr=False)

    def roots(self) -> tuple[str, ...]:
        """Where the table's files lie."""
        return self.places.locations

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """All of them, each a partition by its number."""
        self.places.check(delete.path for delete in self.deletes)
        files = [(spark_path(delete.path), delete.size, 0) for delete in self.deletes]
        answer = by_partition(((delete.number,) for delete in self.deletes), files)
        return as_answer(f"{len(files)} equality delete files", answer)


def key_fields(ids: Iterable[int], version: Version) -> list[NestedField]:
    """The columns of the table that equality deletes compare, dropped ones by the last schema that had them."""
    schemas = [version.columns.schema, *reversed(version.metadata.schemas)]
    fields = []
    for field_id in ids:
        field = next((f for schema in schemas for f in schema.fields if f.field_id == field_id), None)
        if field is None or not field.field_type.is_primitive:
            raise LakeError(f"equality deletes on nested columns are not supported (field id {field_id})")
        fields.append(field)
    return fields


def deleted_positions(bitmap: Any, path: str) -> str | None:
    """A bitmap of 64 bits in the form that Spark's classes read, as base64; None when it is empty."""
    if not bitmap:
        return None
    serialized = bitmap.serialize()
    if int.from_bytes(serialized[:8], "little") != 1 or int.from_bytes(serialized[8:_HEADER], "little") != 0:
        message = f"{path} has deleted rows behind the first 4,294,967,296"
        raise LakeError(f"{message}, which is not supported", hint="compact the table's files")
    return base64.b64encode(serialized[_HEADER:]).decode()


def deletes_listed(deletes: Sequence[DeleteFile], numbers: Mapping[str, int]) -> str | None:
    """The numbers of the equality deletes among those of a file, in the same form."""
    from pyroaring import BitMap  # type: ignore[import-not-found,unused-ignore]

    applied = [numbers[delete.path] for delete in deletes if delete.kind == "equality"]
    return base64.b64encode(BitMap(applied).serialize()).decode() if applied else None
