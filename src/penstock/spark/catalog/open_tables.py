"""The versions of tables that Spark has loaded, each under a handle that Spark knows it by.

Every name in a query is loaded once, so that the whole query reads one version; Spark says when the last plan over it
is garbage (`Questions.java`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.managed_table import ManagedTable


class OpenTable(Protocol):
    """One version of a table, as Spark reads it."""

    name: str

    def rows(self, spark: SparkSession, hidden: Sequence[str]) -> DataFrame:
        """All rows; `hidden` columns, which are not in the schema, come behind."""
        ...

    def facts(self) -> dict[str, Any]:
        """What Spark is told of it."""
        ...

    def change(self, mode: str, statement: dict[str, Any] | None, rows: DataFrame) -> None:
        """Execute a statement that changes rows; without one, the mode says how rows are inserted."""
        ...

    def for_writing(self) -> ManagedTable:
        """The table to write to; an error where it cannot be written."""
        ...


class Handles:
    """The open tables of this process by handle."""

    def __init__(self) -> None:
        self._tables: dict[str, OpenTable] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, table: OpenTable) -> str:
        """Keep a table; its handle."""
        with self._lock:
            handle = str(next(self._numbers))
            self._tables[handle] = table
        return handle

    def get(self, handle: str) -> OpenTable:
        """The table of a handle."""
        with self._lock:
            table = self._tables.get(handle)
        if table is None:
            raise PenstockError("Spark asks for a table that was closed", hint="run the query again")
        return table

    def forget(self, handle: str) -> None:
        """No plan needs the table any more."""
        with self._lock:
            self._tables.pop(handle, None)


handles = Handles()
