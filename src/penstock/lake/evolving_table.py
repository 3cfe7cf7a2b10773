"""A table whose columns and partitioning change while its rows stay."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lake.writable_table import WritableTable


@dataclass(frozen=True, repr=False)
class EvolvingTable(WritableTable):
    """Changes of columns and of partition fields."""
