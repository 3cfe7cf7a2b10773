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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import TIMESTAMP
from penstock.formats.manifest_record import LOGICAL
from penstock.prune.judge import Judgement
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.manifest.logical_values import members_of
from penstock.tables.iceberg.metadata.specs import Spec, SpecField
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.delete_files import Partition, partitions_of

_NUMBERS = {
    "rows": pa.int64(), "files": pa.int64(), "shared_files": pa.int64(), "bytes": pa.int64(), "deletes": pa.int64(),
    "last_change": TIMESTAMP,
}  # fmt: skip


class _Part(NamedTuple):
    """Rows of the answer before they are put together: values of a spec's fields, numbers, and where the rows lie."""

    spec: Spec
    values: list[pa.Array | None]
    numbers: dict[str, pa.Array]
    place: pa.Array  # a number for each partition that delete files are about


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
        grouped = files.group_by(by, use_threads=False).aggregate(list(sums.items()))
        files = grouped.select([*by, *(f"{name}_{how}" for name, how in sums.items())])
        files = files.rename_columns([*by, *_NUMBERS])
    files = files.sort_by([(name, "ascending") for name in ("spec", *keys)])
    totals = {name: files.column(name) for name in _NUMBERS}
    shared = pc.greater(totals["shared_files"], 0)
    columns = [files.column(name) for name in ("spec", *keys)]
    columns += [totals["rows"], totals["files"], totals["shared_files"], shared, totals["bytes"], totals["deletes"]]
    shown = ["rows", "files", "shared_files", "shared", "bytes", "deletes", "last_change", "unknown"]
    unknown = _unknown([part.spec for part in parts], names, files.column("spec"))
    return pa.table([*columns, totals["last_change"], unknown], names=["spec_id", *names, *shown])


def _parts(
    version: Version, batch: FileBatch, judgement: Judgement, deletes: Mapping[Partition, int]
) -> Iterator[_Part]:
    """Files whose logical partitions are known, by those; then all others, by their own partition."""
    others = np.zeros(batch.count, np.bool_)
    others[judgement.kept] = True
    places = _Places(batch, deletes)
    own = [batch.partition(field) for field in batch.spec.fields]
    for members in members_of(version, batch, judgement):
        others[members.files] = False
        at = pa.array(members.of_file)
        numbers = {"rows": members.rows, "shared_files": pa.array(members.shared), "bytes": members.bytes}
        values = members.values([None if column is None else column.take(at) for column in own])
        yield _Part(members.spec, values, _numbers(version, batch, at, numbers, places), places.codes.take(at))
    at = pa.array(np.flatnonzero(others))
    has_text = batch.column(LOGICAL).is_valid().cast(pa.int64())
    numbers = {"rows": batch.column("record_count").take(at), "shared_files": has_text.take(at)}
    numbers["bytes"] = batch.column("file_size_in_bytes").take(at)
    values = [None if column is None else column.take(at) for column in own]
    yield _Part(batch.spec, values, _numbers(version, batch, at, numbers, places), places.codes.take(at))


class _Places:
    """The partition of each file as a number, and how many delete files it has; one place for all without deletes."""

    def __init__(self, batch: FileBatch, deletes: Mapping[Partition, int]) -> None:
        codes: npt.NDArray[np.int64] = np.zeros(batch.count, np.int64)
        counts: npt.NDArray[np.int64] = np.zeros(batch.count, np.int64)
        if deletes:
            numbers = {place: i for i, place in enumerate(deletes, 1)}
            for i, place in enumerate(partitions_of(batch, None)):
                codes[i], counts[i] = numbers.get(place, 0), deletes.get(place, 0)
        self.codes, self.counts = pa.array(codes), pa.array(counts)


def _numbers(
    version: Version, batch: FileBatch, at: pa.Array, known: dict[str, pa.Array], places: _Places
) -> dict[str, pa.Array]:
    files = pa.array(np.ones(len(at), np.int64))
    changed = _times(version, batch.column("snapshot_id").take(at))
    return {**known, "files": files, "deletes": places.counts.take(at), "last_change": changed}


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
    count, spec_id = len(part.place), part.spec.spec_id
    fields = zip(part.spec.fields, part.values, strict=True)
    own = {_name(field, names, spec_id): values for field, values in fields if values is not None}
    keys = [own[name] if name in own else pa.nulls(count, kind) for name, kind in names.items()]
    spec = pa.repeat(pa.scalar(spec_id, pa.int32()), count)
    return pa.table([spec, *keys, part.place, *(part.numbers[name] for name in _NUMBERS)], schema=schema)


def _times(version: Version, snapshot_ids: pa.Array) -> pa.Array:
    """When the snapshot of each file was made; null for those that have expired."""
    times = {s.snapshot_id: s.timestamp_ms * 1000 for s in version.metadata.snapshots if abs(s.timestamp_ms) < 2**53}
    encoded = snapshot_ids.dictionary_encode()
    known: Any = pa.array([times.get(i) for i in encoded.dictionary.to_pylist()], pa.int64())
    return known.take(encoded.indices).view(TIMESTAMP)
