"""What a metastore is asked, and what it answers: a table by its name, and the partitions of one.

Spark's session catalog is one (`spark/catalog/session_catalog.py`), whatever stands behind it: a Hive metastore, or the
memory of a session. Partitions come as columns, all of them in one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import pyarrow as pa


class Stored(NamedTuple):
    """How the files of a table or of one of its partitions are stored, in the words of the metastore."""

    serde: str = ""  # the class by which Hive reads them
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StoredTable:
    """A table as the metastore has it."""

    name: str  # with its database
    parts: tuple[str, ...]  # of the name, which may have dots of their own
    provider: str  # Spark's name of the data source, or `hive`
    location: str
    columns: pa.Schema  # of the files
    partition_columns: pa.Schema
    stored: Stored = field(default_factory=Stored)
    has_partitions: bool = True  # whether the metastore lists them; else the directories tell them
    comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


class Test(NamedTuple):
    """A condition on a partition column that a metastore can check: `=`, `<`, `<=`, `>`, `>=`, or being `IN` values."""

    column: str
    op: str
    values: pa.Array


@dataclass(frozen=True)
class StoredPartitions:
    """The partitions that pass some tests: the text of each of their values, where they lie, how they are stored."""

    texts: Sequence[pa.Array]  # for each partition column
    locations: Sequence[str]
    kinds: Sequence[int]  # places in `stored`
    stored: Sequence[Stored]
    total: int  # how many the table has
    problem: str | None = None  # why the tests could not be made: these are all partitions


class Metastore(Protocol):
    """Knows tables by name."""

    def table(self, name: str) -> StoredTable:
        """The table of a name; an error where there is none, or where it is none of files."""
        ...

    def partitions(self, table: StoredTable, tests: Sequence[Test]) -> StoredPartitions:
        """The partitions of a table that pass all tests; all of them where it cannot make the tests."""
        ...
