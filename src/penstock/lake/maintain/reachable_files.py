"""The files that snapshots need: manifest lists, manifests, data files and delete files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import LakeError
from penstock.lake.commit.snapshot import metadata_folder
from penstock.storage.path_names import Names
from penstock.tables.iceberg.scan.scan_plan import Sources

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_AT_ONCE = 8


class File(NamedTuple):
    """A path as it is written in the metadata, and its size where that is told."""

    path: str
    size: int | None


Files = Mapping[str, File]


def manifests_of(snapshots: Sequence[Snapshot], sources: Sources) -> dict[str, ManifestFile]:
    """All manifests of some snapshots, each once, by their path."""
    with ThreadPoolExecutor(_AT_ONCE, "penstock-lists") as pool:
        lists = pool.map(lambda snapshot: sources.lists.of(snapshot, sources.io), snapshots)
        return {manifest.manifest_path: manifest for manifests in lists for manifest in manifests}


def files_of(manifests: Iterable[ManifestFile], sources: Sources, names: Names) -> dict[str, File]:
    """Manifests and the live files in them, by their normal names."""
    members = list(manifests)
    files = {names.of(m.manifest_path): File(m.manifest_path, m.manifest_length) for m in members}
    for entries in sources.manifests.many(members, sources.io):
        paths, sizes = (entries.column(name).to_pylist() for name in ("file_path", "file_size_in_bytes"))
        files |= {names.of(path): File(path, size) for path, size in zip(paths, sizes, strict=True)}
    return files


def lists_of(snapshots: Iterable[Snapshot], names: Names) -> dict[str, File]:
    """The manifest lists of snapshots, by their normal names."""
    return {names.of(s.manifest_list): File(s.manifest_list, None) for s in snapshots}


def statistics_of(metadata: TableMetadata, names: Names) -> dict[str, File]:
    """The statistics files that the metadata names."""
    statistics = [*metadata.statistics, *metadata.partition_statistics]
    return {names.of(s.statistics_path): File(s.statistics_path, s.file_size_in_bytes) for s in statistics}


def reachable(metadata: TableMetadata, sources: Sources, names: Names) -> dict[str, File]:
    """Everything that a version of the metadata needs, all its snapshots and its statistics."""
    snapshots = list(metadata.snapshots)
    manifests = manifests_of(snapshots, sources)
    files = files_of(manifests.values(), sources, names)
    return {**files, **lists_of(snapshots, names), **statistics_of(metadata, names)}


def metadata_files(table: Table) -> list[str]:
    """The metadata files of a table: the current one, those in its log, and the hint that old readers look for."""
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    return [table.metadata_location, *log, f"{metadata_folder(table)}/version-hint.text"]


def check_collectable(metadata: TableMetadata, name: str) -> None:
    """An error when the table's owner has said that no file of it may be deleted."""
    if str(metadata.properties.get("gc.enabled", "true")).lower() == "false":
        message = f"{name} has gc.enabled = false: other tables may use its files, so none is deleted"
        raise LakeError(message, hint="set the property to true if no other table does")
