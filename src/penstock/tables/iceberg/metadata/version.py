"""One version of an Iceberg table: a snapshot with the schema and the specs that belong to it.

Without a snapshot, the table is read as it is now, with its current schema. A snapshot, a time or a tag is read with
the schema that it was written with; a branch, as something that goes on, with the current one, as Iceberg's Spark
runtime does.

| asked | meaning |
|---|---|
| `None` | the current snapshot |
| an int | the snapshot of that id |
| a `datetime`, or text such as `2026-05-17 10:00` | what was current then; UTC where no zone is named |
| any other text | a tag or a branch |

A value of a spec's field is never compared with the source column unless the transform is the identity: it is
projected. The source is found by its id. A field whose source was dropped, or whose transform is not known, says
nothing of any column; its value is still shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from penstock.errors import LakeError
from penstock.expr.schema import check_names
from penstock.expr.tree import Column
from penstock.formats.manifest_record import read_sidecar_record
from penstock.maps.shred_rule import MIRROR
from penstock.maps.shredded_file import Part, ShreddedFile, State, states_of
from penstock.maps.sidecar_columns import Sidecar, check_complete, path_of, read_sidecars, visible
from penstock.prune.facts import Term
from penstock.prune.transform_functions import transform_function
from penstock.prune.transforms import transform_of
from penstock.tables.iceberg.metadata.branch import ancestors
from penstock.tables.iceberg.metadata.schema_columns import Columns, arrow_type
from penstock.tables.partitioning import PartitionField

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

SnapshotChoice = int | str | datetime | None


@dataclass(frozen=True)
class SpecField:
    """One field of a spec: where its value stands in the tuple, its type, and what it says of which column."""

    position: int
    name: str
    transform: str
    term: Term | None  # what a value is a fact about; None when it says nothing
    type: pa.DataType | None
    kind: IcebergType | None  # Iceberg's type of the values
    source_id: int


@dataclass(frozen=True)
class Spec:
    """One way in which files of the table are partitioned."""

    spec_id: int
    fields: tuple[SpecField, ...]

    def __hash__(self) -> int:
        return self.spec_id

    @property
    def sources(self) -> set[tuple[int, str]]:
        """What partitions files, as (source id, transform); a field removed from a table of version 1 is void."""
        return {(field.source_id, field.transform) for field in self.fields if field.transform != "void"}

    @property
    def identities(self) -> dict[int, SpecField]:
        """The fields that hold a column's own value, by the column's id."""
        return {f.source_id: f for f in self.fields if f.transform == "identity" and f.term is not None}


class Specs(dict[int, Spec]):
    """Specs by id."""

    def __missing__(self, spec_id: int) -> Spec:
        message = f"the table's metadata has no partition spec {spec_id}, which its files refer to"
        raise LakeError(message, hint=f"it has {', '.join(map(str, sorted(self)))}; restore the metadata file")


def read_specs(metadata: TableMetadata, columns: Columns) -> Specs:
    """All specs that files of the table may have, by id, as seen from one schema."""
    specs = Specs()
    for spec in metadata.partition_specs:
        fields = (_field(i, field, metadata, columns) for i, field in enumerate(spec.fields))
        specs[spec.spec_id] = Spec(spec.spec_id, tuple(fields))
    return specs


def _field(position: int, field: IcebergField, metadata: TableMetadata, columns: Columns) -> SpecField:
    transform = transform_of(str(field.transform))
    source = columns.by_id.get(field.source_id)
    origin = _type_of(field.source_id, [columns.schema, *reversed(metadata.schemas)])
    arrow = None if origin is None else transform.result_type(arrow_type(origin, field.name))
    kind = term = None
    if origin is not None and arrow is not None:
        kind, meant = field.transform.result_type(origin), transform.on_type(origin)
        if source is not None and (meant == "identity" or transform_function(meant, source.type) is not None):
            term = PartitionField(field.name, source, meant).term
    return SpecField(position, field.name, transform.text, term, arrow, kind, field.source_id)


def _type_of(source_id: int, schemas: Sequence[Schema]) -> IcebergType | None:
    """The type of a column in the first schema that has it; a dropped one is found in the table's history."""
    for schema in schemas:
        with suppress(ValueError):
            return schema.find_field(source_id).field_type
    return None


def dropped(field: SpecField) -> Column:
    """A name for a source that is no column any more: no predicate can mean it."""
    return Column(("", f"#{field.source_id}"), field.type)


@dataclass(frozen=True)
class Version:
    """What is read: PyIceberg's metadata, a snapshot of it (None for a table without rows), and its schema.

    `stored` is the schema that files are written with, `columns` are those of it that people see: all but sidecars.
    """

    metadata: TableMetadata
    snapshot: Snapshot | None
    stored: Schema

    @cached_property
    def sidecars(self) -> tuple[Sidecar, ...]:
        """The columns that hold hot keys of maps."""
        return read_sidecars(self.stored, self.metadata.properties)

    def shredded(self, record: str | None) -> ShreddedFile:
        """What is known of the sidecars of a file with this record."""
        recorded = read_sidecar_record(record)
        if recorded is not None:
            check_complete(self.metadata, self.stored, recorded.value - {sidecar.id for sidecar in self.sidecars})
        states = states_of(record, self.sidecars)
        parts = [
            Part(sidecar.name, path, sidecar.key, sidecar.mode == MIRROR, state)
            for (sidecar, path), state in zip(self._maps, states, strict=True)
            if path is not None and state > State.ABSENT
        ]
        return ShreddedFile(tuple(parts), frozenset(path for _, path in self._maps if path is not None))

    @cached_property
    def _maps(self) -> list[tuple[Sidecar, tuple[str, ...] | None]]:
        """The sidecars with the paths of their maps; None where a map was dropped."""
        return [(sidecar, path_of(self.stored, sidecar)) for sidecar in self.sidecars]

    @cached_property
    def columns(self) -> Columns:
        columns = Columns(visible(self.stored, self.sidecars))
        check_names(columns.arrow, self.metadata.location)
        return columns

    @cached_property
    def specs(self) -> Specs:
        return read_specs(self.metadata, self.columns)

    @property
    def snapshot_id(self) -> int | None:
        return None if self.snapshot is None else int(self.snapshot.snapshot_id)


def resolve(metadata: TableMetadata, requested: SnapshotChoice, name: str) -> Version:
    """The version that was asked for; an error that names what there is when there is no such."""
    if requested is None:
        return Version(metadata, metadata.current_snapshot(), metadata.schema())
    if isinstance(requested, str) and requested in metadata.refs:
        return _by_ref(metadata, requested, name)
    if isinstance(requested, bool) or not isinstance(requested, int | str | datetime):
        raise LakeError(f"{requested!r} is no snapshot", hint="give an id, a time, a tag or a branch")
    snapshot = metadata.snapshot_by_id(requested) if isinstance(requested, int) else _as_of(metadata, requested, name)
    if snapshot is None:
        raise LakeError(f"{name} has no snapshot {requested}", hint=_known(metadata))
    return Version(metadata, snapshot, _schema_of(metadata, snapshot))


def _by_ref(metadata: TableMetadata, label: str, name: str) -> Version:
    ref = metadata.refs[label]
    snapshot = metadata.snapshot_by_id(ref.snapshot_id)
    if snapshot is None:
        raise LakeError(f"{label} of {name} points to snapshot {ref.snapshot_id}, which is gone", hint=_known(metadata))
    schema = _schema_of(metadata, snapshot) if ref.snapshot_ref_type == "tag" else metadata.schema()
    return Version(metadata, snapshot, schema)


def _schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """The schema that a snapshot was written with; old writers did not say it."""
    known: dict[int | None, Schema] = {schema.schema_id: schema for schema in metadata.schemas}
    return known.get(snapshot.schema_id, metadata.schema())


def has_columns_of(schema: Schema, metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether a schema has a column of a snapshot; else, as after a REPLACE TABLE, its rows would be all NULL."""
    then = {field.field_id for field in _schema_of(metadata, snapshot).fields}
    return any(field.field_id in then for field in schema.fields)


def _as_of(metadata: TableMetadata, time: str | datetime, name: str) -> Snapshot:
    """The snapshot that was current at a time, by the table's own log."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            refs = ", ".join(sorted(metadata.refs)) or "none"
            hint = f"tags and branches: {refs}; a time is written 2026-05-17 or 2026-05-17 10:00:00"
            raise LakeError(f"{name} has no tag or branch {time!r}", hint=hint) from None
    moment = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    millis = moment.timestamp() * 1000
    log = metadata.snapshot_log
    past = [entry for entry in log if entry.timestamp_ms <= millis]
    if not past:
        raise LakeError(f"{name} had no snapshot at {time.isoformat()}", hint=_known(metadata))
    if len(past) < len(log) and _is_gap(metadata, past[-1], log[len(past)]):
        message = f"{name}: what was current at {time.isoformat()} may have expired"
        raise LakeError(message, hint=_known(metadata))
    snapshot = metadata.snapshot_by_id(past[-1].snapshot_id)
    if snapshot is None:
        message = f"snapshot {past[-1].snapshot_id}, current at {time.isoformat()}, has expired"
        raise LakeError(f"{name}: {message}", hint=_known(metadata))
    return snapshot


def _is_gap(metadata: TableMetadata, entry: SnapshotLogEntry, following: SnapshotLogEntry) -> bool:
    """Whether something else may have been current between two entries of the log.

    PyIceberg takes what has expired out of the log, and an older snapshot that a tag keeps would stand for it. A commit
    names what it was made upon. For a rollback, numbers of snapshots tell: none is missing if none has expired.
    """
    after = metadata.snapshot_by_id(following.snapshot_id)
    if after is not None and after.timestamp_ms == following.timestamp_ms:
        return all(entry.snapshot_id != snapshot.snapshot_id for snapshot in ancestors(metadata, after.snapshot_id))
    before = metadata.snapshot_by_id(entry.snapshot_id)
    if before is None or before.sequence_number is None:
        return False
    moment = following.timestamp_ms
    numbers = {s.sequence_number for s in metadata.snapshots}
    later = [s.sequence_number for s in metadata.snapshots if s.timestamp_ms > moment and s.sequence_number is not None]
    end = min(later, default=getattr(metadata, "last_sequence_number", 0) + 1)
    return not numbers.issuperset(range(before.sequence_number, end))


def _known(metadata: TableMetadata) -> str:
    """The newest snapshots, for a hint."""
    newest = sorted(metadata.snapshots, key=lambda s: -s.timestamp_ms)[:5]
    if not newest:
        return "it has none"
    times = [f"{datetime.fromtimestamp(s.timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}" for s in newest]
    shown = [f"{s.snapshot_id} ({time})" for s, time in zip(newest, times, strict=True)]
    return f"there are {len(metadata.snapshots):,}, the newest: {', '.join(shown)}"
