"""MERGE: rows of the table and rows of a source that have the same key meet, and clauses say what becomes of them.

    matched                  a row of the table that a row of the source meets: updated or deleted
    not matched              a row of the source that meets none: inserted
    not matched by source    a row of the table that no row of the source meets: updated or deleted

The first clause of its kind whose condition is true decides; without one, the row stays as it is. A row of the table
that two rows of the source meet is an error before anything is written.

`source` and `target` in expressions are the two sides. A column of the table that has such a name itself is found as
`target.source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, SchemaError
from penstock.expr.bind import Context
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.kernels.physical import mask_of
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import TRUE, And, Column, Expr, Or, fold, rebuild, walk
from penstock.lake.write.assignments import Assignments
from penstock.lake.write.merge_keys import MergeKeys
from penstock.lake.write.removal import columns_in
from penstock.lake.write.row_change import Effect, Places, PlannedChange, RowChange, RowsOfFile, Updates, unfiltered
from penstock.lake.write.update import with_columns
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import plan_files

SOURCE, TARGET = "source", "target"


class Clause(NamedTuple):
    """What becomes of rows for which a condition is true; without assignments they are deleted."""

    condition: Expr | None
    assignments: Assignments | None


@dataclass(frozen=True)
class Merge(RowChange):
    """A merge of a source, whose columns have the table's types where they have its names."""

    source: pa.Table = field(repr=False)
    keys: MergeKeys
    schema: pa.Schema = field(repr=False)  # of the table
    context: Context
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    by_source: tuple[Clause, ...] = ()
    also: Expr | None = field(default=None, kw_only=True)  # what else is true of two rows that meet

    def validate(self, table: IcebergTable) -> None:
        """An error when a row of the table is met by several rows of the source."""
        if not self.matched or not len(self.keys.repeated):
            return
        reader = Reader(table.version, table.sources.io, table.context.timezone)
        rows_with = np.isin(self.keys.codes, self.keys.repeated)
        for task in _files(table, self.keys.predicate(rows_with)):
            rows, _ = reader.numbered(task, self.keys.names)
            several = np.isin(self.keys.meet(rows), self.keys.repeated)
            if several.any():
                key = rows.select(self.keys.names).filter(pa.array(several)).slice(0, 1).to_pylist()[0]
                values = ", ".join(f"{name} = {value!r}" for name, value in key.items())
                message = f"a row of {table.name} is met by several of the rows ({values})"
                raise LakeError(message, hint="give one row for each key; nothing was written")

    def find(self, table: IcebergTable) -> PlannedChange:
        """The files that may have a row that the source meets, or that a clause of the third kind is about."""
        predicate = self._predicate()
        if self.by_source:
            about = [TRUE if clause.condition is None else clause.condition for clause in self.by_source]
            predicate = TRUE if TRUE in about else Or((predicate, *about))
        return PlannedChange(partial=_files(table, predicate))

    @property
    def assigned(self) -> Sequence[str]:
        """Those that a clause assigns."""
        clauses = [each.assignments for each in (*self.matched, *self.by_source) if each.assignments is not None]
        return list(dict.fromkeys(name for assignments in clauses for name in assignments.values))

    def first_columns(self) -> Sequence[str]:
        """The keys, and what clauses of the third kind ask for."""
        about = [clause.condition for clause in self.by_source if clause.condition is not None]
        names = dict.fromkeys([*self.keys.names, *columns_in(*about), *self._columns_of_also()])
        return list(names)

    def glance(self, rows: pa.Table) -> Effect | None:
        """No row is met, or no clause is about those that are."""
        codes = self._meet(rows)
        met = codes >= 0
        if (self.matched and met.any()) or (self.by_source and self._is_about(rows.filter(pa.array(~met)))):
            return None
        return Effect(np.zeros(rows.num_rows, np.bool_), matched=np.unique(codes[met]))

    def effect(self, rows: pa.Table, file: RowsOfFile) -> Effect:
        """What the clauses make of the rows of a file."""
        codes = self._meet(rows)
        met = np.flatnonzero(codes >= 0)
        work = _Work(rows, self.context.timezone)
        if self.matched and len(met):
            source = self.source.take(pa.array(self.keys.source_rows(codes[met])))
            work.decide(self.matched, met, _joined(rows.take(pa.array(met)), source))
        if self.by_source:
            alone = np.flatnonzero(codes < 0)
            work.decide(self.by_source, alone, rows.take(pa.array(alone)))
        return Effect(work.removed, work.updates, np.unique(codes[met]))

    def inserts(self, matched: Places) -> Sequence[pa.Table]:
        """The rows of the source that met none, as the clauses want them."""
        alone = self.source.filter(pa.array(~np.isin(self.keys.codes, matched)))
        rows, parts = _rows_beside(alone, {SOURCE: alone}), []
        for clause in self.not_matched:
            chosen = _chosen(clause, rows, self.context.timezone)
            taken, rows = rows.filter(pa.array(chosen)), rows.filter(pa.array(~chosen))
            assert clause.assignments is not None
            columns = clause.assignments.columns(taken)
            missing = {each.name: pa.nulls(taken.num_rows, each.type) for each in self.schema}
            parts.append(pa.table({name: columns.get(name, nulls) for name, nulls in missing.items()}))
        return [part for part in parts if part.num_rows]

    def _meet(self, rows: pa.Table) -> Places:
        """The number of the key that each row meets; -1 where it meets none."""
        codes = self.keys.meet(rows)
        met = np.flatnonzero(codes >= 0)
        if self.also is not None and len(met):
            source = self.source.take(pa.array(self.keys.source_rows(codes[met])))
            sides = _joined(rows.take(pa.array(met)), source)
            codes[met[~mask_of(filter_mask(self.also, sides, self.context.timezone))]] = -1
        return codes

    def _predicate(self) -> Expr:
        """What rows of the table that are met fulfil."""
        parts = self.also.children if isinstance(self.also, And) else () if self.also is None else (self.also,)
        alone = [of_target(part) for part in parts if _sides_in(part) == {TARGET}]
        return And((self.keys.predicate(), *alone)) if alone else self.keys.predicate()

    def _columns_of_also(self) -> Sequence[str]:
        columns = [] if self.also is None else [node for node in walk(self.also) if isinstance(node, Column)]
        return [column.path[1] for column in columns if column.path[0] == TARGET and len(column.path) > 1]

    def _is_about(self, rows: pa.Table) -> bool:
        return any(_chosen(clause, rows, self.context.timezone).any() for clause in self.by_source)


@dataclass
class _Work:
    """What clauses make of the rows of one file."""

    rows: pa.Table
    zone: str
    places: list[Places] = field(default_factory=list)
    values: list[pa.Table] = field(default_factory=list)

    @cached_property
    def removed(self) -> Mask:
        """The rows that go."""
        return np.zeros(self.rows.num_rows, np.bool_)

    @property
    def updates(self) -> Updates | None:
        """The rows that get new values, in their order."""
        if not self.places:
            return None
        places = np.concatenate(self.places)
        order = np.argsort(places, kind="stable")
        return Updates(places[order], pa.concat_tables(self.values).take(pa.array(order)))

    def decide(self, clauses: Sequence[Clause], places: Places, rows: pa.Table) -> None:
        """Put each of some rows under the first clause that is about it."""
        for clause in clauses:
            chosen = _chosen(clause, rows, self.zone)
            here, taken = places[chosen], rows.filter(pa.array(chosen))
            places, rows = places[~chosen], rows.filter(pa.array(~chosen))
            if clause.assignments is None:
                self.removed[here] = True
            elif len(here):
                old = self.rows.take(pa.array(here))
                self.places.append(here)
                self.values.append(with_columns(old, clause.assignments.columns(taken)))


def joined_schema(table: pa.Schema, source: pa.Schema) -> pa.Schema:
    """What matched clauses see: the table's columns by name, and both sides by `target.` and `source.`"""
    return _schema_beside(table, {TARGET: table, SOURCE: source})


def source_schema(source: pa.Schema) -> pa.Schema:
    """What expressions of inserts see."""
    return _schema_beside(source, {SOURCE: source})


def target_schema(table: pa.Schema) -> pa.Schema:
    """What clauses of the third kind see; they are evaluated on the table's own rows (`of_target`)."""
    return _schema_beside(pa.schema([field for field in table if field.name.lower() != SOURCE]), {TARGET: table})


def of_target(expression: Expr) -> Expr:
    """An expression over `target_schema` as one over the table's own columns."""

    def visit(node: Expr, children: tuple[Expr, ...]) -> Expr:
        if isinstance(node, Column) and node.path[0] == TARGET:
            if len(node.path) == 1:
                raise SchemaError("target is a row, not a value", hint="name one of its columns: target.name")
            return Column(node.path[1:], node.type, at=node.at)
        return rebuild(node, children)

    return fold(expression, visit)


def _joined(rows: pa.Table, source: pa.Table) -> pa.Table:
    return _rows_beside(rows, {TARGET: rows, SOURCE: source})


def _schema_beside(own: pa.Schema, sides: dict[str, pa.Schema]) -> pa.Schema:
    """Columns, and the sides as structs; a side hides a column of its name."""
    structs = [pa.field(name, pa.struct(list(schema))) for name, schema in sides.items()]
    return pa.schema([*(field for field in own if field.name.lower() not in sides), *structs])


def _rows_beside(own: pa.Table, sides: dict[str, pa.Table]) -> pa.Table:
    schema = _schema_beside(own.schema, {name: rows.schema for name, rows in sides.items()})
    columns = {name: _as_struct(rows, schema.field(name).type) for name, rows in sides.items()}
    return pa.table([columns[f.name] if f.name in sides else own.column(f.name) for f in schema], schema=schema)


def _as_struct(rows: pa.Table, kind: pa.StructType) -> pa.StructArray:
    columns = [column.combine_chunks() for column in rows.columns]
    if not columns:
        return pa.array([{}] * rows.num_rows, kind)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def _chosen(clause: Clause, rows: pa.Table, zone: str) -> Mask:
    if clause.condition is None:
        return np.ones(rows.num_rows, np.bool_)
    return mask_of(filter_mask(clause.condition, rows, zone))


def _sides_in(expression: Expr) -> set[str]:
    return {node.path[0] for node in walk(expression) if isinstance(node, Column)}


def _files(table: IcebergTable, predicate: Expr) -> tuple[FileTask, ...]:
    pruner = Pruner(predicate, table.context.timezone, whole_by_laws=False)
    return tuple(unfiltered(task) for task in plan_files(table.version, table.sources, pruner).files)
