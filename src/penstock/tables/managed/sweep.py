"""Files that no snapshot has are removed: what jobs left that failed, and what removed snapshots needed.

The order makes it safe. First the table's folders are listed, then its metadata is loaded: a file that was committed in
between is known to it. A file is deleted when nothing in the current metadata leads to it and it is old: a writer that
is still running has young files that no snapshot has yet.

Before anything is deleted, the two sides are held against each other: each file that was live before the listing and
still is, and lies in the folders that were listed, must be in the listing. If one is not, paths are written in a way
that cannot be compared, and nothing is deleted. Nor is anything where another table lies in the same folders.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.errors import LakeError, StorageError
from penstock.progress import Count, counted, progress
from penstock.tables.iceberg.plan import Sources
from penstock.tables.managed.age import Age, moment
from penstock.tables.managed.commit import fresh
from penstock.tables.managed.listing import Listed, delete, list_folders, outermost, remove_empty
from penstock.tables.managed.paths import Names, is_below
from penstock.tables.managed.reach import check_collectable, reachable
from penstock.tables.managed.snapshot import data_folder, metadata_folder

_SAFE = timedelta(hours=1)
_AT_ONCE = 8
_HEAD = 64 << 10
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([^"]+)"')
_ALWAYS = "version-hint.text"


@dataclass(frozen=True)
class Swept:
    """What was removed, or would be."""

    paths: tuple[str, ...]
    bytes: int
    dry_run: bool = False

    @property
    def files(self) -> int:
        """How many files."""
        return len(self.paths)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {"files": self.files, "bytes": self.bytes, "dry_run": self.dry_run, "paths": list(self.paths)}

    def __str__(self) -> str:
        done = "would remove" if self.dry_run else "removed"
        return f"{done} {counted(self.files, 'file')} that no snapshot has, {counted(self.bytes, 'byte')}"


def sweep(table: Any, sources: Sources, older_than: Age, dry_run: bool, force: bool) -> tuple[Any, Swept]:
    """Remove old files that nothing leads to; PyIceberg's table as it was loaded for it."""
    now = datetime.now(UTC)
    before = moment(older_than, now)
    if now - before < _SAFE and not force:
        said = f"an age of {now - before} is not safe: writers that are running have files that no snapshot has yet"
        raise LakeError(said, hint="give 1 hour or more, or force=True when you know that nobody is writing")
    names = Names()
    first = fresh(table)
    check_collectable(first.metadata, ".".join(table.name()))
    live = reachable(first.metadata, sources, names)
    places = outermost([first.metadata.location, data_folder(first), metadata_folder(first)], names)
    _check_alone(first, places, names)
    listing = list_folders(places, sources.io.properties, names)
    table = fresh(first)
    needed = _needed(table, sources, names)
    _check_seen(live.keys() & needed, [names.folder(place) for place in places], listing.files)
    _check_uuid([file for file in listing.files if file.name not in needed], table.metadata.table_uuid)
    limit = int(before.timestamp() * 1_000_000_000)
    found = [file for file in listing.files if file.name not in needed and file.modified_ns < limit]
    removed = found if dry_run else _delete(found)
    if not dry_run:
        remove_empty(listing.folders, limit)
    return table, Swept(tuple(file.url for file in removed), sum(file.size for file in removed), dry_run)


def _needed(table: Any, sources: Sources, names: Names) -> set[str]:
    """Everything that the table needs, its metadata files among it."""
    metadata = table.metadata
    files = [table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)]
    files.append(f"{metadata_folder(table)}/{_ALWAYS}")
    return {*reachable(metadata, sources, names), *map(names.of, files)}


def _check_seen(live: Iterable[str], folders: Sequence[str], files: Sequence[Listed]) -> None:
    seen = {file.name for file in files}
    missing = sorted(name for name in live if name not in seen and any(is_below(name, folder) for folder in folders))
    if missing:
        said = f"{len(missing):,} files that the table needs were not found in its folders, such as {missing[0]}"
        hint = "nothing was deleted; paths may be written in different ways, or files of the table are lost"
        raise StorageError(said, hint=hint)


def _check_alone(table: Any, places: Sequence[str], names: Names) -> None:
    """An error when a folder outside the table's location is one that another table of the catalog uses."""
    own = names.folder(table.metadata.location)
    outside = [name for name in map(names.folder, places) if name != own and not is_below(name, own)]
    for other in _others(table) if outside else ():
        used = [names.folder(f(other)) for f in (data_folder, metadata_folder)]
        used.append(names.folder(other.metadata.location))
        for folder in outside:
            if any(name == folder or is_below(name, folder) or is_below(folder, name) for name in used):
                raise _shared(folder, ".".join(other.name()))


def _others(table: Any) -> Iterator[Any]:
    catalog = table.catalog
    waiting = list(catalog.list_namespaces())
    while waiting:
        namespace = waiting.pop()
        for name in catalog.list_tables(namespace):
            if tuple(name) != tuple(table.name()):
                yield catalog.load_table(name)
        waiting += [found for found in catalog.list_namespaces(namespace) if len(found) > len(namespace)]


def _check_uuid(unknown: Iterable[Listed], uuid: Any) -> None:
    """An error when a metadata file of another table lies among the files."""
    files = [file for file in unknown if file.path.endswith(".metadata.json")]
    with ThreadPoolExecutor(_AT_ONCE, "penstock-sweep") as pool:
        for file, found in zip(files, pool.map(_uuid, files), strict=True):
            if found is not None and found != str(uuid):
                raise _shared(file.url, "another table")


def _uuid(file: Listed) -> str | None:
    """The table that a metadata file is about, which stands near its beginning; None when it does not say so."""
    try:
        with file.storage.filesystem.open_input_file(file.path) as source:
            text = source.read(_HEAD)
            if file.path.endswith(".gz.metadata.json"):
                text = zlib.decompressobj(wbits=31).decompress(text)
            found = _UUID.search(text) or _UUID.search(text + source.read())
    except (FileNotFoundError, zlib.error):  # gone since it was listed, or not whole
        return None
    except OSError as error:
        raise file.storage.trouble(file.path, error) from None
    return None if found is None else found[1].decode()


def _shared(place: str, other: str) -> LakeError:
    said = f"{place} belongs to {other}, whose files cannot be told from those that nobody needs"
    return LakeError(said, hint="nothing was deleted; give each table folders of its own")


def _delete(files: Sequence[Listed]) -> list[Listed]:
    removed = Count(len(files), "file")
    with progress("removing", removed), ThreadPoolExecutor(_AT_ONCE, "penstock-sweep") as pool:
        return [file for file, done in zip(files, removed.each(pool.map(delete, files)), strict=True) if done]
