"""Merge on read: files stay as they are, and files beside them say which of their rows are gone.

A position delete file is about the files of one partition. Its rows are in the order of files and places, as Iceberg
wants them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from penstock.lake.layout.coalesce import as_stored
from penstock.lake.layout.slots import partition_key
from penstock.lake.layout.table_layout import Tuple
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.data_files import WriteJob, WrittenFile, file_format
from penstock.lake.write.rewrite import Rewritten, read_effect
from penstock.lake.write.row_change import Places, RowChange
from penstock.prune.file_task import FileTask
from penstock.storage.storage import clear_storage_errors
from penstock.tables.iceberg.scan.reader import Reader

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
    """Delete files for rows of some files, one for each partition."""
    by_partition: dict[tuple[int, Tuple], tuple[Tuple, list[tuple[str, Places]]]] = {}
    for task, places in marked:
        assert task.spec_id is not None
        partition = tuple(as_stored(value, kind) for value, kind in reader.partition(task))
        key = (task.spec_id, partition_key(partition))
        by_partition.setdefault(key, (partition, []))[1].append((task.path, np.unique(places)))
    return [
        _write(job, spec_id, partition, sorted(files, key=itemgetter(0)))
        for (spec_id, _), (partition, files) in by_partition.items()
    ]


def _write(job: WriteJob, spec_id: int, partition: Tuple, files: Sequence[tuple[str, Places]]) -> WrittenFile:
    counts = [len(places) for _, places in files]
    paths = pa.array([path for path, _ in files]).take(pa.array(np.repeat(np.arange(len(files)), counts)))
    places = pa.array(np.concatenate([places for _, places in files]), pa.int64())
    columns = schema_to_pyarrow(_SCHEMA, include_field_ids=True)
    form = file_format(job.properties)
    writer = form.table_writer(_SCHEMA, {"write.metadata.metrics.default": "full"})
    url = f"{job.folder}/{uuid4().hex}-deletes.{form.name}"
    with clear_storage_errors(f"files in {job.folder} cannot be written"), job.io.new_output(url).create() as sink:
        file = writer.open(sink, columns, frozenset())
        file.write(pa.table([paths.cast(columns.field(0).type), places], schema=columns))
        file.close()
        size = sink.tell()
    return WrittenFile(url, spec_id, partition, size, file.statistics(), is_delete=True)
