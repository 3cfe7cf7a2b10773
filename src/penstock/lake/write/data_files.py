"""Data files: rows in, files out, with everything that a manifest says of a file collected on the way.

A job is all that a task needs, on whatever machine it runs. Which rows go to which file is decided before
(`arrangement.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.io import FileIO, OutputStream

from penstock.errors import CLIENT_ERRORS, LakeError
from penstock.formats.file_format import FileWriter, TableWriter, WrittenFormat
from penstock.formats.format_registry import DEFAULT, WRITTEN, written_format
from penstock.formats.manifest_record import ManifestRecord, encode_logical, record_size
from penstock.lake.layout.coalesce import as_python
from penstock.lake.layout.grouping import Groups, group_rows
from penstock.lake.layout.slots import Slot
from penstock.lake.layout.table_layout import Layout, Tuple
from penstock.lake.write.conform import conform
from penstock.lake.write.float_columns import FloatColumns, float_leaves, leaves_with_nan
from penstock.maps.shredding import record_of

_FORMAT = "write.format.default"
_GROUP_ROWS, _GROUP_BYTES = 500_000, 128 << 20
# Row groups of shared files are small and begin where a logical partition does: a query of one reads few others' rows.
_SHARED_GROUP_ROWS, _SHARED_GROUP_BYTES_PER_COLUMN = 65_536, 512 << 10
_SAMPLE = 20_000


def file_format(properties: Mapping[str, str]) -> WrittenFormat:
    """The format of a table's new files; an error for one that is not written."""
    name = properties.get(_FORMAT, DEFAULT.name)
    known = written_format(name)
    if known is None:
        what = f"{_FORMAT} is {name!r}, and only {' or '.join(each.title for each in WRITTEN)} is written"
        raise LakeError(what, hint=f"set {_FORMAT} to {DEFAULT.name}, or remove it")
    return known


def target_size(properties: Mapping[str, str]) -> int:
    """The size that a table's files should have."""
    return int(properties.get("write.target-file-size-bytes", 512 << 20))


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
    check: Callable[[pa.Table], None] | None = field(default=None, repr=False)  # raises for rows that may not go in
    id: str = field(default_factory=lambda: uuid4().hex)

    def expected(self, tuples: Sequence[Tuple], sizes: Sequence[float]) -> list[float]:
        """What logical partitions will hold in the table when rows of these sizes are written."""
        if self.known_is_all:
            return [self.known.get(fine, size) for fine, size in zip(tuples, sizes, strict=True)]
        return [self.known.get(fine, 0) + size for fine, size in zip(tuples, sizes, strict=True)]

    def again(self) -> WriteJob:
        """The job for rows that the table has already: what another engine wrote is not refused."""
        return replace(self, layout=replace(self.layout, last_wins=True), check=None)

    def conform(self, rows: pa.Table) -> pa.Table:
        """Rows as files have them; an error for those that may not be written."""
        conformed = conform(rows, self.layout)
        if self.check is not None:
            self.check(conformed)
        return conformed

    @cached_property
    def writer(self) -> TableWriter:
        """How new files are written."""
        return file_format(self.properties).table_writer(self.layout.written, self.properties)

    @property
    def target(self) -> int:
        """The size that files should have."""
        return target_size(self.properties)

    def measure(self, rows: pa.Table) -> float:
        """Bytes of a row in a file, by writing some of the rows to memory."""
        sample = rows.slice(0, _SAMPLE)
        return self.writer.size_of(self.layout.columns_of(sample)[0]) / max(1, int(sample.num_rows))


@dataclass(frozen=True)
class WrittenFile:
    """A data file that no snapshot has yet."""

    path: str
    spec_id: int
    partition: Tuple
    bytes: int
    statistics: Mapping[str, Any] = field(repr=False)
    record: ManifestRecord = field(default=ManifestRecord(), repr=False)
    logical: Sequence[Tuple] = field(default=(), repr=False)  # the fine tuples that it holds
    is_delete: bool = False  # it names rows of data files that are gone

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.statistics["record_count"])


@dataclass
class _OpenFile:
    """A file that is being written, and what was seen of its rows."""

    path: str
    sink: OutputStream
    floats: FloatColumns
    writer: FileWriter | None = None
    tuples: Counter[Tuple] = field(default_factory=Counter)  # of a shared file: rows by logical tuple
    inexact: set[int] = field(default_factory=set)  # sidecars that do not tell whether their key is there


class SlotWriter:
    """Writes the rows of one slot, as one file or as several near the target size."""

    def __init__(self, job: WriteJob, slot: Slot) -> None:
        self._job, self._slot = job, slot
        self._buffer: list[pa.Table] = []
        self._rows = self._bytes = 0
        self._file: _OpenFile | None = None
        self._with_nan: frozenset[int] = frozenset()  # columns that have held NaN in this slot
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
        file = self._file
        if file is not None:
            if file.writer is not None:
                file.writer.abandon()
            with suppress(*CLIENT_ERRORS):  # what it could not write is thrown away
                file.sink.close()
            delete_quietly(self._job.io, file.path)
        discard(self._job.io, self.files)

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
        known = self._file.tuples if self._file is not None else Counter[Tuple]()
        begin, tuples, recorded = 0, Counter[Tuple](), sum(map(record_size, known))
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(of_row)) + 1).tolist(), len(of_row)]):
            values = groups.tuples[of_row[start]]
            size = 0 if values in known or values in tuples else record_size(values)
            if size and recorded and recorded + size > layout.record_bytes:
                self._write(table.slice(begin, start - begin), of_row[begin:start], tuples)
                self._finish()
                begin, tuples, recorded, known = start, Counter(), 0, Counter()
            tuples[values] += end - start
            recorded += size
        self._write(table.slice(begin), of_row[begin:], tuples)

    def _write(self, table: pa.Table, tuple_of_row: npt.NDArray[np.int64] | None, tuples: Mapping[Tuple, int]) -> None:
        if not table.num_rows:
            return
        layout = self._job.layout
        stored, inexact = layout.columns_of(table)
        leaves = float_leaves(layout.written.fields, stored.columns)
        with_nan = self._with_nan | leaves_with_nan(leaves)
        if with_nan != self._with_nan:  # whether a column has statistics is a property of a whole file
            self._finish()
            self._with_nan = with_nan
        file = self._file if self._file is not None else self._open()
        file.floats.add(leaves)
        file.inexact |= inexact
        file.tuples.update(tuples)
        assert file.writer is not None
        for start, end in pairwise(_row_groups(stored, tuple_of_row)):
            file.writer.write(stored.slice(start, end - start))
        if file.sink.tell() >= self._job.target:
            self._finish()

    def _open(self) -> _OpenFile:
        job = self._job
        folder = job.layout.directory(self._slot.partition, self._slot.is_shared)
        name = f"{job.id}-{uuid4().hex[:12]}.{file_format(job.properties).name}"
        path = "/".join(part for part in (job.folder, folder, name) if part)
        self._file = file = _OpenFile(path, job.io.new_output(path).create(), FloatColumns(self._with_nan))
        file.writer = job.writer.open(file.sink, job.layout.files, self._with_nan)
        return file

    def _finish(self) -> None:
        file = self._file
        if file is None or file.writer is None:
            return
        file.writer.close()
        size = file.sink.tell()
        file.sink.close()
        self.files.append(self._written(file, file.writer, size))
        self._file = None

    def _written(self, file: _OpenFile, writer: FileWriter, size: int) -> WrittenFile:
        slot, layout, statistics = self._slot, self._job.layout, writer.statistics()
        file.floats.complete(statistics, writer, self._job.writer.plan)
        shredding = record_of(layout.maps, file.inexact) if layout.sidecars else None
        if not slot.is_shared:
            record, logical = ManifestRecord(None, shredding), [slot.partition]
        else:
            record = ManifestRecord(self._logical_text(file.tuples), shredding)
            logical = [layout.fine_tuple(slot.partition, values) for values in file.tuples]
        return WrittenFile(file.path, slot.spec_id, slot.partition, size, statistics, record, logical)

    def _logical_text(self, tuples: Counter[Tuple]) -> str | None:
        layout = self._job.layout
        kinds = layout.logical_kinds
        values = [[as_python(v, kind) for v, kind in zip(each, kinds, strict=True)] for each in tuples]
        try:
            return encode_logical(layout.logical_ids, kinds, values, rows=list(tuples.values()))
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


def discard(io: FileIO, files: Iterable[WrittenFile]) -> None:
    """Remove files that no snapshot will have."""
    for file in files:
        delete_quietly(io, file.path)


def delete_quietly(io: FileIO, path: str) -> None:
    """Remove a file; what cannot be removed now is found by `sweep` later."""
    with suppress(*CLIENT_ERRORS):
        io.delete(path)
