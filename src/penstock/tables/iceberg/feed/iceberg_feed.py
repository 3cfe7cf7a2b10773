"""What is new in an Iceberg table: the files that each snapshot after the position added, judged like those of a scan.

| snapshot | what a stream reads of it |
|---|---|
| adds files and removes nothing | the added files |
| replaces files (compaction) | nothing: the rows were there before |
| removes rows, by `on_change` | `error`; `skip`: nothing; `changes`: the rows that are different, each way |

`earliest` is the table as it is when the stream begins, and then what comes. A position names the last snapshot that
was read whole, and the path within the next one up to which its files were read, in the order of their paths:

    {"after": 412…, "number": 8, "part": {"snapshot": 977…, "full": false, "done": "s3://…/00017.parquet"}}

Some writers cut the history where they expire snapshots: the oldest that is left has no parent. The number, that of the
last snapshot that was read, tells whether the oldest one that is left is the next, or others are lost.

Snapshots in which nothing matches do not move the position at once, which would cost an empty batch each; it follows
when it is some way behind.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, PenstockWarning, SchemaError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.simplify import simplify
from penstock.expr.tree import TRUE
from penstock.prune.facts import Exact
from penstock.prune.judge import Pruner
from penstock.prune.plan import FileTask, Plan
from penstock.stream.feed import Budget, Limit, Look, Step, Work
from penstock.stream.position import Batch, Identity, Position, began, digest, is_first
from penstock.stream.retry import retried
from penstock.stream.stream_options import StreamOptions
from penstock.tables.iceberg.feed.row_changes import CHANGE_COLUMNS, IcebergRows, changed_files
from penstock.tables.iceberg.feed.table_address import place_of
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.version import Version, resolve
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import plan_added, plan_files, removes_rows
from penstock.tables.outputs import empty

_FAR_BEHIND = 20  # snapshots
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


class IcebergFeed:
    """The new files of an Iceberg table."""

    has_snapshots: ClassVar[bool] = True

    def __init__(self, table: IcebergTable, options: StreamOptions) -> None:
        self.options, self.place = options, place_of(table)
        if table.snapshot is not None and not _is_branch(table):
            said = f"this is {table.name} as it was ({table.snapshot}), to which nothing comes"
            raise LakeError(said, hint="stream the table itself, or a branch")
        if options.order != "create-time" or options.marker is not None or options.partition_time is not None:
            hint = "leave order, marker and partition_time out"
            raise LakeError(f"{table.name} is an Iceberg table, which is read snapshot by snapshot", hint=hint)
        self.predicate = simplify(table.bind(options.where))
        self.names, self.keys = table.outputs(options.columns)
        self.fields = _fields(table.version)
        self.identity = Identity.of(str(table.table.metadata.table_uuid), table.name, self.predicate)
        self._shown = empty(self.names, self.keys, table.schema).schema
        self._begin = _beginning(table, options.starting)
        self._until: int | None = None
        self._present = False
        self._rows: Reader | None = None
        self._last: tuple[Position, Position, list[Work]] | None = None
        self._passed: tuple[Position, Standing, int] | None = None  # where it would stand, and how far ahead that is

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        shows = self.options.on_change == "changes"
        return pa.schema([*self._shown, *CHANGE_COLUMNS]) if shows else self._shown

    @cached_property
    def unchecked(self) -> str | None:
        """Why the rows still need the predicate."""
        return unevaluable(self.predicate)

    @cached_property
    def pruner(self) -> Pruner:
        """The predicate, ready to judge."""
        return Pruner(self.predicate, self.place.timezone)

    def rows(self) -> IcebergRows:
        """What reads the files of the last step."""
        assert self._rows is not None
        changes = self.options.on_change == "changes"
        return IcebergRows(self._rows, tuple(self.names), self.keys, self.options.on_missing, changes)

    def start(self) -> Position:
        """Where a new stream begins."""
        return self.identity.first(self._begin.to_json())

    def stop_at_present(self) -> None:
        """Do not go beyond the snapshot that is the newest now."""
        head = self._open().version.snapshot
        self._until, self._present = None if head is None else head.snapshot_id, True

    def step(self, start: Position | None, limit: Limit) -> Step:
        """The next files."""
        table = self._open()
        metadata = table.table.metadata
        head = table.version.snapshot_id
        if start is None:
            return Step(self.identity.first(_after(table.version.snapshot, metadata).to_json()), [], Look())
        self._check_filter(start)
        standing, passed = _read(start["at"]), 0
        if self._passed is not None and self._passed[0] == start:
            _, standing, passed = self._passed
        walk = _Walk(self, table, self._until if self._present else head, limit)
        standing = walk.go(standing)
        ahead = _lineage(metadata, _whole(metadata, standing, table.name), head, table.name)
        look = replace(walk.look, pending_snapshots=len(ahead), lag_seconds=_lag(metadata, standing, head))
        passed += walk.passed
        if not walk.work and passed < _FAR_BEHIND and "part" not in start["at"] and not is_first(start):
            self._passed = (start, standing, passed)
            return Step(start, [], look)
        end = self.identity.position(standing.to_json(), start, _batch(walk.work))
        self._last = (start, end, walk.work)
        return Step(end, walk.work, look)

    def again(self, start: Position, end: Position) -> list[Work]:
        """The files between two positions, by metadata that does not change."""
        if self._last is not None and self._last[:2] == (start, end):
            return self._last[2]
        self.identity.filter_changed(end, self.options.allow_filter_change)
        self._check_filter(start)
        goal = _read(end["at"])
        walk = _Walk(self, self._open(), goal.after, Limit(), goal.part)
        walk.go(_read(began(start, end)))
        return walk.work

    def _check_filter(self, start: Position) -> None:
        """Files of one snapshot are not read with two filters."""
        changed = self.identity.filter_changed(start, self.options.allow_filter_change)
        if changed and start["at"].get("part", {}).get("done"):
            said = f"the filter changed while files that were found with {start['where']} are still to be read"
            raise LakeError(said, hint="run the stream to the end of what is there with the old filter first")

    def open_reader(self, version: Version, io: Any, zone: str) -> None:
        """Read files by the newest schema; of the metadata only what reading needs is sent to tasks."""
        slim: dict[str, Any] = {"snapshots": [], "snapshot_log": [], "metadata_log": [], "refs": {}}
        light = Version(version.metadata.model_copy(update=slim), None, version.stored)
        self._rows = Reader(light, io, zone)

    def _open(self) -> IcebergTable:
        table = retried(self.place.open, self.identity.name, self.options.retry_seconds)
        if str(table.table.metadata.table_uuid) != self.identity.table:
            said = f"{self.identity.name} was dropped and made again while the stream ran"
            raise LakeError(said, hint="start the stream with a new checkpoint")
        now = _fields(table.version)
        for field_id, shown in self.fields.items():
            if now.get(field_id) != shown:
                said = f"column {shown[0]} of {self.identity.name} was {shown[1]} when the stream started"
                became = "is gone" if field_id not in now else "is now {} {}".format(*now[field_id])
                raise SchemaError(f"{said}, and {became}", hint="start the stream again; its checkpoint stays good")
        self.open_reader(table.version, table.table.io, table.context.timezone)
        return table


class _Walk:
    """One walk over snapshots: what it may take, and what it took."""

    def __init__(
        self, feed: IcebergFeed, table: IcebergTable, until: int | None, limit: Limit, last: Part | None = None
    ) -> None:
        self._feed, self._table, self._until, self._last = feed, table, until, last
        self._budget = Budget(limit)
        self._pruner = feed.pruner
        self.work: list[Work] = []
        self.passed = 0
        self.look = Look()

    def go(self, standing: Standing) -> Standing:
        """Read on from where the stream stands, as far as allowed."""
        name, metadata = self._table.name, self._table.table.metadata
        if standing.part is not None:
            snapshot = metadata.snapshot_by_id(standing.part.snapshot)
            if snapshot is None:
                raise _expired(name, standing.part.snapshot)
            until = None if self._last is None or self._last.snapshot != snapshot.snapshot_id else self._last.done
            standing = self._files(standing, snapshot, standing.part, until)
            if standing.part is not None or until is not None:
                return standing
        for snapshot in _lineage(metadata, standing, self._until, name):
            if self._budget.is_spent:
                return standing
            after = self._snapshot(standing, snapshot)
            if after is None:
                return standing
            standing = after
            if standing.part is not None:
                return standing
        if self._last is not None:
            snapshot = metadata.snapshot_by_id(self._last.snapshot)
            if snapshot is None:
                raise _expired(name, self._last.snapshot)
            self._files(standing, snapshot, replace(self._last, done=""), self._last.done)
        return standing

    def _snapshot(self, standing: Standing, snapshot: Any) -> Standing | None:
        """What one snapshot brings; None when it must wait for the next step."""
        self.passed += 1
        self.look = replace(self.look, snapshots=self.look.snapshots + 1)
        version, sources = self._version(snapshot), self._table.sources
        after = _after(snapshot, self._table.table.metadata)
        operation = None if snapshot.summary is None else str(snapshot.summary.operation.value)
        if operation == "replace":
            return after
        added = Part(snapshot.snapshot_id, full=False)
        if not removes_rows(version, sources):
            return self._files(standing, snapshot, added)
        changed = self._changed(snapshot, version)
        if changed is not None and not changed[0]:  # what it removes is no matter of this stream
            return self._files(standing, snapshot, added)
        match self._feed.options.on_change:
            case "error":
                if self.work:
                    return None
                said = f"snapshot {snapshot.snapshot_id} of {self._table.name} ({operation}) changes or removes rows"
                hint = "set on_change to skip to pass over such snapshots, or to changes to get what they change"
                raise LakeError(said, hint=hint)
            case "changes":
                if changed is None:
                    raise _expired(self._table.name, snapshot.parent_snapshot_id)
                gone, come = changed
                size = sum(task.size or 0 for task in (*gone, *come))
                if not self._budget.take([size]):
                    return None
                self.work.append(Work(self._checked(come), size, snapshot.snapshot_id, self._checked(gone)))
        return after

    def _changed(self, snapshot: Any, version: Version) -> tuple[list[FileTask], list[FileTask]] | None:
        """The files that a snapshot takes and brings, as far as they may match; None when what was before expired."""
        metadata, parent = self._table.table.metadata, snapshot.parent_snapshot_id
        before = None if parent is None else metadata.snapshot_by_id(parent)
        if before is None and (parent is not None or not _is_next(metadata, Standing(None), snapshot)):
            return None
        old, new = (plan_files(v, self._table.sources, self._pruner).files for v in (self._version(before), version))
        return changed_files(old, new)

    def _files(self, standing: Standing, snapshot: Any, part: Part, until: str | None = None) -> Standing:
        """The files of a snapshot after a path, as many as fit, or up to another path."""
        version, sources = self._version(snapshot), self._table.sources
        plan = (plan_files if part.full else plan_added)(version, sources, self._pruner)
        self._looked(plan)
        paths = np.array(plan.files.paths.to_pylist(), object)
        order = np.argsort(paths) if len(paths) else np.array([], np.int64)
        order = (
            order[[paths[i] > part.done and (until is None or paths[i] <= until) for i in order]]
            if len(order)
            else order
        )
        sizes = [int(size) for size in plan.files.sizes.take(pa.array(order)).to_pylist()]
        chosen = order[: self._budget.take(sizes)]
        for i, size in zip(chosen, sizes, strict=False):
            self.work.append(Work(self._checked([plan.files[int(i)]]), size, snapshot.snapshot_id))
        if len(chosen) == len(order):
            return _after(snapshot, self._table.table.metadata)
        self.look = replace(self.look, pending_files=len(order) - len(chosen))
        done = paths[chosen[-1]] if len(chosen) else part.done
        return replace(standing, part=replace(part, done=done))

    def _checked(self, tasks: Sequence[FileTask]) -> tuple[FileTask, ...]:
        """Files whose residual can be checked on their rows, or else is left to who reads them."""
        if self._feed.unchecked is None:
            return tuple(tasks)
        return tuple(replace(t, residual=TRUE) if unevaluable(t.residual) is not None else t for t in tasks)

    def _version(self, snapshot: Any) -> Version:
        metadata = self._table.table.metadata
        return Version(metadata, snapshot, metadata.schema())

    def _looked(self, plan: Plan) -> None:
        seen, kept = _partitions(plan)
        files = plan.report.files
        self.look = replace(
            self.look,
            partitions=self.look.partitions + seen,
            partitions_pruned=self.look.partitions_pruned + seen - kept,
            files=self.look.files + files.total,
            files_pruned=self.look.files_pruned + files.total - files.kept,
            manifests=self.look.manifests + plan.report.level("manifests").kept,
        )


def _partitions(plan: Plan) -> tuple[int, int]:
    """How many partitions there are among the files that were looked at, and among those that are kept.

    One that has files in several manifests is one; those of another spec are others.
    """
    seen: dict[pa.Schema, list[pa.Table]] = defaultdict(list)
    kept: dict[pa.Schema, list[pa.Table]] = defaultdict(list)
    for judgement in plan.judgements:
        facts = [f for f in judgement.containers.facts if isinstance(f, Exact) and f.name is not None]
        every = np.arange(judgement.containers.count)
        columns = [f.single_values(every)[0] for f in facts] or [pa.array(np.zeros(len(every), np.bool_))]
        table = pa.table(columns, names=[f"{i} {f.name}" for i, f in enumerate(facts)] or ["none"])
        seen[table.schema].append(_distinct(table))
        kept[table.schema].append(_distinct(table.take(pa.array(judgement.kept))))
    numbers = [sum(_distinct(pa.concat_tables(own)).num_rows for own in found.values()) for found in (seen, kept)]
    return numbers[0], numbers[1]


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names).aggregate([]).select(table.column_names)


def _fields(version: Version) -> dict[int, tuple[str, str]]:
    """The columns that people see, by id."""
    return {field.field_id: (field.name, str(field.field_type)) for field in version.columns.schema.fields}


def _is_branch(table: IcebergTable) -> bool:
    ref = table.table.metadata.refs.get(table.snapshot) if isinstance(table.snapshot, str) else None
    return ref is not None and str(getattr(ref.snapshot_ref_type, "value", ref.snapshot_ref_type)) == "branch"


def _beginning(table: IcebergTable, text: str) -> Standing:
    """Where the option says that a stream begins."""
    metadata, head = table.table.metadata, table.version.snapshot
    match text.strip().lower():
        case "earliest":
            return _after(None, metadata) if head is None else Standing(None, Part(int(head.snapshot_id), full=True))
        case "latest":
            return _after(head, metadata)
    if text.strip().isdigit() or text in metadata.refs:
        snapshot = resolve(metadata, int(text) if text.strip().isdigit() else text, table.name).snapshot
        return _before(snapshot)
    return _since(table, text)


def _since(table: IcebergTable, text: str) -> Standing:
    """After the last snapshot before a time."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        hint = (
            "write earliest, latest, a snapshot's id, a tag, or a time such as 2026-05-17 09:00; partitions go to where"
        )
        raise LakeError(f"starting is {text!r}", hint=hint) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(table.context.timezone))
    millis = moment.timestamp() * 1000
    snapshot, metadata = table.version.snapshot, table.table.metadata
    while snapshot is not None and snapshot.timestamp_ms >= millis:
        parent = snapshot.parent_snapshot_id
        known = None if parent is None else metadata.snapshot_by_id(parent)
        if known is None:
            if parent is not None or not _is_next(metadata, Standing(None), snapshot):
                said = f"snapshots of {table.name} before {snapshot.snapshot_id} have expired; the stream begins there"
                warnings.warn(said, PenstockWarning, stacklevel=2)
            return _before(snapshot)
        snapshot = known
    return _after(snapshot, metadata)


def _after(snapshot: Any, metadata: Any) -> Standing:
    """After a snapshot; without one, before the first that comes."""
    if snapshot is None:
        return Standing(None, number=int(getattr(metadata, "last_sequence_number", 0)))
    return Standing(int(snapshot.snapshot_id), number=int(snapshot.sequence_number or 0))


def _before(snapshot: Any) -> Standing:
    """Before a snapshot, whatever has become of its parent."""
    return Standing(snapshot.parent_snapshot_id, number=int(snapshot.sequence_number or 0) - 1)


def _whole(metadata: Any, standing: Standing, name: str) -> Standing:
    """Where a stream will stand when the snapshot that it is in is read."""
    if standing.part is None:
        return standing
    snapshot = metadata.snapshot_by_id(standing.part.snapshot)
    if snapshot is None:
        raise _expired(name, standing.part.snapshot)
    return _after(snapshot, metadata)


def _lineage(metadata: Any, standing: Standing, until: int | None, name: str) -> list[Any]:
    """The snapshots after one up to another, the oldest first."""
    found: list[Any] = []
    after, place = standing.after, until
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while place != after or place is None:
        if place is None:
            if (found and _is_next(metadata, standing, found[-1])) or (not found and after is None):
                break
            raise _lost(name, after, after in known)
        snapshot = known.get(place)
        if snapshot is None:
            raise _lost(name, after, after in known) if after is not None else _expired(name, place)
        found.append(snapshot)
        place = snapshot.parent_snapshot_id
    return found[::-1]


def _is_next(metadata: Any, standing: Standing, oldest: Any) -> bool:
    """Whether no snapshot is lost between where a stream stands and the oldest one that is left."""
    number = int(oldest.sequence_number or 0)
    if not number:  # format version 1 does not count
        return standing.after is None
    known = {snapshot.sequence_number for snapshot in metadata.snapshots}
    return number > standing.number and all(i in known for i in range(standing.number + 1, number))


def _expired(name: str, snapshot: int) -> LakeError:
    said = f"snapshot {snapshot} of {name} has expired before the stream had read it"
    return LakeError(said, hint=_KEEP)


def _lost(name: str, snapshot: int | None, is_there: bool) -> LakeError:
    if snapshot is None or not is_there:
        since = "the beginning" if snapshot is None else f"snapshot {snapshot}"
        return LakeError(f"snapshots of {name} after {since} have expired before the stream had read them", hint=_KEEP)
    said = f"the stream stands at snapshot {snapshot} of {name}, which the table no longer comes from"
    return LakeError(said, hint="it was rolled back or replaced: start with a new checkpoint")


def _lag(metadata: Any, standing: Standing, head: int | None) -> float:
    """How much newer the newest snapshot is than the one that was read."""
    newest = None if head is None else metadata.snapshot_by_id(head)
    read = None if standing.after is None else metadata.snapshot_by_id(standing.after)
    if newest is None or read is None:
        return 0.0
    return float(max(0, newest.timestamp_ms - read.timestamp_ms)) / 1000


def _batch(work: Sequence[Work]) -> Batch:
    tasks = [task for each in work for task in (*each.tasks, *(each.before or ()))]
    return Batch(len(tasks), sum(each.size for each in work), digest(task.path for task in tasks))


def _read(at: Mapping[str, Any]) -> Standing:
    """Where a position stands."""
    part = at.get("part")
    return Standing(at["after"], None if part is None else Part(**part), at["number"])
