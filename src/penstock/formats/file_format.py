"""What a format of data files is: how its files are known, opened and written, and how Spark reads them.

A format is one module with a `FileFormat`, listed in `formats/format_registry.py`. Nothing else names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa


class DataFile(Protocol):
    """An open file: its columns as stored, with the metadata of their fields; what its writer noted; its rows."""

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def metadata(self) -> Mapping[bytes, bytes] | None: ...
    def read(self, columns: Sequence[str]) -> pa.Table: ...


class FileWriter(Protocol):
    """Writes one file, a row group at a time; the sink stays open. `abandon` closes a file that is thrown away.

    A closed file knows what a manifest entry says of its columns, and how many values a column has, nulls included.
    """

    def write(self, rows: pa.Table) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    def statistics(self) -> dict[str, Any]: ...
    def value_count(self, field_id: int) -> int: ...


class TableWriter(Protocol):
    """Opens the files of one table; those in `bare` are field ids of columns without statistics in the footer.

    `plan` says which statistics are kept of which column, by field id; `size_of` is the size of a file with some rows.
    """

    @property
    def plan(self) -> dict[int, Any]: ...
    def open(self, sink: Any, schema: pa.Schema, bare: frozenset[int]) -> FileWriter: ...
    def size_of(self, rows: pa.Table) -> int: ...


@dataclass(frozen=True)
class FileFormat:
    """One format of data files."""

    name: str  # Spark's name and the suffix of files; in upper case, that of Iceberg's manifests
    title: str  # for people
    magic: bytes  # how files begin
    open: Callable[[Any], DataFile]
    table_writer: Callable[[Any, Mapping[str, str]], TableWriter]  # of Iceberg's schema and the table's properties
    field_id: bytes  # where Arrow keeps a field's id: in the metadata of the schema's fields
    spark_reader: str  # the class in `spark/jvm` that has Spark's reader of it
    spark_field_id: str  # where Spark's schemas keep a field's id
    spark_field_ids: str  # the setting by which Spark finds columns by these ids
