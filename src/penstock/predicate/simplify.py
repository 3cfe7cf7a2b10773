"""The normal form: negations pushed to the tests, arms flattened, constants absorbed; true in all three values.

| rule | why it holds when a part is NULL |
|---|---|
| `NOT (a AND b)` → `NOT a OR NOT b`, and the mirror | De Morgan holds in Kleene's logic |
| `NOT a < b` → `a >= b` | Spark's order is total (NaN included); both sides are NULL together |
| `a AND TRUE` → `a`, `a AND FALSE` → `FALSE`, and the mirror | FALSE wins over NULL in AND, TRUE in OR |
| `a = NULL` → `NULL`, `a <=> NULL` → `a IS NULL` | by definition |
| `b = TRUE` → `b`, `b = FALSE` → `NOT b` | NULL on both sides |
| `x = 1 OR x = 2` → `x IN (1, 2)` | IN is defined as that OR |

`x = x` is *not* TRUE (it is NULL where x is), and `x > 1 AND x < 0` is left alone: contradictions are found by the
value sets of `prune`, which see all tests of a column together.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.predicate.evaluate import evaluate_constant
from penstock.predicate.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    fold,
    rebuild,
)

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# A node and its negation, both in normal form: whichever the parent needs.
_Both = tuple[Expr, Expr]


def simplify(predicate: Expr) -> Expr:
    """The normal form of a bound predicate; it is true, false and null on exactly the same rows.

    >>> from penstock.predicate.bind import bind_text
    >>> str(simplify(bind_text("NOT (x > 1 AND NOT y = 2) OR x > 1 AND TRUE", "x int, y int")))
    'x <= 1 OR y = 2 OR x > 1'
    """
    return fold(predicate, _visit)[0]


def _visit(node: Expr, below: tuple[_Both, ...]) -> _Both:
    plain = [both[0] for both in below]
    if isinstance(node, Not):
        return below[0][1], below[0][0]
    if isinstance(node, And):
        return _connect(And, plain), _connect(Or, [both[1] for both in below])
    if isinstance(node, Or):
        return _connect(Or, plain), _connect(And, [both[1] for both in below])
    test = _test(rebuild(node, plain))
    return test, _negate(test)


def _negate(test: Expr) -> Expr:
    if isinstance(test, Compare) and test.op in _NEGATED:
        return Compare(_NEGATED[test.op], test.left, test.right, at=test.at)
    if isinstance(test, Literal) and test.type == pa.bool_():
        return {True: FALSE, False: TRUE}.get(test.value, NULL)
    if isinstance(test, Not):
        return test.child
    return Not(test, at=test.at)


def _test(node: Expr) -> Expr:
    if node.type == pa.bool_() and node.children and all(isinstance(c, Literal) for c in node.children):
        found = evaluate_constant(node, "UTC") if _constant_tests(node) else None
        return node if found is None else {True: TRUE, False: FALSE}.get(found[0], NULL)
    if isinstance(node, Compare):
        return _compare(node)
    if isinstance(node, In):
        return _membership(node)
    return node


def _constant_tests(node: Expr) -> bool:
    return isinstance(node, Compare | In | IsNull)


def _compare(node: Compare) -> Expr:
    right = node.right
    if not isinstance(right, Literal):
        return node
    if right.value is None:
        return IsNull(node.left, at=node.at) if node.op == "<=>" else NULL
    if right.type == pa.bool_() and node.op == "=":
        return node.left if right.value else _negate(node.left)
    return node


def _membership(node: In) -> Expr:
    options = tuple(dict.fromkeys(node.options))
    if all(option.value is None for option in options):
        return NULL
    if len(options) == 1:
        return _compare(Compare("=", node.child, options[0], at=node.at))
    return node if len(options) == len(node.options) else In(node.child, options, at=node.at)


def _connect(kind: type[And] | type[Or], arms: Iterable[Expr]) -> Expr:
    wins, nothing = (FALSE, TRUE) if kind is And else (TRUE, FALSE)
    flat: dict[Expr, None] = {}
    for arm in arms:
        for part in arm.children if isinstance(arm, kind) else (arm,):
            if part == wins:
                return wins
            if part != nothing:
                flat.setdefault(part)
    parts = _unite(list(flat)) if kind is Or else list(flat)
    if not parts:
        return nothing
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _unite(arms: list[Expr]) -> list[Expr]:
    """Equalities and IN lists on one expression become one IN, at the place of the first."""
    lists: dict[Expr, list[Literal]] = {}
    for arm in arms:
        member = _as_member(arm)
        if member is not None:
            lists.setdefault(member[0], []).extend(member[1])
    found: dict[Expr, None] = {}
    for arm in arms:
        member = _as_member(arm)
        if member is None:
            found.setdefault(arm)
        else:
            found.setdefault(_membership(In(member[0], tuple(lists[member[0]]))))
    return list(found)


def _as_member(arm: Expr) -> tuple[Expr, tuple[Literal, ...]] | None:
    if isinstance(arm, In) and all(option.type == arm.child.type for option in arm.options):
        return arm.child, arm.options
    if (
        isinstance(arm, Compare)
        and arm.op == "="
        and isinstance(arm.right, Literal)
        and arm.left.type == arm.right.type
    ):
        return arm.left, (arm.right,)
    return None
