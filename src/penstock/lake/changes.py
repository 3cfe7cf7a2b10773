"""The rows that were added and removed between two snapshots.

| files of the two snapshots | what is read |
|---|---|
| a file in both, with the same delete files | nothing: its rows are the same |
| a file in both, with other delete files | the file as it was and as it is |
| a file in one of them | the file |

Rows on both sides cancel each other out, as often as they occur: a file that was rewritten for one row of it gives one
row. A snapshot that says that it replaced files without changing a row (`replace`: a compaction) is stepped over, so
what it rewrote is not read. Both sides are read by the schema of the newer snapshot.

>>> count_changes(pa.table({"n": [1, 2, 2]}), pa.table({"n": [2, 3]})).to_pydict()
{'n': [3, 1, 2], '_change_type': ['insert', 'delete', 'delete']}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Operation, Snapshot

from penstock.errors import SchemaError
from penstock.expr.kernels.row_keys import row_keys
from penstock.progress import Count, progress
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.prune.plan import Plan
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.branch import ancestors
from penstock.tables.iceberg.metadata.version import SnapshotChoice, Version, has_columns_of, resolve
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import plan_files
from penstock.tables.source import bind, empty

CHANGE_TYPE, INSERT, DELETE = "_change_type", "insert", "delete"
Step = tuple[Snapshot | None, Snapshot]


def row_changes(table: IcebergTable, from_: SnapshotChoice, to: SnapshotChoice, where: str | None) -> pa.Table:
    """The rows that were added and removed between two snapshots, without those that cancel each other out."""
    metadata, newer = table.table.metadata, replace(table, snapshot=to)
    newest = newer.version
    before = None if from_ is None else resolve(metadata, from_, table.name).snapshot
    if any(name.lower() == CHANGE_TYPE for name in newer.schema.names):
        message = f"{table.name} has a column {CHANGE_TYPE}, which says here what became of a row"
        raise SchemaError(message, hint="rename the column")
    if before is not None and not has_columns_of(newest.stored, metadata, before):
        message = f"{table.name} was replaced since snapshot {before.snapshot_id}, whose columns are all gone"
        raise SchemaError(message, hint="choose a snapshot from after that")
    pruner = Pruner(bind(newer, where), table.context.timezone)
    gone, new = list[FileTask](), list[FileTask]()
    for older, younger in _steps(newest, before):
        versions = [replace(newest, snapshot=each) for each in (older, younger)]
        plans = [plan_files(version, table.sources, pruner) for version in versions]
        left, right = _by_rows(plans)
        gone += [task for key, tasks in left.items() for task in tasks[len(right.get(key, ())) :]]
        new += [task for key, tasks in right.items() for task in tasks[len(left.get(key, ())) :]]
    reader = Reader(newest, table.sources.io, table.context.timezone)
    return count_changes(*(_rows(reader, newer, tasks) for tasks in (gone, new)))


def count_changes(before: pa.Table, after: pa.Table) -> pa.Table:
    """The rows of which there are more after than before, and those of which there are fewer, as often as so."""
    keys = row_keys(pa.concat_tables([before, after]))
    old, new = keys[: before.num_rows], keys[before.num_rows :]
    count = int(keys.max(initial=-1)) + 1
    surplus = np.bincount(new, minlength=count) - np.bincount(old, minlength=count)
    inserted, deleted = after.filter(_first(new, surplus)), before.filter(_first(old, -surplus))
    types = np.repeat(np.array([INSERT, DELETE]), [inserted.num_rows, deleted.num_rows])
    rows = pa.concat_tables([inserted, deleted])
    return rows.append_column(pa.field(CHANGE_TYPE, pa.string(), nullable=False), pa.array(types, pa.string()))


def _first(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> pa.Array:
    """A mask of rows: of each key the first ones, as many as are wanted of it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    rank = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    mask = np.zeros(len(keys), np.bool_)
    mask[order] = rank < wanted[ordered]
    return pa.array(mask)


def _steps(newest: Version, before: Snapshot | None) -> Iterator[Step]:
    """Pairs of snapshots whose differences add up to what was changed."""
    if newest.snapshot is None:
        return
    lineage = [*ancestors(newest.metadata, newest.snapshot_id)]
    ids = [snapshot.snapshot_id for snapshot in lineage]
    if before is not None and before.snapshot_id not in ids:  # of another branch, or rolled back
        yield before, newest.snapshot
        return
    path = lineage[: None if before is None else ids.index(before.snapshot_id)][::-1]
    start = last = before
    for snapshot in path:
        if last is not None and _replaces_files(snapshot):  # the first one that is known may stand for all before it
            if last is not start:
                yield start, last
            start = snapshot
        last = snapshot
    if last is not None and last is not start:
        yield start, last


def _replaces_files(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE


def _by_rows(plans: Sequence[Plan]) -> list[dict[Any, list[FileTask]]]:
    """The files of two plans that may differ in rows, by what makes the rows of files the same."""
    paths = [plan.files.paths for plan in plans]
    # Tasks are objects: those of files that are in both plans, without deletes, are not made.
    odd = pa.concat_arrays([_with_deletes(plan, own) for plan, own in zip(plans, paths, strict=True)])
    files: list[dict[Any, list[FileTask]]] = []
    for plan, own, others in zip(plans, paths, reversed(paths), strict=True):
        is_same = pc.and_not(pc.is_in(own, value_set=others), pc.is_in(own, value_set=odd))
        by_rows: dict[Any, list[FileTask]] = defaultdict(list)
        for i in np.flatnonzero(~np.asarray(is_same)):
            by_rows[_identity(task := plan.files[int(i)])].append(task)
        files.append(by_rows)
    return files


def _with_deletes(plan: Plan, paths: pa.Array) -> pa.Array:
    """The paths of files with deletes, and of those that a snapshot has more than once."""
    has = [np.isin(judgement.kept, [*judgement.containers.deletes]) for judgement in plan.judgements]
    with_deletes = paths.filter(pa.array(np.concatenate([np.zeros(0, np.bool_), *has])))
    counts = paths.value_counts()
    return pa.concat_arrays([with_deletes, counts.field("values").filter(pc.greater(counts.field("counts"), 1))])


def _identity(task: FileTask) -> Any:
    partition = tuple((name, each.value) for name, each in task.partition.items())
    return task.path, task.spec_id, partition, frozenset((delete.path, delete.offset) for delete in task.deletes)


def _rows(reader: Reader, table: IcebergTable, tasks: Sequence[FileTask]) -> pa.Table:
    names, read = table.schema.names, Count(len(tasks), "file")
    with progress("reading", read):
        parts = list(read.each(reader.rows(tasks, names)))
    return pa.concat_tables(parts) if parts else empty(names, {}, table.schema)
