"""The normal form: negations pushed to the tests, arms flattened, constants absorbed; true in all three values.

| rule | why it holds when a part is NULL |
|---|---|
| `NOT (a AND b)` → `NOT a OR NOT b`, and the mirror | De Morgan holds in Kleene's logic |
| `NOT a < b` → `a >= b` | Spark's order is total (NaN included); both sides are NULL together |
| `a AND TRUE` → `a`, `a AND FALSE` → `FALSE`, and the mirror | FALSE wins over NULL in AND, TRUE in OR |
| `a = NULL` → `NULL`, `a <=> NULL` → `a IS NULL` | by definition |
| `b = TRUE` → `b`, `b = FALSE` → `NOT b` | NULL on both sides |
| `x = 1 OR x = 2` → `x IN (1, 2)`, `x <> 1 AND x <> 2` → `x NOT IN (1, 2)` | IN is defined as that OR |

`x = x` is *not* TRUE (it is NULL where x is), and `x > 1 AND x < 0` is left alone: contradictions are detected by the
value sets of `prune`, which see all tests of a column together.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.expr.kernels.evaluate import evaluate_constant
from penstock.expr.tree import FALSE, NULL, TRUE, And, Compare, Expr, In, IsNull, Literal, Not, Or, connected

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def simplify(predicate: Expr) -> Expr:
    """The normal form of a bound predicate; it is true, false and null on exactly the same rows.

    >>> from penstock.expr.bind import bind_text
    >>> str(simplify(bind_text("NOT (x > 1 AND NOT y = 2) OR x > 1 AND TRUE", "x int, y int")))
    'x <= 1 OR y = 2 OR x > 1'
    """
    groups = [_Group(And)]
    groups[0].open = [(predicate, False)]
    for group in groups:  # grows while it is read: a group opens the groups of the other kind below it
        _fill(group, groups)
    for group in reversed(groups):
        group.result = _connect(group.kind, [p.result if isinstance(p, _Group) else p for p in group.parts])
    return groups[0].result


class _Group:
    """All arms of one connective, however deep they were nested and whichever side of a NOT they were on."""

    def __init__(self, kind: type[And] | type[Or]) -> None:
        self.kind = kind
        self.open: list[tuple[Expr, bool]] = []  # arms not looked at yet, the next one last; True is: negated
        self.parts: list[Expr | _Group] = []
        self.result: Expr = TRUE


def _fill(group: _Group, groups: list[_Group]) -> None:
    while group.open:
        node, negated = group.open.pop()
        if isinstance(node, Not):
            group.open.append((node.child, not negated))
        elif isinstance(node, And | Or):
            kind = (Or if negated else And) if isinstance(node, And) else (And if negated else Or)
            arms = [(arm, negated) for arm in reversed(node.arms)]
            if kind is group.kind:
                group.open.extend(arms)
            else:
                below = _Group(kind)
                below.open = arms
                groups.append(below)
                group.parts.append(below)
        else:
            test = _test(node)
            group.parts.append(_negate(test) if negated else test)


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
        value = evaluate_constant(node, "UTC") if isinstance(node, Compare | In | IsNull) else None
        return node if value is None else {True: TRUE, False: FALSE}.get(value[0], NULL)
    if isinstance(node, Compare):
        return _compare(node)
    if isinstance(node, In):
        return _membership(node)
    return node


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
    return connected(kind, _unite(list(flat), kind is And))


def _unite(arms: list[Expr], negated: bool) -> list[Expr]:
    """Equalities and IN lists on one expression become one IN (in an AND, their negations one NOT IN)."""
    members = [_as_member(arm, negated) for arm in arms]
    lists: dict[Expr, list[Literal]] = {}
    for member in members:
        if member is not None:
            lists.setdefault(member[0], []).extend(member[1])
    united_arms: dict[Expr, None] = {}
    for arm, member in zip(arms, members, strict=True):
        if member is None:
            united_arms.setdefault(arm)
        elif member[0] in lists:  # at the place of the first
            united = _membership(In(member[0], tuple(lists.pop(member[0]))))
            united_arms.setdefault(_negate(united) if negated else united)
    return list(united_arms)


def _as_member(arm: Expr, negated: bool) -> tuple[Expr, tuple[Literal, ...]] | None:
    if negated:
        return _as_member(arm.child, False) if isinstance(arm, Not) else None
    if isinstance(arm, In) and all(option.type == arm.child.type for option in arm.options):
        return arm.child, arm.options
    if isinstance(arm, Compare) and arm.op == "=" and isinstance(arm.right, Literal):
        return (arm.left, (arm.right,)) if arm.left.type == arm.right.type else None
    return None
