"""A perfect judge with the same knowledge, independent of `penstock.prune`.

It enumerates values for each term that the predicate mentions (its literals and their neighbours, the ends of
bounds and of partition values and theirs, the pool, NULL and NaN), keeps the combinations that the facts allow,
and lets the evaluator say what the predicate is for each of them. None is true: a perfect judge skips. All are
true: it keeps whole.

Sets of values that tests and facts describe are made of intervals that start at one of the enumerated values. So
when there is a value at all that satisfies all of them, there is one among the candidates. That does not hold for
bucket[n], whose values are scattered: there the judge tries many values, and what it misses is reported apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice, product
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.evaluate import evaluate, unevaluable
from penstock.expr.tree import Expr, Literal, terms_of, walk
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Derived, Exact, Tuples
from penstock.prune.verdict import Verdict
from tests.differential.values import POOLS, fits, identity, is_nan, order, to_array, transformed

MOST_COMBINATIONS = 20_000
KIND_OF = {t: kind for kind, (t, _) in POOLS.items()}
_EPOCH_STORAGE = {"date32[day]": pa.int32(), "timestamp[us]": pa.int64(), "timestamp[us, tz=UTC]": pa.int64()}


def physical(array: pa.Array) -> list[Any]:
    """An array as physical values."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    storage = _EPOCH_STORAGE.get(str(array.type))
    return list((array.view(storage) if storage is not None else array).to_pylist())


class PerfectJudge:
    """The verdicts of a perfect judge on a batch; None where there are too many combinations to look at."""

    def __init__(self, bound: Expr, containers: Containers, zone: str) -> None:
        self.bound, self.containers, self.zone = bound, containers, zone
        self.terms = list(terms_of(bound))
        self.facts = [_Known(fact) for fact in containers.facts]
        self.literals = [n.value for n in walk(bound) if isinstance(n, Literal)]
        self.literals += [o.value for n in walk(bound) for o in getattr(n, "options", ())]
        self.literals += [n.pattern for n in walk(bound) if hasattr(n, "pattern")]

    def verdict(self, i: int) -> Verdict | None:
        """The verdict on container i."""
        rows = self.containers.rows
        if rows is not None and rows[i].as_py() == 0:
            return Verdict.SKIP
        if unevaluable(self.bound) is not None or any(fact.is_empty(i) for fact in self.facts):
            return None
        found = list(islice(self._combinations(i), MOST_COMBINATIONS + 1))
        if len(found) > MOST_COMBINATIONS:
            return None
        if not found:
            return Verdict.SKIP
        values = {t: to_array([row[n] for row in found], t.type) for n, t in enumerate(self.terms)}
        vector = evaluate(self.bound, values, len(found), self.zone)
        true = np.array([v is True for v in vector.values.to_pylist()])
        failed = np.zeros(len(found), np.bool_) if vector.failed is None else vector.failed
        if failed.any() and not true.any():
            return None  # Spark would raise; neither to skip nor to keep is better
        if not true.any():
            return Verdict.SKIP
        return Verdict.KEEP_WHOLE if (true & ~failed).all() else Verdict.KEEP

    def _combinations(self, i: int) -> Iterator[tuple[Any, ...]]:
        """Values of all terms together that the facts allow."""
        allowed = [self._allowed(term, i) for term in self.terms]
        joint = [fact for fact in self.facts if fact.is_joint(i)]
        if not joint:
            yield from product(*allowed)
            return
        for entry in product(*(fact.entries(i) for fact in joint)):
            yield from self._with_entry(entry, joint, allowed, i)

    def _with_entry(
        self, entry: tuple[tuple[Any, ...], ...], joint: list[_Known], allowed: list[list[Any]], i: int
    ) -> Iterator[tuple[Any, ...]]:
        """The combinations under one tuple of each joint fact."""
        says: dict[Expr, list[tuple[str | None, Any]]] = {}
        for fact, values in zip(joint, entry, strict=True):
            for term, value in zip(fact.fact.terms, values, strict=True):
                source, transform = _split(term)
                says.setdefault(source, []).append((transform, value))
        narrowed = []
        for term, values in zip(self.terms, allowed, strict=True):
            told = says.pop(term, [])
            extra = [value for transform, value in told if transform is None]
            candidates = [v for v in extra[:1] if self._is_allowed(term, v, i)] if extra else values
            narrowed.append([v for v in candidates if all(_agrees(v, *t, term.type) for t in told)])
        for term, told in says.items():  # terms that the predicate does not mention must be possible all the same
            values = [v for transform, v in told if transform is None] or self._allowed(term, i)
            if not any(self._is_allowed(term, v, i) and all(_agrees(v, *t, term.type) for t in told) for v in values):
                return
        yield from product(*narrowed)

    def _allowed(self, term: Expr, i: int) -> list[Any]:
        return [value for value in self._candidates(term, i) if self._is_allowed(term, value, i)]

    def _is_allowed(self, term: Expr, value: Any, i: int) -> bool:
        return all(fact.allows(value, i, term.type) for fact in self.facts if fact.source == term)

    def _candidates(self, term: Expr, i: int) -> list[Any]:
        t = term.type
        seeds = [*POOLS[KIND_OF[t]][1], *self.literals]
        for fact in self.facts:
            if term in fact.sources:
                seeds += fact.mentioned(i, t)
        found: dict[str, Any] = {"None": None}
        for seed in seeds:
            for value in _around(seed, t):
                if value is not None and fits(value, t):
                    found.setdefault(identity(value), value)
        if pa.types.is_floating(t):
            found.setdefault("nan", float("nan"))
        if any(fact.buckets(term) for fact in self.facts):
            for value in _many(t, list(found.values())):
                found.setdefault(identity(value), value)
        return list(found.values())


def _split(term: Any) -> tuple[Expr, str | None]:
    return (term.source, term.transform) if isinstance(term, Derived) else (term, None)


def _agrees(value: Any, transform: str | None, told: Any, t: pa.DataType) -> bool:
    if transform is None:
        return identity(value) == identity(told)
    if transform in ("void", "unknown"):
        return True
    return identity(_applied(transform, t, value)) == identity(told)


def _applied(transform: str, t: pa.DataType, value: Any) -> Any:
    try:
        return transformed(transform, t, value)
    except (OverflowError, ValueError):
        return "beyond"


class _Known:
    """One fact as plain Python values."""

    def __init__(self, fact: Any) -> None:
        self.fact = fact
        if isinstance(fact, Tuples):
            self.source: Expr | None = None
            self.sources = [_split(term)[0] for term in fact.terms]
            self.columns = [physical(column) for column in fact.columns]
            return
        self.source, self.transform = _split(fact.term)
        self.sources = [self.source]
        if isinstance(fact, Exact):
            self.values = physical(fact.values)
        else:
            names = ("lower", "upper", "null_count", "nan_count", "value_count")
            columns = {name: getattr(fact, name) for name in names}
            self.columns_of = {n: None if c is None else physical(c) for n, c in columns.items()}

    def is_joint(self, i: int) -> bool:
        return isinstance(self.fact, Tuples) and bool(self.fact.complete[i])

    def is_empty(self, i: int) -> bool:
        """Whether a count of values says that there are no rows, which is no question about the predicate."""
        return isinstance(self.fact, Bounds) and self._get("value_count", i) == 0

    def entries(self, i: int) -> list[tuple[Any, ...]]:
        start, end = self.fact.offsets[i : i + 2]
        return list(zip(*(column[start:end] for column in self.columns), strict=True))

    def buckets(self, term: Expr) -> bool:
        terms = self.fact.terms if isinstance(self.fact, Tuples) else [self.fact.term]
        return any(isinstance(t, Derived) and t.source == term and "bucket" in t.transform for t in terms)

    def allows(self, value: Any, i: int, t: pa.DataType) -> bool:
        """Whether a row of container i may have this value of the source."""
        if self.transform in ("void", "unknown"):
            return True
        seen = value if self.transform is None else _applied(self.transform, t, value)
        if isinstance(self.fact, Exact):
            known = self.fact.known is None or bool(self.fact.known[i])
            return not known or identity(seen) == identity(self.values[i])
        return self._within(seen, i)

    def _get(self, name: str, i: int) -> Any:
        column = self.columns_of[name]
        return None if column is None else column[i]

    def _within(self, value: Any, i: int) -> bool:
        nulls, nans, count = (self._get(name, i) for name in ("null_count", "nan_count", "value_count"))
        if not isinstance(self.fact.lower if self.fact.lower is not None else self.fact.upper, pa.FloatingPointArray):
            nans = nans if is_nan(value) else (nans or 0)
        if value is None:
            return nulls != 0 and (count is None or count > (nans or 0))
        if is_nan(value):
            return nans != 0 and (count is None or count > (nulls or 0))
        if count is not None and count <= (nulls or 0) + (nans or 0):
            return False
        lower, upper = self._get("lower", i), self._get("upper", i)
        lower, upper = (None if end is None or is_nan(end) else end for end in (lower, upper))
        cut = self.fact.upper_cut is not None and bool(self.fact.upper_cut[i])
        if lower is not None and upper is not None and not cut and order(lower) > order(upper):
            return True  # the wrong way round: says nothing
        if lower is not None and order(value) < order(lower):
            return False
        if upper is None or value == "beyond":
            return True
        return order(value[: len(upper)] if cut else value) <= order(upper)

    def mentioned(self, i: int, t: pa.DataType) -> list[Any]:
        """Source values at the ends of what the fact speaks of."""
        if isinstance(self.fact, Tuples):
            terms = [_split(term) for term in self.fact.terms]
            pairs = [(v, tr) for column, (_, tr) in zip(self.columns, terms, strict=True) for v in column]
        elif isinstance(self.fact, Exact):
            pairs = [(self.values[i], self.transform)]
        else:
            pairs = [(self._get("lower", i), self.transform), (self._get("upper", i), self.transform)]
        return [v for value, transform in pairs for v in _sources(value, transform, t)]


def _sources(value: Any, transform: str | None, t: pa.DataType) -> list[Any]:
    """Values of the source at the ends of a partition value, and at those of its neighbours."""
    if value is None or transform is None or transform == "identity" or transform.startswith("truncate"):
        return [value] if transform is None or not isinstance(value, int | Decimal) else _steps(value, transform, t)
    units = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
    if transform not in units:
        return []
    unit = "D" if t == pa.date32() else "us"
    return [
        int(np.datetime64(value + step, units[transform]).astype(f"datetime64[{unit}]").astype(np.int64))
        for step in (0, 1)
    ]


def _steps(value: Any, transform: str, t: pa.DataType) -> list[Any]:
    width = int(transform[9:-1]) if transform.startswith("truncate") else 1
    step = Decimal(width).scaleb(-t.scale) if pa.types.is_decimal(t) else width
    return [value, value + step]


def _around(seed: Any, t: pa.DataType) -> list[Any]:
    """A value and its neighbours, as values of a type; a value of another type becomes the nearest ones."""
    if seed is None or isinstance(seed, bool):
        return [seed] if t == pa.bool_() else []
    if t == pa.string():
        return _around_text(seed) if isinstance(seed, str) else []
    if t == pa.binary():
        return [seed, seed + b"\0", seed[:-1], *_next_bytes(seed)] if isinstance(seed, bytes) else []
    if isinstance(seed, str | bytes) or t == pa.bool_():
        return []
    if pa.types.is_floating(t):
        return _around_float(float(seed), t)
    if isinstance(seed, float) and not math.isfinite(seed):
        return []
    if pa.types.is_decimal(t):
        unit = Decimal(1).scaleb(-t.scale)
        near = (Decimal(seed) / unit).to_integral_value(rounding="ROUND_FLOOR") * unit
        return [near - unit, near, near + unit, near + 2 * unit]
    near = math.floor(seed)
    return [near - 1, near, near + 1, near + 2]


def _around_float(seed: float, t: pa.DataType) -> list[float]:
    kind = np.float32 if t == pa.float32() else np.float64
    with np.errstate(over="ignore", under="ignore"):
        near = kind(seed)
        return [float(v) for v in (near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf)))]


def _around_text(seed: str) -> list[str]:
    bare = seed.replace("%", "").replace("_", "")
    found = [seed, seed + "\0", bare, bare + "\0"]
    for text in (seed, bare):
        for cut in range(len(text) + 1):
            found += [text[:cut], *_next_text(text[:cut])]
    return found


def _next_text(prefix: str) -> list[str]:
    rest = prefix.rstrip("\U0010ffff")
    if not rest:
        return []
    after = ord(rest[-1]) + 1
    return [rest[:-1] + chr(0xE000 if 0xD800 <= after <= 0xDFFF else after)]


def _next_bytes(prefix: bytes) -> list[bytes]:
    rest = prefix.rstrip(b"\xff")
    return [rest[:-1] + bytes([rest[-1] + 1])] if rest else []


def _many(t: pa.DataType, around: list[Any]) -> list[Any]:
    """More values near the given ones, so that every bucket has some."""
    if t == pa.string():
        return [v + chr(97 + k) for v in around if v is not None for k in range(6)]
    if t == pa.binary():
        return [v + bytes([k]) for v in around if v is not None for k in range(6)]
    unit = Decimal(1).scaleb(-t.scale) if pa.types.is_decimal(t) else 1
    values = [v + k * unit for v in around if v is not None for k in range(-12, 13)]
    return [v for v in values if fits(v, t)]
