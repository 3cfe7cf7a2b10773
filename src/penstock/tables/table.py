"""The one protocol that every table layout follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from penstock.prune.plan import Plan


class Table(Protocol):
    """A table that can say which of its files a query needs, and read them without Spark."""

    @property
    def schema(self) -> pa.Schema:
        """The columns with their normalised types."""
        ...

    def plan(self, where: str | None = None) -> Plan:
        """Which files hold rows that may match."""
        ...

    def arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows, read from the planned files only."""
        ...
