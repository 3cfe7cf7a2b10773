"""Changes of a managed table's columns, partition fields and modes of writing.

A column that is dropped and added again is NULL in all rows, which then are their first variants. Columns are renamed,
and narrower, for some writes only, so that the judge's predicates have one meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.expr.types import type_name
from tests.fuzz.checks import Outcome, compare_content
from tests.fuzz.partitioning import another_field, source_of
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, KEY
from tests.fuzz.situation import Situation, Step

COMMANDS = ("delete", "update", "merge")
ON_READ, ON_WRITE = "merge-on-read", "copy-on-write"
_NARROWER = {pa.int64(): pa.int32(), pa.float64(): pa.float32(), pa.decimal128(38, 10): pa.decimal128(18, 10)}


def mode_of(command: str) -> str:
    """The property that says how a command changes rows."""
    return f"write.{command}.mode"


def _set_modes(now: Situation) -> Step:
    modes = {mode_of(command): now.rng.choice([ON_READ, ON_WRITE]) for command in COMMANDS}
    return Step(str(modes), {*now.live}, lambda: now.table.set_properties(modes))


def _rename_column(now: Situation) -> Step:
    """Some rows are written while a column has another name."""
    column = now.rng.choice([name for name in now.rows.types if name != KEY])
    other = now.rng.choice([f"{column} before", "Renamed", "renamed.column", column.upper() + "_"])
    ids = now.source()
    keys = {now.rows.key(i) for i in ids}
    expected = {*(i for i in now.live if now.rows.key(i) not in keys), *ids}
    rows = renamed(now.rows.take(ids), column, other)

    def change() -> None:
        _rename(now, column, other)
        try:
            now.table.upsert(rows, on=KEY)
            check_rows(now, renamed(now.table.arrow(), other, column), expected)
        finally:
            _rename(now, other, column)

    return Step(f"{column} to {other}, upsert {ids}", expected, change, is_odd=True)


def _rename(now: Situation, old: str, new: str) -> None:
    with now.table.change_schema() as schema:
        schema.rename_column((old,), new)


def renamed(rows: pa.Table, old: str, new: str) -> pa.Table:
    """Rows with another name of a column."""
    return rows.rename_columns([new if name == old else name for name in rows.column_names])


def check_rows(now: Situation, table: pa.Table, live: set[int]) -> None:
    """The rows of a table in the middle of a step."""
    outcome, message = compare_content(table, now.rows.table, live)
    assert outcome is Outcome.RIGHT, message


def _drop_column(now: Situation) -> Step:
    """Columns are dropped and added again, with the same types, by Python or by SQL."""
    dropped, by_sql = _dropped(now), now.rng.random() < 0.5

    def change() -> None:
        _drop(now, dropped)
        if by_sql:
            columns = ", ".join(f"{quote(c)} {type_name(now.rows.table.schema.field(c).type)}" for c in dropped)
            now.sql.run(f"ALTER TABLE {now.sql.table} ADD COLUMNS ({columns})")
            now.table.refresh()
        else:
            _add(now, {c: now.rows.table.schema.field(c).type for c in dropped})
        _make_null(now)

    return Step(f"{dropped}{', and add by SQL' * by_sql}", _all_null(now), change, forgets=True)


def _widen_column(now: Situation) -> Step:
    """Columns become narrower and wide again; rows whose values fit are written meanwhile."""
    types = {c: now.rows.table.schema.field(c).type for c in _dropped(now)}
    narrow = {c: _NARROWER.get(t, t) for c, t in types.items()}
    fitting = [i for i in now.source() if _fits(now.rows.take([i]), narrow)]
    keys = {now.rows.key(i) for i in fitting}
    expected = {*(i for i in _all_null(now) if now.rows.key(i) not in keys), *fitting}
    rows = _cast(now.rows.take(fitting), narrow)

    def change() -> None:
        _drop(now, [*types])
        _add(now, narrow)
        _make_null(now)
        now.table.upsert(rows, on=KEY)
        with now.table.change_schema() as schema:
            for column, t in types.items():
                if t != narrow[column]:
                    schema.widen_column((column,), t)

    return Step(f"{narrow}, upsert {fitting}", expected, change, forgets=True, is_odd=True)


def _merge_schema(now: Situation) -> Step:
    """Columns that are dropped come back with rows that have them."""
    dropped = _dropped(now)
    ids = now.one_per_key(now.all_rows, now.live)[:5]
    rows = now.rows.take(ids)

    def change() -> None:
        _drop(now, dropped)
        _make_null(now, without=dropped)
        now.table.append(rows, merge_schema=True)  # also of no rows

    return Step(f"{dropped}, append {ids}", {*_all_null(now), *ids}, change, forgets=True, is_odd=not ids)


def _dropped(now: Situation) -> list[str]:
    """The changing columns; those that the table is partitioned by cannot be dropped."""
    sources = {source_of(field) for field in now.by}
    return [column for column in now.rows.changing if column not in sources]


def _all_null(now: Situation) -> set[int]:
    return {now.rows.variant(i, 1) for i in now.live}


def _drop(now: Situation, columns: list[str]) -> None:
    with now.table.change_schema() as schema:
        for column in columns:
            schema.drop_column((column,))


def _add(now: Situation, columns: dict[str, pa.DataType]) -> None:
    with now.table.change_schema() as schema:
        for column, t in columns.items():
            schema.add_column((column,), t)


def _make_null(now: Situation, without: Sequence[str] = ()) -> None:
    nulls = {name: "NULL" for name in now.rows.changing if name not in without}
    now.table.update({ID: f"{KEY} + {now.rows.keys}"} | nulls)


def _fits(row: pa.Table, types: dict[str, pa.DataType]) -> bool:
    try:
        return bool(_cast(_cast(row, types), {c: row.schema.field(c).type for c in types}).equals(row))
    except pa.ArrowInvalid:
        return False


def _cast(rows: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    return rows.cast(pa.schema([pa.field(f.name, types.get(f.name, f.type)) for f in rows.schema]))


def _move_column(now: Situation) -> Step:
    column, other = now.rng.sample(now.table.schema.names, 2)
    place: dict[str, Any] = now.rng.choice([{"first": True}, {"after": other}])

    def change() -> None:
        with now.table.change_schema() as schema:
            schema.move_column((column,), **place)

    return Step(f"{column} {place}", {*now.live}, change)


def _add_partition_field(now: Situation) -> Step:
    field = another_field(now.rng, now.rows, now.by)
    return Step(field, {*now.live}, lambda: now.table.add_partition_field(field))


def _drop_partition_field(now: Situation) -> Step:
    """By Python or SQL; a table without fields gets one instead."""
    if not now.by:
        return _add_partition_field(now)
    field = now.rng.choice(now.by)
    text = f"CALL {now.sql.catalog}.system.drop_partition_field(table => '{now.sql.name}', field => '{field}')"
    if now.rng.random() < 0.5:
        return now.statement(text, now.live)
    return Step(field, {*now.live}, lambda: now.table.drop_partition_field(field))


def _replace_partition_field(now: Situation) -> Step:
    if not now.by:
        return _add_partition_field(now)
    old, new = now.rng.choice(now.by), another_field(now.rng, now.rows, now.by)
    return Step(f"{old} by {new}", {*now.live}, lambda: now.table.replace_partition_field(old, new))


STEPS: dict[str, Callable[[Situation], Step]] = {
    "set modes": _set_modes,
    "rename column": _rename_column,
    "drop column": _drop_column,
    "widen column": _widen_column,
    "merge schema": _merge_schema,
    "move column": _move_column,
    "add partition field": _add_partition_field,
    "drop partition field": _drop_partition_field,
    "replace partition field": _replace_partition_field,
}
EVOLVING = tuple(name for name in STEPS if name != "set modes")
