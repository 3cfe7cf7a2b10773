"""The partitions of a table over all its specs, from metadata alone: rows, files, bytes, deletes, last change.

One row for each logical partition, wherever its rows lie: in files of its own, in files that it shares with others, or
in both. `files` counts every file that has rows of it, `shared_files` those among them that it shares. So the table has
as many rows as there are logical partitions, and nobody has to add two rows up to know how large a partition is. The
rows in a shared file are told exactly, its bytes are divided by rows; it counts once for each partition in it, so that
`files` may add up to more than the table has.

The columns are those of the default spec, and of all others that files have. `spec_id` is the spec whose fields the row
has: for rows in shared files the fine one. Of a field that a spec does not have, nothing is known: it is null, and
`unknown` names it, so that it is not taken for a null value. Shared files whose manifest entry does not say which
logical partitions they hold, with the rows of each, are told by the partition that they lie in, and their logical
columns are unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import TIMESTAMP
from penstock.formats.manifest_record import LOGICAL
from penstock.prune.judge import Judgement
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.manifest.logical_values import members_of
from penstock.tables.iceberg.metadata.version import Spec, SpecField, Version
from penstock.tables.iceberg.scan.delete_files import Partition, partitions_of

_NUMBERS = {
    "rows": pa.int64(), "files": pa.int64(), "shared_files": pa.int64(), "bytes": pa.int64(), "deletes": pa.int64(),
    "last_change": TIMESTAMP,
}  # fmt: skip


class _Part(NamedTuple):
    """Rows of the answer before they are put together: a spec with the values of its fields, and the numbers."""

    spec: Spec
    values: list[pa.Array | None]
    numbers: dict[str, pa.Array]  # and `place`, a number for each partition that delete files are about


def list_partitions(
    version: Version, judged: Sequence[tuple[FileBatch, Judgement]], deletes: Sequence[FileBatch]
) -> pa.Table:
    """The logical partitions of the kept files that can match themselves."""
    counted = Counter(place for batch in deletes for place in partitions_of(batch, None))
    parts = [part for batch, judgement in judged for part in _parts(version, batch, judgement, counted)]
    names = _names([*(part.spec for part in parts), version.specs[version.metadata.default_spec_id]])
    keys = [f"key {i}" for i in range(len(names))]
    types = {"spec": pa.int32(), **dict(zip(keys, names.values(), strict=True)), "place": pa.int64(), **_NUMBERS}
    tables = [_table(part, names, pa.schema(types)) for part in parts]
    files = pa.concat_tables(tables) if tables else pa.schema(types).empty_table()
    for by in (["spec", *keys, "place"], ["spec", *keys]):
        # Delete files are about places: those of one place count once, however many files lie there.
        sums = {name: "max" if name == "last_change" or (name == "deletes" and "place" in by) else "sum"
                for name in _NUMBERS}  # fmt: skip
        files = files.group_by(by, use_threads=False).aggregate(list(sums.items()))
        files = files.select([*by, *(f"{name}_{how}" for name, how in sums.items())]).rename_columns([*by, *_NUMBERS])
    files = files.sort_by([(name, "ascending") for name in ("spec", *keys)])
    shown = ["rows", "files", "shared_files", "shared", "bytes", "deletes", "last_change"]
    files = files.append_column("shared", pc.greater(files.column("shared_files"), 0)).select(["spec", *keys, *shown])
    unknown = _unknown([part.spec for part in parts], names, files.column("spec"))
    return pa.table([*files.columns, unknown], names=["spec_id", *names, *shown, "unknown"])


def _parts(
    version: Version, batch: FileBatch, judgement: Judgement, deletes: Mapping[Partition, int]
) -> Iterator[_Part]:
    """Files whose logical partitions are known, by those; then all others, by their own partition."""
    others = np.zeros(batch.count, np.bool_)
    others[judgement.kept] = True
    of_files = _of_files(version, batch, deletes)
    for members in members_of(version, batch, judgement):
        others[members.files] = False
        numbers = {"rows": members.rows, "shared_files": members.shared, "bytes": members.bytes}
        yield _Part(members.spec, members.values(), {**numbers, **_taken(of_files, members.of_file)})
    at = np.flatnonzero(others)
    of_files["rows"], of_files["bytes"] = batch.column("record_count"), batch.column("file_size_in_bytes")
    of_files["shared_files"] = batch.column(LOGICAL).is_valid()
    own = (batch.partition(field) for field in batch.spec.fields)
    values = [None if column is None else column.take(pa.array(at)) for column in own]
    yield _Part(batch.spec, values, _taken(of_files, at))


def _of_files(version: Version, batch: FileBatch, deletes: Mapping[Partition, int]) -> dict[str, pa.Array]:
    """What is about whole files: last change, place (one for all without deletes) and the number of delete files."""
    places, counts = np.zeros(batch.count, np.int64), np.zeros(batch.count, np.int64)
    if deletes:
        numbers, own = {place: i for i, place in enumerate(deletes, 1)}, partitions_of(batch, None)
        places[:], counts[:] = [numbers.get(place, 0) for place in own], [deletes.get(place, 0) for place in own]
    columns = {"files": np.ones(batch.count, np.int64), "place": places, "deletes": counts}
    changed = _times(version, batch.column("snapshot_id"))
    return {**{name: pa.array(values) for name, values in columns.items()}, "last_change": changed}


def _taken(columns: Mapping[str, pa.Array], at: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    return {name: column.take(pa.array(at)) for name, column in columns.items()}


def _names(specs: Sequence[Spec]) -> dict[str, pa.DataType]:
    """The fields of all specs in use, by name; where two specs give one name two types, the later one is told apart."""
    types: dict[str, pa.DataType] = {}
    for spec in sorted(set(specs), key=lambda spec: spec.spec_id):
        for field in spec.fields:
            if field.type is not None:
                types.setdefault(_name(field, types, spec.spec_id), field.type)
    return types


def _name(field: SpecField, known: dict[str, pa.DataType], spec_id: int) -> str:
    return field.name if known.get(field.name, field.type) == field.type else f"{field.name} (spec {spec_id})"


def _unknown(specs: Sequence[Spec], names: dict[str, pa.DataType], spec_ids: pa.ChunkedArray) -> pa.Array:
    """The columns that a spec says nothing of, for each row."""
    own = {spec.spec_id: {_name(field, names, spec.spec_id) for field in spec.fields} for spec in specs}
    others = {i: [name for name in names if name not in known] for i, known in own.items()}
    return pa.array([others[i] for i in spec_ids.to_pylist()], pa.list_(pa.string()))


def _table(part: _Part, names: dict[str, pa.DataType], schema: pa.Schema) -> pa.Table:
    count, spec_id = len(part.numbers["rows"]), part.spec.spec_id
    fields = zip(part.spec.fields, part.values, strict=True)
    own = {_name(field, names, spec_id): values for field, values in fields if values is not None}
    keys = [own[name] if name in own else pa.nulls(count, kind) for name, kind in names.items()]
    numbers = (pa.array(part.numbers[name]).cast(kind) for name, kind in {"place": pa.int64(), **_NUMBERS}.items())
    return pa.table([pa.array(np.full(count, spec_id, np.int32)), *keys, *numbers], schema=schema)


def _times(version: Version, snapshot_ids: pa.Array) -> pa.Array:
    """When the snapshot of each file was made; null for those that have expired."""
    times = {s.snapshot_id: s.timestamp_ms * 1000 for s in version.metadata.snapshots if abs(s.timestamp_ms) < 2**53}
    encoded = snapshot_ids.dictionary_encode()
    return pa.array([times.get(i) for i in encoded.dictionary.to_pylist()], TIMESTAMP).take(encoded.indices)
