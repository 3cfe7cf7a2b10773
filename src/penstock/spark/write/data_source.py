"""`format("penstock")`: managed tables as a target of Spark's writers, and any table as a stream; on Spark Connect too.

    df.write.format("penstock").option("warehouse", "./lake").option("table", "web.events").mode("append").save()

| option | meaning |
|---|---|
| `table` | `namespace.name` |
| `warehouse`, `catalog` | the directory of a lake; the name of a catalog in PyIceberg's configuration |
| `where` | with mode overwrite: replace the rows that match |
| `dynamic` | with mode overwrite, `true`: replace the logical partitions that the new rows have |

Spark hands the rows to tasks as they are: no shuffle brings the rows of a partition together, as `table.append(df)`
does. Each task shares its small partitions among its own files; `compact()` merges them later.

Options of streams are in `spark/stream/stream_reader.py`, those of streaming writes in `spark/stream/stream_sink.py`.

Every session that is attached registers this source, so what only a write needs is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.errors import LakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.managed_table import ManagedTable
    from penstock.lake.write.data_files import WriteJob, WrittenFile
    from penstock.lake.write.row_change import RowChange

_HINT = "set the options table, and warehouse or catalog"


class PenstockSource(DataSource):
    """Tables, to be written, or read as streams."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return "penstock"

    def schema(self) -> StructType:
        """The columns of a stream."""
        from penstock.spark.stream.stream_reader import feed_of, spark_schema

        return spark_schema(feed_of(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """What Spark asks for the rows of a batch query."""
        from penstock.spark.stream.stream_reader import BatchReader, feed_of

        return BatchReader(feed_of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """What Spark asks for new rows."""
        from penstock.spark.stream.stream_reader import StreamReader, feed_of

        return StreamReader(feed_of(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer for one job; what is wrong with the options is said here."""
        from penstock.lake.write import writes as write
        from penstock.stream.stream_options import truth

        table = open_table(self.options)
        where, dynamic = self.options.get("where"), truth("dynamic", self.options.get("dynamic", "false"))
        if (where is not None or dynamic) and not overwrite:
            raise LakeError("where and dynamic are about what is replaced", hint='write with mode("overwrite")')
        if where is not None and dynamic:
            raise LakeError("both where and dynamic are set", hint="set one of them")
        check_fits(table, schema)
        replaced = "TRUE" if where is None else where
        removal = write.by_predicate(table, replaced) if overwrite and not dynamic else None
        job = replace(write.prepare(table), check=None if where is None or removal is None else removal.check)
        return Writer(dict(self.options), job, overwrite, removal)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer for one micro-batch."""
        from penstock.spark.stream.stream_sink import stream_writer

        return stream_writer(self.options, schema, overwrite)


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task wrote."""

    files: Sequence[WrittenFile]


@dataclass(frozen=True)
class Writer(DataSourceArrowWriter):
    """Writes the rows of one job."""

    options: Mapping[str, str]
    job: WriteJob
    overwrite: bool
    removal: RowChange | None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: rows as files."""
        return Written(write_batches(self.job, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: one snapshot for all tasks."""
        from penstock.lake.write import writes as write
        from penstock.lake.write.removal import ByPartition

        files = files_of(messages)
        table = open_table(self.options)
        if not self.overwrite:
            write.add_files(table, files, {})
            return
        removal = self.removal if self.removal is not None else ByPartition.of(self.job.layout, files)
        write.change_rows(table, self.job, removal, {}, files)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, when a task or the commit failed."""
        discard_uncommitted(self.job, messages)


def files_of(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenFile]:
    """What all tasks wrote; one that failed has no message."""
    return [file for message in messages if isinstance(message, Written) for file in message.files]


def discard_uncommitted(job: WriteJob, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Remove what tasks wrote when another one failed.

    With the messages of all tasks a commit was tried. It removes the files itself when it is certain that it did not
    take place; one that Spark gave up may still be under way.
    """
    from penstock.lake.write.data_files import discard

    if None in messages:
        discard(job.io, files_of(messages))


def write_batches(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> list[WrittenFile]:
    """Write the rows of one task."""
    import pyarrow as pa

    from penstock.lake.write.arrangement import write_rows
    from penstock.lake.write.conform import check_schema, in_order

    tables = (pa.table(batch) for batch in batches)
    return write_rows(job, (in_order(table, check_schema(table.schema, job.layout.schema)) for table in tables))


def check_fits(table: ManagedTable, schema: StructType) -> None:
    """An error for columns that are not the table's."""
    from penstock.lake.write.conform import check_schema
    from penstock.spark.write.write_job import arrow_schema

    check_schema(arrow_schema(schema), table.version.columns.schema)


def open_table(options: Mapping[str, str]) -> ManagedTable:
    """The table that the options name."""
    from penstock.lake.lake import connect

    name = options.get("table")
    warehouse, catalog = options.get("warehouse"), options.get("catalog")
    if name is None or (warehouse is None and catalog is None):
        raise LakeError("the options do not say which table", hint=_HINT)
    return connect(warehouse, catalog=catalog).writable_table(name)
