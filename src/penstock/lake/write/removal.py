"""What an overwrite or a delete takes away: rows by a predicate, or by the logical partitions that new rows have.

Files are judged as a query would judge them: whole ones go unread where that is certain, the others are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import filter_mask, short
from penstock.expr.kernels.physical import mask_of
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Column, Expr, walk
from penstock.lake.layout.coalesce import NAN
from penstock.lake.layout.grouping import group_rows, partition_arrays
from penstock.lake.layout.live_files import live_files
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.lake.write.conform import conform
from penstock.lake.write.data_files import WrittenFile
from penstock.lake.write.row_change import Effect, PlannedChange, RowChange, RowsOfFile, unfiltered
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import as_shown
from penstock.tables.iceberg.scan.scan_plan import plan_files
from penstock.tables.source import bind


@dataclass(frozen=True)
class ByPredicate(RowChange):
    """Rows for which a predicate is true; those where it is false or null stay."""

    where: str | Expr
    schema: pa.Schema
    context: Context

    @property
    def _predicate(self) -> Expr:
        return self.where if isinstance(self.where, Expr) else bind_text(self.where, self.schema, self.context)

    def find(self, table: IcebergTable) -> PlannedChange:
        """The files that may have such rows."""
        # A file that goes unread must match by its exact values and bounds: no function's law is trusted with it.
        pruner = Pruner(bind(table, self.where), table.context.timezone, whole_by_laws=False)
        files = list(plan_files(table.version, table.sources, pruner).files)
        whole = tuple(task for task in files if task.verdict == Verdict.KEEP_WHOLE)
        return PlannedChange(whole, tuple(unfiltered(task) for task in files if task.verdict != Verdict.KEEP_WHOLE))

    def check(self, rows: pa.Table) -> None:
        """An error when rows that are to be written in place of these do not match; they are as files have them."""
        predicate = self._predicate
        used = columns_in(predicate) or [self.schema.names[0]]
        fields = pa.schema([field for field in self.schema if field.name in used])
        columns = [as_shown(rows.column(field.name).combine_chunks(), field.type) for field in fields]
        others = int((~self._matches(pa.table(columns, schema=fields))).sum())
        if others:
            message = f"{others:,} of the rows do not match {short(self._predicate)}, which says what they replace"
            raise LakeError(message, hint="filter the rows, or change where; nothing was written")

    def first_columns(self) -> Sequence[str]:
        """Those of the predicate."""
        return columns_in(self._predicate)

    def glance(self, rows: pa.Table) -> Effect | None:
        """No row matches, so all of them stay."""
        return None if self._matches(rows).any() else Effect(np.zeros(rows.num_rows, np.bool_))

    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """Rows for which it is true go."""
        return Effect(self._matches(rows))

    def _matches(self, rows: pa.Table) -> Mask:
        return mask_of(filter_mask(self._predicate, rows, self.context.timezone))


def columns_in(*expressions: Expr) -> list[str]:
    """The columns that expressions are about."""
    return sorted({node.path[0] for each in expressions for node in walk(each) if isinstance(node, Column)})


@dataclass(frozen=True)
class ByPartition(RowChange):
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

    def find(self, table: IcebergTable) -> PlannedChange:
        """The files that hold these partitions, or may."""
        whole, partial = set[str](), set[str]()
        for file in live_files(table, self.layout):
            if file.logical is None or not self.tuples.isdisjoint(file.logical):
                is_whole = file.logical is not None and set(file.logical) <= self.tuples
                (whole if is_whole else partial).add(file.path)
        tasks = list(table.plan().files) if whole or partial else []
        kept = tuple(unfiltered(task) for task in tasks if task.path in partial)
        return PlannedChange(tuple(task for task in tasks if task.path in whole), kept)

    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """Rows of these partitions go."""
        typed = conform(rows, self.layout)
        groups = group_rows(partition_arrays(typed, self.layout.schema, self.layout.fine), rows.num_rows)
        going = np.array([each in self.tuples for each in groups.tuples], np.bool_)
        return Effect(going[groups.of_row])
