"""sqlglot's tree to ours: one function for each kind of node, and an error for whatever would change the meaning.

Every argument of a sqlglot node that is set must be understood, see `sqlglot_arguments`.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from penstock.errors import PredicateError
from penstock.expr import literals, tree
from penstock.expr.functions import function_registry as functions
from penstock.expr.rewrites import case_insensitive, date_part, replaced
from penstock.expr.schema import arrow_type
from penstock.expr.sqlglot_arguments import is_understood
from penstock.expr.tree import And, Call, Cast, Column, Compare, Expr, In, IsNull, Like, Literal, Lookup, Not, Or

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.RegexpLike: "rlike",
    exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright",
}  # fmt: skip
_NAMED: dict[type[exp.Expression], str] = {
    exp.CurrentDate: "current_date", exp.CurrentTimestamp: "current_timestamp", exp.Ceil: "ceil", exp.Floor: "floor",
    exp.Neg: "negative", exp.BitwiseNot: "~", exp.If: "if", exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user", exp.Substring: "substring", exp.Tuple: "tuple",
}  # fmt: skip
# With three arguments the first is a unit, which looks like a column.
_OF_UNITS = frozenset(["timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff"])
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
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
    if isinstance(node, exp.Cast | exp.Dot):
        return [node.this]
    if isinstance(node, exp.Case):
        pairs = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
        operand, default = node.args.get("this"), node.args.get("default")
        return ([operand] if operand else []) + pairs + ([default] if default else [])
    if isinstance(node, exp.Extract):
        return [node.expression]
    if isinstance(node, exp.Like | exp.ILike) and isinstance(node.expression, exp.Any | exp.All):
        patterns = node.expression.this
        return [node.this, *(patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns])]
    if _has_unit(node):
        return list(node.expressions[1:])
    if isinstance(node, exp.Between) and node.args.get("symmetric"):
        raise _refused(node, text, "BETWEEN SYMMETRIC")
    if isinstance(node, exp.Func) and any(isinstance(part, exp.Star) for part in node.iter_expressions()):
        raise _refused(node, text, f"the aggregate {node.sql(dialect='spark')}")
    return [part for part in node.iter_expressions() if not isinstance(part, exp.Identifier)]


def _flat(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """The operands of a left-deep chain of one connective, in order."""
    operands: list[exp.Expression] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, kind):
            stack.extend((part.expression, part.this))
        else:
            operands.append(part)
    return operands


def _has_unit(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and len(node.expressions) == 3 and node.name.lower() in _OF_UNITS


def _check_precedence(node: exp.Expression, text: str) -> None:
    """Where sqlglot and Spark group operators differently, parentheses are required."""
    operands = [node.args.get("this"), node.args.get("expression")]
    compared = type(node) in _COMPARISONS or isinstance(node, exp.NEQ | exp.NullSafeNEQ)
    if compared and any(isinstance(o, _TESTS) for o in operands):
        raise PredicateError("a test inside a comparison: put parentheses around it", text, node.meta.get("start"))
    if isinstance(node, _BITS) and any(isinstance(o, _BITS) and type(o) is not type(node) for o in operands):
        raise PredicateError("&, |, ^, << and >> beside each other: put parentheses", text, node.meta.get("start"))
    if isinstance(node, exp.DPipe) and any(isinstance(o, exp.Add | exp.Sub) for o in operands):
        raise PredicateError("|| beside + or -: put parentheses around one of them", text, node.meta.get("start"))


def _build(node: exp.Expression, parts: list[Expr], text: str) -> Expr:
    _check_precedence(node, text)
    at = _position(node, parts)
    for handler in (_build_leaf, _build_test, _build_call) if is_understood(node) else ():
        built = handler(node, parts, at, text)
        if built is not None:
            return built
    if isinstance(node, exp.Condition):
        return _unknown(node, parts, at)
    raise _refused(node, text)


def _unknown(node: exp.Expression, parts: list[Expr], at: int | None) -> Expr:
    """An expression that only Spark understands: its text, and the columns in it."""
    return Call(tree.UNKNOWN, (Literal(node.sql(dialect="spark"), pa.string()), *parts), at=at)


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
            return literals.hexadecimal(str(node.this), text, at)
        case exp.Literal():
            return Literal(node.this, pa.string(), at=at) if node.is_string else literals.number(node.this, text, at)
        case exp.Interval():
            return literals.interval(node, at) or _unknown(node, [], at)
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
        case exp.NEQ() | exp.NullSafeNEQ():
            return Not(Compare("=" if isinstance(node, exp.NEQ) else "<=>", parts[0], parts[1], at=at), at=at)
        case exp.Is() if isinstance(parts[1], Literal) and not isinstance(parts[1].value, str):
            return IsNull(parts[0], at=at) if parts[1].value is None else Compare("<=>", parts[0], parts[1], at=at)
        case exp.Between():
            value, low, high = parts
            return And((Compare(">=", value, low, at=at), Compare("<=", value, high, at=at)), at=at)
        case exp.In():
            if len(parts) == 1:
                raise PredicateError("IN needs at least one value", text, at)
            if isinstance(parts[0], Call) and parts[0].name == "tuple":
                return _tuple_in(parts[0], parts[1:], at)
            # Binding gives all of them one type, and makes an OR where columns are listed.
            return In(parts[0], tuple(parts[1:]), at=at)
        case exp.Like() | exp.ILike() | exp.Escape():
            return _like(node, parts, at, text)
    if type(node) in _COMPARISONS:
        return Compare(_COMPARISONS[type(node)], parts[0], parts[1], at=at)
    return None


def _build_call(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    match node:
        case exp.Neg() if isinstance(parts[0], Literal) and literals.is_signed(node, parts[0]):
            return literals.negated(parts[0], at)
        case exp.Neg() if isinstance(parts[0], Cast):
            return literals.negated_suffixed(parts[0], at)
        case exp.Case():
            return Call("case", _case(node, parts), at=at)
        case exp.Extract():
            return date_part(Literal(str(node.this.name), pa.string()), parts[0])
        case exp.Trim():
            side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
            return Call(side, tuple(parts), at=at)
        case exp.StrPosition():
            return Call("locate", (parts[1], parts[0], *parts[2:]), at=at)
        case exp.Anonymous():
            call = Call(str(node.this).lower(), tuple(parts), at=at)
            return _unknown(node, parts, at) if _has_unit(node) else replaced(call)
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


def _cast(node: exp.Cast, child: Expr, at: int | None, text: str) -> Expr:
    to = arrow_type(node.to)
    if to is None:
        raise PredicateError(f"unknown type {node.to.sql(dialect='spark')}", text, at)
    # sqlglot calls Spark's plain CAST "TryCast" as well; `safe` tells the two apart.
    if isinstance(child, Literal) and isinstance(child.value, int | Decimal) and not isinstance(child.value, bool):
        exact = literals.suffixed(child, to)
        if exact is not None:
            return exact
    return Cast(child, to, bool(node.args.get("safe")), at=at)


def _tuple_in(value: Call, options: list[Expr], at: int | None) -> Expr | None:
    """`(a, b) IN ((1, 2), …)` compares structs, and their fields as `<=>` does: a null field is just a value."""
    arms = []
    for option in options:
        if not isinstance(option, Call) or option.name != "tuple" or len(option.args) != len(value.args):
            return None
        pairs = zip(value.args, option.args, strict=True)
        arms.append(And(tuple(Compare("<=>", a, b, at=at) for a, b in pairs), at=at))
    return Or(tuple(arms), at=at)


def _like(node: exp.Expression, parts: list[Expr], at: int | None, text: str) -> Expr | None:
    """One test, or one for each pattern of ANY and ALL; `NOT LIKE ANY` is true where one of them does not match."""
    escape, like = "\\", node
    if isinstance(node, exp.Escape):
        like = node.this
        if not isinstance(like, exp.Like | exp.ILike) or not isinstance(node.expression, exp.Literal):
            return None
        escape = str(node.expression.this)
        if len(escape) != 1:
            raise PredicateError(f"ESCAPE takes one character, not {escape[:20]!r}", text, at)
    value, *patterns = parts
    if not is_understood(like) or not patterns:
        return None
    tests = tuple(_matches(like, value, pattern, escape, at) for pattern in patterns)
    if len(tests) == 1:
        return tests[0]
    return And(tests, at=at) if isinstance(like.expression, exp.All) else Or(tests, at=at)


def _matches(like: exp.Expression, value: Expr, pattern: Expr, escape: str, at: int | None) -> Expr:
    if isinstance(like, exp.ILike):
        test = case_insensitive(value, pattern, escape, at)
    elif isinstance(pattern, Literal) and isinstance(pattern.value, str):
        test = Like(value, pattern.value, escape, at=at)
    else:
        other = () if escape == "\\" else (Literal(escape, pa.string()),)
        test = Call("like", (value, pattern, *other), at=at)
    return Not(test, at=at) if like.args.get("negate") else test


def _case(node: exp.Case, parts: list[Expr]) -> tuple[Expr, ...]:
    if not node.args.get("this"):
        return tuple(parts)
    operand, rest = parts[0], parts[1:]
    count = 2 * len(node.args["ifs"])
    pairs = [Compare("=", operand, part) if i % 2 == 0 else part for i, part in enumerate(rest[:count])]
    return (*pairs, *rest[count:])


def _refused(node: exp.Expression, text: str, name: str = "") -> PredicateError:
    kind = name or next((kind for t, kind in _REFUSED.items() if isinstance(node, t)), node.key)
    shown = "" if name else node.sql(dialect="spark")
    detail = f": {shown[:60]}" if shown not in ("", kind) else ""
    return PredicateError(f"{kind} cannot be part of a predicate over one row{detail}", text, node.meta.get("start"))
