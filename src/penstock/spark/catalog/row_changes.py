"""Statements that change rows: INSERT, DELETE, TRUNCATE, UPDATE, MERGE and overwriting, from Spark's plan to a commit.

The condition of a DELETE arrives as Catalyst's expression. Where Penstock can evaluate it exactly, files are planned
and rewritten as `table.delete(…)` does it. Otherwise, for subqueries and functions that only Spark knows, Spark says
which rows go, as it does for UPDATE and MERGE (`computed_changes.py`). A MERGE that only inserts is an INSERT to Spark,
of rows that an anti join with the table has chosen; it is computed again, too, when others change the table meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import EvaluationError, LakeError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.tree import Expr
from penstock.lake.write.writes import add_computed
from penstock.spark.catalog.computed_changes import change_computed
from penstock.spark.scan.translate import translate
from penstock.tables.iceberg.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.managed_table import ManagedTable
    from penstock.tables.source import Source


def change_rows(
    table: ManagedTable, loaded: Source, mode: str, statement: Mapping[str, Any] | None, rows: DataFrame
) -> None:
    """Execute one statement on a table; `loaded` is the version that Spark computes the rows from."""
    if statement is None:
        table.append(rows) if mode == "append" else table.overwrite(rows)
    elif statement["kind"] == "dynamic":
        table.overwrite(rows, dynamic=True)
    elif statement["kind"] == "overwrite":
        _overwrite(table, statement, rows)
    else:
        assert isinstance(loaded, IcebergTable)
        if statement["kind"] == "insert":
            add_computed(loaded, rows)
        elif statement["kind"] == "delete":
            _delete(table, loaded, statement, rows)
        else:
            change_computed(loaded, rows, statement["kind"], {})


def _overwrite(table: ManagedTable, statement: Mapping[str, Any], rows: DataFrame) -> None:
    condition = _condition(table, statement)
    if condition is None:
        message = f"cannot replace the rows of {table.name} where {statement['text']}"
        raise LakeError(message, hint="compare columns with literals, or use DELETE and INSERT")
    table.overwrite(rows, condition)


def _delete(table: ManagedTable, loaded: IcebergTable, statement: Mapping[str, Any], rows: DataFrame) -> None:
    condition = _condition(table, statement)
    if condition is not None:
        try:
            table.delete(condition)
            return
        except EvaluationError:  # for some values, such as upper('é'), of which Spark knows more
            pass
    change_computed(loaded, rows, "delete", {})


def _condition(table: ManagedTable, statement: Mapping[str, Any]) -> Expr | None:
    """The condition, where it is understood exactly."""
    if statement["where"] is None:
        return None
    expression = translate([json.loads(statement["where"])], table.schema, table.context)
    return None if unevaluable(expression) else expression
