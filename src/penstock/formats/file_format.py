"""What a format of data files is: how its files are known, opened and written, and how Spark reads them.

A format is one module with a `FileFormat`, listed in `formats/registry.py`. Nothing else names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa


class DataFile(Protocol):
    """An open file, of which only the footer is read at first."""

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are stored, with the metadata of their fields."""

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        """What its writer noted in the footer."""

    def read(self, columns: Sequence[str]) -> pa.Table:
        """All rows of some columns."""


class FileWriter(Protocol):
    """Writes one file."""

    def write(self, rows: pa.Table) -> None:
        """A row group."""

    def close(self) -> None:
        """Write the footer; the sink stays open."""

    def abandon(self) -> None:
        """Close a file that is thrown away, whatever its sink says."""

    def statistics(self) -> dict[str, Any]:
        """What a manifest entry says of the columns, by the footer of the closed file."""

    def value_count(self, field_id: int) -> int:
        """How many values the closed file has in a column, nulls included."""


class TableWriter(Protocol):
    """How files of one table are written: by Iceberg's schema of the files, and the table's properties."""

    @property
    def plan(self) -> dict[int, Any]:
        """Which statistics are kept of which column, by field id."""

    def open(self, sink: Any, schema: pa.Schema, bare: frozenset[int]) -> FileWriter:
        """A new file; the columns in `bare` get no statistics in its footer."""

    def size_of(self, rows: pa.Table) -> int:
        """The bytes of a file with these rows."""


@dataclass(frozen=True)
class FileFormat:
    """One format of data files."""

    name: str  # Spark's name and the suffix of files; in upper case, that of Iceberg's manifests
    title: str  # for people
    magic: bytes  # how files begin
    open: Callable[[Any], DataFile]
    table_writer: Callable[[Any, Mapping[str, str]], TableWriter]
    field_id: bytes  # where Arrow keeps a field's id: in the metadata of the schema's fields
    spark_field_id: str  # the same in Spark's schemas
    spark_field_ids: str  # the setting by which Spark finds columns by these ids
