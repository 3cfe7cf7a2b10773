"""MERGE in SQL of few rows: done as a merge of Arrow rows, since a join in Spark takes ten times as long.

`MergeParts.java` takes the statement apart. What its conditions and values compute of the source alone has been
computed by Spark, as columns of the rows that arrive; what they compute of the table's columns is evaluated here, where
that is exact. Everything else is left to Spark: what is not understood, a value for which Spark would raise an error,
and rows of the table that several rows of the source meet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import EvaluationError, LakeError, SchemaError
from penstock.expr.bind import Context
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.tree import And, Expr
from penstock.expr.types import is_nested, normalize
from penstock.lake.write.assignments import Assignments
from penstock.lake.write.conform import fits
from penstock.lake.write.merge import SOURCE, TARGET, Clause, Merge
from penstock.lake.write.merge_keys import keys_of
from penstock.lake.write.row_change import FilesRead, all_files
from penstock.lake.write.writes import change_once, prepare
from penstock.spark.catalog.computed_changes import REMOVED
from penstock.spark.scan.translate import translate_value
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import as_shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Parts = Mapping[str, Any]


class _NotHere(Exception):
    """Something that Spark has to do."""


@dataclass(frozen=True)
class StatedMerge(Merge):
    """A merge that a statement of SQL has asked for."""

    @property
    def is_append(self) -> bool:
        """One that only inserts is an INSERT to Spark, and to streams."""
        return not self.matched

    def validate(self, table: IcebergTable) -> None:
        """Rows that are met several times are left to Spark, which has its own rules of when they are an error."""
        try:
            super().validate(table)
        except LakeError:
            raise _NotHere from None

    def files_read(self, table: IcebergTable) -> FilesRead:
        """All files: the source may have read the table, too."""
        return all_files(table)


@dataclass(frozen=True)
class FewRows:
    """A statement that is understood; its rows are still to be fetched."""

    base: IcebergTable
    source: pa.Schema
    keys: Sequence[tuple[str, str]]
    matched: tuple[Clause, ...]
    not_matched: tuple[Clause, ...]
    also: Expr | None

    @classmethod
    def of(cls, base: IcebergTable, parts: Parts, source: pa.Schema) -> FewRows | None:
        """None where the statement is left to Spark."""
        sides = pa.schema([pa.field(TARGET, pa.struct(list(base.schema))), pa.field(SOURCE, pa.struct(list(source)))])
        try:
            return cls(
                base,
                source,
                _keys(parts["keys"], base.schema, source),
                tuple(_clause(each, base, sides) for each in parts["matched"]),
                tuple(_clause(each, base, sides) for each in parts["not matched"]),
                _all(tuple(_expression(each, sides, base.context) for each in parts["also"])),
            )
        except _NotHere:
            return None

    def execute(self, rows: DataFrame) -> bool:
        """Merge; False where that is left to Spark after all. `Overtaken` when others changed the table meanwhile."""
        from penstock.spark.write.write_job import nullable_columns

        fetched = rows.select(*nullable_columns(rows).values()).toArrow()
        columns = {
            field.name: as_shown(fetched.column(i).combine_chunks(), field.type) for i, field in enumerate(self.source)
        }
        source = pa.table(columns, schema=self.source)
        base, keys = self.base, keys_of(source, self.keys)
        if self.also is not None and len(keys.repeated):
            return False
        clauses = (self.matched, self.not_matched)
        merge = StatedMerge(source, keys, base.schema, base.context, *clauses, also=self.also)
        try:
            change_once(base, prepare(base), merge, {}, command="merge")
        except (EvaluationError, _NotHere):
            return False
        return True


def _keys(pairs: Sequence[tuple[str, str]], target: pa.Schema, source: pa.Schema) -> Sequence[tuple[str, str]]:
    for own, other in pairs:
        kind = target.field(own).type
        if kind != source.field(other).type or is_nested(kind):
            raise _NotHere
    return [(own, other) for own, other in pairs]


def _clause(clause: Mapping[str, Any], base: IcebergTable, sides: pa.Schema) -> Clause:
    where = None if clause["where"] is None else _expression(clause["where"], sides, base.context)
    if where is not None and where.type != pa.bool_():
        raise _NotHere
    if clause["operation"] == REMOVED:
        return Clause(where, None)
    values = dict[str, Expr]()
    for name, text in clause["values"].items():
        value = _expression(text, sides, base.context)
        if value.type is None or not fits(value.type, base.schema.field(name).type):
            raise _NotHere
        values[name] = value
    return Clause(where, Assignments(values, base.schema, base.context.timezone))


def _expression(text: str, sides: pa.Schema, context: Context) -> Expr:
    bound = translate_value(_with_sides(json.loads(text)), sides, context)
    if bound is None or unevaluable(bound) is not None:
        raise _NotHere
    return bound


def _with_sides(node: dict[str, Any]) -> dict[str, Any]:
    """An expression with the names of `MergeParts.java` as paths: `tapp` is `target.app`, `s0` is `source.s0`."""
    if "column" in node:
        first, *inner = node["column"]
        path = [TARGET, first[1:], *inner] if first[0] == "t" else [SOURCE, first, *inner]
        return {**node, "column": path}
    return {**node, "children": [_with_sides(child) for child in node["children"]]} if "children" in node else node


def _all(conditions: tuple[Expr, ...]) -> Expr | None:
    return And(conditions) if len(conditions) > 1 else conditions[0] if conditions else None


def source_schema(json_schema: str) -> pa.Schema | None:
    """The columns of the source in the types of expressions; None where one has a type that no table has."""
    from pyspark.sql.types import StructType

    from penstock.spark.write.write_job import arrow_schema

    try:
        columns = arrow_schema(StructType.fromJson(json.loads(json_schema)).toNullable())
    except SchemaError:
        return None
    return pa.schema([pa.field(field.name, normalize(field.type)) for field in columns])


def most_rows() -> tuple[int, int]:
    """How many rows, and how many bytes of them, are few."""
    from penstock.spark.write import merge_frames

    return merge_frames._FEW_ROWS, merge_frames._FEW_BYTES
