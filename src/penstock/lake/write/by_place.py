"""Changes that Spark has computed: rows of files by their place, what takes their place, and rows that are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.lake.write.row_change import (
    Effect,
    FilesRead,
    Places,
    PlannedChange,
    RowChange,
    RowsOfFile,
    Updates,
    all_files,
    unfiltered,
)
from penstock.tables.iceberg.iceberg_table import IcebergTable


class ChangedPlaces(NamedTuple):
    """The rows of one file that change, by their places in it."""

    removed: Places
    updated: Places
    values: pa.Table  # one row for each that is updated


@dataclass(frozen=True)
class ByPlace(RowChange):
    """Rows of some files of one version of a table."""

    base: int | None  # the snapshot
    files: Mapping[str, ChangedPlaces] = field(repr=False)
    new: pa.Table = field(repr=False)

    def find(self, table: IcebergTable) -> PlannedChange:
        """The files; in another version than that of the places there is nothing to find."""
        assert table.version.snapshot_id == self.base
        return PlannedChange(partial=tuple(unfiltered(task) for task in table.plan().files if task.path in self.files))

    def files_read(self, table: IcebergTable) -> FilesRead:
        """All files: which of them Spark has read is not known."""
        return all_files(table)

    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """What becomes of the rows of a file."""
        change = self.files[file.path]
        removed = np.isin(file.places, change.removed)
        if not len(change.updated):
            return Effect(removed)
        order = np.argsort(change.updated, kind="stable")
        places = np.searchsorted(file.places, change.updated[order])
        return Effect(removed, Updates(places, change.values.take(pa.array(order))))

    def inserts(self, matched: Places) -> Sequence[pa.Table]:
        """The rows that are new."""
        return [self.new] if self.new.num_rows else []
