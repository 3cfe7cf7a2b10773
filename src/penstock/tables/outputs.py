"""What a reader gives back: columns by their names, and keys of maps as SQL writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.errors import PenstockError, SchemaError, name_hint
from penstock.expr.kernels.evaluate import Rows, evaluate, filter_mask, read_terms
from penstock.expr.tree import Expr, IsNull, Lookup, is_term
from penstock.tables.source import Source, bind

Keys = dict[str, Lookup]


def outputs(columns: Sequence[str] | None, table: Source) -> tuple[list[str], Keys]:
    """Columns as the schema spells them, all without any; and those that are keys of maps, `headers['a']`."""
    if isinstance(columns, str):
        raise SchemaError(f"columns takes a list of names, found the text {columns!r}", hint=f"write [{columns!r}]")
    names, keys = [], Keys()
    for column in table.schema.names if columns is None else columns:
        try:
            names.append(column_name(column, table.schema))
        except SchemaError:
            term = _key(column, table)
            if term is None:
                raise
            keys[column] = term
            names.append(column)
    return names, keys


def column_name(column: str, schema: pa.Schema) -> str:
    """A column as the schema spells it; an error with a hint when there is none."""
    name: str | None = next((name for name in schema.names if name.lower() == column.lower()), None)
    if name is None:
        raise SchemaError(f"no column {column!r}", hint=name_hint(column, schema.names))
    return name


def empty(names: Sequence[str], keys: Keys, schema: pa.Schema) -> pa.Table:
    """No rows of these columns."""
    fields = [pa.field(name, keys[name].type) if name in keys else schema.field(name) for name in names]
    return pa.schema(fields).empty_table()


def matching_rows(
    rows: pa.Table, residual: Expr, names: Sequence[str], keys: Keys, zone: str, terms: Rows | None = None
) -> pa.Table:
    """The rows that match, with the columns asked for; `terms` that are known need not be in the rows."""
    for name, term in keys.items():
        values = evaluate(term, read_terms(term, rows, terms), rows.num_rows, zone).values
        rows = rows.append_column(pa.field(name, term.type), values)
    return rows.filter(filter_mask(residual, rows, zone, terms)).select(list(names))


def _key(text: str, table: Source) -> Lookup | None:
    try:
        test = bind(table, f"({text}) IS NULL")
    except PenstockError:
        return None
    term = test.child if isinstance(test, IsNull) else None
    of_map = isinstance(term, Lookup) and is_term(term) and pa.types.is_map(term.container.type)
    return term if of_map and isinstance(term, Lookup) else None
