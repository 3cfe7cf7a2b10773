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

from penstock.errors import SchemaError
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import as_type, filter_table, read_column
from penstock.expr.kernels.python_values import from_arrow, to_arrow
from penstock.expr.schema import as_schema
from penstock.expr.tree import TRUE, Column, Expr
from penstock.expr.types import is_float
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact
from penstock.prune.judge import Pruner
from penstock.prune.notebook import as_grid
from penstock.prune.ordered_keys import is_comparable
from penstock.prune.plan import Plan, make_plan
from penstock.prune.transform_functions import transform_function
from penstock.tables.partitioning import PartitionField, parse_partition_by
from penstock.tables.table import count_partitions


@dataclass(frozen=True)
class MemoryTable:
    """Arrow rows as a partitioned table in memory; made by `from_rows`."""

    schema: pa.Schema
    fields: tuple[PartitionField, ...]
    files: tuple[pa.Table, ...]
    values: tuple[tuple[Any, ...], ...]
    context: Context

    @staticmethod
    def from_rows(
        rows: pa.Table,
        partition_by: Sequence[str] = (),
        rows_per_file: int = 1_000_000,
        timezone: str = "UTC",
    ) -> MemoryTable:
        """Split rows into files by their partition values, in order of first appearance."""
        schema = as_schema(rows.schema)
        typed = pa.table(
            [as_type(rows.column(i).combine_chunks(), f.type) for i, f in enumerate(schema)], schema=schema
        )
        fields = parse_partition_by(partition_by, schema)
        keys = [_partition_column(typed, field) for field in fields]
        files, values = [], []
        for positions in _groups(keys, typed.num_rows):
            part = typed.take(pa.array(positions))
            key = tuple(from_arrow(column.slice(positions[0], 1))[0] for column in keys)
            for start in range(0, part.num_rows, rows_per_file):
                files.append(part.slice(start, rows_per_file))
                values.append(key)
        table = MemoryTable(schema, fields, tuple(files), tuple(values), Context(timezone))
        _ = table._containers  # measured when written, as a real table's files are
        return table

    def plan(self, where: str | None = None) -> Plan:
        """Which files hold rows that may match."""
        start = time.perf_counter()
        pruner = Pruner(self._bound(where), self.context.timezone)
        judgement = pruner.judge(self._containers)
        return make_plan(pruner, [judgement], time.perf_counter() - start)

    def arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows: kept files only, each filtered by its own residual."""
        plan = self.plan(where)
        kept = [(self.files[int(task.path.removeprefix("memory:"))], task.residual) for task in plan.files]
        parts = [filter_table(residual, file, self.context.timezone) for file, residual in kept]
        found = pa.concat_tables(parts) if parts else self.schema.empty_table()
        return found if columns is None else found.select([self._name(column) for column in columns])

    def _name(self, column: str) -> str:
        fits: list[str] = [name for name in self.schema.names if name.lower() == column.lower()]
        if not fits:
            raise SchemaError(f"no column {column!r}", hint=f"there are: {', '.join(self.schema.names)}")
        return fits[0]

    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""
        (judgement,) = self.plan(where).judgements
        facts = [fact for fact in judgement.containers.facts if isinstance(fact, Exact)]
        keys = [fact.single_values(judgement.kept)[0] for fact in facts]
        assert judgement.containers.sizes is not None
        sizes = judgement.containers.sizes.take(pa.array(judgement.kept))
        return as_grid(count_partitions([field.name for field in self.fields], keys, sizes), self.context.timezone)

    def rows(self) -> pa.Table:
        """All rows, without planning."""
        return pa.concat_tables(self.files) if self.files else self.schema.empty_table()

    def _bound(self, where: str | None) -> Expr:
        return TRUE if where is None else bind_text(where, self.schema, self.context)

    @cached_property
    def _containers(self) -> Containers:
        facts: list[Fact] = [
            Exact(field.term, to_arrow([value[i] for value in self.values], field.type), name=field.name)
            for i, field in enumerate(self.fields)
        ]
        facts += [_bounds(self.files, f.name, f.type) for f in self.schema if is_comparable(f.type)]
        return Containers(
            len(self.files),
            facts,
            names=pa.array([f"memory:{i}" for i in range(len(self.files))]),
            rows=pa.array([file.num_rows for file in self.files], pa.int64()),
            sizes=pa.array([file.nbytes for file in self.files], pa.int64()),
        )


def _partition_column(rows: pa.Table, field: PartitionField) -> pa.Array:
    """The partition value of each row: PyIceberg's transform on the distinct source values."""
    assert field.source.type is not None
    source = read_column(rows, field.source.path, field.source.type)
    if field.transform == "identity":
        return source
    function = transform_function(field.transform, field.source.type)
    assert function is not None
    encoded = source.dictionary_encode()
    results = [function(value) for value in from_arrow(encoded.dictionary)]
    return to_arrow(results, field.type).take(encoded.indices)


def _groups(keys: Sequence[pa.Array], count: int) -> list[npt.NDArray[Any]]:
    """Positions of rows with equal keys, groups in order of first appearance."""
    code = np.zeros(count, np.int64)
    for column in keys:
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        code = np.unique(code * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if count else []
    return sorted(groups, key=lambda positions: int(positions[0]))


def _bounds(files: Sequence[pa.Table], name: str, t: pa.DataType) -> Bounds:
    columns = [read_column(file, (name,), t) for file in files]
    lower, upper = [], []
    for column in columns:
        values = column.filter(pc.invert(pc.is_nan(column))) if is_float(t) else column
        ends = pc.min_max(values)
        lower.append(ends["min"])
        upper.append(ends["max"])
    nans = [pc.sum(pc.is_nan(column)).as_py() or 0 for column in columns] if is_float(t) else None
    return Bounds(
        Column((name,), t),
        pa.array(lower, t) if lower else pa.array([], t),
        pa.array(upper, t) if upper else pa.array([], t),
        null_count=pa.array([column.null_count for column in columns], pa.int64()),
        nan_count=None if nans is None else pa.array(nans, pa.int64()),
        value_count=pa.array([len(column) for column in columns], pa.int64()),
        label=f"bounds of {name}",
    )
