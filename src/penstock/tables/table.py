"""The one protocol that every table layout follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from penstock.prune.plan import Plan


def count_partitions(names: Sequence[str], keys: Sequence[pa.Array], sizes: pa.Array) -> pa.Table:
    """Files and bytes by partition values; a column that is itself called `files` or `bytes` keeps its name."""
    places = [f"key {i}" for i in range(len(keys))]
    table = pa.table([*keys, sizes], names=[*places, "size"])
    counted = table.group_by(places, use_threads=False).aggregate([("size", "count"), ("size", "sum")])
    return counted.select([*places, "size_count", "size_sum"]).rename_columns([*names, "files", "bytes"])


class Table(Protocol):
    """A table that can say which of its files a query needs, and read them without Spark."""

    @property
    def schema(self) -> pa.Schema:
        """The columns with their normalised types."""
        ...

    def plan(self, where: str | None = None) -> Plan:
        """Which files hold rows that may match."""
        ...

    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""
        ...

    def arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows, read from the planned files only."""
        ...
