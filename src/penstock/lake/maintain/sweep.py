"""Files that no snapshot has are removed: what jobs left that failed, and what removed snapshots needed.

The order makes it safe. First the table's folders are listed, then its metadata is loaded: a file that was committed in
between is known to it. A file is deleted when nothing in the current metadata leads to it and it is old: a writer that
is still running has young files that no snapshot has yet.

Before anything is deleted, the two sides are held against each other: each file that was live before the listing and
still is, and lies in the folders that were listed, must be in the listing. If one is not, paths are written in a way
that cannot be compared, and nothing is deleted.

Other tables and declared layouts of the lake may lie below this table's location, or need files there: nothing of
theirs is touched. Where the folders themselves are also those of another, nothing is deleted.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pyiceberg.table import Table

from penstock.errors import LakeError, StorageError
from penstock.lake.commit.commit import fresh
from penstock.lake.commit.snapshot import own_folders
from penstock.lake.maintain.unneeded_files import (
    Others,
    check_collectable,
    metadata_files,
    others_of,
    reachable,
    remove_each,
)
from penstock.progress import counted
from penstock.quantities import Age, moment
from penstock.storage.file_listing import Listed, delete, list_folders, outermost, remove_empty
from penstock.storage.path_names import Names, is_below
from penstock.tables.iceberg.scan.scan_plan import Sources

_SAFE = timedelta(hours=1)
_AT_ONCE = 8
_HEAD = 64 << 10
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([^"]+)"')


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


def sweep(
    table: Table, sources: Sources, layouts: Mapping[str, str], older_than: Age, dry_run: bool, force: bool
) -> tuple[Table, Swept]:
    """Remove old files that nothing leads to; PyIceberg's table as it was loaded for it.

    `layouts` are the roots of the lake's declared layouts, by name.
    """
    now = datetime.now(UTC)
    before = moment(older_than, now)
    if now - before < _SAFE and not force:
        message = f"an age of {now - before} is not safe: writers that are running have files that no snapshot has yet"
        raise LakeError(message, hint="give 1 hour or more, or force=True when you know that nobody is writing")
    names = Names()
    first = fresh(table)
    check_collectable(first)
    live = reachable(first.metadata, sources, names)
    places = outermost(own_folders(first), names)
    folders = [names.folder(place) for place in places]
    listing = list_folders(places, sources.io.properties, names)
    table = fresh(first)
    needed = {*reachable(table.metadata, sources, names), *map(names.of, metadata_files(table))}
    _check_seen(live.keys() & needed, folders, listing.files)
    others = others_of(table, layouts, names)
    listing = listing.without(_claimed(table, others, folders, names), names)
    unknown = {file.name: file for file in listing.files if file.name not in needed}
    for name in others.need(unknown.keys()):
        del unknown[name]
    _check_uuid(unknown.values(), table.metadata.table_uuid)
    limit = int(before.timestamp() * 1_000_000_000)
    removed = [file for file in unknown.values() if file.modified_ns < limit]
    if not dry_run:
        removed = [file for file, done in zip(removed, remove_each(delete, removed), strict=True) if done]
        remove_empty(listing.folders, limit)
    return table, Swept(tuple(file.url for file in removed), sum(file.size for file in removed), dry_run)


def _check_seen(live: Iterable[str], folders: Sequence[str], files: Sequence[Listed]) -> None:
    unseen = set(live) - {file.name for file in files}
    missing = sorted(name for name in unseen if any(is_below(name, folder) for folder in folders))
    if missing:
        message = f"{len(missing):,} files that the table needs were not found in its folders, such as {missing[0]}"
        hint = "nothing was deleted; paths may be written in different ways, or files of the table are lost"
        raise StorageError(message, hint=hint)


def _claimed(table: Table, others: Others, places: Sequence[str], names: Names) -> list[str]:
    """The folders of others inside those that are swept; an error when a folder of the table is one of theirs too."""
    own = {names.folder(folder) for folder in own_folders(table)}
    inside = others.inside(places)
    for claim in others.claims():
        # What a table needs is known, so this one may lie in its location; in a layout any file may be needed.
        can_hold = claim not in inside and claim.owner not in others.layouts
        if claim.folder in own or (not can_hold and any(is_below(name, claim.folder) for name in own)):
            raise _shared(claim.folder, claim.owner)
    return [claim.folder for claim in inside]


def _check_uuid(unknown: Iterable[Listed], uuid: UUID) -> None:
    """An error when a metadata file of another table lies among the files."""
    files = [file for file in unknown if file.path.endswith(".metadata.json")]
    with ThreadPoolExecutor(_AT_ONCE, "penstock-sweep") as pool:
        for file, owner in zip(files, pool.map(_uuid, files), strict=True):
            if owner is not None and owner != str(uuid):
                raise _shared(file.url, "another table")


def _uuid(file: Listed) -> str | None:
    """The table that a metadata file is about, which stands near its beginning; None when it does not say so."""
    try:
        with file.storage.filesystem.open_input_file(file.path) as source:
            text = source.read(_HEAD)
            if file.path.endswith(".gz.metadata.json"):
                text = zlib.decompressobj(wbits=31).decompress(text)
            match = _UUID.search(text) or _UUID.search(text + source.read())
    except (FileNotFoundError, zlib.error):  # gone since it was listed, or not whole
        return None
    except OSError as error:
        raise file.storage.trouble(file.path, error) from None
    return None if match is None else match[1].decode()


def _shared(place: str, other: str) -> LakeError:
    message = f"{place} belongs to {other}, whose files cannot be told from those that nobody needs"
    return LakeError(message, hint="nothing was deleted; give each table folders of its own")
