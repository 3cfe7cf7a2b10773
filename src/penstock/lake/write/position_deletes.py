"""Merge on read: files stay as they are, and files beside them say which of their rows are gone.

A position delete file is about one data file: its bounds say which, so that no other file is taken for one with deleted
rows, read with it, and compacted for it. Its rows are in the order of their places, as Iceberg wants them.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from penstock.lake.layout.coalesce import as_stored
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard, file_format
from penstock.lake.write.rewrite import Rewritten, read_effect
from penstock.lake.write.row_change import Places, RowChange
from penstock.prune.file_task import FileTask
from penstock.storage.storage import clear_storage_errors
from penstock.tables.iceberg.scan.reader import Reader

_AT_ONCE = 8
# Iceberg's reserved fields.
_SCHEMA = Schema(
    NestedField(2147483546, "file_path", StringType(), required=True),
    NestedField(2147483545, "pos", LongType(), required=True),
)


@dataclass(frozen=True)
class Mark:
    """Marks the rows of one file at a time that a change takes away; new values are rows that are written elsewhere."""

    job: WriteJob
    change: RowChange
    reader: Reader
    moved_bytes: int  # more new rows than this are written where they are, not sent to the driver

    def file(self, task: FileTask) -> Rewritten:
        """The rows of a file that go."""
        _, places, effect = read_effect(self.change, self.reader, task, self.job.layout)
        if not effect.changes_rows:
            return Rewritten(matched=effect.matched)
        gone, updates = effect.removed.copy(), effect.updates
        if updates is not None:
            gone[updates.rows] = True
        values = None if updates is None else updates.values
        is_moved = values is not None and values.nbytes <= self.moved_bytes
        return Rewritten(
            () if values is None or is_moved else write_rows(self.job.again(), [values]),
            removed=int(effect.removed.sum()),
            updated=0 if updates is None else len(updates.rows),
            moved=values if is_moved else None,
            matched=effect.matched,
            marked=places[gone],
        )


def write_position_deletes(
    job: WriteJob, reader: Reader, marked: Iterable[tuple[FileTask, Places]]
) -> list[WrittenFile]:
    """A delete file for the rows of each file; on failure nothing is left."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-deletes") as pool:
        writes = [pool.submit(_write, job, reader, task, np.unique(places)) for task, places in marked]
    failed = next((write.exception() for write in writes if write.exception() is not None), None)
    if failed is not None:
        discard(job.io, [write.result() for write in writes if write.exception() is None])
        raise failed
    return [write.result() for write in writes]


def _write(job: WriteJob, reader: Reader, task: FileTask, places: Places) -> WrittenFile:
    assert task.spec_id is not None
    partition = tuple(as_stored(value, kind) for value, kind in reader.partition(task))
    columns = schema_to_pyarrow(_SCHEMA, include_field_ids=True)
    rows = [pa.array([task.path], columns.field(0).type).take(pa.array(np.zeros(len(places), np.int64))), places]
    form = file_format(job.properties)
    writer = form.table_writer(_SCHEMA, {"write.metadata.metrics.default": "full"})
    url = f"{job.folder}/{uuid4().hex}-deletes.{form.name}"
    with clear_storage_errors(f"files in {job.folder} cannot be written"), job.io.new_output(url).create() as sink:
        file = writer.open(sink, columns, frozenset())
        file.write(pa.table(rows, schema=columns))
        file.close()
        size = sink.tell()
    return WrittenFile(url, task.spec_id, partition, size, file.statistics(), is_delete=True)
