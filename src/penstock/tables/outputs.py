"""What a reader gives back: columns by their names, and keys of maps as SQL writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.errors import PenstockError, SchemaError
from penstock.expr.tree import Expr, IsNull, Lookup, is_term

Keys = dict[str, Lookup]


def outputs(columns: Sequence[str] | None, schema: pa.Schema, bind: Callable[[str], Expr]) -> tuple[list[str], Keys]:
    """Columns as a schema spells them, all without any; and those that are keys of maps, `headers['a']`."""
    if isinstance(columns, str):
        raise SchemaError(f"columns takes a list of names, found the text {columns!r}", hint=f"write [{columns!r}]")
    names, keys = [], Keys()
    for column in schema.names if columns is None else columns:
        known = next((name for name in schema.names if name.lower() == column.lower()), None)
        term = _key(column, bind) if known is None else None
        if known is None and term is None:
            raise SchemaError(f"no column {column!r}", hint=f"there are: {', '.join(schema.names)}")
        if term is not None:
            keys[column] = term
        names.append(column if known is None else known)
    return names, keys


def empty(names: Sequence[str], keys: Keys, schema: pa.Schema) -> pa.Table:
    """No rows of these columns."""
    fields = [pa.field(name, keys[name].type) if name in keys else schema.field(name) for name in names]
    return pa.schema(fields).empty_table()


def _key(text: str, bind: Callable[[str], Expr]) -> Lookup | None:
    try:
        found = bind(f"({text}) IS NULL")
    except PenstockError:
        return None
    term = found.child if isinstance(found, IsNull) else None
    of_map = isinstance(term, Lookup) and is_term(term) and pa.types.is_map(term.container.type)
    return term if of_map and isinstance(term, Lookup) else None
