"""Which files of a table nobody needs, and how they are removed.

A snapshot needs its manifest list, manifests, data files and delete files. Another table may keep its data below the
location of this one, and may have adopted files that lie there (`add_files`). So all tables of the catalog are loaded,
with all their snapshots, and a layout that is declared in the warehouse owns all that lies below its root. A table that
cannot be loaded may need anything: then nothing is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError
from penstock.lake.commit.once import adoptions
from penstock.lake.commit.snapshot import folder_of, own_folders
from penstock.progress import Count, progress
from penstock.storage.path_names import Names, is_below
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.metadata.catalogs import sources_of
from penstock.tables.iceberg.scan.scan_plan import Sources

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 8


class File(NamedTuple):
    """A path as it is written in the metadata, and its size where that is told."""

    path: str
    size: int | None


class Claim(NamedTuple):
    """A folder, by its normal name, and the table or layout whose it is."""

    folder: str
    owner: str


@dataclass(frozen=True)
class Others:
    """The other tables of a catalog, and the roots of declared layouts by their names."""

    tables: Sequence[Table]
    layouts: Mapping[str, str]
    names: Names

    def claims(self) -> Iterator[Claim]:
        """The folders of all others."""
        for table in self.tables:
            for folder in own_folders(table):
                yield Claim(self.names.folder(folder), _name(table))
        for name, root in self.layouts.items():
            yield Claim(self.names.folder(root), name)

    def inside(self, folders: Sequence[str]) -> list[Claim]:
        """The folders of others that lie in some."""
        return [claim for claim in self.claims() if _is_in(claim.folder, folders)]

    def need(self, files: Collection[str]) -> set[str]:
        """Which of some files, by their normal names, others need."""
        claimed = [claim.folder for claim in self.claims() if claim.owner in self.layouts]
        needed = {file for file in files if _is_in(file, claimed)}
        for table in self.tables if len(needed) < len(files) else ():
            needed.update(name for name in self._references(table) if name in files)
        return needed

    def removable(self, files: Mapping[str, File], table: Table) -> list[File]:
        """Those of a table's files, by their normal names, that lie in its own folders and that no other needs."""
        folders = [self.names.folder(folder) for folder in own_folders(table)]
        claimed = [claim.folder for claim in self.inside(folders)]
        own = {name: file for name, file in files.items() if _is_in(name, folders) and not _is_in(name, claimed)}
        needed = self.need(own.keys())
        return [file for name, file in own.items() if name not in needed]

    def _references(self, table: Table) -> Iterator[str]:
        try:
            yield from reachable(table.metadata, sources_of(table), self.names)
        except PenstockError as error:
            raise _unknown(_name(table), error) from None
        yield from map(self.names.of, metadata_files(table))


def removable_files(table: Table, sources: Sources, layouts: Mapping[str, str]) -> list[File]:
    """All files of a table that nobody needs once it is dropped."""
    check_collectable(table)
    names = Names()
    files = reachable(table.metadata, sources, names)
    files |= {names.of(path): File(path, None) for path in metadata_files(table)}
    return others_of(table, layouts, names).removable(files, table)


def others_of(table: Table, layouts: Mapping[str, str], names: Names) -> Others:
    """All others that the catalog of a table and the lake know; an error when one of them cannot be known."""
    return Others(list(_other_tables(table)), layouts, names)


def _other_tables(table: Table) -> Iterator[Table]:
    catalog = table.catalog
    try:
        listed = list(all_tables(catalog))
    except CLIENT_ERRORS as error:
        message = f"the catalog does not list its tables, which may need the files: {_problem(error)}"
        raise LakeError(message, hint="nothing was removed; use a catalog that lists all namespaces") from None
    for name in listed:
        if tuple(name) == tuple(table.name()):
            continue
        try:
            yield catalog.load_table(name)
        except CLIENT_ERRORS as error:
            raise _unknown(".".join(name), error) from None


def all_tables(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """The names of the tables of all namespaces, nested ones included."""
    waiting = list(catalog.list_namespaces())
    while waiting:
        namespace = waiting.pop()
        yield from catalog.list_tables(namespace)
        waiting += [below for below in catalog.list_namespaces(namespace) if len(below) > len(namespace)]


def _unknown(name: str, error: Exception) -> LakeError:
    message = f"{name} cannot be loaded, and may need files of this table: {_problem(error)}"
    return LakeError(message, hint=f"nothing was removed; repair {name}, or drop it from the catalog")


def _problem(error: Exception) -> str:
    return one_line(error.message if isinstance(error, PenstockError) else error) or type(error).__name__


def _name(table: Table) -> str:
    return ".".join(table.name())


def _is_in(name: str, folders: Iterable[str]) -> bool:
    return any(is_below(name, folder) for folder in folders)


def check_collectable(table: Table) -> None:
    """An error when the table's owner has said that no file of it may be deleted."""
    if str(table.metadata.properties.get("gc.enabled", "true")).lower() == "false":
        message = f"{_name(table)} has gc.enabled = false: other tables may use its files, so none is deleted"
        raise LakeError(message, hint="set the property to true if no other table does")


def reachable(metadata: TableMetadata, sources: Sources, names: Names) -> dict[str, File]:
    """Everything that a version of the metadata needs, all its snapshots and its statistics."""
    manifests = manifests_of(metadata.snapshots, sources)
    return {**files_of(manifests.values(), sources, names), **described(metadata, metadata.snapshots, names)}


def manifests_of(snapshots: Sequence[Snapshot], sources: Sources) -> dict[str, ManifestFile]:
    """All manifests of some snapshots, each once, by their path."""
    with ThreadPoolExecutor(_AT_ONCE, "penstock-lists") as pool:
        lists = pool.map(lambda snapshot: sources.lists.of(snapshot, sources.io), snapshots)
        return {manifest.manifest_path: manifest for manifests in lists for manifest in manifests}


def files_of(manifests: Collection[ManifestFile], sources: Sources, names: Names) -> dict[str, File]:
    """Manifests and the live files in them, by their normal names."""
    files = {names.of(m.manifest_path): File(m.manifest_path, m.manifest_length) for m in manifests}
    for entries in sources.manifests.many(list(manifests), sources.io):
        paths, sizes = (entries.column(name).to_pylist() for name in ("file_path", "file_size_in_bytes"))
        files |= {names.of(path): File(path, size) for path, size in zip(paths, sizes, strict=True)}
    return files


def described(metadata: TableMetadata, snapshots: Iterable[Snapshot], names: Names) -> dict[str, File]:
    """The manifest lists of snapshots and the statistics files that the metadata names, by their normal names."""
    files = [File(snapshot.manifest_list, None) for snapshot in snapshots]
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    files += [File(each.statistics_path, each.file_size_in_bytes) for each in statistics]
    return {names.of(file.path): file for file in files}


def metadata_files(table: Table) -> list[str]:
    """The metadata files of a table: the current one, those in its log, the lists of adopted files, and the hint that
    old readers look for."""
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    log += adoptions(table.metadata, every=True)
    return [table.metadata_location, *log, f"{folder_of(table, 'metadata')}/version-hint.text"]


def remove_each(remove: Callable[[T], R], files: Sequence[T]) -> list[R]:
    """Remove files, several at a time; the answers in their order."""
    removed = Count(len(files), "file")
    with progress("removing", removed), ThreadPoolExecutor(_AT_ONCE, "penstock-remove") as pool:
        return list(removed.each(pool.map(remove, files)))


def remove_files(io: FileIO, files: Sequence[File]) -> list[int]:
    """Remove files; the sizes of those that were removed. What could not be is found by `sweep`."""
    return [size for size in remove_each(lambda file: _remove(io, file), files) if size is not None]


def _remove(io: FileIO, file: File) -> int | None:
    """Remove a file; its size, or None when it was gone already or could not be removed."""
    if "#" in file.path or "?" in file.path:
        return None  # PyIceberg cuts such a path short, and what it would delete is another file
    try:
        input_file = io.new_input(file.path)
        size = len(input_file) if file.size is None else file.size  # a list does not say its own
        try:
            io.delete(file.path)
        except FileNotFoundError:
            return None
        except OSError:
            # On S3, Arrow may fail to keep a directory alive whose last file it has deleted.
            return None if input_file.exists() else size
        return size
    except CLIENT_ERRORS:
        return None
