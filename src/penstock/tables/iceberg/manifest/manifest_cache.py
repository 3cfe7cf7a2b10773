"""Decoded manifests, kept in memory and on disk: each is read from storage once.

Manifests are immutable, so what was decoded stays right for ever, and nothing needs to be looked up to know it. The key
is a digest of everything that the manifest list says about the manifest, with the layout of the decoded table: a
manifest of the same path but another length, snapshot or count is another one.

    cache.many(manifests, io)       memory, or disk, or storage; several at once, each of them once

Two threads that ask for the same manifest decode it once. Errors are not kept: the next one who asks tries again. The
memory bound covers the tables and the columns made of them since; what was used longest ago goes first. A table that a
plan still holds lives as long as the plan.

Not kept: what predicates found. Not checked: that a manifest still is in storage when it is in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock

from cachetools import LRUCache
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile

from penstock.tables.iceberg.manifest.manifest_decode import decode_manifest
from penstock.tables.iceberg.manifest.manifest_statistics import ManifestEntries
from penstock.tables.iceberg.manifest.manifest_store import ManifestStore, cache_folder

LAYOUT = 1  # another number for every change of what `decode_manifest` makes
MEMORY_BYTES = 1 << 30
DISK_BYTES = 4 << 30
_THREADS = 8
_MOST_KEYS = 20_000


class ManifestCache:
    """Manifests decoded so far; `folder` None is the user's cache folder, `disk_bytes` 0 keeps them in memory only."""

    def __init__(
        self,
        *,
        folder: str | os.PathLike[str] | None = None,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        threads: int = _THREADS,
    ) -> None:
        base = Path(folder) if folder is not None else cache_folder()
        self._store = ManifestStore(base / "manifests" if base is not None and disk_bytes > 0 else None, disk_bytes)
        self._threads = max(1, threads)
        self._lock = Lock()
        self._kept: LRUCache[bytes, ManifestEntries] = LRUCache(memory_bytes, lambda entries: entries.nbytes)
        self._coming: dict[bytes, Future[ManifestEntries]] = {}  # the manifests that are read now
        self._keys: dict[int, tuple[ManifestFile, FileIO, bytes]] = {}
        self.origins: Counter[str] = Counter()  # how many came from memory, disk and storage

    @property
    def nbytes(self) -> int:
        """The bytes that are kept in memory."""
        return int(self._kept.currsize)

    def entries(self, manifest: ManifestFile, io: FileIO) -> ManifestEntries:
        return self._entries(self._key(manifest, io), manifest, io)

    def many(self, manifests: Sequence[ManifestFile], io: FileIO) -> list[ManifestEntries]:
        """The entries of several manifests, in their order; those that are not in memory are read at the same time."""
        keys = [self._key(manifest, io) for manifest in manifests]
        entries = [self._from_memory(key) for key in keys]
        missing = [i for i, each in enumerate(entries) if each is None]

        def read(i: int) -> None:
            entries[i] = self._entries(keys[i], manifests[i], io)

        if len(missing) > 1:
            with ThreadPoolExecutor(min(self._threads, len(missing)), "penstock-manifests") as pool:
                list(pool.map(read, missing))
        else:
            list(map(read, missing))
        return [each for each in entries if each is not None]

    def in_memory(self, manifests: Sequence[ManifestFile], io: FileIO) -> list[ManifestEntries]:
        """Those of some manifests that are there without reading any."""
        keys = [self._key(manifest, io) for manifest in manifests]
        with self._lock:
            kept = [self._kept.get(key) for key in keys]
        return [each for each in kept if each is not None]

    def _key(self, manifest: ManifestFile, io: FileIO) -> bytes:
        """The key of a manifest, which is made once for each object that a manifest list gave."""
        known = self._keys.get(id(manifest))
        if known is not None and known[0] is manifest and known[1] is io:
            return known[2]
        if len(self._keys) > _MOST_KEYS:
            self._keys.clear()
        key = cache_key(manifest, io)
        self._keys[id(manifest)] = (manifest, io, key)
        return key

    def clear(self) -> None:
        """Forget everything, on disk too."""
        with self._lock:
            self._kept.clear()
        self._store.clear()

    def _entries(self, key: bytes, manifest: ManifestFile, io: FileIO) -> ManifestEntries:
        """From memory; or read here, while others who want it wait for the same answer, or error."""
        mine: Future[ManifestEntries] = Future()
        with self._lock:
            kept = self._kept.get(key)
            coming = mine if kept is not None else self._coming.setdefault(key, mine)
        if kept is not None or coming is not mine:
            entries = coming.result() if kept is None else kept
            with self._lock:
                self.origins["memory"] += 1
            return entries
        try:
            table, origin = self._store.load(key), "disk"
            if table is None:
                table, origin = decode_manifest(manifest, io), "storage"
                self._store.save(key, table)
            entries = ManifestEntries(table, partial(self._grew, key))
            with self._lock:
                self.origins[origin] += 1
                self._keep(key, entries)
            mine.set_result(entries)
            return entries
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._coming[key]

    def _from_memory(self, key: bytes) -> ManifestEntries | None:
        with self._lock:
            entries = self._kept.get(key)
            self.origins["memory"] += entries is not None
            return entries

    def _keep(self, key: bytes, entries: ManifestEntries) -> None:
        """Keep a manifest, with the bytes that it has now, unless it is larger than the memory for all."""
        self._kept.pop(key, None)
        with suppress(ValueError):
            self._kept[key] = entries

    def _grew(self, key: bytes, entries: ManifestEntries) -> None:
        """A column was made of a manifest; one that is no longer kept counts no more."""
        with self._lock:
            if self._kept.get(key) is entries:
                self._keep(key, entries)


def cache_key(manifest: ManifestFile, io: FileIO) -> bytes:
    """What tells two manifests apart, as 32 bytes."""
    says = (
        LAYOUT,
        io.properties.get("s3.endpoint"),
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.added_snapshot_id,
        manifest.sequence_number,
        manifest.partition_spec_id,
        int(manifest.content),
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        bool(manifest.key_metadata),
    )
    return hashlib.blake2b(json.dumps(says).encode(), digest_size=32).digest()


@cache
def default_cache() -> ManifestCache:
    """The cache that tables share unless they are given another one."""
    return ManifestCache()
