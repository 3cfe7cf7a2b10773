"""Comparisons of two columns: `shipped < ordered` is impossible where all that was shipped came after all orders.

Only the ends of the two ranges count, so any pair of values inside them is taken to be possible. Floats are left out:
NaN is above every bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Compare, Expr, Not, is_term
from penstock.expr.types import is_float
from penstock.prune.ordered_keys import Keys, has_int64_keys


@dataclass(frozen=True, slots=True)
class Span:
    """What one term may be in each container: a value in [low, high], or NULL."""

    low: Keys
    high: Keys
    value: Mask
    null: Mask


def paired_terms(test: Expr) -> tuple[Expr, Expr] | None:
    """The two terms of a comparison that spans can answer; None for any other test."""
    compare = test.child if isinstance(test, Not) else test
    if not isinstance(compare, Compare) or not (is_term(compare.left) and is_term(compare.right)):
        return None
    t = compare.left.type
    fits = t is not None and t == compare.right.type and has_int64_keys(t) and not is_float(t)
    return (compare.left, compare.right) if fits else None


def pair_possible(test: Expr, holds: bool, left: Span, right: Span) -> Mask:
    """Where the comparison may be true, or with `holds` false where it may be false or NULL."""
    compare = test.child if isinstance(test, Not) else test
    assert isinstance(compare, Compare)
    true, false = _truths(compare.op, left, right)
    if isinstance(test, Not):
        true, false = false, true
    if holds:
        return true
    return false if compare.op == "<=>" else np.asarray(false | left.null | right.null, np.bool_)


def _truths(op: str, left: Span, right: Span) -> tuple[Mask, Mask]:
    """Where the comparison may be true, and where it may be false."""
    both = left.value & right.value
    if op not in ("=", "<=>"):
        first, second = (left, right) if op in ("<", ">=") else (right, left)
        below, not_below = both & (first.low < second.high), both & (first.high >= second.low)
        return (below, not_below) if op in ("<", ">") else (not_below, below)
    meet = both & (left.low <= right.high) & (right.low <= left.high)
    same = (left.low == left.high) & (right.low == right.high) & (left.low == right.low)
    if op == "=":
        return meet, both & ~same
    one_null = (left.null & right.value) | (left.value & right.null)
    return meet | (left.null & right.null), (both & ~same) | one_null


def meet(spans: list[Span]) -> Span:
    """What several facts about one term leave."""
    first, *rest = spans
    low, high, value, null = first.low, first.high, first.value, first.null
    for span in rest:
        low, high = np.maximum(low, span.low), np.minimum(high, span.high)
        value, null = value & span.value, null & span.null
    return Span(low, high, value, null)
