"""What is new in an Iceberg table: the files that each snapshot after the position added, judged like those of a scan.

| snapshot | what a stream reads of it |
|---|---|
| adds files and removes nothing | the added files |
| replaces files (compaction) | nothing: the rows were there before |
| removes rows, by `on_change` | `error`; `skip`: nothing; `changes`: the rows that are different, each way |

`earliest` is the table as it is when the stream begins, and then what comes. A position names the last snapshot that
was read whole, and the path within the next one up to which its files were read, in the order of their paths:

    {"after": 412…, "part": {"snapshot": 977…, "full": false, "done": "s3://…/00017.parquet"}}

Snapshots in which nothing matches do not move the position at once, which would cost an empty batch each; it follows
when it is some way behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, SchemaError
from penstock.predicate.evaluate import unevaluable
from penstock.predicate.simplify import simplify
from penstock.predicate.tree import TRUE
from penstock.prune.facts import Exact
from penstock.prune.judge import Pruner
from penstock.prune.plan import FileTask, Plan
from penstock.stream.changes import CHANGE_COLUMNS, IcebergRows, changed_files
from penstock.stream.feed import Budget, Limit, Look, Step, Work
from penstock.stream.options import StreamOptions
from penstock.stream.place import place_of
from penstock.stream.position import Batch, Identity, Position, digest
from penstock.stream.retry import retried
from penstock.tables.iceberg.plan import plan_added, plan_files, removes_rows
from penstock.tables.iceberg.read import Reader
from penstock.tables.iceberg.table import IcebergTable
from penstock.tables.iceberg.version import Version, resolve
from penstock.tables.outputs import empty

_FAR_BEHIND = 20  # snapshots


@dataclass(frozen=True)
class Part:
    """A snapshot whose files, or with `full` all files of the table at that time, are read up to a path."""

    snapshot: int
    full: bool
    done: str = ""


@dataclass(frozen=True)
class Standing:
    """Where a stream stands: after a snapshot, perhaps within the next one."""

    after: int | None
    part: Part | None = None

    def to_json(self) -> dict[str, Any]:
        """As a position holds it."""
        part = {} if self.part is None else {"part": dict(vars(self.part))}
        return {"after": self.after, **part}


class IcebergFeed:
    """The new files of an Iceberg table."""

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

    def rows(self) -> IcebergRows:
        """What reads the files of the last step."""
        assert self._rows is not None
        changes = self.options.on_change == "changes"
        return IcebergRows(self._rows, tuple(self.names), self.keys, self.options.on_missing, changes)

    def start(self) -> Position:
        """Where a new stream begins."""
        return self.identity.position(self._begin.to_json())

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
            return Step(self.identity.position(Standing(head).to_json()), [], Look())
        self.identity.filter_changed(start, self.options.allow_filter_change)
        standing, passed = _read(start), 0
        if self._passed is not None and self._passed[0] == start:
            _, standing, passed = self._passed
        walk = _Walk(self, table, self._until if self._present else head, limit)
        standing = walk.go(standing)
        ahead = len(_lineage(metadata, standing.after, head, table.name)) - bool(standing.part)
        look = replace(walk.look, pending_snapshots=ahead, lag_seconds=_lag(metadata, standing, head))
        passed += walk.passed
        if not walk.work and passed < _FAR_BEHIND and "part" not in start:
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
        goal = _read(end)
        walk = _Walk(self, self._open(), goal.after, Limit(), goal.part)
        walk.go(_read(start))
        return walk.work

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
        self._pruner = Pruner(feed.predicate, table.context.timezone)
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
        for snapshot in _lineage(metadata, standing.after, self._until, name):
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
        after = Standing(snapshot.snapshot_id)
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
                self._budget.take([size])
                self.work.append(Work(self._checked(come), size, snapshot.snapshot_id, self._checked(gone)))
        return after

    def _changed(self, snapshot: Any, version: Version) -> tuple[list[FileTask], list[FileTask]] | None:
        """The files that a snapshot takes and brings, as far as they may match; None when what was before expired."""
        parent = snapshot.parent_snapshot_id
        before = None if parent is None else self._table.table.metadata.snapshot_by_id(parent)
        if before is None:
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
            return Standing(snapshot.snapshot_id)
        self.look = replace(self.look, pending_files=len(order) - len(chosen))
        done = paths[chosen[-1]] if len(chosen) else part.done
        return Standing(standing.after, replace(part, done=done))

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
    """How many partitions there are among the files that were looked at, and among those that are kept."""
    seen = kept = 0
    for judgement in plan.judgements:
        facts = [f for f in judgement.containers.facts if isinstance(f, Exact) and f.name is not None]
        columns = [f.single_values(np.arange(judgement.containers.count))[0] for f in facts]
        names = [str(i) for i in range(len(columns))]
        table = pa.table(columns, names=names) if columns else None
        for chosen in (None, judgement.kept):
            part = table if chosen is None or table is None else table.take(pa.array(chosen))
            alone = judgement.containers.count if chosen is None else len(chosen)
            number = min(1, alone) if part is None else part.group_by(names).aggregate([]).num_rows
            seen, kept = (seen + number, kept) if chosen is None else (seen, kept + number)
    return seen, kept


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
            return Standing(None, None if head is None else Part(int(head.snapshot_id), full=True))
        case "latest":
            return Standing(None if head is None else int(head.snapshot_id))
    if text.strip().isdigit() or text in metadata.refs:
        snapshot = resolve(metadata, int(text) if text.strip().isdigit() else text, table.name).snapshot
        return Standing(snapshot.parent_snapshot_id)
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
    snapshot = table.version.snapshot
    while snapshot is not None and snapshot.timestamp_ms >= millis:
        parent = snapshot.parent_snapshot_id
        if parent is None:
            return Standing(None)
        known = table.table.metadata.snapshot_by_id(parent)
        if known is None:
            return Standing(parent)
        snapshot = known
    return Standing(None if snapshot is None else int(snapshot.snapshot_id))


def _lineage(metadata: Any, after: int | None, until: int | None, name: str) -> list[Any]:
    """The snapshots after one up to another, the oldest first."""
    found: list[Any] = []
    place = until
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while place != after:
        if place is None:
            raise _lost(name, after, after in known)
        snapshot = known.get(place)
        if snapshot is None:
            raise _lost(name, after, after in known) if after is not None else _expired(name, place)
        found.append(snapshot)
        place = snapshot.parent_snapshot_id
    return found[::-1]


def _expired(name: str, snapshot: int) -> LakeError:
    said = f"snapshot {snapshot} of {name} has expired before the stream had read it"
    return LakeError(said, hint="start with a new checkpoint, and keep snapshots longer than a stream may stand still")


def _lost(name: str, snapshot: int | None, is_there: bool) -> LakeError:
    if not is_there and snapshot is not None:
        return _expired(name, snapshot)
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


def _read(position: Position) -> Standing:
    part = position.get("part")
    return Standing(position["after"], None if part is None else Part(**part))
