"""Facts about containers, derived honestly from their rows and then dropped and loosened at random.

A `Recipe` says what kind of fact is made about which term; `make_fact` makes it from the rows of each container. Every
fact that comes out is true of the rows, and nothing else may be relied upon: bounds are wider than the rows or missing,
counts are missing, values of containers that are not known are rubbish, and so are incomplete tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expr.tree import Expr
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Derived, Exact, Fact, Tuples
from tests.differential.values import POOLS, fits, identity, is_nan, order, to_array, transformed, transformed_type


@dataclass(frozen=True)
class Subject:
    """What a fact is about: a term, or with `transform` a partition field of it."""

    name: str
    kind: str
    expr: Expr
    transform: str | None = None

    @property
    def term(self) -> Any:
        return self.expr if self.transform is None else Derived(self.expr, self.transform)

    @property
    def type(self) -> pa.DataType:
        source = POOLS[self.kind][0]
        if self.transform in ("void", "unknown"):
            return pa.int32()
        return source if self.transform is None else transformed_type(self.transform, source)

    def of(self, value: Any) -> Any:
        """The subject's value where its term has `value`."""
        if self.transform in ("void", "unknown"):
            return None
        return value if self.transform is None else transformed(self.transform, POOLS[self.kind][0], value)

    def pool(self) -> list[Any]:
        """Some values of the subject, whether they occur or not."""
        if self.transform is None:
            return POOLS[self.kind][1]
        return [self.of(v) for v in POOLS[self.kind][1] if self.fits(v)]

    def fits(self, value: Any) -> bool:
        """Whether the transform of a value can be held at all."""
        return self.transform is None or fits(self.of(value), self.type)


@dataclass(frozen=True)
class Recipe:
    """How to make a fact: `seed` decides all that is random in it."""

    kind: str
    subjects: tuple[Subject, ...]
    seed: int


Rows = Sequence[dict[str, Any]]


def make_fact(recipe: Recipe, containers: Sequence[Rows]) -> Fact:
    """The fact of a recipe about containers that have these rows."""
    rng = Random(recipe.seed)
    made = {"exact": _exact, "bounds": _bounds, "tuples": _tuples}[recipe.kind]
    return made(rng, recipe, containers)


def _values(subject: Subject, rows: Rows) -> list[Any]:
    return [subject.of(row[subject.name]) for row in rows]


def _shifted(rng: Random, values: list[Any], t: pa.DataType) -> pa.Array:
    """An array that at times starts in the middle of its buffers, as a slice does."""
    if rng.random() < 0.2 and values:
        return to_array([values[-1], *values], t).slice(1)
    return to_array(values, t)


def _exact(rng: Random, recipe: Recipe, containers: Sequence[Rows]) -> Exact:
    subject = recipe.subjects[0]
    if subject.transform in ("void", "unknown"):
        return Exact(subject.term, pa.nulls(len(containers), pa.int32()))
    dropped = rng.choice([0.0, 0.0, 0.2])
    values, known = [], []
    for rows in containers:
        found = _values(subject, rows)
        same = len({identity(v) for v in found}) <= 1 and rng.random() >= dropped
        known.append(same)
        values.append(found[0] if same and found else rng.choice([None, *subject.pool()]))
    array = _shifted(rng, values, subject.type)
    if rng.random() < 0.3:
        array = array.dictionary_encode()
    return Exact(subject.term, array, None if all(known) and rng.random() < 0.8 else np.array(known, np.bool_))


def _bounds(rng: Random, recipe: Recipe, containers: Sequence[Rows]) -> Bounds:
    subject = recipe.subjects[0]
    loose, missing = rng.choice([0.0, 0.3]), rng.choice([0.0, 0.0, 0.2])
    lowers, uppers, cuts = [], [], []
    nulls, nans, counts = [], [], []
    for rows in containers:
        found = _values(subject, rows)
        lower, upper, cut = _ends(rng, subject, [v for v in found if v is not None and not is_nan(v)], loose)
        lowers.append(None if rng.random() < missing else lower)
        uppers.append(None if rng.random() < missing else upper)
        cuts.append(cut)
        nulls.append(None if rng.random() < missing else sum(v is None for v in found))
        nans.append(None if rng.random() < missing else sum(is_nan(v) for v in found))
        counts.append(None if rng.random() < missing else len(found))
    whole = rng.choice([0.0, 0.25])  # the chance of a column that is not there at all

    def column(values: list[Any], t: pa.DataType) -> pa.Array | None:
        return None if rng.random() < whole else _shifted(rng, values, t)

    lower_column, upper_column = column(lowers, subject.type), column(uppers, subject.type)
    null_column, count_column = column(nulls, pa.int64()), column(counts, pa.int64())
    has_nan = pa.types.is_floating(subject.type) or rng.random() < 0.2
    nan_column = column(nans, pa.int64()) if has_nan else None
    if (
        lower_column is None
        and upper_column is None
        and null_column is None
        and nan_column is None
        and count_column is None
    ):
        count_column = to_array(counts, pa.int64())
    cut_mask = np.array(cuts, np.bool_) if any(cuts) else None
    return Bounds(subject.term, lower_column, upper_column, null_column, nan_column, count_column, cut_mask)


def _ends(rng: Random, subject: Subject, values: list[Any], loose: float) -> tuple[Any, Any, bool]:
    if not values:
        pool = [None, None, *subject.pool()]
        return rng.choice(pool), rng.choice(pool), False  # says nothing of no values
    lower, upper = min(values, key=order), max(values, key=order)
    pool = [v for v in subject.pool() if not is_nan(v)]
    if rng.random() < loose:
        lower = rng.choice([v for v in pool if order(v) <= order(lower)] or [lower])
    if rng.random() < loose:
        upper = rng.choice([v for v in pool if order(v) >= order(upper)] or [upper])
    if isinstance(lower, float):
        lower, upper = (-v if v == 0 and rng.random() < 0.3 else v for v in (lower, upper))
        if rng.random() < 0.03:
            lower, upper = rng.choice([(float("nan"), upper), (lower, float("nan"))])
    cut = False
    if isinstance(lower, str | bytes) and subject.transform is None:
        if rng.random() < loose:
            lower = lower[: rng.randrange(3)]
        if rng.random() < loose:
            upper, cut = _cut(rng, upper)
    return lower, upper, cut


def _cut(rng: Random, upper: Any) -> tuple[Any, bool]:
    """An upper bound cut short: flagged as cut, or incremented (None where that cannot be)."""
    short = upper[: rng.randrange(3)]
    if rng.random() < 0.5:
        return short, True
    if isinstance(short, bytes):
        rest = short.rstrip(b"\xff")
        return (rest[:-1] + bytes([rest[-1] + 1]) if rest else None), False
    rest_text = short.rstrip("\U0010ffff")
    if not rest_text:
        return None, False
    after = ord(rest_text[-1]) + 1
    return rest_text[:-1] + chr(0xE000 if 0xD800 <= after <= 0xDFFF else after), False


def _tuples(rng: Random, recipe: Recipe, containers: Sequence[Rows]) -> Tuples:
    extra, partial = rng.choice([0, 0, 1, 3]), rng.choice([0.0, 0.0, 0.3])
    columns: list[list[Any]] = [[] for _ in recipe.subjects]
    offsets, complete = [0], []
    for rows in containers:
        found = {}
        for row in rows:
            entry = tuple(subject.of(row[subject.name]) for subject in recipe.subjects)
            found[identity(entry)] = entry
        entries = list(found.values())
        for _ in range(rng.randint(0, extra)):
            entries.append(tuple(rng.choice([None, *subject.pool()]) for subject in recipe.subjects))
        if rng.random() < partial:
            complete.append(False)
            entries = [entry for entry in entries if rng.random() < 0.5]
        else:
            complete.append(True)
        rng.shuffle(entries)
        for column, values in zip(columns, zip(*entries, strict=True), strict=False):
            column.extend(values)
        offsets.append(len(columns[0]))
    arrays = tuple(_shifted(rng, v, s.type) for v, s in zip(columns, recipe.subjects, strict=True))
    terms = tuple(subject.term for subject in recipe.subjects)
    return Tuples(terms, arrays, np.array(offsets, np.int64), np.array(complete, np.bool_))


def only(containers: Containers, i: int) -> Containers:
    """Container i alone."""
    facts: list[Fact] = []
    for fact in containers.facts:
        if isinstance(fact, Exact):
            facts.append(Exact(fact.term, fact.values.slice(i, 1), _one(fact.known, i), fact.label))
        elif isinstance(fact, Bounds):
            columns = (fact.lower, fact.upper, fact.null_count, fact.nan_count, fact.value_count)
            sliced = [None if column is None else column.slice(i, 1) for column in columns]
            facts.append(Bounds(fact.term, *sliced, _one(fact.upper_cut, i), fact.label))
        else:
            start, end = (int(n) for n in fact.offsets[i : i + 2])
            entries = tuple(column.slice(start, end - start) for column in fact.columns)
            facts.append(Tuples(fact.terms, entries, np.array([0, end - start]), fact.complete[i : i + 1], fact.label))
    return Containers(1, facts, rows=None if containers.rows is None else containers.rows.slice(i, 1))


def _one(mask: Any, i: int) -> Any:
    return None if mask is None else mask[i : i + 1]
