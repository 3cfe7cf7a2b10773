"""What an overwrite or a delete takes away: whole files where it can, else the rows that stay are written again.

A removal is by a predicate, or by the logical partitions that new data has. It finds the files it is about in one
version of the table, and says of rows which of them stay. Files are judged as a query would judge them; whatever is
not certain is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LakeError
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import filter_mask, short
from penstock.expr.tree import TRUE, Column, Expr, walk
from penstock.lake.layout.coalesce import NAN, as_stored
from penstock.lake.layout.grouping import group_rows, partition_arrays
from penstock.lake.layout.live_files import live_files
from penstock.lake.layout.slots import Slot
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.lake.write.arrangement import write_rows, write_slots
from penstock.lake.write.conform import conform
from penstock.lake.write.data_files import WriteJob, WrittenFile
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader, as_shown
from penstock.tables.iceberg.scan.scan_plan import plan_files
from penstock.tables.source import bind


@dataclass(frozen=True)
class PlannedRemoval:
    """Files that go whole, and files that may hold rows of both kinds."""

    whole: frozenset[str]
    partial: tuple[FileTask, ...]

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return self.whole | {task.path for task in self.partial}


class Removal(Protocol):
    """What is removed."""

    def find(self, table: IcebergTable) -> PlannedRemoval:
        """The files that it is about."""

    def stays(self, rows: pa.Table) -> pa.Table:
        """The rows that are not removed."""


@dataclass(frozen=True)
class ByPredicate:
    """Rows for which a predicate is true; those where it is false or null stay."""

    where: str | Expr
    schema: pa.Schema
    context: Context

    @property
    def _predicate(self) -> Expr:
        return self.where if isinstance(self.where, Expr) else bind_text(self.where, self.schema, self.context)

    def find(self, table: IcebergTable) -> PlannedRemoval:
        """The files that may have such rows."""
        # A file that goes unread must match by its exact values and bounds: no function's law is trusted with it.
        pruner = Pruner(bind(table, self.where), table.context.timezone, whole_by_laws=False)
        files = list(plan_files(table.version, table.sources, pruner).files)
        whole = frozenset(task.path for task in files if task.verdict == Verdict.KEEP_WHOLE)
        return PlannedRemoval(whole, tuple(unfiltered(task) for task in files if task.path not in whole))

    def check(self, rows: pa.Table) -> None:
        """An error when rows that are to be written in place of these do not match; they are as files have them."""
        predicate = self._predicate
        used = {node.path[0] for node in walk(predicate) if isinstance(node, Column)} or {self.schema.names[0]}
        fields = pa.schema([field for field in self.schema if field.name in used])
        columns = [as_shown(rows.column(field.name).combine_chunks(), field.type) for field in fields]
        others = self.stays(pa.table(columns, schema=fields)).num_rows
        if others:
            message = f"{others:,} of the rows do not match {short(self._predicate)}, which says what they replace"
            raise LakeError(message, hint="filter the rows, or change where; nothing was written")

    def stays(self, rows: pa.Table) -> pa.Table:
        """The rows for which it is not true."""
        matches = filter_mask(self._predicate, rows, self.context.timezone)
        return rows.filter(pc.invert(pc.fill_null(matches, False)))


@dataclass(frozen=True)
class ByPartition:
    """All rows of some logical partitions."""

    layout: Layout
    tuples: Set[Tuple]

    @classmethod
    def of(cls, layout: Layout, files: Iterable[WrittenFile]) -> ByPartition:
        """The partitions that new files hold."""
        return cls(layout, {fine for file in files for fine in file.logical})

    def __post_init__(self) -> None:
        one_nan = frozenset(tuple(NAN if v != v else v for v in each) for each in self.tuples)
        object.__setattr__(self, "tuples", one_nan)

    def __reduce__(self) -> tuple[Any, ...]:
        return ByPartition, (self.layout, self.tuples)

    def find(self, table: IcebergTable) -> PlannedRemoval:
        """The files that hold these partitions, or may."""
        whole, partial = set[str](), set[str]()
        for file in live_files(table, self.layout):
            if file.logical is None or not self.tuples.isdisjoint(file.logical):
                is_whole = file.logical is not None and set(file.logical) <= self.tuples
                (whole if is_whole else partial).add(file.path)
        tasks = [unfiltered(task) for task in table.plan().files if task.path in partial] if partial else []
        return PlannedRemoval(frozenset(whole), tuple(tasks))

    def stays(self, rows: pa.Table) -> pa.Table:
        """The rows of other partitions."""
        typed = conform(rows, self.layout)
        groups = group_rows(partition_arrays(typed, self.layout.schema, self.layout.fine), rows.num_rows)
        staying = np.array([each not in self.tuples for each in groups.tuples], np.bool_)
        return rows.filter(pa.array(staying[groups.of_row])) if rows.num_rows else rows


@dataclass(frozen=True)
class Rewrite:
    """Rewrites one file at a time without the rows that are removed; it may run on any machine."""

    job: WriteJob
    removal: Removal
    reader: Reader

    def file(self, task: FileTask) -> list[WrittenFile] | None:
        """What takes the place of a file; None when all of its rows stay."""
        rows = self.reader.file(task, [field.name for field in self.job.layout.schema.fields])
        staying = self.removal.stays(rows)
        if staying.num_rows == rows.num_rows:
            return None
        slot = self._slot(task)
        return write_rows(self.job, [staying]) if slot is None else write_slots(self.job, [(slot, staying)])

    def _slot(self, task: FileTask) -> Slot | None:
        """The place of the file itself; None when files of its spec are not written any more."""
        layout = self.job.layout
        if task.spec_id is None or task.spec_id not in (layout.fine.spec_id, layout.coarse_id):
            return None
        partition = tuple(as_stored(value, kind) for value, kind in self.reader.partition(task))
        return Slot(task.spec_id, partition, task.spec_id == layout.coarse_id)


def unfiltered(task: FileTask) -> FileTask:
    """A file of which all rows are read."""
    return replace(task, residual=TRUE)
