"""`df.writeStream.format("penstock")`: a stream into a managed table, one snapshot for each micro-batch that has rows.

    query = (
        df.writeStream.format("penstock").option("warehouse", "./lake").option("table", "web.events")
        .option("checkpointLocation", "./checkpoint").start()
    )

A batch is in the table once, however often Spark runs it: its snapshot and its number in the table's properties are one
commit, and a batch whose number is there is not committed again (`lake/commit/commit.py`).

Spark makes a writer for the tasks of a batch, and another one in a process of its own that commits or aborts. Only
tasks know which query they run for, so their messages say it.

Nothing of Penstock runs before the query does: what is wrong with it ends the query, and `awaitTermination()` says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter
from pyspark.sql.types import StructType

from penstock.errors import LakeError
from penstock.spark.write.data_source import (
    Written,
    check_fits,
    discard_uncommitted,
    files_of,
    open_table,
    write_batches,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.write.data_files import WriteJob

_QUERY_ID = "sql.streaming.queryId"


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> StreamWriter:
    """A writer for one micro-batch; what is wrong with the options is said here."""
    from penstock.lake.write import writes as write

    if overwrite:
        hint = 'use outputMode("append"), or foreachBatch and table.overwrite(…)'
        raise LakeError("a stream only adds rows; complete mode replaces them all with each batch", hint=hint)
    for name in ("where", "dynamic"):
        if name in options:
            hint = "leave it out, or use foreachBatch and table.overwrite(…)"
            raise LakeError(f"the option {name} is about what is replaced, and a stream only adds rows", hint=hint)
    table = open_table(options)
    check_fits(table, schema)
    return StreamWriter(dict(options), write.prepare(table))


def _arrow_writer() -> Any:
    """Spark's base of writers that get Arrow's batches. 4.0 has none for streams, but asks only whether a writer is one
    of those for batch jobs."""
    writer = getattr(datasource, "DataSourceStreamArrowWriter", None)
    return writer or type("StreamArrowWriter", (DataSourceStreamWriter, DataSourceArrowWriter), {})


@dataclass(frozen=True)
class BatchWritten(Written):
    """What a task wrote, and for which query."""

    query: str


class StreamWriter(_arrow_writer()):  # type: ignore[misc]
    """Writes the rows of one micro-batch."""

    def __init__(self, options: Mapping[str, str], job: WriteJob) -> None:
        self.options, self.job = options, job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchWritten:
        """In a task: rows as files."""
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        if query is None:
            raise LakeError("Spark does not say which query this is", hint="start it with df.writeStream")
        return BatchWritten(write_batches(self.job, iterator), query)

    def commit(self, messages: list[BatchWritten], batchId: int) -> None:
        """On the driver: one snapshot for all tasks, when there are rows and the table does not have the batch."""
        from penstock.lake.commit.once import StreamBatch
        from penstock.lake.write import writes as write

        files = files_of(messages)
        if files:
            write.add_batch(open_table(self.options), files, StreamBatch(messages[0].query, batchId))

    def abort(self, messages: list[BatchWritten | None], batchId: int) -> None:
        """On the driver, when a task or the commit failed."""
        discard_uncommitted(self.job, messages)
