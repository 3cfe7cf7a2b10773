"""Delete files: which apply to which data files, by Iceberg's rules, and which rows they delete.

| delete | applies to a data file when |
|---|---|
| deletion vector | it names the file, and is not older than it |
| position deletes | same spec and partition, not older, and the paths it holds may include the file's |
| equality deletes | written after the file, and of the same spec and partition, or of an unpartitioned spec |

A file that has a deletion vector takes no position deletes: the vector holds them. "Older" is about sequence numbers.
A partition is the spec *and* the tuple: the same tuple under two specs is two partitions. A spec whose fields are all
void is unpartitioned.

A deletion vector is a blob in a Puffin file: a length, a magic number, a 64-bit Roaring bitmap in its portable form,
and a checksum. A position delete file is a Parquet file with the columns `file_path` and `pos` for any number of data
files; it is read once for all of them. Positions are kept as bitmaps.

Equality deletes list values: a row goes when its values in some columns are among those. NULL equals NULL here, and NaN
equals NaN: the comparison is of values, not of SQL.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.types import StringType

from penstock.errors import LakeError
from penstock.expr.kernels.physical import from_arrow, row_codes
from penstock.expr.kernels.vector import Mask
from penstock.formats.file_format import AS_STORED
from penstock.formats.format_registry import DEFAULT, iceberg_format
from penstock.prune.delete_file import DeleteFile
from penstock.storage.storage import clear_read_errors
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.metadata.version import SpecField

_MAGIC = bytes([0xD1, 0xD3, 0x39, 0x64])
DAMAGED = "the table's files are damaged or were cleaned up; open another snapshot, or restore the file"
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
    lists = [from_arrow(column if rows is None else column.take(rows)) for column in columns]
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


class Positions:
    """The deleted positions of data files; each delete file is read once while this object lives."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._lock = Lock()
        self._by_file: dict[str, dict[str, Any]] = {}

    def of(self, path: str, deletes: Iterable[DeleteFile]) -> Any:
        """A bitmap of the rows of a data file that are gone; empty when none is."""
        from pyroaring import BitMap64  # type: ignore[import-not-found,unused-ignore]

        bitmap = BitMap64()
        for delete in deletes:
            if delete.kind == "vector":
                bitmap |= self._vector(delete)
            elif delete.kind == "position":
                bitmap |= self._positions(delete).get(path, BitMap64())
        return bitmap

    @contextmanager
    def _open(self, delete: DeleteFile) -> Iterator[Any]:
        what = f"the delete file {delete.path}"
        with clear_read_errors(what, DAMAGED), self._io.new_input(delete.path).open() as file:
            yield file

    def _vector(self, delete: DeleteFile) -> Any:
        if delete.offset is None or delete.length is None:
            raise LakeError(f"the deletion vector in {delete.path} has no place in the file", hint=DAMAGED)
        with self._open(delete) as file:
            file.seek(delete.offset)
            return read_vector(file.read(delete.length), delete.path)

    def _positions(self, delete: DeleteFile) -> dict[str, Any]:
        with self._lock:
            if delete.path not in self._by_file:
                self._by_file[delete.path] = self._read(delete)
            return self._by_file[delete.path]

    def _read(self, delete: DeleteFile) -> dict[str, Any]:
        file_format = iceberg_format(delete.format)
        if file_format is None:
            message = f"position deletes in {delete.format} are not supported ({delete.path})"
            raise LakeError(message, hint=f"rewrite the table's delete files as {DEFAULT.title}")
        with self._open(delete) as file:
            return _by_path(file_format.open(file, AS_STORED).read(["file_path", "pos"]))


def _by_path(table: pa.Table) -> dict[str, Any]:
    from pyroaring import BitMap64

    paths = table.column("file_path").combine_chunks().dictionary_encode()
    numbers = table.column("pos").combine_chunks()
    return {
        path.as_py(): BitMap64(numbers.filter(pc.equal(paths.indices, i)).to_numpy())
        for i, path in enumerate(paths.dictionary)
    }


def read_vector(blob: bytes, path: str) -> Any:
    """The bitmap of one deletion vector; an error when its frame or its checksum is wrong."""
    from pyroaring import BitMap64

    length = int.from_bytes(blob[:4], "big")
    body, checksum = blob[4 : 4 + length], blob[4 + length : 8 + length]
    if len(blob) < 8 + length or body[:4] != _MAGIC or zlib.crc32(body) != int.from_bytes(checksum, "big"):
        raise LakeError(f"a deletion vector in {path} is damaged", hint=DAMAGED)
    return BitMap64.deserialize(body[4:])


def listed(rows: pa.Table, deleted: pa.Table, names: Sequence[str]) -> Mask:
    """Which rows have values, in the columns `names`, that are among the deleted.

    >>> listed(pa.table({"a": [1, None, 2]}), pa.table({"a": [None, 2]}), ["a"]).tolist()
    [False, True, True]
    """
    if not deleted.num_rows or not rows.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    pairs = [(_column(rows, name), _column(deleted, name)) for name in names]
    # PyIceberg fills in missing text as large_string.
    both = [pa.concat_arrays([own, other.cast(own.type)]) for own, other in pairs]
    code = row_codes(both, rows.num_rows + deleted.num_rows)
    return np.isin(code[: rows.num_rows], code[rows.num_rows :])


def _column(table: pa.Table, name: str) -> pa.Array:
    array = table.column(name).combine_chunks()
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array  # a uuid's bytes
