"""Which delete files apply to which data files, by Iceberg's rules.

| delete | applies to a data file when |
|---|---|
| deletion vector | it names the file, and is not older than it |
| position deletes | same spec and partition, not older, and the paths it holds may include the file's |
| equality deletes | written after the file, and of the same spec and partition, or of an unpartitioned spec |

A file that has a deletion vector takes no position deletes: the vector holds them. "Older" is about sequence numbers.
A partition is the spec *and* the tuple: the same tuple under two specs is two partitions. A spec whose fields are all
void is unpartitioned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import StringType

from penstock.errors import LakeError
from penstock.prune.delete_file import DeleteFile
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.metadata.version import SpecField

_PATH_ID = 2147483546  # the reserved field id of `file_path` in a position delete file
_KINDS = {1: "position", 2: "equality"}
Partition = tuple[int, tuple[Any, ...]]


class Deletes:
    """The live delete files of a snapshot, so that those of one data file are found at once."""

    def __init__(self, batches: Iterable[FileBatch]) -> None:
        self._by_path: dict[str, list[DeleteFile]] = {}
        self._by_partition: dict[Partition, list[tuple[DeleteFile, str | None, str | None]]] = {}
        self._everywhere: list[DeleteFile] = []
        self.count = 0
        for batch in batches:
            self._add(batch)

    def of(self, batch: FileBatch, positions: Iterable[int]) -> dict[int, tuple[DeleteFile, ...]]:
        """The deletes that apply to files of a batch, by position; files without any are left out."""
        wanted = list(positions)
        if not self.count or not wanted:
            return {}
        rows = pa.array(wanted, pa.int64())
        paths = batch.column("file_path").take(rows).to_pylist()
        ages = _ages(batch, rows)
        places = partitions_of(batch, rows)
        applicable = {i: self._apply(*file) for i, *file in zip(wanted, paths, ages, places, strict=True)}
        return {i: deletes for i, deletes in applicable.items() if deletes}

    def _apply(self, path: str, age: int, place: Partition) -> tuple[DeleteFile, ...]:
        named = [d for d in self._by_path.get(path, ()) if d.sequence_number >= age]
        near = [d for d, low, high in self._by_partition.get(place, ()) if _may_name(path, low, high)]
        equality = [d for d in (*near, *self._everywhere) if d.kind == "equality" and d.sequence_number > age]
        vectors = [d for d in named if d.kind == "vector"]
        if vectors:
            return (max(vectors, key=lambda d: d.sequence_number), *equality)
        position = [d for d in (*named, *near) if d.kind == "position" and d.sequence_number >= age]
        return (*position, *equality)

    def _add(self, batch: FileBatch) -> None:
        _ages(batch, None)
        bounds = [ends.to_pylist() for ends in batch.bounds(_PATH_ID, StringType()) if ends is not None]
        self.count += batch.count
        for file, place, low, high in zip(_delete_files(batch), partitions_of(batch, None), *bounds, strict=True):
            only = file.referenced_data_file or (low if low is not None and low == high else None)
            if file.kind == "equality" and not batch.spec.sources:
                self._everywhere.append(file)
            elif file.kind != "equality" and only is not None:
                self._by_path.setdefault(only, []).append(file)
            else:
                named = (None, None) if file.kind == "equality" else (low, high)
                self._by_partition.setdefault(place, []).append((file, *named))


def _may_name(path: str, low: str | None, high: str | None) -> bool:
    return (low is None or low <= path) and (high is None or path <= high)


def _ages(batch: FileBatch, rows: pa.Array | None) -> list[int]:
    """The sequence numbers of files; an entry that was not added by the snapshot of its manifest must say its own."""
    numbers = batch.column("sequence_number")
    numbers = numbers if rows is None else numbers.take(rows)
    if numbers.null_count:
        first = batch.column("file_path").take(pc.indices_nonzero(batch.column("sequence_number").is_null()))[0]
        message = f"the manifest entry of {first} has no sequence number, so it cannot be told which deletes apply"
        raise LakeError(message, hint="rewrite the table's manifests")
    return list(numbers.to_pylist())


def partitions_of(batch: FileBatch, rows: pa.Array | None) -> list[Partition]:
    """Spec and tuple of each file, as something that can be looked up: NaN equals itself here."""
    columns = [_values(batch, field) for field in batch.spec.fields]
    count = batch.count if rows is None else len(rows)
    lists = [(column if rows is None else column.take(rows)).to_pylist() for column in columns]
    tuples = list(zip(*lists, strict=True)) if lists else [()] * count
    return [(batch.spec.spec_id, tuple("NaN" if value != value else value for value in values)) for values in tuples]


def _values(batch: FileBatch, field: SpecField) -> pa.Array:
    """The values of one field; as they were stored where the transform is not known, as all files of a spec have it."""
    values = batch.stored(field.position) if field.type is None else batch.partition(field)
    if values is None:
        message = f"values of the partition field {field.name} are not of the type {field.type}"
        raise LakeError(f"{message}, so it cannot be told which deletes apply", hint="rewrite the table's manifests")
    return values


def _delete_files(batch: FileBatch) -> list[DeleteFile]:
    names = ("content", "file_path", "file_format", "file_size_in_bytes", "record_count", "sequence_number")
    more = ("equality_ids", "referenced_data_file", "content_offset", "content_size_in_bytes")
    columns = [batch.column(name).to_pylist() for name in (*names, *more)]
    return [_delete_file(*values) for values in zip(*columns, strict=True)]


def _delete_file(
    content: int, path: str, form: str, size: int, rows: int, age: int, ids: Any, named: Any, offset: Any, length: Any
) -> DeleteFile:
    kind = "vector" if form.upper() == "PUFFIN" else _KINDS[content]
    if kind == "equality" and not ids:
        message = f"the equality deletes {path} name no columns, so it cannot be told which rows are deleted"
        raise LakeError(message, hint="rewrite the table's manifests")
    return DeleteFile(kind, path, form.upper(), size, rows, age, tuple(ids or ()), named, offset, length)
