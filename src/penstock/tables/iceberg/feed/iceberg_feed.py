"""What is new in an Iceberg table: the files that each snapshot after the position added, judged like those of a scan.

| snapshot | what a stream reads of it |
|---|---|
| adds files and removes nothing | the added files |
| replaces files (compaction) | nothing: the rows were there before |
| removes rows, by `on_change` | `error`; `skip`: nothing; `changes`: the rows that are different, each way |

`earliest` is the table as it is when the stream begins, and then what comes. A position names the last snapshot that
was read whole, and the path within the next one up to which its files were read, in the order of their paths:

    {"after": 412…, "number": 8, "part": {"snapshot": 977…, "full": false, "done": "s3://…/00017.parquet"}}

A change is the difference between the rows of the files before and after: a file that only one of the two has, or that
has other deletes. Rows that were only carried over into another file are on both sides, and are no change. What is left
comes with two more columns, called as in Iceberg's change logs.

Snapshots in which nothing matches do not move the position at once, which would cost an empty batch each; it follows
when it is some way behind.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, MissingError, PenstockWarning, SchemaError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.simplify import simplify
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.stream.feed import Limit, Look, Step, Work
from penstock.stream.position import Batch, Identity, Position, began, digest, is_first
from penstock.stream.retry import retried
from penstock.stream.stream_options import StreamOptions
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
from penstock.tables.source import Keys, bind, empty, outputs

_FAR_BEHIND = 20  # snapshots
CHANGE_COLUMNS = (pa.field("_change_type", pa.string()), pa.field("_commit_snapshot_id", pa.int64()))


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
        self.unchecked = unevaluable(self.predicate)
        self.names, self.keys = outputs(options.columns, table)
        self.fields = _fields(table.version)
        self.pruner = Pruner(self.predicate, self.place.timezone)
        self.identity = Identity.of(str(table.table.metadata.table_uuid), table.name, self.predicate)
        self._changes = options.on_change == "changes"
        shown = empty(self.names, self.keys, table.schema).schema
        self.schema = pa.schema([*shown, *CHANGE_COLUMNS]) if self._changes else shown
        self._begin = beginning(table, options.starting)
        self._until: int | None = None
        self._present = False
        self._rows: Reader | None = None
        self._last: tuple[Position, Position, list[Work]] | None = None
        self._passed: tuple[Position, Standing, int] | None = None  # where it would stand, and how far ahead that is

    def rows(self) -> IcebergRows:
        assert self._rows is not None
        return IcebergRows(self._rows, tuple(self.names), self.keys, self.options.on_missing, self._changes)

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


@dataclass(frozen=True)
class IcebergRows:
    """Reads files of an Iceberg table."""

    reader: Reader
    names: tuple[str, ...]
    keys: Keys
    on_missing: str
    changes: bool

    def read(self, work: Work) -> Iterator[pa.Table]:
        """The matching rows; with `changes`, each with what became of it."""
        if work.before is None:
            for rows in self._files(work.tasks):
                yield self._with_change(rows, "insert", work.snapshot) if self.changes else rows
            return
        before, after = list(self._files(work.before)), list(self._files(work.tasks))
        old, new = (Counter(key for part in parts for key in _keys(part)) for parts in (before, after))
        yield from self._different(before, old - new, "delete", work.snapshot)
        yield from self._different(after, new - old, "insert", work.snapshot)

    def _files(self, tasks: Sequence[FileTask]) -> Iterator[pa.Table]:
        for task in tasks:
            try:
                yield self.reader.file(task, self.names, self.keys)
            except MissingError:
                if self.on_missing == "error":
                    raise
                warnings.warn(f"{task.path} does not exist, and is skipped", PenstockWarning, stacklevel=2)

    def _different(
        self, parts: Sequence[pa.Table], wanted: Counter[str], what: str, snapshot: int | None
    ) -> Iterator[pa.Table]:
        """The rows that one side has more often than the other."""
        for part in parts:
            chosen = np.zeros(part.num_rows, np.bool_)
            for i, key in enumerate(_keys(part)):
                chosen[i] = wanted[key] > 0
                wanted[key] -= int(chosen[i])
            if chosen.any():
                yield self._with_change(part.filter(pa.array(chosen)), what, snapshot)

    def _with_change(self, rows: pa.Table, what: str, snapshot: int | None) -> pa.Table:
        for column, value in zip(CHANGE_COLUMNS, (what, snapshot), strict=True):
            rows = rows.append_column(column, pa.repeat(pa.scalar(value, column.type), rows.num_rows))
        return rows


def _keys(rows: pa.Table) -> list[str]:
    """Every row as a text that is another one for every other row."""
    columns = [[_in_one_order(value, column.type) for value in column.to_pylist()] for column in rows.columns]
    return [repr([column[i] for column in columns]) for i in range(rows.num_rows)]


def _in_one_order(value: Any, kind: pa.DataType) -> Any:
    """A value with the entries of its maps by key: a key that has a column of its own comes in another place."""
    if value is None or not kind.num_fields:
        return value
    if pa.types.is_map(kind):
        entries = [(_in_one_order(key, kind.key_type), _in_one_order(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=lambda entry: repr(entry[0]))
    if pa.types.is_struct(kind):
        return [_in_one_order(value[field.name], field.type) for field in kind]
    return [_in_one_order(each, kind.value_type) for each in value]
