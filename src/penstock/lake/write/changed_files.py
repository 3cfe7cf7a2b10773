"""What a change of rows makes of the files of one version: which go, what is written, and which rows are marked.

Files are rewritten here or, when there is much to do, in Spark's tasks. Rows that leave their files are gathered, and
written together; where that would be too many, each file's are written beside it.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard
from penstock.lake.write.position_deletes import Mark, write_position_deletes
from penstock.lake.write.rewrite import Rewrite, Rewritten, in_threads
from penstock.lake.write.row_change import Places, PlannedChange, RowChange
from penstock.lake.write.write_modes import merges_on_read
from penstock.progress import Count, progress
from penstock.prune.file_task import FileTask
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

# Rewriting less than this starts no Spark job.
LOCALLY = 64 << 20
_MOVED_BYTES = 512 << 20  # of rows that are gathered


@dataclass
class ChangedFiles:
    """Files that go, files that were written, and rows of the files that stay: what a commit needs."""

    gone: set[str] = field(default_factory=set)
    written: list[WrittenFile] = field(default_factory=list)
    marked: list[tuple[FileTask, Places]] = field(default_factory=list)
    removed: int = 0
    updated: int = 0
    inserted: int = 0
    moved: list[pa.Table] = field(default_factory=list)
    matched: list[Places] = field(default_factory=list)

    def add(self, task: FileTask, rewritten: Rewritten) -> None:
        """What became of one file."""
        self.removed += rewritten.removed
        self.updated += rewritten.updated
        self.moved += [] if rewritten.moved is None else [rewritten.moved]
        self.matched += [] if rewritten.matched is None else [rewritten.matched]
        self.marked += [] if rewritten.marked is None else [(task, rewritten.marked)]
        self.written += rewritten.files
        if rewritten.is_replaced:
            self.gone.add(task.path)


def change_files(
    now: IcebergTable, job: WriteJob, change: RowChange, planned: PlannedChange, command: str
) -> ChangedFiles:
    """Write what a change needs; on failure nothing is left of it."""
    reader = Reader(now.version, now.sources.io, now.context.timezone)
    on_read = merges_on_read(job.properties, now.version.metadata.format_version, command)
    moved_bytes = _MOVED_BYTES // max(1, len(planned.partial))
    work = (Mark if on_read else Rewrite)(job, change, reader, moved_bytes)
    rows_gone = sum(_rows(task, reader, job) for task in planned.whole)
    new = ChangedFiles({task.path for task in planned.whole}, removed=rows_gone)
    try:
        _work_on(planned.partial, work, new)
        new.written += write_rows(job.again(), new.moved)
        new.written += write_position_deletes(job, reader, new.marked)
        inserts = change.inserts(np.concatenate([np.zeros(0, np.int64), *new.matched]))
        new.inserted = sum(rows.num_rows for rows in inserts)
        new.written += write_rows(job, inserts)
    except BaseException:
        discard(job.io, new.written)
        raise
    return new


def _work_on(tasks: tuple[FileTask, ...], work: Mark | Rewrite, new: ChangedFiles) -> None:
    """Change the files; when one of them fails, what the others wrote is known."""
    if not tasks or sum(task.size or 0 for task in tasks) <= LOCALLY:
        done = Count(len(tasks), "file")
        with progress("rewriting", done) if tasks else nullcontext():
            for task, rewritten in zip(tasks, done.each(in_threads(work.job, work.file, tasks)), strict=True):
                new.add(task, rewritten)
        return
    failed: PenstockError | None = None
    for task, answer in zip(tasks, bridge.map_files(tasks, work.file), strict=True):
        if isinstance(answer, PenstockError):
            failed = answer
        else:
            new.add(task, answer)
    if failed is not None:
        raise failed


def _rows(task: FileTask, reader: Reader, job: WriteJob) -> int:
    """The rows of a file that goes whole, without those that are deleted already."""
    if task.rows is not None and not task.deletes:
        return task.rows
    return len(reader.numbered(task, job.layout.names[:1])[1])
