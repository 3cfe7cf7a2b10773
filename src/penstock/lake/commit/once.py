"""What is committed at most once: a micro-batch of a streaming query, and a run of a job that may be started again.

Both are known by what the summary of their snapshot says. The same commit sets a property of the table, which is still
there when the snapshot has expired:

    penstock.stream.<query id> = 41                                        the last micro-batch of the query
    penstock.run.nightly-2026-05-17 = 7423904820@2026-05-17T01:00:00Z      the snapshot of the run, and when

A run counts for what is read: one whose snapshot was rolled back, or is on another branch, may be committed again.
Where that cannot be known, because snapshots between have expired, it counts as committed. The newest 1,000 runs are
remembered beyond their snapshots. The same holds for commits of files that were adopted (`lake/adopt`), of which a list
tells each file; all of these are remembered.

    penstock.adopted.7423904820 = 7423904820@s3://lake/web/events/metadata/adopted-….arrow
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from penstock.errors import LakeError
from penstock.tables.iceberg.metadata.branch import ancestors

_STREAM = "penstock.stream."
_QUERY, _BATCH = f"{_STREAM}query-id", f"{_STREAM}batch-id"
_RUN, _RUN_ID = "penstock.run.", "penstock.run-id"
KEPT_PREFIXES = (_STREAM, _RUN)  # of properties that stay when a table is replaced
_ADOPTED, _ADOPTED_FILES = "penstock.adopted.", "penstock.adopted-files"
_MOST_RUNS = 1_000
_LONGEST_ID = 200


class AlreadyCommitted(Exception):
    """The table has it by another commit; the snapshot is known for a run."""

    def __init__(self, snapshot_id: int | None = None) -> None:
        super().__init__(snapshot_id)
        self.snapshot_id = snapshot_id


class Properties(NamedTuple):
    """Properties of the table that a commit sets and removes."""

    new: Mapping[str, str] = {}
    gone: Sequence[str] = ()


@dataclass(frozen=True)
class StreamBatch:
    """A micro-batch of a streaming query."""

    query: str
    number: int

    @property
    def summary(self) -> dict[str, str]:
        """What the summary of its snapshot says."""
        return {_QUERY: self.query, _BATCH: str(self.number)}

    def properties(self, metadata: TableMetadata, snapshot: Snapshot) -> Properties:
        """The last batch of the query."""
        return Properties({f"{_STREAM}{self.query}": str(self.number)})

    def check(self, metadata: TableMetadata) -> None:
        """Raise when a table has this batch of the query, or a later one; without the property, by its history."""
        name = f"{_STREAM}{self.query}"
        if name in metadata.properties:
            is_there = _number(name, metadata.properties[name]) >= self.number
        else:
            own = (summary for _, summary in _history(metadata) if summary.get(_QUERY) == self.query)
            is_there = any(_number(_BATCH, summary[_BATCH]) >= self.number for summary in own)
        if is_there:
            raise AlreadyCommitted


@dataclass(frozen=True)
class Run:
    """A run of a job."""

    id: str

    def __post_init__(self) -> None:
        is_text = isinstance(self.id, str) and bool(self.id.strip()) and self.id.isprintable()
        if not is_text or len(self.id) > _LONGEST_ID:
            hint = f"give a text of 1 to {_LONGEST_ID} characters that names the run, such as 'nightly-2026-05-17'"
            raise LakeError(f"invalid run_id={self.id!r}"[:_LONGEST_ID], hint=hint)

    @property
    def summary(self) -> dict[str, str]:
        """What the summary of its snapshot says."""
        return {_RUN_ID: self.id}

    def properties(self, metadata: TableMetadata, snapshot: Snapshot) -> Properties:
        """The snapshot of the run; the oldest runs are forgotten."""
        when = datetime.fromtimestamp(snapshot.timestamp_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        own = f"{_RUN}{self.id}"
        others = {name: value for name, value in metadata.properties.items() if name.startswith(_RUN) and name != own}
        oldest = sorted(others, key=lambda name: others[name].partition("@")[2])
        return Properties({own: f"{snapshot.snapshot_id}@{when}"}, oldest[: max(0, len(others) + 1 - _MOST_RUNS)])

    def check(self, metadata: TableMetadata) -> None:
        """Raise when what is read of a table has this run."""
        snapshot_id = self.snapshot_in(metadata)
        if snapshot_id is not None:
            raise AlreadyCommitted(snapshot_id)

    def snapshot_in(self, metadata: TableMetadata) -> int | None:
        """The snapshot by which what is read of a table has this run; None when it does not."""
        for snapshot, summary in _history(metadata):
            if summary.get(_RUN_ID) == self.id:
                return int(snapshot.snapshot_id)
        value = metadata.properties.get(f"{_RUN}{self.id}")
        if value is None:
            return None
        snapshot_id = _number(f"{_RUN}{self.id}", value.partition("@")[0])
        other = metadata.snapshot_by_id(snapshot_id)
        return None if other is not None and _is_outside(metadata, metadata.current_snapshot_id, other) else snapshot_id


@dataclass(frozen=True)
class Adoption:
    """Files that were adopted together, by the path of their list."""

    list_path: str

    @property
    def summary(self) -> dict[str, str]:
        """What the summary of its snapshot says."""
        return {_ADOPTED_FILES: self.list_path}

    def properties(self, metadata: TableMetadata, snapshot: Snapshot) -> Properties:
        """The snapshot and the list."""
        return Properties({f"{_ADOPTED}{snapshot.snapshot_id}": f"{snapshot.snapshot_id}@{self.list_path}"})

    def check(self, metadata: TableMetadata) -> None:
        """Nothing: the change itself says which lists it has seen."""


def adoptions(metadata: TableMetadata, *, every: bool = False) -> list[str]:
    """The lists of adopted files that count for what is read of a table; or every one that its properties name."""
    lists = []
    for name, value in metadata.properties.items():
        if name.startswith(_ADOPTED):
            snapshot = metadata.snapshot_by_id(_number(name, value.partition("@")[0]))
            if every or snapshot is None or not _is_outside(metadata, metadata.current_snapshot_id, snapshot):
                lists.append(value.partition("@")[2])
    return lists


def once_of(properties: Mapping[str, str]) -> StreamBatch | Run | Adoption | None:
    """What properties of a snapshot say of being committed once, or of being remembered."""
    if _ADOPTED_FILES in properties:
        return Adoption(properties[_ADOPTED_FILES])
    if _RUN_ID in properties:
        return Run(properties[_RUN_ID])
    if _QUERY in properties and _BATCH in properties:
        return StreamBatch(properties[_QUERY], _number(_BATCH, properties[_BATCH]))
    return None


def with_run(properties: Mapping[str, str] | None, run_id: str | None) -> dict[str, str]:
    """Properties of a snapshot, with those of a run where one is named."""
    return {**(properties or {}), **({} if run_id is None else Run(run_id).summary)}


def forgotten_runs(metadata: TableMetadata, expired: Collection[Snapshot]) -> list[str]:
    """The properties of runs, and of adopted files, whose snapshots expire without being in the history of any branch:
    they never counted."""
    heads = {ref.snapshot_id for ref in metadata.refs.values() if ref.snapshot_ref_type == SnapshotRefType.BRANCH}
    outside = {
        str(snapshot.snapshot_id)
        for snapshot in expired
        if all(_is_outside(metadata, head, snapshot) for head in {*heads, metadata.current_snapshot_id})
    }
    runs = ((name, value) for name, value in metadata.properties.items() if name.startswith((_RUN, _ADOPTED)))
    return [name for name, value in runs if value.partition("@")[0] in outside]


def _is_outside(metadata: TableMetadata, head: int | None, snapshot: Snapshot) -> bool:
    """Whether it is certain that a snapshot is not in the history of another one: what is left of that reaches back
    behind it. When snapshots expire, PyIceberg forgets that the next ones had a parent, so that alone says nothing."""
    history = list(ancestors(metadata, head))
    if any(each.snapshot_id == snapshot.snapshot_id for each in history):
        return False
    return not history or _order(history[-1]) < _order(snapshot)


def _order(snapshot: Snapshot) -> tuple[int, int]:
    """The place of a snapshot among all of a table; version 1 does not count them."""
    return snapshot.sequence_number or 0, snapshot.timestamp_ms


def _history(metadata: TableMetadata) -> Iterator[tuple[Snapshot, Mapping[str, str]]]:
    """The current snapshot and those it comes from, with what their summaries say."""
    for snapshot in ancestors(metadata, metadata.current_snapshot_id):
        if snapshot.summary is not None:
            yield snapshot, snapshot.summary.additional_properties


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        what = "snapshot" if name.startswith((_RUN, _ADOPTED)) else "batch"
        last = "the snapshot of the run" if what == "snapshot" else "the last batch of the query that the table has"
        raise LakeError(
            f"{name} is {text!r}, which is no number of a {what}", hint=f"set it to {last}, or remove it"
        ) from None
