"""What `penstock ingest` reads: files of one format, a folder of them, or a Hive layout.

The kind is found without Spark, by names or first bytes. A folder of data files goes through Penstock's own scan, which
knows Hive layouts; all of it is read, so limits that keep queries from listing too much do not hold here. Rows of CSV
and JSON are looked at one by one (`text_rows.py`), in partitions of directories, too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockWarning, SchemaError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.write.text_rows import TextRows
    from penstock.storage.storage import Storage
    from penstock.tables.source import Source

_TEXT_KINDS = ("csv", "json")
_FIRST_BYTES = 16
_LOOKED_AT = 100


@dataclass(frozen=True)
class IngestSource:
    """A file or a folder, and what is said about it."""

    location: str
    storage: str | None = None
    partition_by: str = "auto"
    declared: pa.Schema | None = None
    timezone: str = "UTC"
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """An error for a source that is not there, of no known kind, or whose types are its own."""
        from penstock.formats.format_options import declared_format, read_options

        is_text = self.is_text
        read_options(declared_format(self.kind), self.options)
        if self.declared is not None and not is_text:
            message = f"--schema declares the types of CSV and JSON, and {self.location} is {self.kind.title()}"
            raise SchemaError(message, hint="leave it out: such files have types")

    @property
    def is_text(self) -> bool:
        """Whether it has no types of its own."""
        return self.kind in _TEXT_KINDS

    @cached_property
    def kind(self) -> str:
        """The kind of a file by its name, or by its first bytes; of a folder, that of the first file in it."""
        if self.format is not None:
            from penstock.formats.format_options import declared_format

            return declared_format(self.format).name
        place = self._open()
        by_name, is_file = _by_name(self.location), _is_file(place)
        known = by_name or (_by_bytes(place, place.path) if is_file else _kind_below(place))
        if known is None:
            message = f"no Parquet, ORC, Avro, CSV, JSON or text file in {place.url}"
            raise StorageError(message, hint="give a file, or a folder with files, or say what they are: --format")
        return known

    @cached_property
    def is_flat(self) -> bool:
        """Whether it has no levels to look for: a file, a folder that is named like one, or one of files only."""
        from penstock.formats.format_registry import is_hidden

        if self.partition_by != "auto":
            return False
        place = self._open()
        if _by_name(self.location) is not None or _is_file(place):
            return True
        entries = place.entries(place.path)
        return not any(entries.entry(i).is_directory for i, name in enumerate(entries.names) if not is_hidden(name))

    def columns(self) -> pa.Schema:
        """The columns of files with types, by one footer."""
        from penstock.formats.file_format import AS_STORED
        from penstock.formats.format_options import declared_format

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are shown when it is read
            if not self.is_flat:
                return self.layout().schema
            place = self._open()
            with place.open(place.path) as file:
                return declared_format(self.kind).open(file, AS_STORED).schema

    def layout(self) -> Source:
        """A Hive layout, all of which may be listed."""
        return self._layout(self.declared, self.options)

    def _layout(self, schema: Any, options: Mapping[str, str]) -> Source:
        from penstock.tables.hive.hive_table import hive

        limits: Any = dict.fromkeys(("warn_partitions", "max_partitions", "max_lists"), sys.maxsize)
        files: Any = {"format": self.kind, "options": options, "storage": self.storage, "timezone": self.timezone}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = hive(self.location, self.partition_by, schema, **files, **limits)
        for each in caught:  # the table's own partitioning is another one
            text = str(each.message).replace("partition_by=", "source_partition_by=")
            warnings.warn(text, PenstockWarning, stacklevel=2)
        return table

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows of files with types."""
        if self.is_flat:
            from penstock.formats.format_options import declared_format

            source = declared_format(self.kind).spark_source
            return spark.read.options(**self.options).format(source).load(self.location)
        rows: DataFrame = self.layout().dataframe(spark)
        return rows

    def text(self, spark: SparkSession, table: pa.Schema | None) -> TextRows:
        """The rows of CSV or JSON, with the types that are declared, or those of the table."""
        from penstock.spark.write.text_rows import TextSource, read_text

        source = TextSource(self.kind, self.location, dict(self.options), self.timezone, self._levels)
        return read_text(spark, source, self.declared, table)

    def declared_columns(self) -> pa.Schema:
        """The columns that are declared, and behind them those of the directories."""
        import pyarrow as pa

        assert self.declared is not None
        names = {name.lower() for name in self.declared.names}
        levels = [field for field in self._levels or () if field.name.lower() not in names]
        return pa.schema([*self.declared, *levels])

    @cached_property
    def _levels(self) -> pa.Schema | None:
        """The columns of the directories of a layout."""
        return None if self.is_flat else self._layout("value string", {}).partition_schema()

    def _open(self) -> Storage:
        from penstock.storage.schemes import open_storage

        return open_storage(self.location, self.storage)


def _kind_below(place: Any) -> str | None:
    """The kind of the first data file in a folder or below it; text may be a note beside the others."""
    kinds = list(islice(_kinds_below(place), _LOOKED_AT))
    return next((kind for kind in kinds if kind != "text"), kinds[0] if kinds else None)


def _kinds_below(place: Any) -> Iterator[str]:
    """The kinds of the data files in a folder and below it."""
    from penstock.formats.format_registry import is_hidden

    waiting = [place.path]
    while waiting:
        folder = waiting.pop()
        entries = place.entries(folder)
        for entry in (entries.entry(i) for i in entries.in_order() if not is_hidden(entries.names[i])):
            path = f"{folder}/{entry.name}"
            if entry.is_directory:
                waiting.append(path)
            elif (kind := _by_name(entry.name) or _by_bytes(place, path)) is not None:
                yield kind


def _is_file(place: Any) -> bool:
    from pyarrow.fs import FileType

    try:
        kind = place.filesystem.get_file_info(place.path).type
    except OSError as error:
        raise place.trouble(place.path, error) from None
    if kind == FileType.NotFound:
        raise StorageError(f"{place.url} does not exist", hint="check the path")
    if kind == FileType.Unknown:
        raise StorageError(f"{place.url} is a pipe, socket or device", hint="give a file, or a folder with files")
    return bool(kind == FileType.File)


def _by_bytes(place: Any, path: str) -> str | None:
    """The kind of a file whose name does not tell it, as Hive's `000000_0`; None for none that is known."""
    from penstock.formats.format_registry import format_of_bytes

    with place.open(path) as file:
        known = format_of_bytes(file.read(_FIRST_BYTES))
        return None if known is None else known.name


def _by_name(name: str) -> str | None:
    from penstock.formats.format_registry import format_by_name, format_named

    path = name.rstrip("/")
    known = format_by_name(path) or format_named(path.rpartition("/")[2].lower().rpartition(".")[2])
    return None if known is None else known.name
