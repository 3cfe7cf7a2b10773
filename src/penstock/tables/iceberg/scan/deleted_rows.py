"""Which rows of a file are deleted: by their positions, or by their values.

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

from penstock.errors import LakeError
from penstock.expr.kernels.physical import row_codes
from penstock.expr.kernels.vector import Mask
from penstock.formats.format_registry import TITLES, format_named
from penstock.prune.delete_file import DeleteFile
from penstock.storage.storage import clear_read_errors

_MAGIC = bytes([0xD1, 0xD3, 0x39, 0x64])
DAMAGED = "the table's files are damaged or were cleaned up; open another snapshot, or restore the file"


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
        file_format = format_named(delete.format)
        if file_format is None:
            message = f"position deletes in {delete.format} are not supported ({delete.path})"
            raise LakeError(message, hint=f"rewrite the table's delete files as {TITLES}")
        with self._open(delete) as file:
            return _by_path(file_format.open(file).read(["file_path", "pos"]))


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
    pairs = [(rows.column(name).combine_chunks(), deleted.column(name).combine_chunks()) for name in names]
    # PyIceberg fills in missing text as large_string.
    both = [pa.concat_arrays([own, other.cast(own.type)]) for own, other in pairs]
    code = row_codes(both, rows.num_rows + deleted.num_rows)
    return np.isin(code[: rows.num_rows], code[rows.num_rows :])
