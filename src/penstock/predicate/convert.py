"""sqlglot's tree to ours: one function for each kind of node, and a refusal for whatever changes the meaning unseen.

Every argument of a sqlglot node that is set must be one this module knows. `NOT LIKE` is a `Like` with a flag in one
version of sqlglot and a `Not` in another; a flag that nobody looks at would turn a predicate into its opposite.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.errors import PredicateError
from penstock.predicate import functions
from penstock.predicate.functions_interval import UNITS
from penstock.predicate.schema import arrow_type
from penstock.predicate.tree import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Lookup,
    Not,
    Or,
)
from penstock.predicate.types import MAX_PRECISION

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.RegexpLike: "rlike", exp.ILike: "ilike",
}  # fmt: skip
_NAMED: dict[type[exp.Expression], str] = {
    exp.CurrentDate: "current_date", exp.CurrentTimestamp: "current_timestamp", exp.Ceil: "ceil", exp.Floor: "floor",
    exp.Neg: "negative", exp.BitwiseNot: "~", exp.If: "if", exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}  # fmt: skip
# Arguments of sqlglot nodes that are understood here; any other that is set changes the meaning and is refused.
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
        (exp.StrPosition, "substr"),
    )
}
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_TESTS = (exp.Like, exp.ILike, exp.RegexpLike, exp.In, exp.Between, exp.Is, exp.Escape)
_REFUSED: dict[type, str] = {
    exp.Query: "a subquery", exp.Subquery: "a subquery", exp.Exists: "a subquery", exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter", exp.Star: "*", exp.Window: "a window function", exp.Lambda: "a lambda function",
}  # fmt: skip


def convert(root: exp.Expression, text: str) -> Expr:
    """The tree of a parsed text, built bottom up with a stack: sqlglot's chain of 10,000 ANDs is 10,000 nodes deep."""
    done: dict[int, Expr] = {}
    stack: list[tuple[exp.Expression, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        parts = _parts(node, text)
        if expanded or not parts:
            done[id(node)] = _build(node, [done[id(part)] for part in parts], text)
        else:
            stack.append((node, True))
            stack.extend((part, False) for part in parts)
    return done[id(root)]


def _parts(node: exp.Expression, text: str) -> list[exp.Expression]:
    """The operands of a sqlglot node that are predicates or values themselves."""
    if isinstance(node, tuple(_REFUSED)):
        raise _refused(node, text)
    if isinstance(node, exp.And | exp.Or):
        return _flat(node, type(node))
    if isinstance(node, exp.Column | exp.Literal | exp.DataType | exp.Interval | exp.Identifier | exp.Var):
        return []
    if isinstance(node, exp.Escape):
        return _parts(node.this, text)
    if isinstance(node, exp.In):
        if node.args.get("query") or node.args.get("unnest"):
            raise _refused(node.args.get("query") or node, text)
        return [node.this, *node.expressions]
    if isinstance(node, exp.Cast):
        return [node.this]
    if isinstance(node, exp.Dot):
        return [node.this]
    if isinstance(node, exp.Case):
        pairs = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
        operand, default = node.args.get("this"), node.args.get("default")
        return ([operand] if operand else []) + pairs + ([default] if default else [])
    if isinstance(node, exp.Extract):
        return [node.expression]
    if isinstance(node, exp.Like) and isinstance(node.expression, exp.Any | exp.All):
        raise _refused(node, text, "LIKE ANY and LIKE ALL")
    if isinstance(node, exp.Between) and node.args.get("symmetric"):
        raise _refused(node, text, "BETWEEN SYMMETRIC")
    if isinstance(node, exp.Func) and any(isinstance(part, exp.Star) for part in node.iter_expressions()):
        raise _refused(node, text, f"the aggregate {node.sql(dialect='spark')}")
    return [part for part in node.iter_expressions() if not isinstance(part, exp.Identifier)]


def _flat(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of a left-deep chain of one connective, in order."""
    found: list[exp.Expression] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, kind):
            stack.extend((part.expression, part.this))
        else:
            found.append(part)
    return found


def _check_arguments(node: exp.Expression, text: str) -> None:
    known = _PLAIN_ARGUMENTS | _ARGUMENTS.get(type(node), frozenset())
    extra = [name for name, value in node.args.items() if value and name not in known]
    if extra and not isinstance(node, exp.Func):  # a function is opaque, whatever its arguments are called
        raise _refused(node, text)


def _check_precedence(node: exp.Expression, text: str) -> None:
    """Where sqlglot and Spark group operators differently, parentheses are asked for."""
    operands = [node.args.get("this"), node.args.get("expression")]
    compared = type(node) in _COMPARISONS or isinstance(node, exp.NEQ | exp.NullSafeNEQ)
    if compared and any(isinstance(o, _TESTS) for o in operands):
        raise PredicateError("a test inside a comparison: put parentheses around it", text, node.meta.get("start"))
    if isinstance(node, _BITS) and any(isinstance(o, _BITS) and type(o) is not type(node) for o in operands):
        raise PredicateError("&, | and ^ beside each other: put parentheses", text, node.meta.get("start"))
    if isinstance(node, exp.DPipe) and any(isinstance(o, exp.Add | exp.Sub) for o in operands):
        raise PredicateError("|| beside + or -: put parentheses around one of them", text, node.meta.get("start"))


def _build(node: exp.Expression, parts: list[Expr], text: str) -> Expr:
    _check_arguments(node, text)
    _check_precedence(node, text)
    at = _position(node, parts)
    for handler in (_build_leaf, _build_test, _build_call):
        found = handler(node, parts, at, text)
        if found is not None:
            return found
    raise _refused(node, text)


def _build_leaf(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    match node:
        case exp.Paren():
            return parts[0]
        case exp.Column():
            return Column(tuple(part.name for part in node.parts), at=at)
        case exp.Dot() if isinstance(node.expression, exp.Identifier) and isinstance(parts[0], Column):
            return Column((*parts[0].path, node.expression.name), at=at)
        case exp.Boolean():
            return Literal(bool(node.this), pa.bool_(), at=at)
        case exp.Null():
            return Literal(None, pa.null(), at=at)
        case exp.RawString():
            return Literal(str(node.this), pa.string(), at=at)
        case exp.HexString():
            return Literal(_hex(str(node.this), text), pa.binary(), at=at)
        case exp.Literal():
            return Literal(node.this, pa.string(), at=at) if node.is_string else _number(node.this, text, at)
        case exp.Interval():
            return _interval(node, at)
        case exp.Cast():
            return _cast(node, parts[0], at, text)
        case exp.Bracket() if len(parts) == 2:
            return Lookup(parts[0], parts[1], at=at)
    return None


def _build_test(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    match node:
        case exp.And():
            return And(tuple(parts), at=at)
        case exp.Or():
            return Or(tuple(parts), at=at)
        case exp.Not():
            return Not(parts[0], at=at)
        case exp.NEQ():
            return Not(Compare("=", parts[0], parts[1], at=at), at=at)
        case exp.NullSafeNEQ():
            return Not(Compare("<=>", parts[0], parts[1], at=at), at=at)
        case exp.Is():
            return _is(parts[0], parts[1], at)
        case exp.Between():
            value, low, high = parts
            return And((Compare(">=", value, low, at=at), Compare("<=", value, high, at=at)), at=at)
        case exp.In():
            if len(parts) == 1:
                raise PredicateError("IN needs at least one value", text, at)
            return _in(parts[0], parts[1:], at)
        case exp.Like() | exp.Escape():
            return _like(node, parts, at, text)
        case exp.ILike() if node.args.get("negate"):
            return Not(Call("ilike", tuple(parts), at=at), at=at)
    if type(node) in _COMPARISONS:
        return Compare(_COMPARISONS[type(node)], parts[0], parts[1], at=at)
    return None


def _build_call(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    match node:
        case exp.Neg() if isinstance(parts[0], Literal) and _is_signed(node, parts[0]):
            return _negated(parts[0], at)
        case exp.Neg() if isinstance(parts[0], Cast):
            return _negated_suffixed(parts[0], at)
        case exp.Case():
            return Call("case", _case(node, parts), at=at)
        case exp.Extract():
            return _extract(str(node.this.name).lower(), parts[0], at)
        case exp.Substring():
            return Call("substring", tuple(parts), at=at)
        case exp.Trim() if len(parts) == 1:
            side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
            return Call(side, tuple(parts), at=at)
        case exp.StrPosition() if len(parts) == 2:
            return Call("locate", (parts[1], parts[0]), at=at)
        case exp.Anonymous():
            return Call(str(node.this).lower(), tuple(parts), at=at)
        case exp.Tuple():
            return Call("tuple", tuple(parts), at=at)
    name = _OPERATORS.get(type(node)) or _NAMED.get(type(node))
    if name is None and isinstance(node, exp.Func):
        name = node.sql_name().lower()
        if functions.find(name) is not None:
            return None  # sqlglot has rewritten it: its arguments may not be those of Spark's function of that name
    return Call(name, tuple(parts), at=at) if name else None


def _position(node: exp.Expression, parts: list[Expr]) -> int | None:
    if isinstance(node, exp.Column):
        return node.parts[0].meta.get("start")
    start = node.meta.get("start")
    if start is not None:
        return int(start)
    return next((part.at for part in parts if part.at is not None), None)


def _number(digits: str, text: str, at: int | None) -> Literal:
    if "e" in digits.lower():
        double = float(digits)
        if math.isinf(double):
            raise PredicateError(f"the number {_cut(digits)} is beyond the range of double", text, at)
        return Literal(double, pa.float64(), at=at)
    value = Decimal(digits)
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    precision = max(len(parts.digits), scale, 1)
    if precision > MAX_PRECISION:
        what = f"the number {_cut(digits)} has {precision:,} digits; Spark has {MAX_PRECISION}"
        raise PredicateError(what, text, text.find(digits))
    if "." not in digits and value < 1 << 63:
        return Literal(int(value), pa.int32() if value < 1 << 31 else pa.int64(), at=at)
    return Literal(value, pa.decimal128(precision, scale), at=at)


def _cut(digits: str) -> str:
    return digits if len(digits) <= 50 else digits[:47] + "..."


def _is_signed(node: exp.Neg, literal: Literal) -> bool:
    """Whether the minus belongs to the number. Before parentheses it is a function, and Spark's rounds to 34 digits."""
    if isinstance(literal.value, Decimal):
        return isinstance(node.this, exp.Literal)
    return not isinstance(literal.value, str | bytes | None)


def _negated(literal: Literal, at: int | None) -> Expr:
    """-2147483648 is an int although 2147483648 is not; -(-2147483648) overflows and is left to Spark."""
    # Minus on a Decimal rounds to 28 digits; `copy_negate` never does.
    value = literal.value.copy_negate() if isinstance(literal.value, Decimal) else -literal.value
    for narrow, limit in ((pa.int32(), 1 << 31), (pa.int64(), 1 << 63)):
        if value == -limit and literal.type in (pa.int64(), pa.decimal128(19, 0)):
            return Literal(-limit, narrow, at=at)
    if pa.types.is_integer(literal.type) and value >= 1 << literal.type.bit_width - 1:
        return Call("negative", (literal,), at=at)
    return Literal(value, literal.type, at=at)


def _negated_suffixed(cast: Cast, at: int | None) -> Expr:
    """`-128Y` is a tinyint although `128Y` is not."""
    child = cast.child
    if isinstance(child, Literal) and isinstance(child.value, int | Decimal) and pa.types.is_integer(cast.type):
        value = -int(child.value)
        if value == -(1 << cast.type.bit_width - 1):
            return Literal(value, cast.type, at=at)
    return Call("negative", (cast,), at=at)


def _hex(digits: str, text: str) -> bytes:
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        raise PredicateError(f"X'{digits[:50]}' is not hexadecimal", text, text.find(digits)) from None


def _extract(unit: str, value: Expr, at: int | None) -> Expr:
    """The units that are functions of the same name; `second`, which has a fraction here, and the rest are opaque."""
    if unit in ("year", "quarter", "month", "day", "hour", "minute"):
        return Call(unit, (value,), at=at)
    return Call("date_part", (Literal(unit, pa.string()), value), at=at)


def _interval(node: exp.Interval, at: int | None) -> Expr:
    """A whole number of one unit, or an opaque text."""
    amount = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    unit = str(node.args["unit"].name).upper().removesuffix("S") if isinstance(node.args.get("unit"), exp.Var) else ""
    if amount.removeprefix("-").isdigit() and unit in UNITS and len(amount) < 10:
        return Call("interval", (Literal(int(amount), pa.int64()), Literal(unit, pa.string())), at=at)
    return Call("interval", (Literal(node.sql(dialect="spark"), pa.string()),), at=at)


def _cast(node: exp.Cast, child: Expr, at: int | None, text: str) -> Expr:
    to = arrow_type(node.to)
    if to is None:
        raise PredicateError(f"unknown type {node.to.sql(dialect='spark')}", text, at)
    # sqlglot calls Spark's plain CAST "TryCast" as well; `safe` tells the two apart.
    if isinstance(child, Literal) and isinstance(child.value, int | Decimal) and not isinstance(child.value, bool):
        exact = _suffixed(child, to)
        if exact is not None:
            return exact
    return Cast(child, to, bool(node.args.get("safe")), at=at)


def _suffixed(child: Literal, to: pa.DataType) -> Literal | None:
    """`5L`, `1.5D`, `2BD` arrive as casts of a number; they are literals of that type."""
    if pa.types.is_integer(to) and isinstance(child.value, int):
        limit = 1 << to.bit_width - 1
        return Literal(child.value, to, at=child.at) if -limit <= child.value < limit else None
    if to == pa.float64():
        return Literal(float(child.value), to, at=child.at)
    if to == pa.float32():
        return Literal(_nearest_float(Decimal(child.value)), to, at=child.at)
    return None


def _nearest_float(value: Decimal) -> float:
    """The 32-bit float nearest to a number; rounding by way of 64 bits may be one off, so its neighbours are tried."""
    with np.errstate(over="ignore"):
        near = np.float32(float(value))
    if not np.isfinite(near):
        return float(near)
    candidates = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
    finite = [float(c) for c in (near, *candidates) if np.isfinite(c)]
    return min(finite, key=lambda c: abs(Fraction(c) - Fraction(value)))


def _is(left: Expr, right: Expr, at: int | None) -> Expr | None:
    if not isinstance(right, Literal) or isinstance(right.value, str):
        return None
    return IsNull(left, at=at) if right.value is None else Compare("<=>", left, right, at=at)


def _in(value: Expr, options: list[Expr], at: int | None) -> Expr | None:
    if isinstance(value, Call) and value.name == "tuple":
        return _tuple_in(value, options, at)
    return In(
        value, tuple(options), at=at
    )  # binding gives all of them one type, and makes an OR where columns are listed


def _tuple_in(value: Call, options: list[Expr], at: int | None) -> Expr | None:
    """`(a, b) IN ((1, 2), …)` compares structs, and their fields as `<=>` does: a null field is just a value."""
    arms = []
    for option in options:
        if not isinstance(option, Call) or option.name != "tuple" or len(option.args) != len(value.args):
            return None
        arms.append(
            And(
                tuple(Compare("<=>", a, b, at=at) for a, b in zip(value.args, option.args, strict=True)),
                at=at,
            )
        )
    return Or(tuple(arms), at=at)


def _like(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    escape, like = "\\", node
    if isinstance(node, exp.Escape):
        like = node.this
        if not isinstance(like, exp.Like) or not isinstance(node.expression, exp.Literal):
            return None
        _check_arguments(like, text)
        escape = str(node.expression.this)
        if len(escape) != 1:
            raise PredicateError(f"ESCAPE takes one character, found {escape[:20]!r}", text, at)
    value, pattern = parts
    found: Expr = Call("like", (value, pattern), at=at)
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        found = Like(value, pattern.value, escape, at=at)
    elif escape != "\\":
        return None
    return Not(found, at=at) if like.args.get("negate") else found


def _case(node: exp.Case, parts: list[Expr]) -> tuple[Expr, ...]:
    if not node.args.get("this"):
        return tuple(parts)
    operand, rest = parts[0], parts[1:]
    count = 2 * len(node.args["ifs"])
    pairs = [Compare("=", operand, part) if i % 2 == 0 else part for i, part in enumerate(rest[:count])]
    return (*pairs, *rest[count:])


def _refused(node: exp.Expression, text: str, what: str = "") -> PredicateError:
    kind = what or next((name for t, name in _REFUSED.items() if isinstance(node, t)), node.key)
    shown = "" if what else node.sql(dialect="spark")
    detail = f": {shown[:60]}" if shown not in ("", kind) else ""
    return PredicateError(f"{kind} cannot be part of a predicate over one row{detail}", text, node.meta.get("start"))
