"""Random cases: a schema, rows, containers made of the rows, facts about them, a predicate and a session's zone.

A case is built from one drawn seed, which is fast; hypothesis therefore does not shrink it. `minimize` does that
instead: it takes rows, facts, containers and parts of the predicate away as long as a check keeps failing, and
`Case.report` prints what is left as something that can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.expr.bind import Context, bind_text
from penstock.expr.schema import as_schema
from penstock.expr.tree import Expr, terms_of
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact
from tests.differential import predicates
from tests.differential.knowledge import Recipe, Subject, make_fact
from tests.differential.predicates import Node, Source, show
from tests.differential.values import POOLS, TRANSFORMS, identity, to_array

ZONES = ["UTC"] * 6 + ["America/New_York", "America/St_Johns", "Asia/Kolkata"]
NESTED = {"struct<a:int,b:string>": [("a", "int"), ("b", "string")]}
MAP = "map<string,string>"
COLUMN_KINDS = [*POOLS, *NESTED, MAP]
FACT_KINDS = ["exact", "bounds", "transforms", "tuples", "several"]

seeds = st.binary(min_size=8, max_size=8).map(lambda b: int.from_bytes(b, "big"))


@lru_cache(maxsize=4096)
def subject_of(name: str, kind: str, column: str, ddl: str) -> Subject:
    """A term by its SQL name, as the binder sees it."""
    return Subject(name, kind, terms_of(bind_text(f"{name} IS NULL", f"{column} {ddl}"))[0])


@lru_cache(maxsize=4096)
def schema_of(ddl: str) -> pa.Schema:
    """The schema of a DDL text."""
    return as_schema(ddl)


@dataclass(frozen=True)
class Case:
    """Everything about one example; `rows` hold the values of terms, `split` the rows of each container."""

    columns: tuple[tuple[str, str], ...]
    subjects: tuple[Subject, ...]
    rows: tuple[dict[str, Any], ...]
    split: tuple[tuple[int, ...], ...]
    recipes: tuple[Recipe, ...]
    counted: bool
    predicate: Node
    zone: str

    @property
    def text(self) -> str:
        return show(self.predicate)

    @cached_property
    def schema(self) -> pa.Schema:
        return schema_of(", ".join(f"{name} {ddl}" for name, ddl in self.columns))

    @cached_property
    def table(self) -> pa.Table:
        arrays = [
            to_array([row[f"*{name}"] for row in self.rows], self.schema.field(name).type) for name, _ in self.columns
        ]
        return pa.table(arrays, schema=self.schema)

    @cached_property
    def containers(self) -> Containers:
        groups = [[self.rows[i] for i in part] for part in self.split]
        facts = [make_fact(recipe, groups) for recipe in self.recipes]
        rows = pa.array([len(group) for group in groups]) if self.counted else None
        return Containers(len(groups), facts, rows=rows)

    def bind(self, text: str) -> Expr:
        """A text bound to the schema in the zone of the case."""
        return bind_text(text, self.schema, Context(timezone=self.zone))

    def report(self) -> str:
        """The case for a reader."""
        lines = [
            f"predicate: {self.text}",
            f"zone: {self.zone}",
            f"schema: {', '.join(' '.join(c) for c in self.columns)}",
        ]
        for i, part in enumerate(self.split):
            shown = [{k: v for k, v in self.rows[j].items() if not k.startswith("*")} for j in part]
            lines.append(f"container {i}: {shown}")
        lines += [f"fact: {show_fact(fact)}" for fact in self.containers.facts]
        return "\n".join(lines)


def show_fact(fact: Fact) -> str:
    """A fact in one line."""
    if isinstance(fact, Exact):
        known = "" if fact.known is None else f", known={fact.known.tolist()}"
        return f"Exact({fact.term}, {fact.values.to_pylist()}: {fact.values.type}{known})"
    if isinstance(fact, Bounds):
        names = ("lower", "upper", "null_count", "nan_count", "value_count")
        parts = [f"{n}={getattr(fact, n).to_pylist()}" for n in names if getattr(fact, n) is not None]
        parts += [] if fact.upper_cut is None else [f"upper_cut={fact.upper_cut.tolist()}"]
        return f"Bounds({fact.term}, {', '.join(parts)})"
    columns = [column.to_pylist() for column in fact.columns]
    ends, complete = fact.offsets.tolist(), fact.complete.tolist()
    return f"Tuples({[str(t) for t in fact.terms]}, {columns}, offsets={ends}, complete={complete})"


def _columns(rng: Random) -> tuple[tuple[str, str], ...]:
    return tuple((f"c{i}", rng.choice(COLUMN_KINDS)) for i in range(rng.choice([1, 2, 2, 3, 4])))


def _subjects(columns: Sequence[tuple[str, str]]) -> tuple[Subject, ...]:
    found = []
    for name, ddl in columns:
        if ddl in NESTED:
            found += [subject_of(f"{name}.{field}", kind, name, ddl) for field, kind in NESTED[ddl]]
        elif ddl == MAP:
            found.append(subject_of(f"{name}['k']", "string", name, ddl))
        else:
            found.append(subject_of(name, ddl, name, ddl))
    return tuple(found)


def _row(rng: Random, columns: Sequence[tuple[str, str]], pools: dict[str, list[Any]]) -> dict[str, Any]:
    """The values of all terms, and under `*name` those of the columns themselves."""
    row: dict[str, Any] = {}
    for name, ddl in columns:
        if ddl in NESTED:
            whole = (
                None
                if rng.random() < 0.15
                else {field: rng.choice(pools[f"{name}.{field}"]) for field, _ in NESTED[ddl]}
            )
            row.update({f"{name}.{field}": None if whole is None else whole[field] for field, _ in NESTED[ddl]})
        elif ddl == MAP:
            value = rng.choice(pools[f"{name}['k']"])
            whole = rng.choice([None, {}, {"j": "a"}, {"k": value}, {"k": value}, {"j": "b", "k": value}, {"k": value}])
            row[f"{name}['k']"] = None if whole is None else whole.get("k")
        else:
            whole = row[name] = rng.choice(pools[name])
        row[f"*{name}"] = whole
    return row


def _plan(rng: Random, subjects: Sequence[Subject], fact_kind: str | None) -> list[Subject]:
    """The partition fields of the table: its rows are divided so that each container has one value of each."""
    if fact_kind in ("bounds", "tuples") or (fact_kind is None and rng.random() < 0.3):
        return []
    found = []
    for subject in rng.sample(list(subjects), min(len(subjects), rng.choice([1, 1, 2]))):
        names = TRANSFORMS.get(subject.kind, [])
        if fact_kind == "exact" or not names or (fact_kind is None and rng.random() < 0.5):
            found.append(subject)
        else:
            found.append(replace(subject, transform=rng.choice(names)))
    return found


def _split(rng: Random, rows: Sequence[dict[str, Any]], plan: Sequence[Subject]) -> tuple[tuple[int, ...], ...]:
    groups: dict[Any, list[int]] = {}
    parts = rng.choice([1, 1, 2]) if plan else rng.choice([1, 2, 4, 6])
    for i, row in enumerate(rows):
        key = [identity(subject.of(row[subject.name])) for subject in plan]
        groups.setdefault((tuple(key), rng.randrange(parts)), []).append(i)
    found = [tuple(group) for group in groups.values()]
    if rng.random() < 0.2 or not found:
        found.insert(rng.randrange(len(found) + 1), ())
    return tuple(found[:10])


def _recipes(
    rng: Random, subjects: Sequence[Subject], plan: Sequence[Subject], fact_kind: str | None
) -> tuple[Recipe, ...]:
    found = [Recipe("exact", (subject,), rng.getrandbits(32)) for subject in plan if rng.random() < 0.9]
    if fact_kind in ("exact", "transforms"):
        return tuple(found)
    kinds = {"bounds": ["bounds"], "tuples": ["tuples"]}.get(
        fact_kind or "", ["bounds", "bounds", "bounds", "tuples", "exact"]
    )
    for _ in range(rng.choice([1, 1, 2]) if fact_kind == "tuples" else rng.choice([1, 2, 3, 4])):
        kind = rng.choice(kinds)
        count = 1 if kind != "tuples" else min(len(subjects), rng.choice([1, 2, 2]))
        chosen = rng.sample(list(subjects), count)
        if fact_kind is None:
            chosen = [_perhaps_derived(rng, subject, kind) for subject in chosen]
        found.append(Recipe(kind, tuple(chosen), rng.getrandbits(32)))
    if fact_kind == "tuples":
        found = found[:1]
    return tuple(found)


def _perhaps_derived(rng: Random, subject: Subject, kind: str) -> Subject:
    """At times a fact about a partition field: what a manifest knows of its files."""
    if subject.kind in TRANSFORMS and rng.random() < 0.15:
        return replace(subject, transform=rng.choice(TRANSFORMS[subject.kind]))
    if kind == "exact" and rng.random() < 0.05:
        return replace(subject, transform=rng.choice(["void", "unknown"]))
    if rng.random() < 0.03:
        return replace(subject, transform="identity")
    return subject


def build(seed: int, kind: str | None = None, fact_kind: str | None = None) -> Case:
    """The case of a seed; with `kind` a predicate of that kind only, with `fact_kind` facts of that kind only."""
    rng = Random(seed)
    columns = _columns(rng)
    if kind is not None and "LIKE" in kind:
        columns = (("c0", rng.choice(["string", "string", MAP, *NESTED])), *columns[1:])
    if fact_kind == "transforms" and not any(ddl in TRANSFORMS for _, ddl in columns):
        columns = (*columns[1:], ("c9", rng.choice(list(TRANSFORMS))))
    subjects = _subjects(columns)
    pools = {s.name: _pool(rng, s) for s in subjects}
    rows = tuple(_row(rng, columns, pools) for _ in range(rng.choice([0, 1, 2, 4, 8, 12, 20])))
    plan = _plan(rng, subjects, fact_kind)
    recipes = _recipes(rng, subjects, plan, fact_kind)
    told = [*plan, *(subject for recipe in recipes for subject in recipe.subjects)]
    rows = tuple(row for row in rows if all(subject.fits(row[subject.name]) for subject in told))
    split = _split(rng, rows, plan)
    sources = [Source(s.name, s.kind, tuple(pools[s.name])) for s in subjects]
    node = predicates.anything(rng, sources) if kind is None else predicates.of_kind(rng, sources, kind)
    case = Case(columns, subjects, rows, split, recipes, rng.random() < 0.7, node, rng.choice(ZONES))
    return replace(case, predicate=_bindable(case, node))


def _pool(rng: Random, subject: Subject) -> list[Any]:
    pool = POOLS[subject.kind][1]
    found = rng.sample(pool, min(len(pool), rng.choice([1, 2, 3, 5])))
    return [*found, None] if rng.random() < 0.5 else found


def _bindable(case: Case, node: Node) -> Node:
    """The tree with every test that does not bind replaced: what is refused is not of interest here."""
    try:
        case.bind(show(node))
    except PenstockError:
        word, parts = node
        if word == "leaf":
            return "leaf", [f"{case.subjects[0].name} IS NOT NULL"]
        return word, [_bindable(case, part) for part in parts]
    return node


def minimize(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that still fails: the first smaller neighbour that does, again and again."""
    for _ in range(400):
        found = next((smaller for smaller in _smaller(case) if _still(fails, smaller)), None)
        if found is None:
            return case
        case = found
    return case


def _still(fails: Callable[[Case], bool], case: Case) -> bool:
    try:
        case.bind(case.text)
    except PenstockError:
        return False
    return fails(case)


def _smaller(case: Case) -> Any:
    for node in _smaller_nodes(case.predicate):
        yield replace(case, predicate=node)
    for i in range(len(case.recipes)):
        yield replace(case, recipes=case.recipes[:i] + case.recipes[i + 1 :])
    for i in range(len(case.split)):
        yield replace(case, split=case.split[:i] + case.split[i + 1 :])
    for i, part in enumerate(case.split):
        for j in range(len(part)):
            yield replace(case, split=(*case.split[:i], part[:j] + part[j + 1 :], *case.split[i + 1 :]))
    if case.counted:
        yield replace(case, counted=False)
    if case.zone != "UTC":
        yield replace(case, zone="UTC")


def _smaller_nodes(node: Node) -> Any:
    word, parts = node
    if word == "leaf":
        return
    yield from parts
    if len(parts) > 1:
        for i in range(len(parts)):
            yield word, parts[:i] + parts[i + 1 :]
    for i, part in enumerate(parts):
        for smaller in _smaller_nodes(part):
            yield word, [*parts[:i], smaller, *parts[i + 1 :]]
