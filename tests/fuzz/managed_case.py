"""The life of a managed table: append, overwrite, delete, compact, changed rules; its rows are checked after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import penstock
from penstock.errors import EvaluationError, PenstockError
from tests.fixtures.iceberg_deletes import data_files
from tests.fuzz.checks import Checked, Outcome
from tests.fuzz.layout import Layout, ids_of, local
from tests.fuzz.literals import literal
from tests.fuzz.oracle import Answer
from tests.fuzz.predicates import Predicate
from tests.fuzz.rows import ID, Rows, physical
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
_CHANGES = ("delete", "delete", "overwrite", "compact", "compact", "set_coalesce", "set_shred")
Note = Callable[[str, str, Checked], None]


@dataclass
class Life:
    """A table, the rows that it must have, and what happened to it; `rng` draws the rows that are looked up."""

    table: Any
    rows: Rows
    answers: dict[str, Answer | str]
    rng: Random
    by: Sequence[str] = ()
    live: set[int] = field(default_factory=set)
    events: list[str] = field(default_factory=list)

    def step(self, what: str, text: str, change: Callable[[], Any], expected: set[int]) -> Checked:
        """One change: the table must have the expected rows after it, or the same as before when it is refused."""
        try:
            change()
        except PenstockError as error:
            return self._compare(Outcome.REFUSED, f"{type(error).__name__}: {error}")
        except Exception as error:
            return Outcome.WRONG, f"{what} raises {type(error).__name__}: {str(error)[:300]}"
        self.live = expected
        self.events.append(f"{what} {text}".strip())
        return self._compare(Outcome.RIGHT, "")

    def _compare(self, outcome: Outcome, message: str) -> Checked:
        ids = self.table.arrow(columns=[ID]).column(ID).to_pylist()
        if sorted(ids) != sorted(self.live):
            lost, extra = self.live - set(ids), set(ids) - self.live
            return Outcome.WRONG, f"rows lost {sorted(lost)[:5]}, rows left over {sorted(extra)[:5]} ({message})"
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
) -> Layout:
    """A table after a random life; `note` takes what came of each step."""
    root.mkdir(parents=True)
    lake = penstock.connect(root, timezone=zone)
    by, coalesced = _partitioning(rng, rows)
    shred = {c: _keys(rng) for c, t in rows.types.items() if t == "map" and rng.random() < 0.7}
    table = lake.create_table(NAME, rows.table.schema, by, coalesce=coalesced or None, shred=shred or None)
    life = Life(table, rows, answers, rng, by, events=[f"partition by {by}, coalesce {coalesced}, shred {shred}"])
    groups = rows.groups()
    parts = [groups[i::3] for i in range(3)]
    certain = [p.text for p in predicates if isinstance(a := answers[p.text], Answer) and not a.raised.any()]
    changes = rng.sample(_CHANGES, len(_CHANGES))
    for number, part in enumerate(parts):
        if part:
            chunk = pa.concat_tables(part)
            expected = life.live | set(chunk.column(ID).to_pylist())
            note("append", "", life.step("append", "", lambda chunk=chunk: life.table.append(chunk), expected))
        for what in changes[number :: len(parts)]:
            _change(rng, what, life, certain, by, note)
    files = {local(f.file_path): ids_of(local(f.file_path)) for f in data_files(life.table.table)}
    operations = sorted({event.split()[0] for event in life.events})
    description = "managed: " + "; ".join(life.events)
    note("content", "", _content(life))
    return Layout("managed", life.table, files, frozenset(life.live), description, lake, NAME, operations)


def _partitioning(rng: Random, rows: Rows) -> tuple[list[str], list[str]]:
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
    where = rng.choice(certain) if certain else "id < 5"
    answer = life.answers.get(where)
    matching = answer.ids & life.live if isinstance(answer, Answer) else {i for i in life.live if i < 5}
    if what == "delete":
        checked = life.step(what, where, lambda: life.table.delete(where), life.live - matching)
    elif what == "overwrite":
        kept = set(rng.sample(sorted(matching), len(matching) // 2))
        again = life.rows.table.take(pa.array(sorted(kept), pa.int64()))
        checked = life.step(what, where, lambda: life.table.overwrite(again, where), life.live - matching | kept)
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


def _content(life: Life) -> Checked:
    """Every value of every row that is left, as it was written."""
    table = life.table.arrow().sort_by(ID)
    expected = life.rows.table.take(pa.array(sorted(life.live), pa.int64()))
    for name in expected.schema.names:
        ours, theirs = _comparable(table.column(name)), _comparable(expected.column(name))
        if ours != theirs:
            place = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            return Outcome.WRONG, f"{name} of row {sorted(life.live)[place]} is {ours[place]}, not {theirs[place]}"
    return Outcome.RIGHT, ""


def _comparable(values: pa.ChunkedArray) -> list[str]:
    if pa.types.is_struct(values.type):
        flat = [_comparable(column) for column in pa.table({"c": values}).flatten().columns]
        return [" ".join(parts) for parts in zip(*flat, strict=True)]
    if pa.types.is_map(values.type):
        return [repr(v if v is None else sorted(v)) for v in values.to_pylist()]
    return [repr(value) for value in physical(values)]
