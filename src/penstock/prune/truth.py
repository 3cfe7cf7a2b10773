"""The set of values for which a test on one term, or on a function of one, is true, and the set for which it is false.

NULL answers are in neither set. `NOT` swaps the two, which is the whole of three-valued negation. Where the exact set
is not known there are two: what *may* make the test true (for skipping, it errs on the large side) and what *must*
(for keeping whole, it errs on the small side). Most tests have one set for both.

| test | may be true for | must be true for |
|---|---|---|
| `x < 5`, `x IN (…)`, `x IS NULL`, `x LIKE 'ab%'` | the exact set | the same |
| `x LIKE 'a%b'` | the strings that start with `a` | nothing |
| `year(ts) = 2026` | the values of `year(ts)` in the exact set, where `year` has a law | the same |
| `md5(s) = '…'`, anything else over one term | every value, and NULL if it may | nothing |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.expr.functions.function_registry import FUNCTIONS
from penstock.expr.functions.laws import is_sharp, lawful_path
from penstock.expr.kernels.evaluate import evaluate, unevaluable
from penstock.expr.kernels.like import is_literal, parts_of, prefix_of
from penstock.expr.kernels.python_values import to_arrow
from penstock.expr.tree import Call, Cast, Compare, Expr, In, IsNull, Like, Literal, Not, fold, is_term, terms_of
from penstock.expr.types import is_float
from penstock.prune.domain import Domain
from penstock.prune.ordered_keys import is_comparable, key_of, next_prefix, successor
from penstock.prune.preimage import preimage

# Of tests over more terms than this, NULL in one of them says nothing here.
_MOST_TERMS = 8


@dataclass(frozen=True, slots=True)
class Sets:
    """What may and what must make something hold, NULL included."""

    may: Domain
    must: Domain

    @property
    def exact(self) -> bool:
        """Whether the two are one."""
        return self.may == self.must


@dataclass(frozen=True, slots=True)
class Truth:
    """The sets of one test, of values of a term or of a function of one.

    `sharp` says that ranges tell of a single value what evaluating the test would.
    """

    subject: Expr
    true: Sets
    false: Sets
    sharp: bool = True


class Truths:
    """The sets of tests in one session zone, each computed once."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self._truths: dict[Expr, Truth | None] = {}

    def of(self, test: Expr) -> Truth | None:
        """The sets of a test, see `truth_of`."""
        if test not in self._truths:
            self._truths[test] = truth_of(test, self.zone)
        return self._truths[test]


def truth_of(test: Expr, zone: str) -> Truth | None:
    """The sets of a test; None when it is about no term, about several, or about one without order."""
    if isinstance(test, Not):
        inner = truth_of(test.child, zone)
        return None if inner is None else Truth(inner.subject, inner.false, inner.true, inner.sharp)
    terms = terms_of(test)
    if len(terms) != 1 or not is_comparable(terms[0].type):
        return None
    term = terms[0]
    subject, (true, false) = _value_sets(test, term, zone) or (term, _anything(term))
    null = _at_null(test, term, zone)
    path = lawful_path(subject) or ()
    return Truth(subject, _with_null(true, null, True), _with_null(false, null, False), is_sharp(path, zone))


_Pair = tuple[Sets, Sets]  # over non-null values: for true, for false
_Solution = tuple[Expr, _Pair]  # with what they are values of


def _value_sets(test: Expr, term: Expr, zone: str) -> _Solution | None:
    match test:
        case Compare(right=Literal() as right) if right.value is not None and test.left.type == right.type:
            return _solved(test.left, _compared(test.op, right))
        case In() if test.child.type is not None and all(o.type == test.child.type for o in test.options):
            return _member(test)
        case IsNull():
            return _solved(test.child, None if test.child.type is None else Domain.none(test.child.type))
        case Like() if test.child == term:
            pair = _like(test, term)
            return None if pair is None else (term, pair)
        case Call(name="startswith") if test.args[0] == term and isinstance(test.args[1], Literal):
            return (term, _prefixed(term, test.args[1].value)) if isinstance(test.args[1].value, str) else None
        case Call(name="isnan") if test.args[0] == term and is_float(_type(term)):
            return term, _exactly(Domain.points(_type(term), [key_of(float("nan"), _type(term))]))
    if test == term and term.type == pa.bool_():
        return term, _exactly(Domain.points(pa.bool_(), [1]))
    return None


def _type(term: Expr) -> pa.DataType:
    assert term.type is not None
    return term.type


def _exactly(true: Domain) -> _Pair:
    false = true.complement().with_null(False)
    return Sets(true, true), Sets(false, false)


def _anything(term: Expr) -> _Pair:
    unknown = Sets(Domain.all(_type(term), null=False), Domain.none(_type(term)))
    return unknown, unknown


def _compared(op: str, literal: Literal) -> Domain:
    t = literal.type
    key = key_of(literal.value, t)
    match op:
        case "<":
            return Domain.interval(t, None, key)
        case "<=":
            return Domain.interval(t, None, successor(key))
        case ">":
            return Domain.interval(t, successor(key), None)
        case ">=":
            return Domain.interval(t, key, None)
    return Domain.points(t, [key])


def _member(test: In) -> _Solution | None:
    assert test.child.type is not None
    keys = [key_of(o.value, test.child.type) for o in test.options if o.value is not None]
    solved = _solved(test.child, Domain.points(test.child.type, keys))
    if solved is None or all(o.value is not None for o in test.options):
        return solved
    subject, (true, false) = solved
    nothing = Domain.none(false.may.type)  # a NULL in the list: a miss is unknown, never false
    return subject, (true, Sets(nothing, nothing))


def _solved(expr: Expr, domain: Domain | None) -> _Solution | None:
    """The set for a test of `expr`: of values of its term where that is exact and simple, else of its own values."""
    if domain is None or not is_comparable(expr.type):
        return None
    inverted = preimage(expr, domain)
    if inverted is not None:
        return inverted[0], _exactly(inverted[1])
    return (expr, _exactly(domain)) if lawful_path(expr) is not None else None


def _like(test: Like, term: Expr) -> _Pair | None:
    parts = parts_of(test.pattern, test.escape)
    if parts is None:
        return None
    t = _type(term)
    if is_literal(parts):
        return _exactly(Domain.points(t, ["".join(str(p) for p in parts)]))
    prefix, enough = prefix_of(parts)
    if enough:
        return _prefixed(term, prefix)
    begins = Domain.interval(t, prefix, next_prefix(prefix))
    everything = Domain.all(t, null=False)
    return Sets(begins, Domain.none(t)), Sets(everything, begins.complement().with_null(False))


def _prefixed(term: Expr, prefix: str) -> _Pair:
    return _exactly(Domain.interval(_type(term), prefix, next_prefix(prefix) if prefix else None))


def _with_null(sets: Sets, at_null: bool | str | None, outcome: bool) -> Sets:
    """The sets with NULL where the test is `outcome` for it; `at_null` is what the evaluator says of NULL."""
    return Sets(sets.may.with_null(at_null in (outcome, "unknown")), sets.must.with_null(at_null is outcome))


def _at_null(test: Expr, term: Expr, zone: str) -> bool | str | None:
    if unevaluable(test) is not None:
        return "unknown"
    vector = evaluate(test, {term: to_arrow([None], _type(term))}, 1, zone)
    if vector.failed is not None:
        return "unknown"
    return vector.values[0].as_py()  # type: ignore[no-any-return]


def null_rejecting(test: Expr, terms: Sequence[Expr]) -> list[Expr]:
    """The terms whose NULL alone already keeps a test over several terms from being true."""
    if len(terms) > _MOST_TERMS:
        return []
    if isinstance(test, Compare) and test.op != "<=>" and unevaluable(test) is None:
        return [term for term in terms if _passes_null(test.left, term) or _passes_null(test.right, term)]
    return []


def _passes_null(expr: Expr, term: Expr) -> bool:
    """Whether `expr` is NULL whenever `term` is: the term itself, below casts, comparisons and most functions."""

    def visit(node: Expr, below: tuple[bool, ...]) -> bool:
        if is_term(node):
            return node == term
        if isinstance(node, Call):
            function = FUNCTIONS.get(node.name)
            return function is not None and function.null_in_null_out and any(below)
        passes = isinstance(node, Cast | Not) or (isinstance(node, Compare) and node.op != "<=>")
        return passes and any(below)

    return fold(expr, visit)
