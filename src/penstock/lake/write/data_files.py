"""Data files: rows in, files out, with everything that a manifest says of a file collected on the way.

A job is all that a task needs, on whatever machine it runs. Rows come with the slot that they belong to, one slot after
the other, or without: then they are gathered, grouped by partition and given slots here. A task that fails removes
what it wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import CLIENT_ERRORS, LakeError
from penstock.formats.file_format import FileFormat, FileWriter, TableWriter
from penstock.formats.format_registry import DEFAULT, TITLES, format_named
from penstock.formats.manifest_record import ManifestRecord, encode_logical, record_size
from penstock.lake.layout.coalesce import as_python
from penstock.lake.layout.grouping import Groups, group_rows, partition_arrays
from penstock.lake.layout.slots import Slot, assign
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.lake.write.conform import conform
from penstock.lake.write.float_columns import FloatColumns, float_leaves, leaves_with_nan
from penstock.maps.shredding import Tally
from penstock.storage.storage import clear_storage_errors

if TYPE_CHECKING:
    from pyiceberg.io import FileIO, OutputStream

TARGET, _TARGET = "write.target-file-size-bytes", 512 << 20
_FORMAT = "write.format.default"
_GROUP_ROWS, _GROUP_BYTES = 500_000, 128 << 20
# Row groups of shared files are small and begin where a logical partition does: a query of one reads few others' rows.
_SHARED_GROUP_ROWS, _SHARED_GROUP_BYTES_PER_COLUMN = 65_536, 512 << 10
_GATHERED = 256 << 20
_SAMPLE = 20_000


def check_format(properties: Mapping[str, str]) -> None:
    """An error when a table's files are to be in another format."""
    name = properties.get(_FORMAT, DEFAULT.name)
    if format_named(name) is None:
        what = f"{_FORMAT} is {name!r}, and only {TITLES} is written"
        raise LakeError(what, hint=f"set {_FORMAT} to {DEFAULT.name}, or remove it")


class RowCheck(Protocol):
    """What rows must be like to be written."""

    def check(self, rows: pa.Table) -> None:
        """An error for rows that may not be written."""


@dataclass(frozen=True)
class WriteJob:
    """What a task needs to write rows of one table."""

    layout: Layout
    io: FileIO = field(repr=False)
    folder: str  # where data files lie
    properties: Mapping[str, str] = field(repr=False)
    known: Mapping[Tuple, float] = field(default_factory=dict, repr=False)  # bytes of logical partitions in the table
    known_is_all: bool = False  # whether these count the rows that are written as well
    bytes_per_row: float | None = None
    only: RowCheck | None = field(default=None, repr=False)  # what rows must be like
    id: str = field(default_factory=lambda: uuid4().hex)

    def expected(self, tuples: Sequence[Tuple], sizes: Sequence[float]) -> list[float]:
        """What logical partitions will hold in the table when rows of these sizes are written."""
        if self.known_is_all:
            return [self.known.get(fine, size) for fine, size in zip(tuples, sizes, strict=True)]
        return [self.known.get(fine, 0) + size for fine, size in zip(tuples, sizes, strict=True)]

    def again(self) -> WriteJob:
        """The job for rows that the table has already: what another engine wrote is not refused."""
        return replace(self, layout=replace(self.layout, last_wins=True), only=None)

    def conform(self, rows: pa.Table) -> pa.Table:
        """Rows as files have them; an error for those that may not be written."""
        conformed = conform(rows, self.layout)
        if self.only is not None:
            self.only.check(conformed)
        return conformed

    @property
    def format(self) -> FileFormat:
        """The format of new files."""
        return format_named(self.properties.get(_FORMAT, DEFAULT.name)) or DEFAULT

    @cached_property
    def writer(self) -> TableWriter:
        """How new files are written."""
        return self.format.table_writer(self.layout.written, self.properties)

    @property
    def target(self) -> int:
        """The size that files should have."""
        return int(self.properties.get(TARGET, _TARGET))


@dataclass(frozen=True)
class WrittenFile:
    """A data file that no snapshot has yet."""

    path: str
    spec_id: int
    partition: Tuple
    bytes: int
    statistics: Mapping[str, Any] = field(repr=False)
    record: ManifestRecord = field(default=ManifestRecord(), repr=False)
    tuples: tuple[Tuple, ...] = field(default=(), repr=False)  # the logical tuples of a shared file, however many

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.statistics["record_count"])


class SlotWriter:
    """Writes the rows of one slot, as one file or as several near the target size."""

    def __init__(self, job: WriteJob, slot: Slot) -> None:
        self._job, self._slot = job, slot
        self._buffer: list[pa.Table] = []
        self._rows = self._bytes = 0
        self._writer: FileWriter | None = None
        self._sink: OutputStream | None = None
        self._path = ""
        self._tuples: Counter[Tuple] = Counter()
        self._with_nan: frozenset[int] = frozenset()  # columns that have held NaN in this slot
        self._floats = FloatColumns(self._with_nan)
        self._tally = Tally()
        self.files: list[WrittenFile] = []

    def add(self, table: pa.Table) -> None:
        """More rows."""
        self._buffer.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> list[WrittenFile]:
        """Finish the last file; all files of the slot."""
        self._flush()
        self._finish()
        return self.files

    def discard(self) -> None:
        """Remove everything that was written; a stream that is left open would write its file again at the end."""
        if self._writer is not None:
            self._writer.abandon()
        with suppress(*CLIENT_ERRORS):  # what it could not write is thrown away
            if self._sink is not None:
                self._sink.close()
        for path in [*(file.path for file in self.files), self._path]:
            if path:
                delete_quietly(self._job.io, path)

    def _flush(self) -> None:
        if not self._rows:
            return
        table = pa.concat_tables(self._buffer)
        self._buffer, self._rows, self._bytes = [], 0, 0
        if self._slot.is_shared:
            self._write_shared(table)
        else:
            self._write(table, None, {})

    def _write_shared(self, table: pa.Table) -> None:
        """Rows by logical partition; a file ends where its record of them would become too long."""
        layout = self._job.layout
        names = [layout.schema.find_column_name(i) for i in layout.logical_ids]
        groups = group_rows([table.column(name).combine_chunks() for name in names], table.num_rows)
        table, of_row = _side_by_side(table, groups)
        begin, tuples, recorded = 0, Counter[Tuple](), sum(map(record_size, self._tuples))
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(of_row)) + 1).tolist(), len(of_row)]):
            values = groups.tuples[of_row[start]]
            size = 0 if values in self._tuples or values in tuples else record_size(values)
            if size and recorded and recorded + size > layout.record_bytes:
                self._write(table.slice(begin, start - begin), of_row[begin:start], tuples)
                self._finish()
                begin, tuples, recorded = start, Counter(), 0
            tuples[values] += end - start
            recorded += size
        self._write(table.slice(begin), of_row[begin:], tuples)

    def _write(self, table: pa.Table, tuple_of_row: npt.NDArray[np.int64] | None, tuples: Mapping[Tuple, int]) -> None:
        if not table.num_rows:
            return
        layout = self._job.layout
        tally = Tally()
        stored = layout.columns_of(table, tally)
        self._count_floats(stored)
        self._tally.add(tally)
        self._tuples.update(tuples)
        writer = self._writer or self._open(layout.files)
        for start, end in pairwise(_row_groups(stored, tuple_of_row)):
            writer.write(stored.slice(start, end - start))
        if self._sink is not None and self._sink.tell() >= self._job.target:
            self._finish()

    def _count_floats(self, stored: pa.Table) -> None:
        """Count what float columns hold; where NaN is new to a column that has statistics, its file ends here."""
        leaves = float_leaves(self._job.layout.written.fields, stored.columns)
        with_nan = self._with_nan | leaves_with_nan(leaves)
        if with_nan != self._with_nan:
            self._finish()
            self._with_nan, self._floats = with_nan, FloatColumns(with_nan)
        self._floats.add(leaves)

    def _open(self, schema: pa.Schema) -> FileWriter:
        folder = self._job.layout.directory(self._slot.partition, self._slot.is_shared)
        name = f"{self._job.id}-{uuid4().hex[:12]}.{self._job.format.name}"
        self._path = "/".join(part for part in (self._job.folder, folder, name) if part)
        self._sink = self._job.io.new_output(self._path).create()
        self._writer = self._job.writer.open(self._sink, schema, self._with_nan)
        return self._writer

    def _finish(self) -> None:
        writer, sink = self._writer, self._sink
        if writer is None or sink is None:
            return
        writer.close()
        size = sink.tell()
        sink.close()
        self.files.append(self._written(writer, size))
        self._writer, self._path, self._tuples, self._tally = None, "", Counter(), Tally()
        self._floats = FloatColumns(self._with_nan)

    def _written(self, writer: FileWriter, size: int) -> WrittenFile:
        statistics = writer.statistics()
        self._floats.complete(statistics, writer, self._job.writer.plan)
        slot, layout = self._slot, self._job.layout
        shredding = self._tally.record(layout.maps) if layout.sidecars else None
        record = ManifestRecord(self._logical_text() if slot.is_shared else None, shredding)
        tuples = tuple(self._tuples) if slot.is_shared else ()
        return WrittenFile(self._path, slot.spec_id, slot.partition, size, statistics, record, tuples)

    def _logical_text(self) -> str | None:
        layout = self._job.layout
        kinds = layout.logical_kinds
        values = [[as_python(v, kind) for v, kind in zip(each, kinds, strict=True)] for each in self._tuples]
        try:
            return encode_logical(layout.logical_ids, kinds, values, rows=list(self._tuples.values()))
        except (OverflowError, ValueError):  # a date that Python's calendar does not have, in a file of older rules
            return None


def _side_by_side(table: pa.Table, groups: Groups) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Rows with those of each tuple side by side, in the order in which the tuples come; and the tuple of each."""
    of_row = groups.of_row
    if np.count_nonzero(np.diff(of_row)) < len(groups.tuples):
        return table, of_row
    first = np.unique(of_row, return_index=True)[1]
    order = np.argsort(first[of_row], kind="stable")
    return table.take(pa.array(order)), of_row[order]


def _row_groups(stored: pa.Table, tuple_of_row: npt.NDArray[np.int64] | None) -> list[int]:
    """Where row groups begin, and the end; in a shared file each has some logical partitions, or a part of one."""
    rows: int = stored.num_rows
    if tuple_of_row is None:
        return [0, rows]
    edges = np.append(np.flatnonzero(np.diff(tuple_of_row)) + 1, rows)
    per_row = max(1, stored.nbytes // rows)
    least = max(1, _SHARED_GROUP_BYTES_PER_COLUMN * _leaves(stored.schema) // per_row)
    starts = [0]
    while starts[-1] < rows:
        edge = int(edges[np.searchsorted(edges, min(rows, starts[-1] + least))])
        starts.append(min(edge, starts[-1] + _SHARED_GROUP_ROWS))
    return starts


def _leaves(fields: Iterable[pa.Field]) -> int:
    """How many columns a file has for some of Arrow's."""
    return sum(_leaves(f.type.field(i) for i in range(f.type.num_fields)) if f.type.num_fields else 1 for f in fields)


def write_slots(
    job: WriteJob, runs: Iterable[tuple[Slot | None, pa.Table]], gathered: int = _GATHERED
) -> list[WrittenFile]:
    """Write rows of one slot after the other; on failure nothing is left.

    Rows without a slot are given one here, so many bytes of them at a time.
    """
    with clear_storage_errors(f"files in {job.folder} cannot be written"):
        return _write_slots(job, runs, gathered)


def _write_slots(job: WriteJob, runs: Iterable[tuple[Slot | None, pa.Table]], gathered: int) -> list[WrittenFile]:
    done: list[WrittenFile] = []
    current: Slot | None = None
    writer: SlotWriter | None = None
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
    bytes_per_row = job.bytes_per_row or measure(job, table)
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


def measure(job: WriteJob, table: pa.Table) -> float:
    """Bytes of a row in a file, by writing some of the rows to memory."""
    sample = table.slice(0, _SAMPLE)
    rows: int = sample.num_rows
    return job.writer.size_of(job.layout.columns_of(sample, Tally())) / max(1, rows)


def discard(io: FileIO, files: Iterable[WrittenFile]) -> None:
    """Remove files that no snapshot will have."""
    for file in files:
        delete_quietly(io, file.path)


def delete_quietly(io: FileIO, path: str) -> None:
    """Remove a file; what cannot be removed now is found by `sweep` later."""
    with suppress(*CLIENT_ERRORS):
        io.delete(path)


def fine_tuples(layout: Layout, files: Iterable[WrittenFile]) -> set[Tuple]:
    """The logical partitions that files hold."""
    tuples: set[Tuple] = set()
    for file in files:
        if file.spec_id == layout.fine.spec_id and not file.tuples:
            tuples.add(file.partition)
        tuples.update(layout.fine_tuple(file.partition, logical) for logical in file.tuples)
    return tuples
