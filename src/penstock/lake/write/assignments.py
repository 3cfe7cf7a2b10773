"""What rows are given: `{"price": "price * 2", "app": "source.app"}`, evaluated and cast as Spark's assignments are.

A text is an expression; any other value is itself. A value that does not fit its column is an error: numbers are cast
with a check, dates and times to each other, and everything else only where nothing can be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.errors import EvaluationError, LakeError, SchemaError, name_hint
from penstock.expr.bind import Context, bind_text, bind_value
from penstock.expr.kernels.cast import castable
from penstock.expr.kernels.evaluate import short, unevaluable, values_of
from penstock.expr.tree import Cast, Column, Expr, Literal
from penstock.expr.types import is_numeric, type_name
from penstock.lake.write.conform import convert, fits

_USE_SQL = "use UPDATE or MERGE INTO with spark.sql(…), which knows all of Spark's functions"


@dataclass(frozen=True)
class Assignments:
    """A value for each of some columns: an expression over the rows that it is evaluated on."""

    values: Mapping[str, Expr | pa.Scalar]
    schema: pa.Schema = field(repr=False)  # of the table
    zone: str

    @classmethod
    def of(cls, assigned: Mapping[str, Any], target: pa.Schema, rows: pa.Schema, context: Context) -> Assignments:
        """Assignments to columns of a table by expressions over `rows`; an error for what does not fit."""
        if not isinstance(assigned, Mapping) or not assigned:
            raise LakeError("no columns are assigned", hint='give {"column": "expression"}')
        values: dict[str, Expr | pa.Scalar] = {}
        for name, value in assigned.items():
            column = field_named(str(name), target, "the table")
            if column.name in values:
                raise SchemaError(f"column {column.name!r} is assigned twice", hint="give one value")
            values[column.name] = (
                _expression(value, column, rows, context) if isinstance(value, str) else _constant(value, column)
            )
        return cls(values, target, context.timezone)

    def columns(self, rows: pa.Table) -> dict[str, pa.Array]:
        """The values of each column, one for each row, in the table's types."""
        return {name: self._column(value, self.schema.field(name).type, rows) for name, value in self.values.items()}

    def _column(self, value: Expr | pa.Scalar, kind: pa.DataType, rows: pa.Table) -> pa.Array:
        if isinstance(value, Expr):
            return convert(values_of(value, rows, self.zone), kind)
        if not rows.num_rows:  # Arrow repeats a list or a map once or more
            return pa.nulls(0, value.type)
        return pa.repeat(value, rows.num_rows)


def condition(text: str | Expr, rows: pa.Schema, context: Context) -> Expr:
    """A condition over rows; an error where it can be evaluated by Spark only."""
    bound = text if isinstance(text, Expr) else bind_text(text, rows, context)
    return _evaluable(bound)


def _evaluable(bound: Expr) -> Expr:
    why = unevaluable(bound)
    if why is not None:
        raise EvaluationError(f"cannot evaluate {short(bound)}: {why}", hint=_USE_SQL)
    return bound


def field_named(name: str, schema: pa.Schema, where: str) -> pa.Field:
    """The column of this name, in any case; an error when there is none, or several."""
    fields = [field for field in schema if field.name.lower() == name.lower()]
    if len(fields) != 1:
        message = f"no column {name!r} in {where}" if not fields else f"{name!r} may be several columns of {where}"
        raise SchemaError(message, hint=name_hint(name, schema.names))
    return fields[0]


def _expression(text: str, field: pa.Field, rows: pa.Schema, context: Context) -> Expr | pa.Scalar:
    bound = bind_value(text, rows, context)
    if isinstance(bound, Literal) and bound.value is None:
        return pa.scalar(None, field.type)
    if isinstance(bound, Column) and bound.type is not None and fits(bound.type, field.type):
        return bound
    _evaluable(bound)
    assert bound.type is not None
    if fits(bound.type, field.type):
        return bound
    if is_assignable(bound.type, field.type) and castable(bound.type, field.type):
        return Cast(bound, field.type)
    message = f"column {field.name!r} is a {type_name(field.type)}, and {short(bound)} is a {type_name(bound.type)}"
    raise SchemaError(message, hint="cast it: CAST(… AS …); nothing was written")


def is_assignable(from_: pa.DataType, to: pa.DataType) -> bool:
    """Whether Spark casts such a value when it is assigned."""
    if pa.types.is_null(from_):
        return True
    if is_numeric(from_):
        return is_numeric(to) or bool(to == pa.string())
    if pa.types.is_temporal(from_):
        return bool(pa.types.is_temporal(to) or to == pa.string())
    return bool(pa.types.is_boolean(from_) and to == pa.string())


def _constant(value: Any, field: pa.Field) -> pa.Scalar:
    try:
        return pa.scalar(value, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        message = f"column {field.name!r} is a {type_name(field.type)}, which {value!r} does not fit"
        raise SchemaError(message, hint="nothing was written") from None
