"""Decoded manifests on disk: Arrow files in the user's cache folder, which any number of processes share.

Nothing here can make an answer wrong. A file is written under another name and moved into its place, so it is there
wholly or not at all. It begins with its key, its length and a checksum over everything behind; one that does not fit
them is thrown away, as if it had never been there. A folder that cannot be made, read or written is no error: the
manifest is decoded from storage then.

    PENSTOCK_CACHE_DIR, or XDG_CACHE_HOME/penstock, or ~/.cache/penstock   →   manifests/<key>.arrow

The files are compressed with LZ4 and read into memory rather than mapped: a quarter of the disk, as fast to check and
unpack as mapped ones are to check, and no process dies of another one cutting a mapped file short.

Files used longest ago go first (their time of change is set when they are read). How much lies in the folder is counted
anew every now and then, so that several processes together stay near the bound.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock

import pyarrow as pa

_HEADER = struct.Struct("<8s32sQI")  # magic, key, length, checksum
_MAGIC = b"PENSTKM1"
_SUFFIX, _UNFINISHED = ".arrow", ".tmp"
_ABANDONED_SECONDS = 3600
_LEFT_FREE = 0.9  # of the bound, after making room


def cache_folder() -> Path | None:
    """The user's cache folder for Penstock; None where there is no home."""
    if chosen := os.environ.get("PENSTOCK_CACHE_DIR"):
        return Path(chosen)
    if os.path.isabs(shared := os.environ.get("XDG_CACHE_HOME", "")):
        return Path(shared) / "penstock"
    try:
        return Path.home() / ".cache" / "penstock"
    except RuntimeError:
        return None


class ManifestStore:
    """Tables by key (32 bytes) in one folder, up to a number of bytes."""

    def __init__(self, folder: Path | None, most_bytes: int) -> None:
        self._folder, self._most = folder, most_bytes
        self._lock = Lock()
        self._seen: int | None = None  # bytes in the folder when it was last counted, and those written since
        self._since = 0

    def load(self, key: bytes) -> pa.Table | None:
        """The table that was saved under a key; None where there is none, or none that is whole."""
        if self._folder is None:
            return None
        path = self._path(self._folder, key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        table = _unpacked(data, key)
        with suppress(OSError):
            os.utime(path) if table is not None else path.unlink()
        return table

    def save(self, key: bytes, table: pa.Table) -> None:
        """Keep a table; or not, where there is no room or no right to."""
        if self._folder is None:
            return
        data = _packed(table)
        size = _HEADER.size + len(data)
        if size <= self._most * _LEFT_FREE:
            with suppress(OSError):
                self._write(self._folder, key, data)
                self._make_room(self._folder, size)

    def clear(self) -> None:
        """Throw away everything in the folder."""
        if self._folder is not None:
            _shrink(self._folder, 0)

    def _path(self, folder: Path, key: bytes) -> Path:
        return folder / f"{key.hex()}{_SUFFIX}"

    def _write(self, folder: Path, key: bytes, data: pa.Buffer) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=folder)
        try:
            with open(handle, "wb") as file:
                file.write(_HEADER.pack(_MAGIC, key, len(data), zlib.crc32(data, zlib.crc32(key))))
                file.write(data)
            os.replace(name, self._path(folder, key))
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    def _make_room(self, folder: Path, size: int) -> None:
        with self._lock:
            self._since += size
            if self._seen is None or self._seen + self._since > self._most or self._since >= self._most // 16:
                self._seen, self._since = _shrink(folder, self._most), 0


def _shrink(folder: Path, most: int) -> int:
    """Delete the files used longest ago until the rest fits, with some room; the bytes that are left."""
    files = sorted(_files(folder))
    total = sum(size for _, size, _ in files)
    if total > most:
        for _, size, path in files:
            with suppress(OSError):
                os.unlink(path)
            total -= size
            if total <= most * _LEFT_FREE:
                break
    return total


def _files(folder: Path) -> list[tuple[float, int, str]]:
    """Last use, size and path of the saved tables; what a process that died left behind is removed."""
    files: list[tuple[float, int, str]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                stat = entry.stat()
                if entry.name.endswith(_SUFFIX):
                    files.append((stat.st_mtime, stat.st_size, entry.path))
                elif entry.name.endswith(_UNFINISHED) and stat.st_mtime < time.time() - _ABANDONED_SECONDS:
                    os.unlink(entry.path)
    return files


def _packed(table: pa.Table) -> pa.Buffer:
    compression = "lz4" if pa.Codec.is_available("lz4") else None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _unpacked(data: bytes, key: bytes) -> pa.Table | None:
    if len(data) < _HEADER.size:
        return None
    magic, of, length, checksum = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if (magic, of, length) != (_MAGIC, key, len(body)) or zlib.crc32(body, zlib.crc32(key)) != checksum:
        return None
    try:
        return pa.ipc.open_file(pa.py_buffer(body)).read_all().combine_chunks()
    except (pa.ArrowException, OSError):
        return None
