"""UPDATE: rows that match get new values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.lake.write.assignments import Assignments
from penstock.lake.write.removal import ByPredicate
from penstock.lake.write.row_change import Effect, PlannedChange, RowChange, RowsOfFile, Updates, unfiltered
from penstock.tables.iceberg.iceberg_table import IcebergTable


@dataclass(frozen=True)
class Update(RowChange):
    """New values for the rows for which a predicate is true."""

    where: ByPredicate
    assignments: Assignments

    def find(self, table: IcebergTable) -> PlannedChange:
        """The files that may have such rows; all of them are read."""
        planned = self.where.find(table)
        return PlannedChange(partial=(*(unfiltered(task) for task in planned.whole), *planned.partial))

    @property
    def assigned(self) -> Sequence[str]:
        """Those that have assignments."""
        return list(self.assignments.values)

    def first_columns(self) -> Sequence[str]:
        """Those of the predicate."""
        return self.where.first_columns()

    def glance(self, rows: pa.Table) -> Effect | None:
        """No row matches."""
        return self.where.glance(rows)

    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """Rows for which the predicate is true get new values."""
        matching = np.flatnonzero(self.where.effect(rows, file).removed)
        chosen = rows.take(pa.array(matching))
        values = with_columns(chosen, self.assignments.columns(chosen))
        return Effect(np.zeros(rows.num_rows, np.bool_), Updates(matching, values))


def with_columns(rows: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """Rows with other values in some columns."""
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows
