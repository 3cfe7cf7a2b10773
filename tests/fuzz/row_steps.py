"""Changes of rows that a managed table has: updates, upserts and merges, in Python and in SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import LakeError
from tests.fuzz.merge_clauses import draw_clauses, in_python, in_sql, merged
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, KEY
from tests.fuzz.situation import VIEW, Situation, Step, among
from tests.fuzz.values import SCALARS, UUID

_SEVERAL = "met by several"


def _update(now: Situation) -> Step:
    """Some columns become constants: as expressions, or as Python's values."""
    variant, how = now.a_variant(), now.in_tasks()
    values: dict[str, Any] = {**now.assigned(variant)}
    for name in now.rows.changing:
        if now.rng.random() < 0.3:
            values[name] = _python_value(now, name, variant, values[name])
    expected = _updated(now, variant)
    change = now.doing(how, lambda: now.table.update(values, now.where))
    return Step(f"{values} where {now.where}{how}", expected, change)


def _python_value(now: Situation, name: str, variant: int, text: str) -> Any:
    try:
        value = now.rows.table.column(name)[variant * now.rows.keys].as_py()
    except (ValueError, OverflowError):  # a year that Python does not have
        return text
    return text if isinstance(value, str) else value  # a text would be an expression


def _updated(now: Situation, variant: int) -> set[int]:
    matching = now.live & now.matching
    return {*(now.live - matching), *(now.rows.variant(i, variant) for i in matching)}


def _sql_update(now: Situation) -> Step:
    variant = now.a_variant()
    values = ", ".join(f"{quote(name)} = {value}" for name, value in now.assigned(variant).items())
    where = now.rng.choice(
        [
            now.where,
            f"({now.where}) AND (hash({ID}) IS NOT NULL)",
            f"{ID} IN (SELECT {ID} FROM {VIEW} WHERE {now.where})",
        ]
    )
    return now.statement(f"UPDATE {now.sql.table} SET {values} WHERE {where}", _updated(now, variant))


def _upsert(now: Situation) -> Step:
    return _upserted(now, now.rows.take)


def _upsert_frame(now: Situation) -> Step:
    return _upserted(now, lambda ids: now.sql.run(now.select(ids)))


def _upserted(now: Situation, rows: Callable[[list[int]], Any]) -> Step:
    ids, how = now.source(), now.in_tasks()
    keys = {now.rows.key(i) for i in ids}
    expected = {*(i for i in now.live if now.rows.key(i) not in keys), *ids}
    return Step(f"{ids}{how}", expected, now.doing(how, lambda: now.table.upsert(rows(ids), on=KEY)))


def _upsert_twice(now: Situation) -> Step:
    """Two rows of the source that meet the same row of the table are an error."""
    if not now.live:
        return _upsert(now)
    row = now.rng.choice(sorted(now.live))
    ids = [row, now.rows.variant(row, now.a_variant() if row < now.rows.keys else 0)]
    rows, kind = now.rows.take(ids), now.rng.choice(["arrow", "frame", "sql"])
    using = f"USING ({now.select(ids)}) AS s ON t.{KEY} = s.{KEY} WHEN MATCHED THEN UPDATE SET *"

    def change() -> None:
        try:
            if kind == "sql":
                now.sql.run(f"MERGE INTO {now.sql.table} AS t {using}")
            else:
                now.table.upsert(rows if kind == "arrow" else now.sql.run(now.select(ids)), on=KEY)
        except LakeError as error:
            if _SEVERAL not in str(error):
                raise
        else:
            raise AssertionError(f"row {row} may be met by two rows")

    return Step(f"{kind} {ids}", {*now.live}, change)


def _merge(now: Situation) -> Step:
    return _merged(now, now.rows.take)


def _merge_frame(now: Situation) -> Step:
    return _merged(now, lambda ids: now.sql.run(now.select(ids)))


def _merged(now: Situation, rows: Callable[[list[int]], Any]) -> Step:
    ids, how = now.source(), now.in_tasks()
    clauses = draw_clauses(now, ids, by_key=True)
    expected = merged(now, clauses, *_by_key(now, ids))
    change = now.doing(how, lambda: in_python(now, now.table.merge(rows(ids), on=KEY), clauses).execute())
    return Step(f"{ids}: {'; '.join(map(str, clauses))}{how}", expected, change)


def _by_key(now: Situation, ids: list[int]) -> tuple[dict[int, int], set[int]]:
    """The row of the source that a row of the table meets, and the rows of the source that meet none."""
    source = {now.rows.key(i): i for i in ids}
    partner = {row: source[now.rows.key(row)] for row in now.live if now.rows.key(row) in source}
    return partner, {*ids} - {*partner.values()}


def _sql_merge(now: Situation) -> Step:
    ids = now.source()
    clauses = draw_clauses(now, ids, by_key=True)
    return now.statement(in_sql(now, clauses, KEY, ids), merged(now, clauses, *_by_key(now, ids)))


def _sql_merge_all(now: Situation) -> Step:
    """`UPDATE SET *` and `INSERT *`."""
    ids = now.source()
    partner, alone = _by_key(now, ids)
    parts = {
        "WHEN MATCHED THEN UPDATE SET *": {*(now.live - partner.keys()), *partner.values()},
        "WHEN NOT MATCHED THEN INSERT *": {*now.live, *alone},
    }
    chosen = now.rng.choice([[*parts], [*parts], *([part] for part in parts)])
    expected = {*(now.live - partner.keys()), *ids} if len(chosen) == 2 else parts[chosen[0]]
    text = f"MERGE INTO {now.sql.table} AS t USING ({now.select(ids)}) AS s ON t.{KEY} = s.{KEY} {' '.join(chosen)}"
    return now.statement(text, expected)


def _merge_by(now: Situation) -> Step:
    """By any column: which rows meet is said by plain Spark."""
    column, ids, partner = _by_column(now)
    clauses, how = draw_clauses(now, ids, by_key=False), now.in_tasks()
    is_frame = now.rng.random() < 0.4
    rows = now.sql.run(now.select(ids, [column, ID])) if is_frame else now.rows.take(ids).select([column, ID])
    change = now.doing(how, lambda: in_python(now, now.table.merge(rows, on=[column]), clauses).execute())
    return Step(f"{column} {ids}: {'; '.join(map(str, clauses))}{how}", merged(now, clauses, partner, set()), change)


def _sql_merge_by(now: Situation) -> Step:
    column, ids, partner = _by_column(now)
    clauses = draw_clauses(now, ids, by_key=False)
    return now.statement(in_sql(now, clauses, column, ids), merged(now, clauses, partner, set()))


def _by_column(now: Situation) -> tuple[str, list[int], dict[int, int]]:
    """A column, rows that have each of its values once, and those that rows of the table meet."""
    column = now.rng.choice([c for c, t in now.rows.types.items() if t in SCALARS or t == UUID])
    name = quote(column)
    once = [row[0] for row in now.judge.sql(f"SELECT min({ID}) FROM {VIEW} GROUP BY {name}").collect()]
    ids = now.rng.sample(sorted(once), min(len(once), now.rng.choice([1, 3, 10])))
    met = now.judge.sql(
        f"SELECT t.{ID}, s.{ID} FROM {VIEW} AS t JOIN {VIEW} AS s ON t.{name} = s.{name} WHERE {among(ids, f's.{ID}')}"
    )
    partner = {row[0]: row[1] for row in met.collect()}
    return column, ids, {row: source for row, source in partner.items() if row in now.live}


STEPS: dict[str, Callable[[Situation], Step]] = {
    "update": _update,
    "sql update": _sql_update,
    "upsert": _upsert,
    "upsert frame": _upsert_frame,
    "upsert twice": _upsert_twice,
    "merge": _merge,
    "merge frame": _merge_frame,
    "merge by": _merge_by,
    "sql merge": _sql_merge,
    "sql merge all": _sql_merge_all,
    "sql merge by": _sql_merge_by,
}
