"""What every table under test has: Penstock's view of it, which live rows each file has, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq


@dataclass
class Layout:
    """A table on disk.

    `files` has the ids of the rows in each file, read by pyarrow alone; `live` those that the table still has, of which
    some that are in a file may have been deleted.
    """

    kind: str
    table: Any
    files: Mapping[str, frozenset[int]]
    live: frozenset[int]
    description: str
    lake: Any = None
    name: str = ""
    catalog: str = ""  # under which Spark knows the lake
    operations: list[str] = field(default_factory=list)
    flavour: str = ""  # of a Hive layout

    @property
    def label(self) -> str:
        """Its kind, or the flavour of a Hive layout."""
        return self.flavour or self.kind

    @property
    def sql_name(self) -> str:
        """The table's name in Spark SQL; empty when no lake has it."""
        return f"{self.catalog}.{self.name}" if self.catalog else ""


def ids_of(path: str) -> frozenset[int]:
    """The ids in a file."""
    return frozenset(pq.ParquetFile(path).read(columns=["id"]).column("id").to_pylist())


def local(url: str) -> str:
    """A file's path on this disk; neither Penstock nor Iceberg escapes anything in it."""
    return url.removeprefix("file://")
