"""Where a stream over an Iceberg table stands, and the snapshots that lead from there to the newest one.

Some writers cut the history where they expire snapshots: the oldest that is left has no parent. The sequence number of
the last snapshot that was read tells whether the oldest one that is left is the next, or others are lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from penstock.errors import LakeError, PenstockWarning
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.version import resolve

_KEEP = "start with a new checkpoint, and keep snapshots longer than a stream may stand still"


@dataclass(frozen=True)
class Part:
    """A snapshot whose files, or with `full` all files of the table at that time, are read up to a path."""

    snapshot: int
    full: bool
    done: str = ""


@dataclass(frozen=True)
class Standing:
    """Where a stream stands: after a snapshot, which has a sequence number, perhaps within the next one."""

    after: int | None
    part: Part | None = None
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a position holds it."""
        part = {} if self.part is None else {"part": dict(vars(self.part))}
        return {"after": self.after, "number": self.number, **part}


def beginning(table: IcebergTable, text: str) -> Standing:
    """Where the option says that a stream begins."""
    metadata, head = table.table.metadata, table.version.snapshot
    match text.strip().lower():
        case "earliest" if head is not None:
            return Standing(None, Part(int(head.snapshot_id), full=True))
        case "earliest" | "latest":
            return standing_after(head, metadata)
    if text.strip().isdigit() or text in metadata.refs:
        snapshot = resolve(metadata, int(text) if text.strip().isdigit() else text, table.name).snapshot
        assert snapshot is not None  # or it is an error
        return standing_before(snapshot)
    return _since(table, text)


def _since(table: IcebergTable, text: str) -> Standing:
    """After the last snapshot before a time."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = "write earliest, latest, a snapshot's id, a tag, or a time such as 2026-05-17 09:00"
        raise LakeError(f"starting is {text!r}", hint=f"{hint}; partitions go to where") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(table.context.timezone))
    millis = moment.timestamp() * 1000
    snapshot, metadata = table.version.snapshot, table.table.metadata
    while snapshot is not None and snapshot.timestamp_ms >= millis:
        parent = snapshot.parent_snapshot_id
        known = None if parent is None else metadata.snapshot_by_id(parent)
        if known is None:
            if parent is not None or not is_next(metadata, Standing(None), snapshot):
                message = f"snapshots of {table.name} before {snapshot.snapshot_id} have expired"
                warnings.warn(f"{message}; the stream begins there", PenstockWarning, stacklevel=2)
            return standing_before(snapshot)
        snapshot = known
    return standing_after(snapshot, metadata)


def standing_after(snapshot: Snapshot | None, metadata: TableMetadata) -> Standing:
    """After a snapshot; without one, before the first that comes."""
    if snapshot is None:
        return Standing(None, number=int(getattr(metadata, "last_sequence_number", 0)))
    return Standing(int(snapshot.snapshot_id), number=int(snapshot.sequence_number or 0))


def standing_before(snapshot: Snapshot) -> Standing:
    """Before a snapshot, whatever has become of its parent."""
    return Standing(snapshot.parent_snapshot_id, number=int(snapshot.sequence_number or 0) - 1)


def after_part(metadata: TableMetadata, standing: Standing, name: str) -> Standing:
    """Where a stream will stand when the snapshot that it is in is read."""
    return standing if standing.part is None else standing_after(snapshot_of(metadata, standing.part, name), metadata)


def snapshot_of(metadata: TableMetadata, part: Part, name: str) -> Snapshot:
    """The snapshot that a part is of; an error when it has expired."""
    snapshot = metadata.snapshot_by_id(part.snapshot)
    if snapshot is None:
        raise expired(name, part.snapshot)
    return snapshot


def lineage(metadata: TableMetadata, standing: Standing, until: int | None, name: str) -> list[Snapshot]:
    """The snapshots after one up to another, the oldest first."""
    snapshots: list[Snapshot] = []
    after, place = standing.after, until
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while place != after or place is None:
        if place is None:
            if (snapshots and is_next(metadata, standing, snapshots[-1])) or (not snapshots and after is None):
                break
            raise _lost(name, after, after in known)
        snapshot = known.get(place)
        if snapshot is None:
            raise _lost(name, after, after in known) if after is not None else expired(name, place)
        snapshots.append(snapshot)
        place = snapshot.parent_snapshot_id
    return snapshots[::-1]


def is_next(metadata: TableMetadata, standing: Standing, oldest: Snapshot) -> bool:
    """Whether no snapshot is lost between where a stream stands and the oldest one that is left."""
    number = int(oldest.sequence_number or 0)
    if not number:  # format version 1 does not count
        return standing.after is None
    known = {snapshot.sequence_number for snapshot in metadata.snapshots}
    return number > standing.number and all(i in known for i in range(standing.number + 1, number))


def expired(name: str, snapshot: int | None) -> LakeError:
    message = f"snapshot {snapshot} of {name} has expired before the stream had read it"
    return LakeError(message, hint=_KEEP)


def _lost(name: str, snapshot: int | None, is_there: bool) -> LakeError:
    if snapshot is None or not is_there:
        since = "the beginning" if snapshot is None else f"snapshot {snapshot}"
        return LakeError(f"snapshots of {name} after {since} have expired before the stream had read them", hint=_KEEP)
    message = f"the stream stands at snapshot {snapshot} of {name}, which the table no longer comes from"
    return LakeError(message, hint="it was rolled back or replaced: start with a new checkpoint")


def lag_seconds(metadata: TableMetadata, standing: Standing, head: int | None) -> float:
    """How much newer the newest snapshot is than the one that was read."""
    snapshots = [None if i is None else metadata.snapshot_by_id(i) for i in (standing.after, head)]
    times = [snapshot.timestamp_ms for snapshot in snapshots if snapshot is not None]
    return max(0, times[1] - times[0]) / 1000 if len(times) == 2 else 0.0


def read_standing(at: Mapping[str, Any]) -> Standing:
    """Where a position stands."""
    part = at.get("part")
    return Standing(at["after"], None if part is None else Part(**part), at["number"])
