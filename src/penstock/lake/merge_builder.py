"""`table.merge(rows, on="id").when_matched_update().when_not_matched_insert().execute()`

Clauses are tried in the order in which they are given. Conditions and values are SQL expressions: a name is a column of
the table (of the rows, for inserts), `source.name` one of the rows, `target.name` one of the table. These two always
are the sides: a column of the table that is called `source` itself is `target.source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import UUIDType

from penstock.errors import LakeError, SchemaError
from penstock.expr.bind import Context
from penstock.expr.tree import Column, Expr
from penstock.expr.types import is_nested, normalize, type_name
from penstock.lake.write.assignments import Assignments, condition, field_named
from penstock.lake.write.conform import fits
from penstock.lake.write.merge import SOURCE, Clause, Merge, joined_schema, of_target, source_schema, target_schema
from penstock.lake.write.merge_keys import keys_of
from penstock.lake.write.rows import as_arrow
from penstock.lake.write.write_result import WriteResult
from penstock.tables.iceberg.scan.reader import as_shown

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable

On = str | Sequence[str] | Mapping[str, str]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class ClauseText:
    """A clause as it was given; `kind` is MATCHED, NOT MATCHED or NOT MATCHED BY SOURCE."""

    kind: str
    action: str  # UPDATE, DELETE or INSERT
    values: Values | None
    where: str | None


@dataclass(frozen=True)
class MergeBuilder:
    """A merge that is being put together, returned by `table.merge(…)`; `execute()` does it."""

    table: ManagedTable
    rows: Any
    on: Mapping[str, str]  # the table's column, and that of the rows
    properties: Mapping[str, str]
    clauses: tuple[ClauseText, ...] = ()

    def when_matched_update(self, values: Values | None = None, *, where: str | None = None) -> MergeBuilder:
        """Give rows that are met new values; without `values`, those of all columns that the rows have."""
        return self._with("MATCHED", "UPDATE", values, where)

    def when_matched_delete(self, *, where: str | None = None) -> MergeBuilder:
        """Take away rows that are met."""
        return self._with("MATCHED", "DELETE", None, where)

    def when_not_matched_insert(self, values: Values | None = None, *, where: str | None = None) -> MergeBuilder:
        """Add the rows that meet none; without `values`, with all columns that they have."""
        return self._with("NOT MATCHED", "INSERT", values, where)

    def when_not_matched_by_source_update(self, values: Values, *, where: str | None = None) -> MergeBuilder:
        """Give rows of the table that are not met new values."""
        return self._with("NOT MATCHED BY SOURCE", "UPDATE", values, where)

    def when_not_matched_by_source_delete(self, *, where: str | None = None) -> MergeBuilder:
        """Take away rows of the table that are not met."""
        return self._with("NOT MATCHED BY SOURCE", "DELETE", None, where)

    def execute(self) -> WriteResult:
        """Do it: in one commit, or not at all."""
        if not self.clauses:
            raise LakeError("the merge has no clauses", hint="add .when_matched_update() or .when_not_matched_insert()")
        return self.table._merge(self)

    def _with(self, kind: str, action: str, values: Values | None, where: str | None) -> MergeBuilder:
        return replace(self, clauses=(*self.clauses, ClauseText(kind, action, values, where)))

    def _change(self) -> Merge:
        """The merge over Arrow rows, bound to the table as it is now."""
        data = as_arrow(self.rows)
        rows = data.read_all() if isinstance(data, pa.RecordBatchReader) else data
        schema, context = self.table.schema, self.table.context
        on = {
            field_named(target, schema, "the table").name: field_named(own, rows.schema, "the rows").name
            for target, own in self.on.items()
        }
        source = _typed(rows, schema, on)
        seen = {
            "MATCHED": joined_schema(schema, source.schema),
            "NOT MATCHED": source_schema(source.schema),
            "NOT MATCHED BY SOURCE": target_schema(schema),
        }
        clauses: dict[str, list[Clause]] = {kind: [] for kind in seen}
        for each in self.clauses:
            clauses[each.kind].append(_bound(each, seen[each.kind], source.schema, schema, context))
        keys = keys_of(_same_texts(source, on, self.table.version.columns.schema), list(on.items()))
        return Merge(source, keys, schema, context, *(tuple(each) for each in clauses.values()))


def _bound(clause: ClauseText, rows: pa.Schema, source: pa.Schema, schema: pa.Schema, context: Context) -> Clause:
    """A clause over `rows`, what it sees."""
    where = None if clause.where is None else condition(clause.where, rows, context)
    assignments = None
    if clause.values is not None:
        assignments = Assignments.of(clause.values, schema, rows, context)
    elif clause.action != "DELETE":
        assignments = _all_columns(source, schema, context.timezone)
    if clause.kind != "NOT MATCHED BY SOURCE":
        return Clause(where, assignments)
    if assignments is not None:
        values = {name: of_target(v) if isinstance(v, Expr) else v for name, v in assignments.values.items()}
        assignments = replace(assignments, values=values)
    return Clause(None if where is None else of_target(where), assignments)


def key_columns(on: On) -> dict[str, str]:
    """The key columns of the table with those of the rows."""
    pairs = {on: on} if isinstance(on, str) else dict(on) if isinstance(on, Mapping) else {name: name for name in on}
    if not pairs:
        raise LakeError("a merge needs key columns", hint='give on="id", or on=["app", "id"]')
    return pairs


def _typed(rows: pa.Table, schema: pa.Schema, on: Mapping[str, str]) -> pa.Table:
    """Rows of a source in the types that expressions know; keys in those of the table."""
    keys = {own: schema.field(target) for target, own in on.items()}
    columns = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        field_named(field.name, rows.schema, "the rows")  # an error for one that is there twice
        key = keys.get(field.name)
        known = next((each for each in schema if each.name.lower() == field.name.lower()), None)
        wanted = key or known
        kind = (
            wanted.type if wanted is not None and is_same_or_wider(field.type, wanted.type) else normalize(field.type)
        )
        if key is not None:
            check_key(key, field.name, kind)
        shown = as_shown(column.combine_chunks(), kind)
        columns[field.name] = shown if shown.type == kind else shown.cast(kind)
    return pa.table(columns)


def check_key(key: pa.Field, name: str, kind: pa.DataType) -> None:
    """An error for a key of the rows that is of another type, or of one that has no keys."""
    if kind != key.type:
        message = f"the key {key.name} is a {type_name(key.type)}, and {name} of the rows a {type_name(kind)}"
        raise SchemaError(message, hint="cast the rows' column; nothing was written")
    if is_nested(kind):
        message = f"the key {key.name} is a {type_name(kind)}, by which rows are not matched"
        raise SchemaError(message, hint="name columns of plain types, or use MERGE INTO with spark.sql(…)")


def _same_texts(source: pa.Table, on: Mapping[str, str], schema: Schema) -> pa.Table:
    """A source whose uuids are written as the table shows them."""
    for target, own in on.items():
        if isinstance(schema.find_field(target).field_type, UUIDType):
            uuids = pa.array([_uuid(value, own) for value in source.column(own).to_pylist()], pa.string())
            source = source.set_column(source.schema.get_field_index(own), own, uuids)
    return source


def _uuid(value: str | None, name: str) -> str | None:
    try:
        return None if value is None else str(UUID(value))
    except ValueError:
        message = f"{name} of the rows has the value {value!r}, which is no uuid"
        raise SchemaError(message, hint="correct it; nothing was written") from None


def is_same_or_wider(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of the rows is read in the type of the table's column."""
    stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return fits(normalize(kind), wanted) or (stored == pa.binary(16) and wanted == pa.string())


def _all_columns(source: pa.Schema, schema: pa.Schema, zone: str) -> Assignments:
    values: dict[str, Expr | pa.Scalar] = {}
    for field in source:
        target = field_named(field.name, schema, "the table")
        if not fits(field.type, target.type):
            message = f"{target.name} is a {type_name(target.type)} and was given as {type_name(field.type)}"
            raise SchemaError(message, hint="cast the rows' column; nothing was written")
        values[target.name] = Column((SOURCE, field.name), field.type)
    return Assignments(values, schema, zone)
