"""The life of a managed table: append, overwrite, delete, compact, changed rules, and the statements of Spark SQL.

Its rows are checked after each step, and in the end so are earlier snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

import penstock
from penstock.errors import EvaluationError, PenstockError
from penstock.lake.create import iceberg_schema
from tests.fixtures.iceberg_deletes import data_files
from tests.fuzz.checks import Checked, Outcome
from tests.fuzz.layout import Layout, ids_of, local
from tests.fuzz.literals import literal
from tests.fuzz.oracle import Answer
from tests.fuzz.predicates import Predicate
from tests.fuzz.rows import ID, Rows, physical
from tests.fuzz.session import SPARK_ERRORS, Sessions
from tests.fuzz.sql_steps import STEPS, Situation, Statements, dynamic_change, partition_keys, view_of
from tests.fuzz.uuids import iceberg_type
from tests.fuzz.values import KEYS, UUID

NAME = "web.managed"
_TRANSFORMS = {
    "boolean": ("{}",),
    "int": ("{}", "bucket(3, {})", "truncate(10, {})"),
    "bigint": ("{}", "bucket(3, {})", "truncate(10, {})"),
    "string": ("{}", "bucket(3, {})", "truncate(3, {})"),
    "date": ("{}", "year({})", "month({})", "day({})"),
    "timestamp": ("year({})", "day({})", "hour({})"),
    "timestamp_ntz": ("month({})", "day({})"),
    "decimal(9,2)": ("{}", "bucket(3, {})"),
    "decimal(38,10)": ("{}", "bucket(3, {})"),
    "float": ("{}",),
    "double": ("{}",),
    UUID: ("{}", "bucket(3, {})"),
}
CHANGES = ("delete", "delete", "overwrite", "dynamic", "compact", "compact", "set_coalesce", "set_shred", *STEPS)

Note = Callable[[str, str, Checked], None]


@dataclass
class Life:
    """A table, the rows that it must have, and what happened to it; `rng` draws the rows that are looked up."""

    table: Any
    rows: Rows
    answers: dict[str, Answer | str]
    rng: Random
    sql: Statements
    by: Sequence[str] = ()
    live: set[int] = field(default_factory=set)
    events: list[str] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)
    snapshots: dict[int, frozenset[int]] = field(default_factory=dict)  # their rows

    def step(self, what: str, text: str, change: Callable[[], Any], expected: set[int]) -> Checked:
        """One change: the table must have the expected rows after it, or the same as before when it is refused."""
        try:
            change()
        except PenstockError as error:
            return self._compare(Outcome.REFUSED, f"{type(error).__name__}: {error}")
        except SPARK_ERRORS as error:
            return Outcome.WRONG, f"{text} raises {type(error).__name__}: {str(error)[:300]}"
        except Exception as error:
            return Outcome.WRONG, f"{what} raises {type(error).__name__}: {str(error)[:300]}"
        self.live = expected
        self.events.append(f"{what} {text}".strip()[:200])
        self.operations.add(what)
        return self._compare(Outcome.RIGHT, "")

    def append(self, ids: set[int], note: Note) -> None:
        """Add rows, unless there are none."""
        if ids:
            chunk = self.rows.table.take(pa.array(sorted(ids), pa.int64()))
            note("append", "", self.step("append", "", lambda: self.table.append(chunk), self.live | ids))

    def _compare(self, outcome: Outcome, message: str) -> Checked:
        ids = self.table.refresh().arrow(columns=[ID]).column(ID).to_pylist()
        if sorted(ids) != sorted(self.live):
            lost, extra = self.live - set(ids), set(ids) - self.live
            twice = sorted({i for i in ids if ids.count(i) > 1})[:5]
            lines = f"rows lost {sorted(lost)[:5]}, rows left over {sorted(extra)[:5]}, rows twice {twice}"
            return Outcome.WRONG, f"{lines} ({message})"
        snapshot = self.table.table.current_snapshot()
        if snapshot is not None:
            self.snapshots[snapshot.snapshot_id] = frozenset(self.live)
        return self._look_up(outcome, message)

    def _look_up(self, outcome: Outcome, message: str) -> Checked:
        """One row is found again by its own value of each column that the table is partitioned by."""
        for column in (c for c in self.by if "(" not in c):
            values = self.rows.table.column(column)
            known = [i for i in sorted(self.live) if values[i].is_valid]
            if not known:
                continue
            row = self.rng.choice(known)
            where = f"{column} = {literal(physical(values.slice(row, 1))[0], values.type)}"
            try:
                matching = self.table.arrow(where, columns=[ID])
            except EvaluationError:  # a literal that is refused, such as the smallest floats
                continue
            if row not in matching.column(ID).to_pylist():
                return Outcome.WRONG, f"row {row} is not found by {where} ({message})"
        return outcome, message


def managed_layout(
    rng: Random,
    rows: Rows,
    root: Path,
    zone: str,
    predicates: Sequence[Predicate],
    answers: dict[str, Answer | str],
    note: Note,
    sessions: Sessions,
) -> Layout:
    """A table after a random life; `note` takes what came of each step."""
    root.mkdir(parents=True)
    lake = penstock.connect(root, timezone=zone)
    by, coalesced = partitioning(rng, rows)
    shred = {c: _keys(rng) for c, t in rows.types.items() if t == "map" and rng.random() < 0.7}
    schema = _with_uuids(rows) if rng.random() < 0.5 else rows.table.schema
    table = lake.create_table(NAME, schema, by, coalesce=coalesced or None, shred=shred or None)
    sql = Statements(sessions.judged, sessions.attach(lake), NAME, "all_rows")
    view_of(sessions.judged, rows.table, root / "rows.parquet", sql.view)
    life = Life(table, rows, answers, rng, sql, by)
    life.events.append(
        f"partition by {by}, coalesce {coalesced}, shred {shred}{', uuid' * (schema is not rows.table.schema)}"
    )
    groups = rows.groups()
    parts = [groups[i::3] for i in range(3)]
    certain = [p.text for p in predicates if isinstance(a := answers[p.text], Answer) and not a.raised.any()]
    changes = rng.sample(CHANGES, len(CHANGES))
    for number, part in enumerate(parts):
        life.append({i for group in part for i in group.column(ID).to_pylist()} - life.live, note)
        for what in changes[number :: len(parts)]:
            _change(rng, what, life, certain, by, note)
    missing = set(range(rows.table.num_rows)) - life.live
    if len(missing) > len(life.live):  # statements have removed most of them
        life.append(missing, note)
    for _ in range(2):
        text, checked = _earlier(life, certain)
        note("time travel", text, checked)
    files = {local(f.file_path): ids_of(local(f.file_path)) for f in data_files(life.table.table)}
    description = "managed: " + "; ".join(life.events)
    live = frozenset(life.live)
    return Layout("managed", life.table, files, live, description, lake, NAME, sql.catalog, sorted(life.operations))


def partitioning(rng: Random, rows: Rows) -> tuple[list[str], list[str]]:
    """What the table is partitioned by, and which of the plain columns share files."""
    candidates = [c for c, t in rows.types.items() if t in _TRANSFORMS and c.isidentifier() and c.isascii()]
    fields, coalesced = [], []
    for column in rng.sample(candidates, min(len(candidates), rng.choice([0, 1, 1, 2, 2]))):
        transform = rng.choice(_TRANSFORMS[rows.types[column]])
        fields.append(transform.format(column))
        if transform == "{}" and rng.random() < 0.8:
            coalesced.append(column)
    doubles = [c for c in candidates if rows.types[c] == "double" and c not in fields]
    if doubles and rng.random() < 0.4:  # of all values, doubles are the easiest to lose digits of in a manifest
        fields.append(rng.choice(doubles))
    return fields, coalesced


def _keys(rng: Random) -> Any:
    keys = rng.sample(KEYS, rng.randrange(1, len(KEYS) + 1))
    return penstock.Shred(*keys, mode="mirror") if rng.random() < 0.3 else keys


def _change(rng: Random, what: str, life: Life, certain: Sequence[str], by: list[str], note: Note) -> None:
    where, every = _condition(life, certain)
    keys = partition_keys(life.rows, by, life.table.table.schema())
    now = Situation(rng, life.rows, frozenset(life.live), life.sql, by, keys, where, every)
    if what in STEPS:
        statement = STEPS[what](now)
        text = statement.text
        checked = life.step(what, text, lambda: life.sql.run(text, statement.mode), statement.expected)
        note(what, text, checked)
        return
    matching = every & life.live
    if what == "delete":
        checked = life.step(what, where, lambda: life.table.delete(where), life.live - matching)
    elif what == "overwrite":
        kept = set(rng.sample(sorted(matching), len(matching) // 2))
        again = life.rows.table.take(pa.array(sorted(kept), pa.int64()))
        checked = life.step(what, where, lambda: life.table.overwrite(again, where), life.live - matching | kept)
    elif what == "dynamic":
        ids, expected = dynamic_change(now)
        put = life.rows.table.take(pa.array(ids, pa.int64()))
        checked = life.step(what, str(ids), lambda: life.table.overwrite(put, dynamic=True), expected)
    elif what == "compact":
        checked = life.step(what, "", life.table.compact, life.live)
    elif what == "set_coalesce":
        plain = [c for c in by if "(" not in c]
        rule = rng.choice([None, plain[:1]]) if plain else None
        checked = life.step(what, str(rule), lambda: life.table.set_coalesce(rule or None), life.live)
    else:
        maps = [c for c, t in life.rows.types.items() if t == "map"]
        rules = {c: rng.choice([None, _keys(rng)]) for c in maps}
        checked = life.step(what, str(rules), lambda: life.table.set_shred(rules), life.live)
    note(what, where, checked)


def _condition(life: Life, certain: Sequence[str]) -> tuple[str, frozenset[int]]:
    """A condition for which Spark raises nowhere, and all rows that match."""
    where = life.rng.choice(certain) if certain else f"{ID} < 5"
    answer = life.answers.get(where)
    return where, frozenset(answer.ids if isinstance(answer, Answer) else range(5))


def _with_uuids(rows: Rows) -> Schema:
    """The schema with uuids in the place of their texts."""
    plain = iceberg_schema(rows.table.schema)
    kinds = [(f, iceberg_type(f.field_type, rows.types.get(f.name, ""))) for f in plain.fields]
    return Schema(*(NestedField(f.field_id, f.name, kind, required=False) for f, kind in kinds))


def _earlier(life: Life, certain: Sequence[str]) -> tuple[str, Checked]:
    """An earlier snapshot has the rows that it had."""
    where, matching = _condition(life, certain)
    snapshot, live = life.rng.choice([*life.snapshots.items()])
    text = f"SELECT {ID} FROM {life.sql.table} VERSION AS OF {snapshot} WHERE {where}"
    try:
        ids = [row[0] for row in life.sql.run(text).collect()]
        plain = life.table.at(snapshot).arrow(columns=[ID]).column(ID).to_pylist()
    except PenstockError as error:
        return text, (Outcome.REFUSED, f"{type(error).__name__}: {error}")
    except SPARK_ERRORS as error:
        return text, (Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}")
    if sorted(ids) != sorted(matching & live):
        return text, (Outcome.WRONG, f"returns {sorted(ids)[:9]} and not {sorted(matching & live)[:9]}")
    if sorted(plain) != sorted(live):
        return text, (Outcome.WRONG, "the table at that snapshot has other rows")
    return text, (Outcome.RIGHT, "")
