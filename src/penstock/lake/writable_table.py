"""What every write of a managed table begins with: the newest version, or an error where that cannot be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from pyiceberg.table.refs import MAIN_BRANCH

from penstock.errors import LakeError
from penstock.lake.declarations import Declarations
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.branch import branch_of
from penstock.tables.iceberg.metadata.catalogs import reloaded


@dataclass(frozen=True, repr=False)
class WritableTable(IcebergTable):
    """An Iceberg table of a catalog that can be written."""

    declarations: Declarations = field(kw_only=True, compare=False)

    def _writable(self) -> Self:
        if self.snapshot is not None:
            message = f"this is {self.name} as it was ({self.snapshot}), which cannot be written"
            is_branch = isinstance(self.snapshot, str) and self.snapshot in self.table.metadata.refs
            hint = f"a branch is written by at_branch({self.snapshot!r}), the table by lake.table(…)"
            raise LakeError(message, hint=hint if is_branch else "write to the table itself: lake.table(…)")
        self._move(reloaded(self))
        return self

    def _writable_whole(self) -> Self:
        """The same for what concerns all branches."""
        branch = branch_of(self.table)
        if branch != MAIN_BRANCH:
            message = f"this is the branch {branch!r} of {self.name}, and snapshots and files are those of the table"
            raise LakeError(message, hint="open the table itself: lake.table(…)")
        return self._writable()
