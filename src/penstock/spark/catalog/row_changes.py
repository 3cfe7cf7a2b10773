"""Statements that change rows: INSERT, DELETE, TRUNCATE, UPDATE, MERGE and overwriting, from Spark's plan to a commit.

The condition of a DELETE arrives as Catalyst's expression. Where Penstock can evaluate it exactly, files are planned
and rewritten as `table.delete(…)` does it. Otherwise, for subqueries and functions that only Spark knows, Spark finds
the files that have matching rows and computes the rows that stay. For UPDATE and MERGE see `computed_changes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import EvaluationError, LakeError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.sql_text import quote_name
from penstock.expr.tree import Expr
from penstock.lake.write.writes import prepare, produce, replace_files
from penstock.spark.catalog.computed_changes import FILE, change_computed, paths_of
from penstock.spark.scan.translate import translate
from penstock.tables.iceberg.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.managed_table import ManagedTable
    from penstock.tables.source import Source

_MATCHES = "matches the condition"  # a column of the rows of a DELETE, which EXPLAIN shows


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
        if statement["kind"] == "delete":
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
    from pyspark.sql import functions as F

    kind = rows.schema[_MATCHES].dataType.simpleString()
    if kind not in ("boolean", "void"):  # void: the condition is NULL
        raise LakeError(f"DELETE FROM {table.name}: {statement['text']} is a {kind}", hint="write a condition")
    condition = _condition(table, statement)
    if condition is not None:
        try:
            table.delete(condition)
            return
        except EvaluationError:  # for some values, such as upper('é'), of which Spark knows more
            pass
    matches = F.coalesce(F.col(_MATCHES).cast("boolean"), F.lit(False))
    urls = [row[0] for row in rows.where(matches).select(FILE).distinct().collect()]
    if not urls:
        return
    staying = rows.where(F.col(FILE).isin(urls)).where(~matches)
    columns = [F.col(quote_name(name)) for name in loaded.schema.names]  # without hidden ones that the condition names
    written = produce(prepare(loaded), staying.select(*columns))
    replace_files(loaded, frozenset(paths_of(loaded, urls).values()), written, {}, {})


def _condition(table: ManagedTable, statement: Mapping[str, Any]) -> Expr | None:
    """The condition, where it is understood exactly."""
    if statement["where"] is None:
        return None
    expression = translate([json.loads(statement["where"])], table.schema, table.context)
    return None if unevaluable(expression) else expression
