"""The sets of values for which a test on one term, or on a function of one, comes out true, false and NULL.

`NOT` swaps true and false, which is the whole of three-valued negation. Where it is not known how a test comes out for
a value, the value is in several of the sets: they say how it *may* come out. What *must* make it true, for keeping
whole, are the values for which it may come out neither false nor NULL.

| test | may be true for | must be true for |
|---|---|---|
| `x < 5`, `x IN (…)`, `x IS NULL`, `x LIKE 'ab%'` | the exact set | the same |
| `x LIKE 'a%b'` | the strings that start with `a` | nothing |
| `year(ts) = 2026` | the values of `year(ts)` in the exact set, where `year` has a law | the same |
| `md5(s) = '…'`, anything else over one term | every value, and NULL if it may | nothing |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.expr.functions.function_registry import FUNCTIONS
from penstock.expr.functions.laws import is_sharp, lawful_path
from penstock.expr.kernels.evaluate import evaluate, unevaluable
from penstock.expr.kernels.like import is_literal, parts_of, prefix_of
from penstock.expr.kernels.physical import to_arrow
from penstock.expr.tree import Call, Cast, Compare, Expr, In, IsNull, Like, Literal, Not, fold, is_term, terms_of
from penstock.expr.types import is_float
from penstock.prune.domain import Domain, unite
from penstock.prune.ordered_keys import is_comparable, key_of, next_prefix, successor
from penstock.prune.preimage import preimage

# Of tests over more terms than this, NULL in one of them says nothing here.
_MOST_TERMS = 8


@dataclass(frozen=True, slots=True)
class Truth:
    """How one test may come out, for values of `subject`, a term or a function of one.

    `sharp` says that ranges tell of a single value what evaluating the test would.
    """

    subject: Expr
    true: Domain
    false: Domain
    unknown: Domain
    sharp: bool = True

    @property
    def not_true(self) -> Domain:
        """What may make the test false or NULL."""
        if not self.unknown.intervals:
            return self.false.with_null(self.false.null or self.unknown.null)
        return unite([self.false, self.unknown])

    @property
    def is_exact(self) -> bool:
        """Whether what may make it true must."""
        return self.true == self.not_true.complement()


class Truths:
    """The sets of tests in one session zone, each computed once."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self._truths: dict[Expr, Truth | None] = {}

    def of(self, test: Expr) -> Truth | None:
        """The sets of a test; None when it is about no term, about several, or about one without order."""
        if test not in self._truths:
            self._truths[test] = self._computed(test)
        return self._truths[test]

    def _computed(self, test: Expr) -> Truth | None:
        if isinstance(test, Not):
            inner = self.of(test.child)
            return None if inner is None else replace(inner, true=inner.false, false=inner.true)
        terms = terms_of(test)
        if len(terms) != 1 or not is_comparable(terms[0].type):
            return None
        anything = Domain.all(_type(terms[0]), null=False)
        values = _of_values(test, terms[0]) or Truth(terms[0], anything, anything, anything)
        outcome = _at_null(test, terms[0], self.zone)
        true, false, unknown = (
            domain.with_null(outcome in (this, "any"))
            for domain, this in ((values.true, True), (values.false, False), (values.unknown, None))
        )
        return Truth(values.subject, true, false, unknown, is_sharp(lawful_path(values.subject) or (), self.zone))


def _of_values(test: Expr, term: Expr) -> Truth | None:
    """How a test comes out for values that are not null; None where nothing is known of that."""
    match test:
        case Compare(right=Literal() as right) if right.value is not None and test.left.type == right.type:
            return _solved(test.left, _compared(test.op, right))
        case In() if test.child.type is not None and all(o.type == test.child.type for o in test.options):
            keys = [key_of(o.value, test.child.type) for o in test.options if o.value is not None]
            solved = _solved(test.child, Domain.points(test.child.type, keys))
            if solved is None or len(keys) == len(test.options):
                return solved
            return replace(solved, false=solved.unknown, unknown=solved.false)  # a NULL in the list: a miss is unknown
        case IsNull() if test.child.type is not None:
            return _solved(test.child, Domain.none(test.child.type))
        case Like() if test.child == term:
            return _like(test, term)
        case Call(name="startswith") if test.args[0] == term and isinstance(test.args[1], Literal):
            return _prefixed(term, test.args[1].value) if isinstance(test.args[1].value, str) else None
        case Call(name="isnan") if test.args[0] == term and is_float(_type(term)):
            return _exactly(term, Domain.points(_type(term), [key_of(float("nan"), _type(term))]))
    if test == term and term.type == pa.bool_():
        return _exactly(term, Domain.points(pa.bool_(), [1]))
    return None


def _type(term: Expr) -> pa.DataType:
    assert term.type is not None
    return term.type


def _exactly(subject: Expr, true: Domain) -> Truth:
    return Truth(subject, true, true.complement().with_null(False), Domain.none(true.type))


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


def _solved(expr: Expr, domain: Domain) -> Truth | None:
    """The set for a test of `expr`: of values of its term where that is exact and simple, else of its own values."""
    if not is_comparable(expr.type):
        return None
    inverted = preimage(expr, domain)
    if inverted is not None:
        return _exactly(*inverted)
    return _exactly(expr, domain) if lawful_path(expr) is not None else None


def _like(test: Like, term: Expr) -> Truth | None:
    parts = parts_of(test.pattern, test.escape)
    if parts is None:
        return None
    t = _type(term)
    if is_literal(parts):
        return _exactly(term, Domain.points(t, ["".join(str(p) for p in parts)]))
    prefix, enough = prefix_of(parts)
    if enough:
        return _prefixed(term, prefix)
    begins = Domain.interval(t, prefix, next_prefix(prefix))
    return Truth(term, begins, Domain.all(t, null=False), Domain.none(t))


def _prefixed(term: Expr, prefix: str) -> Truth:
    return _exactly(term, Domain.interval(_type(term), prefix, next_prefix(prefix)))


def _at_null(test: Expr, term: Expr, zone: str) -> bool | str | None:
    """What a test is for NULL; "any" where that is not known."""
    if unevaluable(test) is not None:
        return "any"
    vector = evaluate(test, {term: to_arrow([None], _type(term))}, 1, zone)
    return "any" if vector.failed is not None else vector.values[0].as_py()


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
