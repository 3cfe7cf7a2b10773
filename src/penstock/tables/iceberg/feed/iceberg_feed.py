"""What is new in an Iceberg table: the files that each snapshot after the position added, judged like those of a scan.

| snapshot | what a stream reads of it |
|---|---|
| adds files and removes nothing | the added files |
| replaces files (compaction) | nothing: the rows were there before |
| removes rows, by `on_change` | `error`; `skip`: nothing; `changes`: the rows that are different, each way |

`earliest` is the table as it is when the stream begins, and then what comes. A position names the last snapshot that
was read whole, and the path within the next one up to which its files were read, in the order of their paths:

    {"after": 412…, "number": 8, "part": {"snapshot": 977…, "full": false, "done": "s3://…/00017.parquet"}}

Snapshots in which nothing matches do not move the position at once, which would cost an empty batch each; it follows
when it is some way behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import LakeError, SchemaError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.simplify import simplify
from penstock.prune.judge import Pruner
from penstock.stream.feed import Limit, Look, Step, Work
from penstock.stream.position import Batch, Identity, Position, began, digest, is_first
from penstock.stream.retry import retried
from penstock.stream.stream_options import StreamOptions
from penstock.tables.iceberg.feed.row_changes import CHANGE_COLUMNS, IcebergRows
from penstock.tables.iceberg.feed.snapshot_lineage import (
    Standing,
    after_part,
    beginning,
    lag_seconds,
    lineage,
    read_standing,
    standing_after,
)
from penstock.tables.iceberg.feed.snapshot_walk import Walk
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.catalogs import place_of
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.source import bind, empty, outputs

_FAR_BEHIND = 20  # snapshots


class IcebergFeed:
    """The new files of an Iceberg table."""

    has_snapshots: ClassVar[bool] = True

    def __init__(self, table: IcebergTable, options: StreamOptions) -> None:
        self.options, self.place = options, place_of(table)
        if table.snapshot is not None and not _is_branch(table):
            message = f"this is {table.name} as it was ({table.snapshot}), to which nothing comes"
            raise LakeError(message, hint="stream the table itself, or a branch")
        if options.order != "create-time" or options.marker is not None or options.partition_time is not None:
            hint = "leave order, marker and partition_time out"
            raise LakeError(f"{table.name} is an Iceberg table, which is read snapshot by snapshot", hint=hint)
        self.predicate = simplify(bind(table, options.where))
        self.names, self.keys = outputs(options.columns, table)
        self.fields = _fields(table.version)
        self.pruner = Pruner(self.predicate, self.place.timezone)
        self.identity = Identity.of(str(table.table.metadata.table_uuid), table.name, self.predicate)
        self._shown = empty(self.names, self.keys, table.schema).schema
        self._begin = beginning(table, options.starting)
        self._until: int | None = None
        self._present = False
        self._rows: Reader | None = None
        self._last: tuple[Position, Position, list[Work]] | None = None
        self._passed: tuple[Position, Standing, int] | None = None  # where it would stand, and how far ahead that is

    @cached_property
    def schema(self) -> pa.Schema:
        shows = self.options.on_change == "changes"
        return pa.schema([*self._shown, *CHANGE_COLUMNS]) if shows else self._shown

    @cached_property
    def unchecked(self) -> str | None:
        return unevaluable(self.predicate)

    def rows(self) -> IcebergRows:
        assert self._rows is not None
        changes = self.options.on_change == "changes"
        return IcebergRows(self._rows, tuple(self.names), self.keys, self.options.on_missing, changes)

    def start(self) -> Position:
        return self.identity.first(self._begin.to_json())

    def stop_at_present(self) -> None:
        """Do not go beyond the snapshot that is the newest now."""
        head = self._open().version.snapshot
        self._until, self._present = None if head is None else head.snapshot_id, True

    def step(self, start: Position | None, limit: Limit) -> Step:
        table = self._open()
        metadata = table.table.metadata
        head = table.version.snapshot_id
        if start is None:
            return Step(self.identity.first(standing_after(table.version.snapshot, metadata).to_json()), [], Look())
        self._check_filter(start)
        standing, passed = read_standing(start["at"]), 0
        if self._passed is not None and self._passed[0] == start:
            _, standing, passed = self._passed
        walk = Walk(table, self.pruner, self.options.on_change, self._until if self._present else head, limit, None)
        standing = walk.go(standing)
        ahead = lineage(metadata, after_part(metadata, standing, table.name), head, table.name)
        look = replace(walk.look, pending_snapshots=len(ahead), lag_seconds=lag_seconds(metadata, standing, head))
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
        goal = read_standing(end["at"])
        walk = Walk(self._open(), self.pruner, self.options.on_change, goal.after, Limit(), goal.part)
        walk.go(read_standing(began(start, end)))
        return walk.work

    def _check_filter(self, start: Position) -> None:
        """Files of one snapshot are not read with two filters."""
        changed = self.identity.filter_changed(start, self.options.allow_filter_change)
        if changed and start["at"].get("part", {}).get("done"):
            message = f"the filter changed while files that were found with {start['where']} are still to be read"
            raise LakeError(message, hint="run the stream to the end of what is there with the old filter first")

    def _open(self) -> IcebergTable:
        table = retried(self.place.open, self.identity.name, self.options.retry_seconds)
        if str(table.table.metadata.table_uuid) != self.identity.table:
            message = f"{self.identity.name} was dropped and made again while the stream ran"
            raise LakeError(message, hint="start the stream with a new checkpoint")
        now = _fields(table.version)
        for field_id, shown in self.fields.items():
            if now.get(field_id) != shown:
                message = f"column {shown[0]} of {self.identity.name} was {shown[1]} when the stream started"
                became = "is gone" if field_id not in now else "is now {} {}".format(*now[field_id])
                raise SchemaError(f"{message}, and {became}", hint="start the stream again; its checkpoint stays good")
        # Files are read by the newest schema; of the metadata only what reading needs is sent to tasks.
        slim: dict[str, Any] = {"snapshots": [], "snapshot_log": [], "metadata_log": [], "refs": {}}
        light = Version(table.version.metadata.model_copy(update=slim), None, table.version.stored)
        self._rows = Reader(light, table.table.io, table.context.timezone)
        return table


def _fields(version: Version) -> dict[int, tuple[str, str]]:
    """The columns that people see, by id."""
    return {field.field_id: (field.name, str(field.field_type)) for field in version.columns.schema.fields}


def _is_branch(table: IcebergTable) -> bool:
    ref = table.table.metadata.refs.get(table.snapshot) if isinstance(table.snapshot, str) else None
    return ref is not None and ref.snapshot_ref_type == "branch"


def _batch(work: Sequence[Work]) -> Batch:
    tasks = [task for each in work for task in (*each.tasks, *(each.before or ()))]
    return Batch(len(tasks), sum(each.size for each in work), digest(task.path for task in tasks))
