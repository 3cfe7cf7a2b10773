"""Rows as a table in memory: partitioned by any transform, with files of a few rows."""

from __future__ import annotations

from random import Random

from penstock import MemoryTable
from tests.fuzz.layout import Layout
from tests.fuzz.partitioning import partitioning
from tests.fuzz.rows import ID, Rows


def memory_layout(rng: Random, rows: Rows, zone: str) -> Layout:
    """A table whose files are named as its plans name them."""
    by, _ = partitioning(rng, rows)
    table = MemoryTable.from_rows(rows.table, by, rows_per_file=rng.choice([1, 3, 8]), timezone=zone)
    files = {f"memory:{i}": frozenset(file.column(ID).to_pylist()) for i, file in enumerate(table.files)}
    live = frozenset(range(rows.table.num_rows))
    return Layout("memory", table, files, live, f"memory by {by}", operations=["write"])
