"""What a format of data files is: how its files are known, opened and written, and how Spark reads them.

A format is one module with a `FileFormat`, listed in `formats/format_registry.py`. Nothing else names it. Formats of
text (CSV, JSON) have no types of their own: they are opened with the columns that the table declares, and with options
under the names that Spark has for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"  # where Arrow keeps the id of a field, whatever the format
Options = tuple[tuple[str, str], ...]  # names in lower case, in order


@dataclass(frozen=True)
class Reading:
    """How the files of a table are read: by options, with times in a zone, as the columns that the table declares."""

    options: Options = ()
    zone: str = "UTC"
    columns: pa.Schema | None = None  # None: as the file has them
    path: str = ""  # its last part tells the compression of text

    def option(self, name: str, default: str) -> str:
        """An option, whatever its letters' case is."""
        return dict(self.options).get(name.lower(), default)


AS_STORED = Reading()


class UnreadableError(Exception):
    """What a file has that is not read as Spark would read it; whoever opens files names the file."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


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


def any_columns(columns: pa.Schema) -> None:
    """Files of most formats can have any columns."""


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """One format of data files."""

    name: str  # Spark's name; in upper case, that of Iceberg's manifests
    title: str  # for people
    suffixes: tuple[str, ...]  # of the names of files, before that of a compression
    open: Callable[[Any, Reading], DataFile]
    spark_reader: str  # Spark's reader of it: a class in `spark/jvm`, or Spark's own, with its package
    magic: bytes = b""  # how files begin; text begins with anything
    has_types: bool = True  # whether files tell the types of their columns
    keeps_metadata: bool = True  # whether files have room for what their writer notes, such as sidecars of maps
    is_by_position: bool = False  # whether the first column of a file is the first of the table, whatever its name is
    is_guessed: bool = False  # whether a file shows the columns of its rows only: others may have more
    check_columns: Callable[[pa.Schema], None] = any_columns  # an error for those that its files cannot have
    options: tuple[str, ...] = ()  # those that a table may be given, as Spark spells them
    spark_options: tuple[str, ...] = ()  # more of them, which only Spark's reader follows
    spark_package: str = ""  # what holds Spark's reader, where that is no part of Spark: `group:artifact`

    @property
    def spark_source(self) -> str:
        """What Spark's `format` takes; a class of a package is found where the package has not told its short name."""
        return self.spark_reader if self.spark_package else self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """There is one of each: Spark's tasks get it by its name."""
        from penstock.formats.format_registry import format_named

        return format_named, (self.name,)


@dataclass(frozen=True, kw_only=True)
class IcebergFormat(FileFormat):
    """One format of the data files of Iceberg tables, as they are read: open files say the ids of fields.

    Spark's reader finds columns by these ids where the setting `spark_field_ids` lets it, or else by their names.
    """

    field_id: bytes = FIELD_ID  # where Arrow keeps a field's id: in the metadata of the schema's fields
    spark_field_id: str = ""  # where Spark's schemas keep a field's id
    spark_field_ids: str = ""  # the setting by which Spark finds columns by these ids; empty: by their names
    spark_row_index: bool = False  # whether Spark numbers the rows of a file, as deleted positions need it

    @property
    def by_id(self) -> bool:
        """Whether Spark finds columns by the ids of fields."""
        return bool(self.spark_field_ids)


@dataclass(frozen=True, kw_only=True)
class WrittenFormat(IcebergFormat):
    """One format of the data files that Penstock writes."""

    table_writer: Callable[[Any, Mapping[str, str]], TableWriter]  # of Iceberg's schema and the table's properties
