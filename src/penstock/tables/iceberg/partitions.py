"""The partitions of a table over all its specs, from metadata alone: rows, files, bytes, deletes, last change.

One row for each spec and tuple. A field that a spec does not have is null there; `spec_id` tells it from a null value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.predicate.types import TIMESTAMP
from penstock.prune.judge import Judgement
from penstock.tables.iceberg.batch import FileBatch
from penstock.tables.iceberg.deletes import lookup, partitions_of
from penstock.tables.iceberg.specs import SpecField
from penstock.tables.iceberg.version import Version

_SUMS = [("rows", "sum"), ("path", "count"), ("bytes", "sum"), ("changed", "max")]
_TOLD = ["rows", "files", "bytes", "deletes", "last_change"]


def list_partitions(
    version: Version, judged: Sequence[tuple[FileBatch, Judgement]], deletes: Sequence[FileBatch]
) -> pa.Table:
    """The partitions of the kept files."""
    names = _names(version, [batch for batch, _ in judged])
    parts = [_files(version, batch, judgement, names) for batch, judgement in judged]
    keys = ["spec_id", *(f"key {name}" for name in names)]
    schema = _schema(names)
    files = pa.concat_tables(parts) if parts else schema.empty_table()
    found = files.group_by(keys, use_threads=False).aggregate(_SUMS)
    counted = Counter(place for batch in deletes for place in partitions_of(batch, None))
    numbers = [counted.get(place, 0) for place in _places(version, found, names)]
    columns = [found.column(key) for key in keys]
    columns += [found.column("rows_sum"), found.column("path_count"), found.column("bytes_sum")]
    columns += [pa.array(numbers, pa.int64()), found.column("changed_max")]
    return pa.table(columns, names=["spec_id", *names, *_TOLD])


def _names(version: Version, batches: Sequence[FileBatch]) -> dict[str, pa.DataType]:
    """The fields of all specs in use, by name; where two specs give one name two types, the later one is told apart."""
    found: dict[str, pa.DataType] = {}
    for spec_id in sorted({batch.spec.spec_id for batch in batches}):
        for field in version.specs[spec_id].fields:
            if field.type is not None:
                found.setdefault(_name(field, found, spec_id), field.type)
    return found


def _name(field: SpecField, known: dict[str, pa.DataType], spec_id: int) -> str:
    return field.name if known.get(field.name, field.type) == field.type else f"{field.name} (spec {spec_id})"


def _schema(names: dict[str, pa.DataType]) -> pa.Schema:
    keys = [pa.field(f"key {name}", kind) for name, kind in names.items()]
    told = {"rows": pa.int64(), "path": pa.string(), "bytes": pa.int64(), "changed": TIMESTAMP}
    return pa.schema([pa.field("spec_id", pa.int32()), *keys, *(pa.field(n, t) for n, t in told.items())])


def _files(version: Version, batch: FileBatch, judgement: Judgement, names: dict[str, pa.DataType]) -> pa.Table:
    kept = pa.array(judgement.kept)
    values = {_name(f, names, batch.spec.spec_id): batch.partition(f) for f in batch.spec.fields}
    own = {name: column for name, column in values.items() if column is not None}
    keys = [own[name].take(kept) if name in own else pa.nulls(len(kept), kind) for name, kind in names.items()]
    told = [batch.column(name).take(kept) for name in ("record_count", "file_path", "file_size_in_bytes")]
    spec = pa.repeat(pa.scalar(batch.spec.spec_id, pa.int32()), len(kept))
    changed = _times(version, batch.column("snapshot_id").take(kept))
    return pa.table([spec, *keys, *told, changed], schema=_schema(names))


def _times(version: Version, snapshot_ids: pa.Array) -> pa.Array:
    """When the snapshot of each file was made; null for those that have expired."""
    times = {s.snapshot_id: s.timestamp_ms * 1000 for s in version.metadata.snapshots}
    encoded = snapshot_ids.dictionary_encode()
    known = pa.array([times.get(i) for i in encoded.dictionary.to_pylist()], pa.int64())
    return known.take(encoded.indices).view(TIMESTAMP)


def _places(version: Version, found: pa.Table, names: dict[str, pa.DataType]) -> list[Any]:
    """Spec and tuple of each partition, as deletes know them; void is null, and unknown transforms are left out."""
    places = []
    for row in found.to_pylist():
        fields = version.specs[row["spec_id"]].fields
        keys = [None if f.type is None else f"key {_name(f, names, row['spec_id'])}" for f in fields]
        places.append((row["spec_id"], tuple(None if key is None else lookup(row[key]) for key in keys)))
    return places
