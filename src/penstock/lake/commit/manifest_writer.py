"""Manifests as Penstock writes them: PyIceberg's, with a record of its own for each file, and many entries a block.

Entries that are carried over into a new manifest keep their record (`formats/manifest_record.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DEFAULT_READ_VERSION,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
    _inherit_from_manifest,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import NestedField, StringType, StructType

from penstock.errors import LakeError
from penstock.formats.avro_container import read_header
from penstock.formats.format_registry import iceberg_format_of
from penstock.formats.manifest_record import FIELD_IDS, ManifestRecord
from penstock.lake.layout.slots import nulls_first
from penstock.lake.write.data_files import WrittenFile
from penstock.tables.iceberg.manifest.entrywise import ExactDecoder, read_records

_OWN = tuple(NestedField(FIELD_IDS[name], name, StringType(), required=False) for name in ManifestRecord._fields)
_ENTRIES_PER_BLOCK, _TEXTS_PER_BLOCK = 1_000, 1 << 20
_OWN_TYPE = StructType(*DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields, *_OWN)
_WITH_VALUES = {"lower_bounds", "upper_bounds", *ManifestRecord._fields}
_PLACES_WITH_VALUES = [i for i, field in enumerate(_OWN_TYPE.fields) if field.name in _WITH_VALUES]


def data_file(written: WrittenFile) -> DataFile:
    """A written file as PyIceberg has it, with Penstock's fields behind its own."""
    entry_file = DataFile._bind(
        _OWN_TYPE,
        content=DataFileContent.POSITION_DELETES if written.is_delete else DataFileContent.DATA,
        file_path=written.path,
        file_format=FileFormat[iceberg_format_of(written.path).name.upper()],
        partition=Record(*written.partition),
        file_size_in_bytes=written.bytes,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        **written.record._asdict(),
        **written.statistics,
    )
    entry_file.spec_id = written.spec_id
    return entry_file


def read_entries(manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """The live entries of a manifest, with Penstock's fields."""
    schema = manifest_entry_schema_with_data_file(DEFAULT_READ_VERSION, _OWN_TYPE)
    data = io.new_input(manifest.manifest_path).open().read()
    _, entries = read_records(
        read_header(data),
        data,
        ExactDecoder,
        schema,
        types={-1: ManifestEntry, 2: DataFile},
        enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    )
    live = [entry for entry in entries if entry.status != ManifestEntryStatus.DELETED]
    for entry in live:  # a uuid as the bytes that new entries have, for both are sorted and summarized together
        partition = entry.data_file.partition
        for i, value in enumerate(partition._data):
            if isinstance(value, UUID):
                partition[i] = value.bytes
    return [_inherit_from_manifest(entry, manifest) for entry in live]


def check_format_version(metadata: TableMetadata) -> None:
    """An error for a table that is not written: PyIceberg writes no manifests and no metadata of format version 3."""
    if metadata.format_version > 2:
        message = f"the table has format version {metadata.format_version}, which can be read and not written yet"
        raise LakeError(message, hint="write it with another engine, or make a table of version 2")


class Manifests:
    """Writes the manifests of one snapshot."""

    def __init__(self, metadata: TableMetadata, io: FileIO, folder: str, snapshot_id: int) -> None:
        check_format_version(metadata)
        self.metadata, self._io, self._folder, self._snapshot_id = metadata, io, folder, snapshot_id
        self.paths: list[str] = []

    def added(self, files: Iterable[WrittenFile]) -> list[ManifestFile]:
        """New files, one manifest for each spec, in the order of the partitions; delete files have their own."""
        every = list(files)
        data = self.new_entries(file for file in every if not file.is_delete)
        deletes = self.new_entries(file for file in every if file.is_delete)
        written = [self._write(spec_id, in_order(entries)) for spec_id, entries in data.items()]
        return written + [self._write(spec_id, in_order(each), _DeletesV2) for spec_id, each in deletes.items()]

    def new_entries(self, files: Iterable[WrittenFile]) -> dict[int, list[ManifestEntry]]:
        """The entries of new files, by spec."""
        entries_by_spec: dict[int, list[ManifestEntry]] = {}
        for file in files:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=data_file(file)
            )
            entries_by_spec.setdefault(file.spec_id, []).append(entry)
        return entries_by_spec

    def without(self, manifest: ManifestFile, gone: frozenset[str]) -> tuple[ManifestFile, list[DataFile]]:
        """A manifest in which some files are marked as deleted, and those files."""
        marked = [self._marked(entry, gone) for entry in read_entries(manifest, self._io)]
        lost = [entry.data_file for entry in marked if entry.status == ManifestEntryStatus.DELETED]
        kind = _DeletesV2 if manifest.content == ManifestContent.DELETES else None
        return self._write(manifest.partition_spec_id, marked, kind), lost

    def merged(
        self,
        spec_id: int,
        manifests: Sequence[ManifestFile],
        size: int,
        new: Sequence[ManifestEntry] = (),
        gone: frozenset[str] = frozenset(),
    ) -> tuple[list[ManifestFile], list[DataFile]]:
        """All files of some manifests of one spec, and new ones, in the order of their partitions; and those gone."""
        marked = [self._marked(entry, gone) for m in manifests for entry in read_entries(m, self._io)]
        lost = [entry for entry in marked if entry.status == ManifestEntryStatus.DELETED]
        live = in_order([*new, *(entry for entry in marked if entry.status != ManifestEntryStatus.DELETED)])
        per_entry = sum(m.manifest_length for m in manifests) / len(marked) if marked else 1_000
        most = max(1, int(size / per_entry))
        written = [self._write(spec_id, live[start : start + most]) for start in range(0, len(live), most)]
        written += [self._write(spec_id, lost)] if lost else []
        return written, [entry.data_file for entry in lost]

    def _marked(self, entry: ManifestEntry, gone: frozenset[str]) -> ManifestEntry:
        is_gone = entry.data_file.file_path in gone
        if is_gone:  # values of rows do not outlive their file: who deletes a person expects that
            for i in _PLACES_WITH_VALUES:
                entry.data_file._data[i] = None
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if is_gone else ManifestEntryStatus.EXISTING,
            snapshot_id=self._snapshot_id if is_gone else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _write(
        self, spec_id: int, entries: Sequence[ManifestEntry], kind: type[ManifestWriter] | None = None
    ) -> ManifestFile:
        path = f"{self._folder}/{uuid4()}-m{len(self.paths)}.avro"
        self.paths.append(path)
        if kind is None:
            kind = _WriterV1 if self.metadata.format_version == 1 else _WriterV2
        spec = self.metadata.specs()[spec_id]
        schema = _schema_for(self.metadata, spec)
        codec: Any = self.metadata.properties.get("write.avro.compression-codec", "gzip")
        writer: Any = kind(spec, schema, self._io.new_output(path), self._snapshot_id, codec)
        prepared = list[ManifestEntry]()
        with writer:
            inner, writer._writer = writer._writer, SimpleNamespace(write_block=prepared.extend)
            try:
                for entry in entries:
                    writer.add_entry(entry)
            finally:
                writer._writer = inner
            for block in _blocks(prepared):
                inner.write_block(block)
        manifest: ManifestFile = writer.to_manifest_file()
        return manifest


class _WithRecord(ManifestWriter):
    """Writes Penstock's own fields too."""

    def _with_partition(self, format_version: TableVersion) -> Schema:
        known: Any = super()._with_partition(format_version).find_field("data_file").field_type
        return manifest_entry_schema_with_data_file(format_version, StructType(*known.fields, *_OWN))


class _WriterV1(_WithRecord, ManifestWriterV1):
    """For tables of format version 1."""


class _WriterV2(_WithRecord, ManifestWriterV2):
    """For tables of format version 2."""


class _DeletesV2(_WriterV2):
    """For delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _blocks(entries: Iterable[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    """Many entries, as a reader decodes a block at once; fewer where their records are long."""
    block, texts = list[ManifestEntry](), 0
    for entry in entries:
        block.append(entry)
        texts += sum(len(text or "") for text in entry.data_file._data[-len(_OWN) :])
        if len(block) >= _ENTRIES_PER_BLOCK or texts >= _TEXTS_PER_BLOCK:
            yield block
            block, texts = [], 0
    if block:
        yield block


def in_order(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Entries by partition."""
    return sorted(entries, key=lambda entry: nulls_first(entry.data_file.partition._data))


def _schema_for(metadata: TableMetadata, spec: PartitionSpec) -> Schema:
    """The newest schema that has all sources of a spec."""
    schemas = [metadata.schema(), *reversed(metadata.schemas)]
    source_ids = {field.source_id for field in spec.fields}
    return next((schema for schema in schemas if source_ids <= schema._lazy_id_to_field.keys()), schemas[0])
