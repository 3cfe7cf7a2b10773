"""The clauses of a merge, drawn at random, and the rows that a table has after it.

Rows of the table meet rows of a source by one column. What a clause does to a row is to put the row of the source, or a
variant of its own, in its place, or to remove it; so all rows afterwards are known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, KEY
from tests.fuzz.situation import Situation, among

MATCHED, NOT_MATCHED, BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"
DELETE, SOURCE = -1, 0  # what a row becomes, if not the variant of that number


@dataclass(frozen=True)
class Condition:
    """A condition on the table's row or on the source's, and all rows for which it is true."""

    of_source: bool
    ids: frozenset[int]
    text: str | None = None  # over the columns of one side; None for a list of rows

    def python(self, kind: str) -> str:
        """Its text for a clause of `table.merge(…)`."""
        if self.text is not None:
            return self.text
        return among(sorted(self.ids), "source.id" if self.of_source and kind == MATCHED else ID)

    def sql(self) -> str:
        """Its text for a clause of MERGE INTO; the source has its rows in a struct, so that names mean the table's."""
        if self.text is not None:
            return f"({self.text})"
        return among(sorted(self.ids), "s.source_row.id" if self.of_source else f"t.{ID}")


@dataclass(frozen=True)
class Clause:
    """What becomes of rows for which a condition is true."""

    kind: str
    becomes: int
    condition: Condition | None

    def holds(self, row: int | None, source: int | None) -> bool:
        """Whether it is about a row of the table and one of the source."""
        if self.condition is None:
            return True
        return (source if self.condition.of_source else row) in self.condition.ids

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" AND {self.condition.python(self.kind)}"
        becomes = {DELETE: "deleted", SOURCE: "the source's"}.get(self.becomes, f"variant {self.becomes}")
        return f"{self.kind}{condition}: {becomes}"


def draw_clauses(now: Situation, source: Sequence[int], *, by_key: bool) -> list[Clause]:
    """One clause or more of each kind; those of sources that are met by another column than the key add no rows."""
    counts = {MATCHED: now.rng.choice([0, 1, 1, 2]), NOT_MATCHED: now.rng.choice([0, 1, 1, 2]) if by_key else 0}
    counts[BY_SOURCE] = now.rng.choice([0, 0, 1, 2])
    if not any(counts.values()):
        counts[MATCHED] = 1
    clauses = []
    for kind, count in counts.items():
        for place in range(count):
            is_last = place == count - 1
            condition = None if is_last and now.rng.random() < 0.5 else _condition(now, kind, source)
            clauses.append(Clause(kind, _becomes(now, kind, by_key), condition))
    return clauses


def _becomes(now: Situation, kind: str, by_key: bool) -> int:
    if kind == NOT_MATCHED:
        return now.rng.choice([SOURCE, SOURCE, 1])
    changed = [DELETE, now.a_variant()]
    return now.rng.choice([SOURCE, SOURCE, *changed] if kind == MATCHED and by_key else changed)


def _condition(now: Situation, kind: str, source: Sequence[int]) -> Condition:
    if kind == NOT_MATCHED or (kind == MATCHED and now.rng.random() < 0.4):
        return Condition(True, frozenset(now.rng.sample(source, len(source) // 2)))
    if now.rng.random() < 0.5:
        return Condition(False, now.matching, now.where)
    return Condition(False, frozenset(now.rng.sample(sorted(now.live), len(now.live) // 2)))


def merged(now: Situation, clauses: Sequence[Clause], partner: Mapping[int, int], alone: Set[int]) -> set[int]:
    """The rows of the table after a merge: `partner` has the row of the source that a row of the table meets."""
    rows = set[int]()
    for row in now.live:
        source = partner.get(row)
        kind = BY_SOURCE if source is None else MATCHED
        clause = next((c for c in clauses if c.kind == kind and c.holds(row, source)), None)
        if clause is None:
            rows.add(row)
        elif clause.becomes != DELETE:
            rows.add(
                source if clause.becomes == SOURCE and source is not None else now.rows.variant(row, clause.becomes)
            )
    for source in alone:
        clause = next((c for c in clauses if c.kind == NOT_MATCHED and c.holds(None, source)), None)
        if clause is not None:
            rows.add(source if clause.becomes == SOURCE else now.rows.variant(source, clause.becomes))
    return rows


def in_python(now: Situation, merge: object, clauses: Sequence[Clause]) -> object:
    """A merge of Python with these clauses."""
    for clause in clauses:
        method = f"when_{clause.kind.lower().replace(' ', '_')}_"
        method += "delete" if clause.becomes == DELETE else "insert" if clause.kind == NOT_MATCHED else "update"
        where = {} if clause.condition is None else {"where": clause.condition.python(clause.kind)}
        values = [] if clause.becomes in (DELETE, SOURCE) else [_values(now, clause)]
        merge = getattr(merge, method)(*values, **where)
    return merge


def _values(now: Situation, clause: Clause) -> dict[str, str]:
    if clause.kind != NOT_MATCHED:
        return now.assigned(clause.becomes)
    kept = {name: quote(name) for name in now.table.schema.names if name not in (ID, *now.rows.changing)}
    return {ID: now.assigned(clause.becomes)[ID]} | kept


def in_sql(now: Situation, clauses: Sequence[Clause], column: str, source: Sequence[int]) -> str:
    """A statement with these clauses."""
    using = f"SELECT {quote(column)} AS source_key, struct(*) AS source_row FROM ({now.select(source)})"
    on = f"t.{quote(column)} = s.source_key"
    return f"MERGE INTO {now.sql.table} AS t USING ({using}) AS s ON {on} {' '.join(_texts(now, clauses))}"


def _texts(now: Situation, clauses: Sequence[Clause]) -> list[str]:
    texts = []
    for clause in clauses:
        text = f"WHEN {clause.kind}"
        text += "" if clause.condition is None else f" AND {clause.condition.sql()}"
        texts.append(f"{text} THEN {_action(now, clause)}")
    return texts


def _action(now: Situation, clause: Clause) -> str:
    if clause.becomes == DELETE:
        return "DELETE"
    names = now.table.schema.names
    values = {name: f"s.source_row.{quote(name)}" for name in names}
    if clause.kind == NOT_MATCHED:
        if clause.becomes != SOURCE:
            values = {name: value for name, value in values.items() if name not in now.rows.changing}
            values[ID] = f"s.source_row.{now.assigned(clause.becomes)[ID]}"
        return f"INSERT ({', '.join(map(quote, values))}) VALUES ({', '.join(values.values())})"
    if clause.becomes != SOURCE:
        values = now.assigned(clause.becomes) | {ID: f"t.{KEY} + {clause.becomes * now.rows.keys}"}
    return f"UPDATE SET {', '.join(f'{quote(name)} = {value}' for name, value in values.items())}"
