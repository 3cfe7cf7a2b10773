"""What every write of a managed table begins with: the newest version, or an error where that cannot be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from penstock.errors import LakeError
from penstock.lake.commit.commit import fresh
from penstock.lake.declarations import Declarations
from penstock.tables.iceberg.iceberg_table import IcebergTable


@dataclass(frozen=True, repr=False)
class WritableTable(IcebergTable):
    """An Iceberg table of a catalog that can be written."""

    declarations: Declarations = field(kw_only=True, compare=False)

    def _writable(self) -> Self:
        if self.snapshot is not None:
            message = f"this is {self.name} as it was ({self.snapshot}), which cannot be written"
            raise LakeError(message, hint="write to the table itself: lake.table(…)")
        self._move(fresh(self.table))
        return self
