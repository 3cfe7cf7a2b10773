"""Bounds that travel through functions: from a range of a column to the range of a function of it.

`year(ts) = 2026`, `cast(ts AS date) >= …`, `x * 2 + 1 < 10` are tests of `f(x)`. Where every function on the way from x
to f(x) has declared a law (see `function`), both ends of the range of x are evaluated, step by step, which gives
the range of f(x):

    x in [3, 7]  →  x * 2 in [6, 14]  →  x * 2 + 1 in [7, 15]  →  no row has x * 2 + 1 > 20

Nothing is searched and nothing is inverted: the kernels that evaluate rows evaluate the ends. An end that is missing,
fails or is NULL makes both ends unknown, because a value beyond it may have wrapped around; only a function that has
a value everywhere (`total`) leaves the other end unchanged.

*Clock changes.* An instant's reading on the clock falls back by an hour in autumn. Let S be the difference between the
largest and the smallest offset that the zone ever had. Every reading is off by at most S, so further than a few S away
from a clock change the order is undisturbed. Within `_WINDOWS` times S of one, an end is moved outwards by that much,
before the function is evaluated and after.

>>> from penstock.expr.bind import bind_text
>>> path = lawful_path(bind_text("x * 2 + 1 < 10", "x bigint").left)
>>> [ends.to_pylist() for ends in carry(path, pa.array([3, None]), pa.array([7, 7]), "UTC")]
[[7, None], [15, None]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions import function_registry as functions
from penstock.expr.functions.function import Law, constants_of
from penstock.expr.kernels.cast import cast_law
from penstock.expr.kernels.evaluate import evaluate
from penstock.expr.kernels.physical import numbers, valid, vector
from penstock.expr.kernels.zones import SAFE, clock_spread, near_clock_change
from penstock.expr.tree import Call, Cast, Column, Expr, Literal, is_term, rebuild
from penstock.expr.types import TIMESTAMP, is_timestamp

_WINDOWS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One function on the way: the node over a stand-in for the argument that varies, and its law."""

    node: Expr
    argument: Column
    law: Law


Path = tuple[Step, ...]


def lawful_path(expr: Expr) -> Path | None:
    """The functions from the only term of an expression up to it; None where one has no law."""
    steps: list[Step] = []
    node = expr
    while not is_term(node):
        varying = [i for i, child in enumerate(node.children) if not isinstance(child, Literal)]
        if len(varying) != 1:
            return None
        place = varying[0]
        child = node.children[place]
        law = _law_of(node, place)
        if law is None or node.type is None or child.type is None:
            return None
        argument = Column(("argument",), child.type)
        children = [argument if i == place else each for i, each in enumerate(node.children)]
        steps.append(Step(rebuild(node, children), argument, law))
        node = child
    return tuple(reversed(steps)) if node.type is not None else None


def _law_of(node: Expr, place: int) -> Law | None:
    if isinstance(node, Cast):
        # TRY_CAST is null where CAST fails, which is neither below nor above.
        return None if node.safe or node.child.type is None else cast_law(node.child.type, node.type)
    function = functions.find(node.name) if isinstance(node, Call) else None
    if function is None or any(isinstance(arg, Literal) and arg.value is None for arg in node.children):
        return None
    return function.law(place, constants_of(node))


def carry(path: Path, lower: pa.Array, upper: pa.Array, zone: str) -> tuple[pa.Array, pa.Array]:
    """The range of the expression for each range of its term, both ends included; an unknown end is null."""
    for step in path:
        lower, upper = _widened(lower, upper, step, zone)
        low, high = (_evaluated(step, ends, zone) for ends in (lower, upper))
        lower, upper = (low, high) if step.law.direction > 0 else (high, low)
        lower, upper = _widened(lower, upper, step, zone)
        if step.law.slack and is_timestamp(lower.type):
            lower, upper = _moved(lower, -step.law.slack), _moved(upper, step.law.slack)
        if not step.law.total and (lower.null_count or upper.null_count):
            known = pc.and_(lower.is_valid(), upper.is_valid())
            lower, upper = (pc.if_else(known, ends, pa.scalar(None, ends.type)) for ends in (lower, upper))
    return lower, upper


def carry_exactly(path: Path, values: pa.Array, zone: str) -> pa.Array:
    """The expression for each value of its term; null where it fails."""
    for step in path:
        values = _evaluated(step, values, zone)
    return values


def is_sharp(path: Path, zone: str) -> bool:
    """Whether the range of a single value is a single value: no step moves an end outwards."""
    blurred = clock_spread(zone) > 0
    return not any(step.law.slack or (step.law.clock and blurred) for step in path)


def _evaluated(step: Step, values: pa.Array, zone: str) -> pa.Array:
    result = evaluate(step.node, {step.argument: values}, len(values), zone)
    if result.failed is None:
        return result.values
    return pc.if_else(pa.array(result.failed), pa.scalar(None, result.values.type), result.values)


def _widened(lower: pa.Array, upper: pa.Array, step: Step, zone: str) -> tuple[pa.Array, pa.Array]:
    """Instants near a clock change moved outwards, where the function reads or sets the clock."""
    if not step.law.clock or lower.type != TIMESTAMP:
        return lower, upper
    window = _WINDOWS * clock_spread(zone)
    if not window:
        return lower, upper
    return _moved(lower, -window, zone), _moved(upper, window, zone)


def _moved(instants: pa.Array, by: int, zone: str | None = None) -> pa.Array:
    """Instants moved, with a zone only those near one of its clock changes; null where they leave the safe range."""
    micros = numbers(instants)
    safe = (micros > SAFE[0] + abs(by)) & (micros < SAFE[1] - abs(by))
    micros = np.where(safe, micros, 0)
    moves = near_clock_change(micros, abs(by), zone) if zone is not None else np.True_
    return vector(np.where(moves, micros + by, micros), instants.type, valid(instants) & safe).values
