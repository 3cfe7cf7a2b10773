"""Bounds that travel through functions: which values of a column make a monotonic expression land in an interval.

`year(ts) = 2026`, `cast(ts AS date) >= …`, `x * 2 + 1 < 10`, `cast(n AS double) = 1e15` all have the form `f(x)` in
an interval, where f never falls (or never rises) as x grows. Then the x that qualify are one interval too, and its
ends are found by binary search over the keys of x, with the evaluator itself as f: at most 65 evaluations for all
ends together, and never a second definition of what `year` means.

Three things to mind:

* *Failing values.* `x + 1` fails at the largest integer. Valid values form one interval around zero; what lies
  outside may raise in Spark: it counts as possibly inside and possibly outside, and nothing is proven of it.
* *Time zones.* Local time is almost monotonic: in October 2006 in St John's the date went back at 00:01. Where that
  happens near an end, the end is only known up to a day: the day to either side counts as possibly inside and outside.
* *Prefixes.* `substring(s, 1, n)` and `left(s, n)` keep the order of strings and are solved without a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.predicate import functions
from penstock.predicate.cast import cast_direction, cast_direction_ignoring_zone
from penstock.predicate.evaluate import evaluate
from penstock.predicate.tree import Call, Cast, Expr, Literal, is_term
from penstock.predicate.types import TIMESTAMP, decimal_for, is_decimal, is_float, is_integer, is_timestamp
from penstock.predicate.zones import is_fixed
from penstock.prune.domain import Domain, Interval
from penstock.prune.keys import Key, Keys, array_keys, has_int64_keys, key_limits, keys_to_array
from penstock.prune.transforms import next_prefix

_SLACK = 26 * 3_600_000_000
_STEP = 60_000_000
_FAN, _MOST_POINTS = 256, 32_768  # points looked at in one step of a search: for one end, and in all
_BEFORE_MODERN_ZONES = 63_072_000_000_000  # 1972-01-01: before, offsets had seconds and moved at odd moments


@dataclass(frozen=True, slots=True)
class Monotone:
    """An expression that moves one way with one term."""

    expr: Expr
    term: Expr
    direction: int
    zoned: bool
    zone: str


@dataclass(frozen=True, slots=True)
class Preimage:
    """The values of the term for which the expression lies in the set, and those for which it lies outside.

    `surely_…` errs on the small side, `possibly_…` on the large one; they differ where the expression may fail and
    where local time runs backwards.
    """

    surely_in: Domain
    possibly_in: Domain
    surely_out: Domain
    possibly_out: Domain

    @staticmethod
    def exact(inside: Domain) -> Preimage:
        """Every value is known to be inside or outside."""
        outside = inside.complement().with_null(False)
        return Preimage(inside, inside, outside, outside)


def monotone(expr: Expr, zone: str) -> Monotone | None:
    """The expression as a monotonic function of its only term; None when that is not proven."""
    node, direction, zoned = expr, 1, False
    while not is_term(node):
        step = _step(node, zone)
        if step is None:
            return None
        node, moves, in_zone = step
        direction, zoned = direction * moves, zoned or in_zone
    if node.type is None or (node is not expr and expr.type is None):
        return None
    return Monotone(expr, node, direction, zoned, zone)


def _step(node: Expr, zone: str) -> tuple[Expr, int, bool] | None:
    """One node down towards the term: the child that varies, how the node moves with it, whether the zone matters."""
    if isinstance(node, Cast) and node.child.type is not None:
        # TRY_CAST is null where CAST fails, which is neither below nor above: it is not solved here.
        moves = 0 if node.safe else cast_direction(node.child.type, node.type, zone)
        if moves == 0 and not node.safe:
            moves = cast_direction_ignoring_zone(node.child.type, node.type)
            return (node.child, moves, True) if moves else None
        return (node.child, moves, False) if moves else None
    if isinstance(node, Call) and node.type is not None:
        varying = [i for i, arg in enumerate(node.args) if not isinstance(arg, Literal)]
        function = functions.find(node.name)
        if len(varying) != 1 or function is None or any(isinstance(a, Literal) and a.value is None for a in node.args):
            return None
        child = node.args[varying[0]]
        constants = [(arg.value,) if isinstance(arg, Literal) else None for arg in node.args]
        moves = function.direction(varying[0], constants)
        if node.name == "negative" and not is_float(child.type):
            moves = -1  # for floats it is not: -NaN is NaN, on top of everything
        zoned = node.name in functions.ZONED and child.type == TIMESTAMP and not is_fixed(zone)
        return (child, moves, zoned) if moves else None
    return None


def preimage(f: Monotone, wanted: Domain) -> Preimage | None:
    """The non-null values x of the term with f(x) in `wanted`; None when the search is not possible for the types."""
    t = f.term.type
    assert t is not None
    if f.expr is f.term:
        return Preimage.exact(wanted.with_null(False))
    width, factor = _prefix_width(f.expr), _factor(f.expr)
    if width is not None:
        found = [_prefixed(interval, width) for interval in wanted.intervals]
        return Preimage.exact(Domain.union_of(t, [interval for interval in found if interval is not None]))
    if factor is not None:
        ends = [(_divided(low, factor), _divided(high, factor)) for low, high in wanted.intervals]
        return Preimage.exact(Domain.union_of(t, ends))
    if not has_int64_keys(t) or f.expr.type is None or not has_int64_keys(f.expr.type):
        return None
    return _searched(f, wanted)


def _prefix_width(expr: Expr) -> int | None:
    """n for `left(term, n)` and `substring(term, 1, n)`."""
    if not isinstance(expr, Call) or not is_term(expr.args[0]) or expr.args[0].type != pa.string():
        return None
    constants = [arg.value for arg in expr.args[1:] if isinstance(arg, Literal)]
    if expr.name == "left" and len(constants) == 1 and constants[0] > 0:
        return int(constants[0])
    if expr.name in ("substring", "substr") and len(constants) == 2 and constants[0] == 1 and constants[1] > 0:
        return int(constants[1])
    return None


def _prefixed(interval: Interval, width: int) -> Interval | None:
    """The strings whose first `width` characters lie in the interval; None when there are none."""
    low, high = interval
    start = _first_with_prefix(low, width) if low is not None else None
    if low is not None and start is None:
        return None  # no prefix of this width reaches so far
    return start, None if high is None else _first_with_prefix(high, width)


def _first_with_prefix(key: Key, width: int) -> Key | None:
    """The smallest string whose first `width` characters are not below `key`; None when there is none."""
    return key if len(key) <= width else next_prefix(key[:width])


def _factor(expr: Expr) -> int | None:
    """m when the key of `expr` is m times the key of its term: widening casts."""
    if not isinstance(expr, Cast) or expr.safe or not is_term(expr.child):
        return None
    source, to = expr.child.type, expr.type
    if source is None:
        return None
    if is_integer(source) and is_integer(to) and to.bit_width >= source.bit_width:
        return 1
    if is_decimal(to) and (is_integer(source) or is_decimal(source)):
        scale = source.scale if is_decimal(source) else 0
        digits = source.precision - scale if is_decimal(source) else decimal_for(source).precision
        if to.scale >= scale and to.precision - to.scale >= digits:
            return int(10 ** (to.scale - scale))
    return None


def _divided(key: Key | None, factor: int) -> Key | None:
    return None if key is None else -(-key // factor)


def _searched(f: Monotone, wanted: Domain) -> Preimage | None:
    t = f.term.type
    limits = key_limits(t)
    assert limits is not None
    valid = _valid_range(f, limits)
    if valid is None:
        return None
    first, last = valid
    ends = sorted({end for interval in wanted.intervals for end in interval if end is not None})
    solved = dict(zip(ends, _search(f, np.array(ends, np.int64), first, last), strict=True))
    inside = Domain.union_of(t, [_interval(f, i, solved, first, last + 1) for i in wanted.intervals])
    works = Domain.interval(t, first, last + 1)
    fails = works.complement().with_null(False)
    blur = Domain.union_of(t, _blurred(f, sorted(set(solved.values())), first, last) if f.zoned else [])
    sharp = blur.complement().with_null(False)
    outside = works & inside.complement().with_null(False)
    return Preimage(inside & sharp, inside | blur | fails, outside & sharp, outside | blur | fails)


def _interval(f: Monotone, wanted: Interval, solved: dict[Key, int], first: int, end: int) -> Interval:
    low, high = wanted
    if f.direction > 0:
        return (first if low is None else solved[low]), (end if high is None else solved[high])
    return (first if high is None else solved[high]), (end if low is None else solved[low])


def _results(f: Monotone, keys: Keys) -> tuple[Keys, npt.NDArray[Any]]:
    """f at the given keys, as keys, and where it failed or is null."""
    values = keys_to_array(keys, f.term.type)
    vector = evaluate(f.expr, {f.term: values}, len(keys), f.zone)
    bad = np.asarray(vector.values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    if vector.failed is not None:
        bad = bad | vector.failed
    return array_keys(vector.values), bad


def _valid_range(f: Monotone, limits: tuple[int, int]) -> tuple[int, int] | None:
    """The first and the last key around zero at which f does not fail; None when it fails at zero itself."""
    low, high = limits
    _, bad = _results(f, np.array([low, 0, high], np.int64))
    if bad[1]:
        return None
    first = low if not bad[0] else _bisect(lambda keys: ~_results(f, keys)[1], low, 0)
    last = high if not bad[2] else _bisect(lambda keys: _results(f, keys)[1], 0, high) - 1
    return first, last


def _bisect(holds: Callable[[Keys], npt.NDArray[Any]], low: int, high: int) -> int:
    """The first key in (low, high] at which a test holds that holds from somewhere on; it holds at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(np.array([middle], np.int64))[0]:
            high = middle
        else:
            low = middle
    return high


def _search(f: Monotone, ends: Keys, first: int, last: int) -> list[int]:
    """For each end the first key x with f(x) >= end (f rising) or f(x) < end (f falling); last + 1 when there is none.

    All ends are searched at once, and each step looks at many points: what costs is the call, not the points.
    """
    fan = max(2, min(_FAN, _MOST_POINTS // max(1, len(ends))))
    beyond = ~_reached(f, np.full(len(ends), last, np.int64), ends)
    low = np.zeros(len(ends), np.uint64)  # offsets from `first`; the answer lies in [low, high]
    high = np.full(len(ends), last - first, np.uint64)
    base = np.array([first], np.int64).view(np.uint64)
    rows = np.arange(len(ends))
    while (high > low).any():
        gap = np.maximum((high - low) // np.uint64(fan), np.uint64(1))
        ahead = np.minimum(gap[:, None] * np.arange(fan, dtype=np.uint64), (high - low)[:, None])
        points = low[:, None] + ahead
        yes = _reached(f, (points + base).view(np.int64).ravel(), np.repeat(ends, fan)).reshape(points.shape)
        before = (~yes).sum(axis=1)  # points that lie before the answer
        high = np.where(before < fan, points[rows, np.minimum(before, fan - 1)], high)
        last_before = points[rows, np.maximum(before, 1) - 1]
        after = np.where(last_before < high, last_before, high - np.uint64(1)) + np.uint64(1)  # never past `high`
        low = np.where(before > 0, np.where(last_before < high, after, high), low)
    return [last + 1 if out else first + int(offset) for offset, out in zip(low, beyond, strict=True)]


def _reached(f: Monotone, keys: Keys, ends: Keys) -> npt.NDArray[Any]:
    results, _ = _results(f, keys)
    return results >= ends if f.direction > 0 else results < ends


def _blurred(f: Monotone, ends: list[int], first: int, last: int) -> list[Interval]:
    """The stretches around ends where local time runs backwards, so that the end found is only one of several."""
    if not is_timestamp(f.term.type):
        return [(end - 2, end + 3) for end in ends]  # dates and others: a day to either side is plenty
    found: list[Interval] = []
    for end in ends:
        low, high = max(first, end - _SLACK), min(last, end + _SLACK)
        keys = np.arange(low - low % _STEP + _STEP, high, _STEP, dtype=np.int64)
        results = _results(f, keys)[0] if len(keys) else keys
        falls = bool((np.diff(results) * f.direction < 0).any())
        if falls or end < _BEFORE_MODERN_ZONES:
            found.append((low, high + 1))
    return found
