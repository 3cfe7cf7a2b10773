"""Changes of rows that a table has: which files they are about, and what becomes of the rows of each.

    change.validate(table)        what would be an error is found before anything is written
    change.find(table)          files that go whole, and files that may have rows to change
    change.glance(rows)         by a few columns: whether the file has such rows at all
    change.effect(rows, file)   rows that go, rows that get new values; the others stay
    change.inserts(matched)     rows that are new

A change is planned on one version of a table, and again on the next when another writer was faster; the work on one
file may run on any machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import TRUE
from penstock.prune.delete_file import DeleteFile
from penstock.prune.file_task import FileTask
from penstock.tables.iceberg.iceberg_table import IcebergTable

Places = npt.NDArray[np.int64]
FilesRead = frozenset[tuple[str, frozenset[DeleteFile]]]  # paths, with the delete files that apply


@dataclass(frozen=True)
class PlannedChange:
    """Files that go whole, unread, and files that are read because they may have rows to change."""

    whole: tuple[FileTask, ...] = ()
    partial: tuple[FileTask, ...] = ()

    @property
    def files_read(self) -> FilesRead:
        """All of them."""
        return _states((*self.whole, *self.partial))


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

    def validate(self, table: IcebergTable) -> None:
        """An error when the change is not possible."""
        return

    def files_read(self, table: IcebergTable) -> FilesRead:
        """The files of a version that the change depends on."""
        return self.find(table).files_read

    @property
    def assigned(self) -> Sequence[str]:
        """The columns that get new values in rows that the table has."""
        return ()

    @property
    def is_append(self) -> bool:
        """Whether readers of what was appended are to read its new rows."""
        return False

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


def all_files(table: IcebergTable) -> FilesRead:
    """All files of a version: what a change depends on of which it is not known what it has read."""
    return _states(table.plan().files)


def _states(tasks: Iterable[FileTask]) -> FilesRead:
    return frozenset((task.path, frozenset(task.deletes)) for task in tasks)


def unfiltered(task: FileTask) -> FileTask:
    """A file of which all rows are read."""
    return replace(task, residual=TRUE)
