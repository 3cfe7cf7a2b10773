"""A table with its history: snapshots, tags and branches."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.lake.writable_table import WritableTable


@dataclass(frozen=True, repr=False)
class VersionedTable(WritableTable):
    """The history of a table, and what moves it."""
