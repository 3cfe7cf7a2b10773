"""A predicate turned into a question about containers: can any row make this true?

A question is a tree of *arms*. An arm is a conjunction: for each term the set of values it must have, and the tests
that no set describes. Containers know things term by term, so an arm is impossible as soon as one of its sets is.

Two steps make the answer as sharp as what is known allows:

* All tests of one term in an arm become one set: `x > 5 AND x < 6` on integers is impossible by itself, and an OR of
  10,000 equalities is one set with 10,000 points.
* AND is distributed over OR as long as that gives at most `MOST_ARMS` arms: `(a = 1 OR b = 2) AND a = 3` is
  `b = 2 AND a = 3`. Beyond that the tree is left unchanged, which is safe and only less sharp.

The opposite question, *can any row fail to make this true*, is a question of the same form (`negated=True`): a
container for which both answers are no has no rows, and one for which only the second is no matches as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.expr.tree import FALSE, TRUE, And, Expr, Literal, Or, fold, terms_of
from penstock.prune.domain import Domain, unite
from penstock.prune.truth import Truths, null_rejecting

MOST_ARMS = 64
MOST_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Check:
    """A test that is not (or not exactly) a set: it is evaluated where its terms have one known value.

    `holds` False asks for rows where the test is *not true* (false or unknown).
    """

    test: Expr
    terms: tuple[Expr, ...]
    holds: bool


@dataclass(frozen=True)
class Arm:
    """A conjunction of sets and checks; without any it is always possible."""

    domains: dict[Expr, Domain] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    tests: dict[Expr, tuple[Expr, ...]] = field(default_factory=dict)  # what was written about each term, for reasons

    @property
    def is_impossible(self) -> bool:
        return any(domain.is_empty for domain in self.domains.values())


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part is possible; without parts: impossible."""

    parts: tuple[Question, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part is possible by itself: a weaker statement than one arm, used where arms would be too many."""

    parts: tuple[Question, ...]
    depth: int


Question = Arm | AnyOf | AllOf
NOTHING = AnyOf((), 1)  # the question that no row of any container can answer with yes
# While building: the list of alternative arms, or a tree that is no longer distributed.
_Arms = list[Arm]
_Built = _Arms | AnyOf | AllOf


def ask(predicate: Expr, truths: Truths, negated: bool = False) -> Question:
    """The question whether a row can make `predicate` true, or with `negated` whether a row can fail to."""

    def visit(node: Expr, below: tuple[_Built, ...]) -> _Built:
        if isinstance(node, And | Or):
            return _any(below) if isinstance(node, Or) != negated else _all(below)
        return _leaf(node, truths, negated)

    return _finished(fold(predicate, visit, into=(And, Or)))


def _leaf(node: Expr, truths: Truths, negated: bool) -> _Built:
    if node in (TRUE, FALSE):
        return [Arm()] if (node == TRUE) != negated else []
    if isinstance(node, Literal):
        return [Arm()] if negated else []
    truth = truths.of(node)
    if truth is None:
        return [_opaque(node, negated)]
    domain = truth.not_true if negated else truth.true
    checks = () if truth.is_exact and truth.sharp else (Check(node, terms_of(node), not negated),)
    if domain.is_all:
        return [Arm({}, checks)]
    return [] if domain.is_empty else [Arm({truth.subject: domain}, checks, {truth.subject: (node,)})]


def _opaque(node: Expr, negated: bool) -> Arm:
    terms = terms_of(node)
    check = Check(node, terms, not negated)
    if negated:
        return Arm({}, (check,))
    rejecting = [term for term in null_rejecting(node, terms) if term.type is not None]
    domains = {term: Domain.all(term.type, null=False) for term in rejecting}
    return Arm(domains, (check,), dict.fromkeys(rejecting, (node,)))


def _all(parts: Iterable[_Built]) -> _Built:
    single, others = _singles(parts)
    arms: _Arms = [] if single.is_impossible else [single]
    rest: list[_Built] = []
    for part in sorted(others, key=lambda p: len(p) if isinstance(p, list) else MOST_ARMS + 1):
        if isinstance(part, list) and len(part) * len(arms) <= MOST_ARMS:
            arms = [both for a in arms for b in part if not (both := _joined(a, b)).is_impossible]
        else:
            rest.append(part)
    if not rest or not arms:
        return arms
    return _nested(AllOf, [_finished(arms), *(_finished(part) for part in rest)])


def _singles(parts: Iterable[_Built]) -> tuple[Arm, list[_Built]]:
    """The parts that are one arm, joined; and the others."""
    arms: _Arms = []
    others: list[_Built] = []
    for part in parts:
        if isinstance(part, list) and len(part) == 1:
            arms.append(part[0])
        else:
            others.append(part)
    while len(arms) > 1:  # in pairs: the sets of 10,000 tests on one column stay small for most of the way
        arms = [_joined(*arms[i : i + 2]) if i + 1 < len(arms) else arms[i] for i in range(0, len(arms), 2)]
    return (arms[0] if arms else Arm()), others


def _any(parts: Iterable[_Built]) -> _Built:
    arms: _Arms = []
    rest: list[Question] = []
    for part in parts:
        if isinstance(part, list):
            arms.extend(part)
        else:
            rest.extend(part.parts if isinstance(part, AnyOf) else (part,))
    arms = _united(arms)
    return _nested(AnyOf, [_finished(arms), *rest]) if rest else arms


def _nested(kind: type[AllOf] | type[AnyOf], parts: list[Question]) -> AllOf | AnyOf:
    """A part that is nested too deep counts as possible, which is always safe."""
    shallow = tuple(Arm() if not isinstance(part, Arm) and part.depth >= MOST_DEPTH else part for part in parts)
    return kind(shallow, 1 + max((0 if isinstance(part, Arm) else part.depth for part in shallow), default=0))


def _joined(a: Arm, b: Arm) -> Arm:
    domains, tests = dict(a.domains), dict(a.tests)
    for term, domain in b.domains.items():
        domains[term] = domains[term] & domain if term in domains else domain
        tests[term] = (*tests.get(term, ()), *b.tests.get(term, ()))
    return Arm(domains, (*a.checks, *(c for c in b.checks if c not in a.checks)), tests)


def _united(arms: _Arms) -> _Arms:
    """Alternatives that speak of one and the same single term become one set."""
    by_term: dict[Expr, list[Arm]] = {}
    others: _Arms = []
    for arm in arms:
        if not arm.domains and not arm.checks:
            return [Arm()]
        if len(arm.domains) == 1 and not arm.checks:
            by_term.setdefault(next(iter(arm.domains)), []).append(arm)
        else:
            others.append(arm)
    united = []
    for term, group in by_term.items():
        tests = tuple(test for arm in group for test in arm.tests[term])
        united.append(Arm({term: unite([arm.domains[term] for arm in group])}, (), {term: tests}))
    if any(domain.is_all for arm in united for domain in arm.domains.values()):
        return [Arm()]
    return united + others


def _finished(built: _Built) -> Question:
    if not isinstance(built, list):
        return built
    if not built:
        return NOTHING
    if len(built) == 1:
        return built[0]
    hull = _hull(built)
    alternatives = _nested(AnyOf, list(built))
    return _nested(AllOf, [hull, alternatives]) if hull.domains else alternatives


def _hull(arms: _Arms) -> Arm:
    """What all alternatives have in common: each term that every arm restricts, with the union of its sets.

    It is implied by the arms, so it proves nothing new; it settles most containers with one test a term.
    """
    common = [term for term in arms[0].domains if all(term in arm.domains for arm in arms)]
    united = {term: unite([arm.domains[term] for arm in arms]) for term in common}
    domains = {term: domain for term, domain in united.items() if not domain.is_all}
    tests = {t: tuple(dict.fromkeys(test for arm in arms for test in arm.tests.get(t, ()))) for t in domains}
    return Arm(domains, (), tests)
