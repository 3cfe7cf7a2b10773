"""A snapshot to be: which manifests it has, and its summary.

Only manifests that lose files are written anew. Many small ones of a spec become one, as Iceberg's own writers do it; a
compaction puts all files of a spec into the order of their partitions, so that planning opens few manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, ManifestContent, ManifestFile, write_manifest_list
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, Summary, UpdateMetrics, update_snapshot_summaries
from pyiceberg.table.update import TableUpdate, update_table_metadata

from penstock.lake.commit.manifest_writer import Manifests, data_file, read_entries
from penstock.lake.write.data_files import WrittenFile, delete_quietly
from penstock.tables.iceberg.scan.scan_plan import Sources

if TYPE_CHECKING:
    from penstock.lake.layout.table_layout import Tuple

_MERGE_ENABLED, _MERGE_COUNT = "commit.manifest-merge.enabled", "commit.manifest.min-count-to-merge"
_MANIFEST_SIZE = "commit.manifest.target-size-bytes"
_OLD_PATHS = ("write.object-storage.path", "write.folder-storage.path")


@dataclass(frozen=True)
class Change:
    """What a snapshot adds and takes away."""

    operation: str  # append, overwrite, delete, replace
    added: Sequence[WrittenFile] = ()
    removed: frozenset[str] = frozenset()
    base: int | None = None  # the snapshot that it was planned on
    marked: frozenset[str] = frozenset()  # files of which delete files that are added name rows
    dangling: frozenset[str] = frozenset()  # delete files that apply to no data file
    touches: Callable[[Table], bool] | None = None  # whether others have changed what it has read
    sort_manifests: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    updates: tuple[TableUpdate, ...] = ()  # of the metadata, in the same commit: a table that is replaced

    def applied(self, metadata: TableMetadata) -> TableMetadata:
        """The metadata that the snapshot is written for."""
        return update_table_metadata(metadata, self.updates) if self.updates else metadata


class Draft:
    """The files of one snapshot: what was written for one attempt to commit it serves the next as well."""

    def __init__(self, table: Table, sources: Sources, change: Change) -> None:
        self.snapshot_id: int = table.metadata.new_snapshot_id()
        self._io, self._sources, self._change = table.io, sources, change
        self._folder = folder_of(table, "metadata")
        self._manifests = Manifests(change.applied(table.metadata), table.io, self._folder, self.snapshot_id)
        self._added: list[ManifestFile] | None = None
        self._less: dict[str, tuple[ManifestFile, list[DataFile]]] = {}
        self._lists: list[str] = []
        self._used: set[str] = set()

    def of(self, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
        """The manifests of a snapshot that exists."""
        return self._sources.lists.of(snapshot, self._io)

    def paths(self, manifest: ManifestFile) -> pa.Array:
        """The paths of the files in a manifest."""
        (entries,) = self._sources.manifests.many([manifest], self._io)
        return entries.column("file_path")

    def write(self, metadata: TableMetadata) -> Snapshot:
        """Write the manifests and their list on top of the table's current snapshot; the snapshot for the catalog."""
        self._manifests.metadata = metadata
        head = metadata.current_snapshot()
        manifests, gone = self._compose(head, metadata.properties)
        path = self._write_list(manifests, metadata, None if head is None else head.snapshot_id)
        self._used = {path, *(m.manifest_path for m in manifests)}
        fields: dict[str, Any] = {
            "snapshot-id": self.snapshot_id,
            "parent-snapshot-id": None if head is None else head.snapshot_id,
            "manifest-list": path,
            "sequence-number": metadata.next_sequence_number(),
            "summary": self._summary(metadata, head, gone),
            "schema-id": metadata.current_schema_id,
        }
        return Snapshot(**fields)

    def clean(self, *, published: bool) -> None:
        """Remove lists and manifests that no snapshot has."""
        for path in [*self._lists, *self._manifests.paths]:
            if not published or path not in self._used:
                delete_quietly(self._io, path)

    def _compose(
        self, head: Snapshot | None, properties: Mapping[str, str]
    ) -> tuple[list[ManifestFile], list[DataFile]]:
        """The manifests of the new snapshot, and the files that it loses."""
        kept = [m for m in self.of(head) if m.has_added_files() or m.has_existing_files()]
        data = [m for m in kept if m.content == ManifestContent.DATA]
        deletes = [m for m in kept if m.content == ManifestContent.DELETES]
        size = int(properties.get(_MANIFEST_SIZE, 8 << 20))
        if self._change.sort_manifests:
            composed, gone = self._sorted(data, size)
        else:
            if self._added is None:
                self._added = self._manifests.added(self._change.added)
            less = [self._without(m, self._change.removed) for m in data]
            gone = [file for _, lost in less for file in lost]
            composed = [*self._added, *self._merged([m for m, _ in less], size, properties)]
        needed = self._still_needed(deletes, composed)
        gone += [entry.data_file for m in deletes if m not in needed for entry in read_entries(m, self._io)]
        fewer = [self._without(m, self._change.dangling) for m in needed]
        gone += [file for _, lost in fewer for file in lost]
        return [*composed, *(m for m, _ in fewer)], gone

    def _without(self, manifest: ManifestFile, gone: frozenset[str]) -> tuple[ManifestFile, list[DataFile]]:
        path = manifest.manifest_path
        if path not in self._less:
            hit = bool(gone) and pc.any(pc.is_in(self.paths(manifest), value_set=pa.array(sorted(gone)))).as_py()
            self._less[path] = self._manifests.without(manifest, gone) if hit else (manifest, [])
        return self._less[path]

    def _merged(
        self, manifests: Sequence[ManifestFile], size: int, properties: Mapping[str, str]
    ) -> list[ManifestFile]:
        """Many small manifests of one spec become one."""
        if properties.get(_MERGE_ENABLED, "true").lower() == "false":
            return list(manifests)
        kept = []
        for spec_id, own in _by_spec(manifests).items():
            small = [m for m in own if m.manifest_length < size and m.added_snapshot_id != self.snapshot_id]
            if len(small) < int(properties.get(_MERGE_COUNT, 100)):
                kept += own
            else:
                kept += [m for m in own if m not in small]
                kept += self._manifests.merged(spec_id, small, size)[0]
        return kept

    def _sorted(self, manifests: Sequence[ManifestFile], size: int) -> tuple[list[ManifestFile], list[DataFile]]:
        """All files by partition, new ones among the old."""
        old, new = _by_spec(manifests), self._manifests.new_entries(self._change.added)
        kept, gone = [], []
        for spec_id in {**old, **new}:
            own, entries = old.get(spec_id, []), new.get(spec_id, [])
            written, lost = self._manifests.merged(spec_id, own, size, entries, self._change.removed)
            kept += written
            gone += lost
        return kept, gone

    def _still_needed(self, deletes: Sequence[ManifestFile], data: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Delete files are about data that is older than they are: without such data they are about nothing."""
        if not self._change.removed:
            return list(deletes)
        live = [m for m in data if m.has_added_files() or m.has_existing_files()]
        oldest = min((m.min_sequence_number for m in live if m.min_sequence_number >= 0), default=None)
        return [] if oldest is None else [m for m in deletes if m.sequence_number >= oldest]

    def _write_list(self, manifests: Sequence[ManifestFile], metadata: TableMetadata, head_id: int | None) -> str:
        codec: Any = metadata.properties.get("write.avro.compression-codec", "gzip")
        path = f"{self._folder}/snap-{self.snapshot_id}-{len(self._lists)}-{uuid4()}.avro"
        self._lists.append(path)
        with write_manifest_list(
            format_version=metadata.format_version,
            output_file=self._io.new_output(path),
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=head_id,
            sequence_number=metadata.next_sequence_number(),
            avro_compression=codec,
        ) as writer:
            writer.add_manifests(list(manifests))
        return path

    def _summary(self, metadata: TableMetadata, head: Snapshot | None, gone: Iterable[DataFile]) -> Summary:
        metrics = UpdateMetrics()
        changed: set[tuple[int, Tuple]] = set()
        for written in self._change.added:
            metrics.add_file(data_file(written))
            changed.add((written.spec_id, written.partition))
        for file in gone:
            metrics.remove_file(file)
            changed.add((file.spec_id, tuple(file.partition._data)))
        counts = {**metrics.to_dict(), "changed-partition-count": str(len(changed))}
        # PyIceberg has no sums for a snapshot that replaces files; they are those of one that overwrites.
        counted = Operation.APPEND if self._change.operation == "append" else Operation.OVERWRITE
        before = None if head is None else head.summary
        summary = update_snapshot_summaries(Summary(operation=counted, **{**counts, **self._change.properties}), before)
        return Summary(operation=Operation(self._change.operation), **summary.additional_properties)


def folder_of(table: Table, kind: str) -> str:
    """Where data files lie, or manifests and lists."""
    metadata = table.metadata
    return str(metadata.properties.get(f"write.{kind}.path", f"{metadata.location.rstrip('/')}/{kind}")).rstrip("/")


def own_folders(table: Table) -> list[str]:
    """All folders that a table writes to: its location, and those that its properties name."""
    properties = table.metadata.properties
    named = [properties[name] for name in _OLD_PATHS if name in properties]
    return [table.metadata.location, folder_of(table, "data"), folder_of(table, "metadata"), *named]


def _by_spec(manifests: Sequence[ManifestFile]) -> dict[int, list[ManifestFile]]:
    by_spec: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
    return by_spec
