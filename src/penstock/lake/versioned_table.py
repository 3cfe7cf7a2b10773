"""A table with its history: snapshots, tags and branches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from penstock.lake.changes import row_changes
from penstock.lake.history import BRANCH, TAG, Moved, create_ref, drop_ref, fast_forward, rollback
from penstock.lake.writable_table import WritableTable
from penstock.tables.iceberg.metadata.branch import branch_of, on_branch
from penstock.tables.iceberg.metadata.catalogs import loaded
from penstock.tables.iceberg.metadata.version import SnapshotChoice


@dataclass(frozen=True, repr=False)
class VersionedTable(WritableTable):
    """The history of a table, and what moves it."""

    @property
    def branch(self) -> str:
        """The branch that is read and written: `main`, unless `at_branch()` gave this table."""
        return branch_of(self.table)

    def at_branch(self, name: str) -> Self:
        """The table as a branch of it: reads see the head of the branch, writes move the branch alone."""
        return replace(self, table=on_branch(self._unbranched().table, name), snapshot=None)

    def _unbranched(self) -> Self:
        """The table itself, as the catalog has it now."""
        return replace(self, table=loaded(self.table), snapshot=None)

    def history(self) -> pa.Table:
        """Which snapshot was current since when, with the columns of Iceberg's metadata table `history`."""
        rows: pa.Table = self.table.inspect.history()
        return rows

    def snapshots(self) -> pa.Table:
        """All snapshots that have not expired, with the columns of Iceberg's metadata table `snapshots`."""
        rows: pa.Table = self.table.inspect.snapshots()
        return rows

    def refs(self) -> pa.Table:
        """The tags and branches, with the columns of Iceberg's metadata table `refs`."""
        rows: pa.Table = self.table.inspect.refs()
        return rows

    def changes(self, from_: SnapshotChoice, to: SnapshotChoice = None, where: str | None = None) -> pa.Table:
        """The rows that were added and removed between two snapshots, in all; `_change_type` says which.

        Each is given by its id, a time, a tag or a branch; without `to`, it is the one that this table reads. Rows that
        were only moved to other files are none, nor are those that were added and removed again. `from_=None` is the
        time before the first snapshot.
        """
        return row_changes(self, from_, self.snapshot if to is None else to, where)

    def rollback(self, to: SnapshotChoice) -> Moved:
        """Make a snapshot current that was so before: by its id, a time or a tag. Another rollback undoes it."""
        table, moved = rollback(self._writable().table, to)
        self._move(table)
        return moved

    def create_tag(self, name: str, snapshot: SnapshotChoice = None) -> None:
        """Give a snapshot a name, the current one if none is given; it is kept as long as the tag exists."""
        self._move(create_ref(self._writable().table, name, TAG, snapshot))

    def drop_tag(self, name: str) -> None:
        """Drop a tag; its snapshot expires like all others."""
        self._move(drop_ref(self._writable().table, name, TAG))

    def create_branch(self, name: str, snapshot: SnapshotChoice = None) -> None:
        """Create a branch at a snapshot, the current one if none is given; `at_branch()` writes to it."""
        self._move(create_ref(self._writable().table, name, BRANCH, snapshot))

    def drop_branch(self, name: str) -> None:
        """Drop a branch; snapshots that only it had expire like all others."""
        table = self._unbranched() if name == self.branch else self
        self._move(drop_ref(table._writable().table, name, BRANCH))

    def fast_forward(self, branch: str, to: str) -> Moved:
        """Move a branch to the head of another one that goes on from it: `fast_forward("main", to="audit")`."""
        table, moved = fast_forward(self._writable().table, branch, to)
        self._move(table)
        return moved
