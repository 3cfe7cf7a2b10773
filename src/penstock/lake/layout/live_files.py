"""The files that a table has now, as its writers see them: where each lies and which logical partitions it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.formats.manifest_record import LOGICAL, SHREDDING, read_tuples
from penstock.lake.layout.coalesce import as_stored, internal
from penstock.lake.layout.grouping import stored
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.metadata.version import SpecField
from penstock.tables.iceberg.scan.scan_plan import data_batches

_NAMES = ("file_path", "record_count", "file_size_in_bytes", LOGICAL, SHREDDING)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of the current snapshot.

    `logical` maps the fine tuples that it holds to their rows. It is None where they are not known: a file of another
    spec, or one whose manifest entry does not say them all.
    """

    path: str
    spec_id: int
    partition: Tuple
    rows: int
    bytes: int
    logical: Mapping[Tuple, int] | None
    shredding: str | None = None  # what is recorded of its sidecars


def live_files(table: IcebergTable, layout: Layout) -> list[LiveFile]:
    """All data files."""
    return [file for batch in data_batches(table.version, table.sources) for file in _files(batch, layout)]


def logical_sizes(files: Iterable[LiveFile]) -> dict[Tuple, float]:
    """Bytes of each logical partition; a shared file's are divided by rows."""
    sizes: dict[Tuple, float] = defaultdict(float)
    for file in files:
        for fine, rows in (file.logical or {}).items():
            sizes[fine] += file.bytes * rows / max(1, file.rows)
    return dict(sizes)


def _files(batch: FileBatch, layout: Layout) -> list[LiveFile]:
    columns = [_values(batch, spec_field) for spec_field in batch.spec.fields]
    tuples: Sequence[Tuple] = list(zip(*columns, strict=True)) if columns else [()] * batch.count
    spec_id = batch.spec.spec_id
    entries = zip(*(batch.column(name).to_pylist() for name in _NAMES), strict=True)
    return [
        LiveFile(path, spec_id, own, rows, size, _logical(layout, spec_id, own, rows, text), shredding)
        for own, (path, rows, size, text, shredding) in zip(tuples, entries, strict=True)
    ]


def _values(batch: FileBatch, spec_field: SpecField) -> list[Any]:
    array = batch.partition(spec_field)
    if array is None:
        return [None] * batch.count
    values = stored(array)
    return [as_stored(value, spec_field.kind) for value in values] if str(spec_field.kind) == "uuid" else values


def _logical(layout: Layout, spec_id: int, partition: Tuple, rows: int, text: str | None) -> dict[Tuple, int] | None:
    """The logical partitions of a file with their rows."""
    if spec_id == layout.fine.spec_id:
        return {partition: rows}
    if spec_id != layout.coarse_id:
        return None
    record = read_tuples(text)
    if record is None or record.rows is None or record.ids != tuple(layout.logical_ids):
        return None
    kinds, counted = layout.logical_kinds, zip(record.tuples, record.rows, strict=True)
    try:
        return {layout.fine_tuple(partition, internal(values, kinds)): count for values, count in counted}
    except (ValueError, KeyError, TypeError):  # a value that is none of its type
        return None
