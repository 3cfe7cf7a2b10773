"""Which arguments of sqlglot's nodes are understood: any other that is set changes the meaning.

`NOT LIKE` is a `Like` with a flag in one version of sqlglot and a `Not` in another; a flag that is ignored would turn a
predicate into its opposite.
"""

from __future__ import annotations

from sqlglot import exp

_PLAIN_ARGUMENTS = frozenset(["this", "expression", "expressions"])
_ARGUMENTS: dict[type[exp.Expression], frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in (
        (exp.Column, "table db catalog"),
        (exp.Like, "negate"),
        (exp.ILike, "negate"),
        (exp.Between, "low high"),
        (exp.Cast, "to"),
        (exp.TryCast, "to safe"),
        (exp.Case, "ifs default"),
        (exp.If, "true false"),
        (exp.Ceil, "decimals"),
        (exp.Floor, "decimals"),
        (exp.Substring, "start length"),
        (exp.Trim, "position"),
        (exp.Literal, "is_string"),
        (exp.Interval, "unit"),
        (exp.DPipe, "safe"),
        (exp.Div, "typed safe"),
        (exp.StrPosition, "substr position"),
    )
}


def is_understood(node: exp.Expression) -> bool:
    """Whether every argument that is set is known here; those of a function may be called what they like."""
    known = _PLAIN_ARGUMENTS | _ARGUMENTS.get(type(node), frozenset())
    return isinstance(node, exp.Func) or all(name in known for name, value in node.args.items() if value)
