"""A table whose files are Arrow tables in memory, partitioned and measured like a real one.

It is the smallest thing that has everything pruning works on: partition values of any transform, bounds and counts of
every column, and a list of files. The demo shows the core with it, and tests use it where a disk would only be
slower.

>>> rows = pa.table({"app": ["a", "a", "b"], "n": [1, 2, 3]})
>>> table = MemoryTable.from_rows(rows, partition_by=["app"])
>>> table.plan("app = 'a' AND n > 1").report.files.kept
1
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LakeError
from penstock.expr.bind import Context
from penstock.expr.kernels.evaluate import as_type, read_column
from penstock.expr.kernels.physical import row_codes
from penstock.expr.schema import as_schema
from penstock.expr.tree import Column, Expr
from penstock.expr.types import is_float
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact
from penstock.prune.judge import Pruner
from penstock.prune.ordered_keys import is_comparable
from penstock.prune.plan import Plan, make_plan
from penstock.prune.transform_functions import iceberg_type
from penstock.prune.transforms import transform_of
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables.description import Description, Pieces, pieces_of_files
from penstock.tables.file_metadata import metadata_facts
from penstock.tables.partitioning import PartitionField, parse_partition_by
from penstock.tables.source import Relations, Source, bind, count_partitions, empty, matching_rows, outputs

_SCHEME = "memory:"


@dataclass(frozen=True, repr=False)
class MemoryTable(Source):
    """Arrow rows as a partitioned table in memory; made by `from_rows`."""

    file_schema: pa.Schema
    fields: tuple[PartitionField, ...]
    files: tuple[pa.Table, ...]
    values: tuple[pa.Array, ...]  # of each field, for each file

    @staticmethod
    def from_rows(
        rows: pa.Table, partition_by: Sequence[str] = (), rows_per_file: int = 1_000_000, timezone: str = "UTC"
    ) -> MemoryTable:
        """Split rows into files by their partition values, in order of first appearance."""
        schema = as_schema(rows.schema)
        columns = [as_type(rows.column(i).combine_chunks(), f.type) for i, f in enumerate(schema)]
        typed = pa.table(columns, schema=schema)
        fields = parse_partition_by(partition_by, schema)
        keys = [_partition_column(typed, field) for field in fields]
        files: list[pa.Table] = []
        firsts: list[int] = []  # the first row of the group that each file is of
        for positions in _groups(keys, typed.num_rows):
            part = typed.take(pa.array(positions))
            files += [part.slice(start, rows_per_file) for start in range(0, part.num_rows, rows_per_file)]
            firsts += [positions[0]] * (len(files) - len(firsts))
        values = tuple(column.take(pa.array(firsts, pa.int64())) for column in keys)
        table = MemoryTable(schema, fields, tuple(files), values, context=Context(timezone))
        _ = table._containers  # measured when written, as a real table's files are
        return table

    @property
    def schema(self) -> pa.Schema:
        """The columns with their normalized types."""
        return self.file_schema

    def plan(self, where: str | Expr | None = None, *, path: str | None = None) -> Plan:
        """Which files hold rows that may match; `path` is a LIKE pattern that the file's name must match."""
        start = time.perf_counter()
        pruner = Pruner(bind(self, where, path), self.context.timezone)
        judgement = pruner.judge(self._containers)
        return make_plan(pruner, [judgement], time.perf_counter() - start)

    def arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows: kept files only, each filtered by its own residual."""
        names, keys = outputs(columns, self)
        zone = self.context.timezone
        parts = [
            matching_rows(self.files[int(task.path.removeprefix(_SCHEME))], task.residual, names, keys, zone)
            for task in self.plan(where).files
        ]
        return pa.concat_tables(parts) if parts else empty(names, keys, self.schema)

    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""
        return count_partitions(self.plan(where), [field.name for field in self.fields], self.context.timezone)

    def relations(self) -> Relations:
        """An error: Spark reads files."""
        raise LakeError(f"{self!r} has no files for Spark", hint="use table.arrow(), or spark.createDataFrame(…)")

    def feed(self, options: StreamOptions) -> Feed:
        """An error: nothing is ever added to the rows."""
        raise LakeError(f"{self!r} never changes, so it cannot be streamed", hint="use table.arrow()")

    def describe(self) -> Description:
        return MemoryDescription(self)

    def rows(self) -> pa.Table:
        """All rows, without planning."""
        return pa.concat_tables(self.files) if self.files else self.schema.empty_table()

    @cached_property
    def _containers(self) -> Containers:
        pairs = zip(self.fields, self.values, strict=True)
        facts: list[Fact] = [Exact(field.term, values, name=field.name) for field, values in pairs]
        facts += [_bounds(self.files, f.name, f.type) for f in self.schema if is_comparable(f.type)]
        names = [f"{_SCHEME}{i}" for i in range(len(self.files))]
        sizes = pa.array([file.nbytes for file in self.files], pa.int64())
        return Containers(
            len(self.files),
            [*facts, *metadata_facts(names, sizes)],
            names=pa.array(names, pa.string()),
            rows=pa.array([file.num_rows for file in self.files], pa.int64()),
            sizes=sizes,
        )


class MemoryDescription(Description):
    """Rows in memory, described."""

    kind = "Table in memory"
    no_advice = "Advice is for tables of a catalog; this one is in memory."

    def __init__(self, table: MemoryTable) -> None:
        super().__init__(_SCHEME, _SCHEME, [str(field.term) for field in table.fields])
        self._table = table

    @cached_property
    def pieces(self) -> Pieces:
        return pieces_of_files([self._table._containers], self._table.context.timezone)


def _partition_column(rows: pa.Table, field: PartitionField) -> pa.Array:
    """The partition value of each row, by PyIceberg's transforms."""
    assert field.source.type is not None
    source = read_column(rows, field.source.path, field.source.type)
    if field.transform == "identity":
        return source
    kind = iceberg_type(field.source.type)
    assert kind is not None
    return transform_of(field.transform).on_array(source, kind).cast(field.type)


def _groups(keys: Sequence[pa.Array], count: int) -> list[npt.NDArray[Any]]:
    """Positions of rows with equal keys, groups in order of first appearance."""
    code = row_codes(keys, count)
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if count else []
    return sorted(groups, key=lambda positions: int(positions[0]))


def _bounds(files: Sequence[pa.Table], name: str, t: pa.DataType) -> Bounds:
    columns = [read_column(file, (name,), t) for file in files]
    values = [column.filter(pc.invert(pc.is_nan(column))) for column in columns] if is_float(t) else columns
    nans = [len(c) - c.null_count - len(v) for c, v in zip(columns, values, strict=True)] if is_float(t) else None
    ends = [pc.min_max(each) for each in values]
    return Bounds(
        Column((name,), t),
        pa.array([each["min"] for each in ends], t),
        pa.array([each["max"] for each in ends], t),
        null_count=pa.array([column.null_count for column in columns], pa.int64()),
        nan_count=None if nans is None else pa.array(nans, pa.int64()),
        value_count=pa.array([len(column) for column in columns], pa.int64()),
        label=f"bounds of {name}",
    )
