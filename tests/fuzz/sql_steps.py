"""Statements of Spark SQL that add, replace and remove rows of a managed table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tests.fuzz.literals import literal
from tests.fuzz.predicates import quote
from tests.fuzz.python_steps import dynamic_change
from tests.fuzz.rows import ID, physical
from tests.fuzz.situation import VIEW, Situation, Step


def _insert(now: Situation) -> Step:
    """By position, by name in another order, or with a list of columns."""
    ids = now.some(now.all_rows, now.rng.choice([0.3, 0.8]), now.live)
    shuffled = now.rng.sample(now.rows.table.schema.names, now.rows.table.num_columns)
    form, columns = now.rng.choice(
        [("", None), (" BY NAME", shuffled), (f" ({', '.join(map(quote, shuffled))})", shuffled)]
    )
    return now.statement(f"INSERT INTO {now.sql.table}{form} {now.select(ids, columns)}", {*now.live, *ids})


def _overwrite(now: Situation) -> Step:
    """One partition that is named, or everything."""
    fitting = [(c, text) for c in now.by if "(" not in c and (text := _constant(now, c)) is not None]
    if not fitting:
        ids = now.some(now.all_rows, 0.8)
        return now.statement(f"INSERT OVERWRITE {now.sql.table} {now.select(ids)}", ids)
    column, (row, text) = now.rng.choice(fitting)
    values = physical(now.rows.table.column(column))
    same = {i for i, value in enumerate(values) if value == values[row]}
    ids = now.some(same, 0.5, now.live - same)
    others = [name for name in now.table.schema.names if name != column]
    place = f"{now.sql.table} PARTITION ({quote(column)} = {text})"
    return now.statement(f"INSERT OVERWRITE {place} {now.select(ids, others)}", {*(now.live - same), *ids})


def _constant(now: Situation, column: str) -> tuple[int, str] | None:
    """A row that lives, and its value of a column as a PARTITION clause may have it."""
    values = now.rows.table.column(column)
    t = values.type
    if not (pa.types.is_integer(t) or pa.types.is_string(t) or pa.types.is_boolean(t) or pa.types.is_date(t)):
        return None
    row = now.rng.choice(sorted(now.live)) if now.live else 0
    text = literal(physical(values.slice(row, 1))[0], t)
    return None if "(" in text and not pa.types.is_string(t) else (row, text)


def _dynamic(now: Situation) -> Step:
    ids, expected = dynamic_change(now)
    return now.statement(f"INSERT OVERWRITE {now.sql.table} {now.select(ids)}", expected, "dynamic")


def _replace(now: Situation) -> Step:
    staying = now.live - now.matching
    ids = now.some(now.matching, 0.5, staying)
    return now.statement(f"INSERT INTO {now.sql.table} REPLACE WHERE {now.where} {now.select(ids)}", {*staying, *ids})


def _delete(now: Situation) -> Step:
    return now.statement(f"DELETE FROM {now.sql.table} WHERE {now.where}", now.live - now.matching)


def _delete_by_query(now: Situation) -> Step:
    """What Spark alone can evaluate: a subquery, or a function that Penstock does not know beside a condition."""
    condition = now.rng.choice(
        [
            f"{ID} IN (SELECT {ID} FROM {VIEW} WHERE {now.where})",
            f"({now.where}) AND (hash({ID}) IS NOT NULL)",
            f"({now.where}) AND EXISTS (SELECT 1 FROM {VIEW} AS other WHERE other.{ID} = 0)",
        ]
    )
    return now.statement(f"DELETE FROM {now.sql.table} WHERE {condition}", now.live - now.matching)


def _truncate(now: Situation) -> Step:
    return now.statement(f"TRUNCATE TABLE {now.sql.table}", set())


def _compact(now: Situation) -> Step:
    return now.statement(f"CALL {now.sql.catalog}.system.compact(table => '{now.sql.name}')", now.live)


STEPS: dict[str, Callable[[Situation], Step]] = {
    "sql insert": _insert,
    "sql overwrite": _overwrite,
    "sql dynamic": _dynamic,
    "sql replace": _replace,
    "sql delete": _delete,
    "sql delete by query": _delete_by_query,
    "sql truncate": _truncate,
    "sql compact": _compact,
}
