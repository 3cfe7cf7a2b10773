"""Copy on write: a file with rows that change is written again, one file at a time, on any machine.

Rows stay in the place of their file. A row whose new values belong to another partition leaves it, and is written
together with those of other files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.physical import row_codes
from penstock.expr.kernels.vector import Mask
from penstock.lake.layout.coalesce import as_stored
from penstock.lake.layout.grouping import partition_arrays
from penstock.lake.layout.slots import Slot
from penstock.lake.layout.table_layout import Layout
from penstock.lake.write.arrangement import write_slots
from penstock.lake.write.conform import conform
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard
from penstock.lake.write.row_change import Effect, Places, RowChange, RowsOfFile, Updates
from penstock.prune.file_task import FileTask
from penstock.tables.iceberg.scan.reader import Reader

_AT_ONCE = 4
# Smaller files are read at once: to open one a second time takes longer than its other columns.
_GLANCED_BYTES = 1 << 20


@dataclass(frozen=True)
class Rewritten:
    """What became of one file."""

    files: Sequence[WrittenFile] = ()  # that were written
    is_replaced: bool = False  # they are in its place
    removed: int = 0
    updated: int = 0
    moved: pa.Table | None = field(default=None, repr=False)  # rows that are to be written elsewhere
    matched: Places | None = field(default=None, repr=False)
    marked: Places | None = field(default=None, repr=False)  # rows that a delete file is to name


def read_effect(change: RowChange, reader: Reader, task: FileTask, layout: Layout) -> tuple[pa.Table, Places, Effect]:
    """The rows of a file, their places, and what a change does to them; of all columns only where it does something."""
    first = change.first_columns()
    if first and len(first) < len(layout.names) and (task.size or _GLANCED_BYTES) >= _GLANCED_BYTES:
        rows, places = reader.numbered(task, first)
        unchanged = change.glance(rows)
        if unchanged is not None:
            return rows, places, unchanged
    rows, places = reader.numbered(task, layout.names)
    effect = change.effect(rows, RowsOfFile(task.path, places))
    if effect.updates is not None:
        layout.check_maps(effect.updates.values.select(list(change.assigned)))
    return rows, places, effect


def in_threads(job: WriteJob, work: Callable[[FileTask], Rewritten], tasks: Sequence[FileTask]) -> Iterator[Rewritten]:
    """What becomes of each file, in their order; on failure nothing is left of what was not given out."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-rewrite") as pool:
        waiting = deque(pool.submit(work, task) for task in tasks)
        try:
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            ended = [each for each in waiting if not each.cancelled() and each.exception() is None]
            discard(job.io, (file for each in ended for file in each.result().files))
            raise


@dataclass(frozen=True)
class Rewrite:
    """Rewrites one file at a time as a change wants it."""

    job: WriteJob
    change: RowChange
    reader: Reader
    moved_bytes: int  # more rows than this that leave their file are written where they are, not sent to the driver

    def file(self, task: FileTask) -> Rewritten:
        """What takes the place of a file."""
        rows, _, effect = read_effect(self.change, self.reader, task, self.job.layout)
        if not effect.changes_rows:
            return Rewritten(matched=effect.matched)
        slot, moved = self._slot(task), None
        staying = rows.select(self.job.layout.names)
        if effect.updates is None:
            runs = [(slot, staying.filter(pa.array(~effect.removed)))]
        else:
            staying, leaving = self._updated(staying, effect.removed, effect.updates, slot)
            moved = leaving if leaving.num_rows and leaving.nbytes <= self.moved_bytes else None
            runs = [(slot, staying)] if moved is not None else [(slot, staying), (None, leaving)]
        files = write_slots(self.job.again(), [run for run in runs if run[1].num_rows])
        updated = 0 if effect.updates is None else len(effect.updates.rows)
        return Rewritten(files, True, int(effect.removed.sum()), updated, moved, effect.matched)

    def _updated(self, rows: pa.Table, removed: Mask, updates: Updates, slot: Slot | None) -> tuple[pa.Table, pa.Table]:
        """The rows of the file in their order, with new values in the place of old ones; and the rows that leave it."""
        old, new = conform(rows, self.job.layout), conform(updates.values, self.job.layout)
        replaced = old.take(pa.array(updates.rows))
        leaves = np.zeros(new.num_rows, np.bool_) if slot is None else self._leaves(replaced, new)
        place = np.arange(old.num_rows)
        place[updates.rows] = old.num_rows + np.arange(new.num_rows)
        stays = ~removed
        stays[updates.rows[leaves]] = False
        return pa.concat_tables([old, new]).take(pa.array(place[stays])), new.filter(pa.array(leaves))

    def _leaves(self, old: pa.Table, new: pa.Table) -> Mask:
        """Which rows belong to another partition than before."""
        layout, count = self.job.layout, old.num_rows
        pairs = zip(*(partition_arrays(each, layout.schema, layout.fine) for each in (old, new)), strict=True)
        codes = row_codes([pa.concat_arrays([before, after]) for before, after in pairs], 2 * count)
        return np.asarray(codes[:count] != codes[count:], np.bool_)

    def _slot(self, task: FileTask) -> Slot | None:
        """The place of the file itself; None when files of its spec are not written any more."""
        layout = self.job.layout
        if task.spec_id is None or task.spec_id not in (layout.fine.spec_id, layout.coarse_id):
            return None
        partition = tuple(as_stored(value, kind) for value, kind in self.reader.partition(task))
        return Slot(task.spec_id, partition, task.spec_id == layout.coarse_id)
