"""Rows are arranged by the slot that they belong to, and written, one slot after the other.

Rows come with their slots, or without: then they are gathered, grouped by partition and given slots here. Writing that
fails removes what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.lake.layout.grouping import group_rows, partition_arrays
from penstock.lake.layout.slots import Slot, assign
from penstock.lake.write.data_files import SlotWriter, WriteJob, WrittenFile, discard
from penstock.storage.storage import clear_storage_errors

_GATHERED = 256 << 20


def write_slots(
    job: WriteJob, runs: Iterable[tuple[Slot | None, pa.Table]], gathered: int = _GATHERED
) -> list[WrittenFile]:
    """Write rows of one slot after the other; on failure nothing is left.

    Rows without a slot are given one here, so many bytes of them at a time.
    """
    done: list[WrittenFile] = []
    current: Slot | None = None
    writer: SlotWriter | None = None
    with clear_storage_errors(f"files in {job.folder} cannot be written"):
        try:
            for slot, rows in _placed(job, runs, gathered):
                if writer is None or slot is not current:
                    done += writer.close() if writer is not None else []
                    current, writer = slot, SlotWriter(job, slot)
                writer.add(rows)
            return done + (writer.close() if writer is not None else [])
        except BaseException:
            if writer is not None:
                writer.discard()
            discard(job.io, done)
            raise


def write_rows(job: WriteJob, parts: Iterable[pa.Table], gathered: int = _GATHERED) -> list[WrittenFile]:
    """Write rows in any order."""
    return write_slots(job, ((None, part) for part in parts), gathered)


def _placed(
    job: WriteJob, runs: Iterable[tuple[Slot | None, pa.Table]], gathered: int
) -> Iterator[tuple[Slot, pa.Table]]:
    """Rows as files have them, with their slots; those that have none are gathered and then arranged."""
    loose: list[pa.Table] = []
    for slot, rows in runs:
        if slot is not None:
            yield slot, job.conform(rows)
        elif rows.num_rows:
            loose.append(rows)
            if sum(part.nbytes for part in loose) >= gathered:
                yield from _arranged(job, job.conform(pa.concat_tables(loose)))
                loose = []
    if loose:
        yield from _arranged(job, job.conform(pa.concat_tables(loose)))


def _arranged(job: WriteJob, table: pa.Table) -> Iterator[tuple[Slot, pa.Table]]:
    """Rows that are in memory, in the order of the slots that they get."""
    layout = job.layout
    groups = group_rows(partition_arrays(table, layout.schema, layout.fine), table.num_rows)
    bytes_per_row = job.bytes_per_row or job.measure(table)
    sizes = (groups.rows * bytes_per_row).tolist()
    slots = assign(layout, groups.tuples, sizes, job.expected(groups.tuples, sizes), job.target)
    ranks = np.array([each.rank for each in slots.assigned], np.int64)
    order = np.argsort(ranks[groups.of_row], kind="stable")
    rows_of = np.zeros(len(slots.slots), np.int64)
    for each, rows in zip(slots.assigned, groups.rows.tolist(), strict=True):
        for i in range(each.slots):
            rows_of[each.slot + i] += rows * (i + 1) // each.slots - rows * i // each.slots
    ends = np.cumsum(rows_of).tolist()
    for slot, start, end in zip(slots.slots, [0, *ends], ends, strict=False):
        yield slot, _taken(table, order[start:end])


def _taken(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Some rows; those that lie side by side already are not copied."""
    if len(rows) and (np.diff(rows) == 1).all():
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))
