"""The life of a managed table: what Python and Spark SQL do to its rows, its schema, its layout and its history.

After each step every row is checked, and one is looked up; in the end earlier snapshots are asked. Which steps are
drawn, on which varieties of tables they were right, and whether rows were changed on write or on read, is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

import penstock
from penstock.errors import EvaluationError, PenstockError
from penstock.lake.create import iceberg_schema
from penstock.lake.write.write_result import WriteResult
from tests.fixtures.managed_tables import live_rows, local
from tests.fuzz import history_steps, python_steps, row_steps, schema_steps, sql_steps
from tests.fuzz.adopted_case import GrowingTree
from tests.fuzz.checks import Checked, Outcome, compare_content, guarded
from tests.fuzz.layout import Layout
from tests.fuzz.literals import literal
from tests.fuzz.oracle import Answer
from tests.fuzz.partitioning import partitioning
from tests.fuzz.predicates import Predicate, quote
from tests.fuzz.rows import ID, Rows, physical
from tests.fuzz.schema_steps import COMMANDS, EVOLVING, ON_READ, ON_WRITE, mode_of
from tests.fuzz.session import SPARK_ERRORS, Sessions
from tests.fuzz.situation import Situation, Statements, Step, view_of
from tests.fuzz.uuids import iceberg_type

NAME = "web.managed"
STEPS: dict[str, Callable[[Situation], Step]] = {
    **python_steps.STEPS,
    **sql_steps.STEPS,
    **row_steps.STEPS,
    **schema_steps.STEPS,
    **history_steps.STEPS,
}
ADOPTED = 0.25  # of the tables are made of a tree of files
# A rollback makes files new again, and a tree does not fit a table with other partition fields.
NOT_ADOPTED_AFTER = {"rollback", "tag", *(name for name in STEPS if name.endswith("partition field"))}
# The name of a column is not free again as long as a file is read by its names.
NOT_OF_ADOPTED = {"drop column", "widen column", "merge schema"}
DRAWN = 17  # steps of one life
VARIETIES = ("plain", "coalesced", "shredded", "evolved")
# Steps that say in delete files which rows are gone, where the mode of their command is merge on read.
_COMMANDS = {"delete": "delete", "sql delete": "delete", "sql delete by query": "delete"}
_COMMANDS |= {"update": "update", "sql update": "update", "upsert": "merge", "upsert frame": "merge"}
_COMMANDS |= {name: "merge" for name in STEPS if "merge" in name.split() and name != "merge schema"}
MODES = {name: f"{name} on read" for name in _COMMANDS}  # what such a step is called then

Note = Callable[[str, str, Checked, Sequence[str]], None]


@dataclass
class Life:
    """A table, the rows that it must have, and what happened to it; `rng` draws the rows that are looked up."""

    table: Any
    rows: Rows
    rng: Random
    sql: Statements
    judge: Any
    certain: Sequence[tuple[str, frozenset[int]]]  # conditions, and the rows that match
    note: Note
    lake: Any
    tree: GrowingTree | None = None  # what the table was made of
    live: set[int] = field(default_factory=set)
    events: list[str] = field(default_factory=list)
    operations: set[str] = field(default_factory=set)
    snapshots: dict[int, frozenset[int]] = field(default_factory=dict)  # the rows that a rollback brings back
    past: dict[int, frozenset[int]] = field(default_factory=dict)  # the rows that time travel sees
    odd: set[int] = field(default_factory=set)  # snapshots of another schema
    is_wrong: bool = False

    def append(self, ids: set[int]) -> None:
        """Add rows, unless there are none."""
        if ids and not self.is_wrong:
            rows = self.rows.take(sorted(ids))
            self._do("append", Step("", self.live | ids, lambda: self.table.append(rows)))

    def adopt(self, ids: set[int]) -> None:
        """Rows as files of the tree that the table was made of."""
        tree, lake = self.tree, self.lake
        if tree is None or self.operations & NOT_ADOPTED_AFTER:
            self.append(ids)
        elif ids and not self.is_wrong:
            self._do("adopt", Step("", self.live | tree.grow(ids), lambda: tree.adopt(lake, NAME)))

    def take(self, what: str) -> None:
        """Draw a step of this kind, and do it; not after a wrong one, for then the table has other rows."""
        if self.is_wrong:
            return
        where, matching = self.condition()
        frozen = frozenset(self.live)
        now = Situation(
            self.rng, self.rows, frozen, self.table, self.sql, self.judge, where, matching, dict(self.snapshots)
        )
        try:
            step = STEPS[what](now)
        except PenstockError as error:
            self.note(what, what, (Outcome.REFUSED, f"{type(error).__name__}: {error}"), self.varieties)
        else:
            self._do(what, step)

    def condition(self) -> tuple[str, frozenset[int]]:
        """A condition for which Spark raises nowhere, and all rows that match."""
        known = [i for i in range(self.rows.table.num_rows) if i % self.rows.keys < 5]
        return self.rng.choice([*self.certain]) if self.certain else ("key < 5", frozenset(known))

    @property
    def varieties(self) -> list[str]:
        """What is special about the table now."""
        is_evolved = any(name in self.operations for name in EVOLVING)
        special = {"coalesced": self.table.coalesce is not None, "shredded": bool(self.table.shred)}
        return [name for name, holds in (special | {"evolved": is_evolved}).items() if holds] or ["plain"]

    def _do(self, what: str, step: Step) -> None:
        varieties, name = self.varieties, self._name(what)
        checked = self._checked(what, step)
        self.is_wrong = checked[0] is Outcome.WRONG
        self.note(name, f"{what} {step.text}", checked, varieties)

    def _name(self, what: str) -> str:
        metadata = self.table.table.metadata
        mode = metadata.properties.get(mode_of(_COMMANDS.get(what, "")))
        return MODES[what] if mode == ON_READ and metadata.format_version > 1 else what

    def _checked(self, what: str, step: Step) -> Checked:
        """The table must have the expected rows after a step, or the same as before when it is refused."""
        try:
            result = step.change()
        except PenstockError as error:
            return self._compare(Outcome.REFUSED, f"{type(error).__name__}: {error}")
        except SPARK_ERRORS as error:
            return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}"
        except Exception as error:
            return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}"
        before, self.live = self.live, step.expected
        self.events.append(f"{what} {step.text}".strip()[:200])
        self.operations.add(what)
        self.table.refresh()
        self._forget(step)
        if isinstance(result, WriteResult) and result.rows_added - result.rows_removed != len(self.live) - len(before):
            return Outcome.WRONG, f"says {result}, and there were {len(before)} rows and are {len(self.live)}"
        return self._compare(Outcome.RIGHT, "")

    def _forget(self, step: Step) -> None:
        """Snapshots that expired, and those that the schema does not fit any more."""
        metadata = self.table.table.metadata
        existing = {snapshot.snapshot_id for snapshot in metadata.snapshots}
        self.past = {i: rows for i, rows in self.past.items() if i in existing}
        self.snapshots = {} if step.forgets else {i: rows for i, rows in self.snapshots.items() if i in existing}
        if step.is_odd and metadata.current_snapshot_id is not None:
            self.odd.add(metadata.current_snapshot_id)

    def _compare(self, outcome: Outcome, message: str) -> Checked:
        content, difference = guarded(self._content)
        if content is not Outcome.RIGHT:
            return Outcome.WRONG, f"{difference} ({message})"
        snapshot = self.table.table.current_snapshot()
        if snapshot is not None:
            self.snapshots[snapshot.snapshot_id] = frozenset(self.live)
            if snapshot.snapshot_id not in self.odd:
                self.past[snapshot.snapshot_id] = frozenset(self.live)
        return self._look_up(outcome, message)

    def _content(self) -> Checked:
        return compare_content(self.table.refresh().arrow(), self.rows.table, self.live)

    def _look_up(self, outcome: Outcome, message: str) -> Checked:
        """One row is found again by its own value of each column that the table is partitioned by."""
        for column in (c for c in self.table.partitioned_by if "(" not in c):
            values = self.rows.table.column(column)
            known = [i for i in sorted(self.live) if values[i].is_valid]
            if not known:
                continue
            row = self.rng.choice(known)
            where = f"{quote(column)} = {literal(physical(values.slice(row, 1))[0], values.type)}"
            try:
                matching = self.table.arrow(where, columns=[ID])
            except EvaluationError:  # a literal that is refused, such as the smallest floats
                continue
            if row not in matching.column(ID).to_pylist():
                return Outcome.WRONG, f"row {row} is not found by {where} ({message})"
        return outcome, message

    def look_back(self) -> None:
        """An earlier snapshot has the rows that it had."""
        if self.is_wrong or not self.past:
            return
        where, matching = self.condition()
        snapshot, live = self.rng.choice([*self.past.items()])
        text = f"SELECT {ID} FROM {self.sql.table} VERSION AS OF {snapshot} WHERE {where}"
        self.note("time travel", text, self._looked_back(text, snapshot, matching & live, live), self.varieties)

    def _looked_back(self, text: str, snapshot: int, matching: frozenset[int], live: frozenset[int]) -> Checked:
        try:
            ids = [row[0] for row in self.sql.run(text).collect()]
            plain = self.table.at(snapshot).arrow()
        except PenstockError as error:
            return Outcome.REFUSED, f"{type(error).__name__}: {error}"
        except SPARK_ERRORS as error:
            return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}"
        if sorted(ids) != sorted(matching):
            return Outcome.WRONG, f"returns {sorted(ids)[:9]} and not {sorted(matching)[:9]}"
        return compare_content(plain, self.rows.table, live)


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
    shred = {c: python_steps.some_keys(rng) for c, t in rows.types.items() if t == "map" and rng.random() < 0.7}
    if rng.random() < 0.3:
        coalesced, shred = [], {}
    schema = _with_uuids(rows) if rng.random() < 0.5 else rows.table.schema
    properties = {"format-version": rng.choice(["1", "2", "2", "2"])}
    properties |= {mode_of(command): rng.choice([ON_READ, ON_WRITE]) for command in COMMANDS}
    rules: dict[str, Any] = {"coalesce": coalesced or None, "shred": shred or None, "properties": properties}
    groups = rows.groups()
    parts = [{i for group in groups[n::3] for i in group.column(ID).to_pylist()} for n in range(3)]
    tree = GrowingTree(rng, rows, root.with_name(f"{root.name} tree"), zone) if rng.random() < ADOPTED else None
    first = tree.grow(parts[0]) if tree is not None else set()
    if tree is not None and first:
        by, schema, rules["coalesce"] = tree.keys, rows.table.schema, tree.keys[:1] or None
        tree.adopt(lake, NAME, **rules)
        table = lake.table(NAME)
    else:
        tree, table = None, lake.create_table(NAME, schema, by, **rules)
    for session in (sessions.judged, sessions.judge):
        view_of(session, rows.table, root / "rows.parquet")
    certain = [
        (p.text, frozenset(a.ids))
        for p in predicates
        if isinstance(a := answers[p.text], Answer) and not a.raised.any()
    ]
    sql = Statements(sessions.judged, sessions.attach(lake), NAME)
    life = Life(table, rows, rng, sql, sessions.judge, certain, note, lake, tree, first)
    life.events.append(f"{'adopted, ' * (tree is not None)}partition by {by}, {rules}")
    life.events[0] += ", uuid" * (schema is not rows.table.schema)
    possible = [step for step in STEPS if tree is None or step not in NOT_OF_ADOPTED]
    drawn = rng.sample([*possible, "compact", "compact", "delete"], DRAWN)
    for number, part in enumerate(parts):
        life.adopt(_free(life, part))
        for what in drawn[number :: len(parts)]:
            life.take(what)
    missing = _free(life, set(range(rows.keys)))
    if len(missing) > len(life.live):  # statements have removed most of them
        life.append(missing)
    for _ in range(2):
        life.look_back()
    description = "managed: " + "; ".join(life.events)
    live = frozenset(life.live)
    files = {local(path): frozenset(held[ID].to_pylist()) for path, held in live_rows(life.table.table, [ID]).items()}
    return Layout("managed", life.table, files, live, description, lake, NAME, sql.catalog, sorted(life.operations))


def _free(life: Life, ids: set[int]) -> set[int]:
    """The rows whose keys the table does not have."""
    keys = {life.rows.key(i) for i in life.live}
    return {i for i in ids if i not in keys}


def _with_uuids(rows: Rows) -> Schema:
    """The schema with uuids in the place of their texts."""
    plain = iceberg_schema(rows.table.schema)
    kinds = [(f, iceberg_type(f.field_type, rows.types.get(f.name, ""))) for f in plain.fields]
    return Schema(*(NestedField(f.field_id, f.name, kind, required=False) for f, kind in kinds))
