"""Changes of rows that a table has: which files they are about, and what becomes of the rows of each.

    change.find(table)          files that go whole, and files that may have rows to change
    change.glance(rows)         by a few columns: whether the file has such rows at all
    change.effect(rows, file)   rows that go, rows that get new values; the others stay
    change.inserts(matched)     rows that are new

A change is planned on one version of a table, and again on the next when another writer was faster; the work on one
file may run on any machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import TRUE
from penstock.prune.file_task import FileTask
from penstock.tables.iceberg.iceberg_table import IcebergTable

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PlannedChange:
    """Files that go whole, unread, and files that are read because they may have rows to change."""

    whole: tuple[FileTask, ...] = ()
    partial: tuple[FileTask, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return frozenset(task.path for task in (*self.whole, *self.partial))


class RowsOfFile(NamedTuple):
    """Which rows of a file were read: those that are not deleted, by their place in it."""

    path: str
    places: Places


class Updates(NamedTuple):
    """Rows that get new values, and these, in the rows' order."""

    rows: Places
    values: pa.Table


@dataclass(frozen=True)
class Effect:
    """What a change does to the rows of one file."""

    removed: Mask
    updates: Updates | None = None
    matched: Places | None = None  # which keys of the source met a row, for `inserts`

    @property
    def changes_rows(self) -> bool:
        """Whether the file has to be written again."""
        return bool(self.removed.any()) or (self.updates is not None and len(self.updates.rows) > 0)


class RowChange(ABC):
    """A DELETE, an UPDATE, a MERGE, or the part of an overwrite that takes rows away."""

    @abstractmethod
    def find(self, table: IcebergTable) -> PlannedChange:
        """The files of a version that it is about."""

    def first_columns(self) -> Sequence[str]:
        """The columns that `glance` needs; none where all columns are read at once."""
        return ()

    def glance(self, rows: pa.Table) -> Effect | None:
        """The effect on a file whose rows all stay; None where the other columns are needed."""
        return None

    @abstractmethod
    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """What becomes of the rows of a file."""

    def inserts(self, matched: Places) -> Sequence[pa.Table]:
        """The rows that are new, when these keys of the source have met rows of the table."""
        return ()


def unfiltered(task: FileTask) -> FileTask:
    """A file of which all rows are read."""
    return replace(task, residual=TRUE)
