"""A parsed tree bound to a schema: names resolved, types known, implicit casts written out, constants folded.

The rules are Spark's in ANSI mode, its default. Names are case-insensitive unless the context says otherwise. A
comparison of two types inserts the cast Spark would insert, on the column where Spark puts it on the column:
`p = 5` on a string column is `CAST(p AS bigint) = 5`.

`now` folds `current_date()` and similar functions. A stream passes None, and they stay opaque: the day on which a plan
was made must not be frozen into it.

What cannot be understood (an unknown function, a function over types it does not take) has the type None from there
upwards. It is not an error; it never prunes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import PredicateError, TypeMismatchError, UnknownColumnError, name_hint, shortened
from penstock.expr.functions import function_registry as functions
from penstock.expr.functions.arithmetic import DECIMAL_OPERATORS
from penstock.expr.functions.function import constants_of
from penstock.expr.kernels.cast import cast as cast_values
from penstock.expr.kernels.cast import castable
from penstock.expr.kernels.evaluate import evaluate_constant
from penstock.expr.kernels.physical import from_arrow, to_arrow
from penstock.expr.kernels.zones import is_fixed
from penstock.expr.missing_quotes import quoted_date, quoted_word
from penstock.expr.operands import comparison_type, fits, is_beyond_bigint, with_interval, with_its_digits
from penstock.expr.tree import And, Call, Cast, Column, Compare, Expr, In, Like, Literal, Lookup, Not, Or, fold, rebuild
from penstock.expr.types import (
    TIMESTAMP,
    common_type_of,
    is_decimal,
    is_integer,
    is_nested,
    is_numeric,
    is_timestamp,
    type_name,
)

_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TODAY = frozenset(["current_date", "curdate"])
_NOW = frozenset(["current_timestamp", "now"])


@dataclass(frozen=True, slots=True)
class Context:
    """What a text means beside its schema: the session's zone, how names compare, and the moment of planning."""

    timezone: str = "UTC"
    case_sensitive: bool = False
    now: datetime | None = None

    def __post_init__(self) -> None:
        try:
            is_fixed(str(self.timezone))
        except ValueError as error:
            raise PredicateError(str(error)) from None


def bind(expr: Expr, schema: pa.Schema, context: Context | None = None, text: str | None = None) -> Expr:
    """Bind a parsed predicate to a schema of normalised types; `text` is quoted in errors.

    >>> from penstock.expr.parse import parse
    >>> str(bind(parse("APP = 'a' AND 5 < n"), pa.schema({"app": pa.string(), "n": pa.int64()})))
    "app = 'a' AND n > 5"
    """
    binder = _Binder(schema, context or Context(), text)
    return binder.boolean(fold(expr, binder.visit))


def bind_tree(expr: Expr, schema: pa.Schema, context: Context) -> Expr:
    """Bind a tree of any type to a schema of normalised types."""
    return fold(expr, _Binder(schema, context, None).visit)


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: pa.Schema
    context: Context
    text: str | None

    def visit(self, node: Expr, children: tuple[Expr, ...]) -> Expr:
        match node:
            case Column():
                return self.column(node)
            case Compare():
                return self.compare(node, children[0], children[1])
            case In():
                return self.membership(node, children[0])
            case Like():
                return Like(self.to(children[0], pa.string(), node), node.pattern, node.escape, at=node.at)
            case And() | Or() | Not():
                return rebuild(node, [self.boolean(child) for child in children])
            case Cast():
                return self.folded(rebuild(node, children))
            case Lookup():
                return self.lookup(node, children[0], children[1])
            case Call():
                return self.call(node, children)
        return rebuild(node, children)

    def column(self, node: Column) -> Expr:
        fields: list[pa.Field] = list(self.schema)
        column: Expr | None = None
        path: list[str] = []
        for i, name in enumerate(node.path):
            field = self.field(fields, name, node, path)
            path.append(field.name)
            column = Column(tuple(path), field.type, at=node.at)
            if pa.types.is_struct(field.type):
                fields = list(field.type)
            elif pa.types.is_map(field.type) and i + 2 == len(node.path):
                return self.lookup(Lookup(column, column, at=node.at), column, Literal(node.path[-1], pa.string()))
            elif i + 1 < len(node.path):
                message = f"{'.'.join(path)} is {type_name(field.type)} and has no field {node.path[i + 1]!r}"
                raise UnknownColumnError(message, self.text, node.at)
        assert column is not None
        return column

    def field(self, fields: list[pa.Field], name: str, node: Column, path: list[str]) -> pa.Field:
        matches = [f for f in fields if f.name == name]
        if not matches and not self.context.case_sensitive:
            matches = [f for f in fields if f.name.lower() == name.lower()]
        if len(matches) == 1:
            return matches[0]
        where = f" in {'.'.join(path)}" if path else ""
        if matches:
            names = ", ".join(f.name for f in matches)
            raise UnknownColumnError(f"column {name!r}{where} is ambiguous: {names}", self.text, node.at)
        hint = name_hint(name, [f.name for f in fields])
        error = UnknownColumnError(f"unknown column {name!r}{where}", self.text, node.at, hint=hint)
        error.name = None if path else name
        raise error

    def compare(self, node: Compare, left: Expr, right: Expr) -> Expr:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            return self.compare(Compare(_FLIPPED[node.op], node.right, node.left, at=node.at), right, left)
        if left.type is None or right.type is None:
            return Compare(node.op, left, right, at=node.at)
        common = self.common([left, right], node)
        if common is not None and pa.types.is_null(common):
            common = pa.bool_()  # NULL = NULL
        if common is None or is_beyond_bigint(left, right):
            return Compare(node.op, left, right, at=node.at)
        return Compare(node.op, self.to(left, common, node), self.to(right, common, node), at=node.at)

    def membership(self, node: In, child: Expr) -> Expr:
        """All options are compared in one type, that of the whole list; columns among them make it an OR."""
        options = [fold(option, self.visit) for option in node.options]
        unknown = child.type is None or any(option.type is None for option in options)
        common = None if unknown else self.common([child, *options], node)
        if all(isinstance(option, Literal) for option in options):
            bound = In(child, tuple(options), at=node.at)
            if common is None:
                return bound
            return In(self.to(child, common, node), self.cast_literals(bound.options, common), at=node.at)
        value = child if common is None else self.to(child, common, node)
        others = options if common is None else [self.to(option, common, node) for option in options]
        arms = tuple(Compare("=", value, other, at=node.at) for other in others)
        return arms[0] if len(arms) == 1 else Or(arms, at=node.at)

    def cast_literals(self, literals: Sequence[Literal], to: pa.DataType) -> tuple[Literal, ...]:
        """Constants cast together: one call for each of their types, not one for each of 10,000."""
        cast: dict[int, Literal] = {}
        for kind in {literal.type for literal in literals}:
            same_type = [(i, literal) for i, literal in enumerate(literals) if literal.type == kind]
            if not castable(kind, to):
                raise self.unreadable(same_type[0][1], to)
            vector = cast_values(to_arrow([literal.value for _, literal in same_type], kind), to, self.context.timezone)
            if vector.failed is not None:
                raise self.unreadable(same_type[int(np.argmax(vector.failed))][1], to)
            values = from_arrow(vector.values)
            cast.update((i, Literal(v, to, at=o.at)) for (i, o), v in zip(same_type, values, strict=True))
        return tuple(cast[i] for i in range(len(literals)))

    def common(self, sides: list[Expr], node: Expr) -> pa.DataType | None:
        """The type to compare in; None for decimals too wide for Spark to compare exactly."""
        others = {side.type for side in sides if not isinstance(side, Literal)}
        distinct = list(dict.fromkeys(comparison_type(side, others) for side in sides))
        common = common_type_of(distinct)
        if common is not None and not is_nested(common) and all(castable(t, common) for t in distinct):
            return common
        if all(is_decimal(t) or is_integer(t) for t in distinct) or (common is not None and pa.types.is_struct(common)):
            return None
        names = " with ".join(dict.fromkeys(type_name(side.type) for side in sides))
        time = next((t for t in distinct if pa.types.is_date32(t) or is_timestamp(t)), None)
        number = time is not None and all(t == time or is_numeric(t) for t in distinct)
        hint = quoted_date(node, time, self.text) if number else None
        raise TypeMismatchError(shortened(f"cannot compare {names}: {node}", 200), self.text, node.at, hint=hint)

    def to(self, child: Expr, to: pa.DataType, node: Expr) -> Expr:
        """`child` as `to`, folded when it is a constant."""
        if child.type is None or child.type == to:
            return child
        if isinstance(child, Literal):
            return self.cast_literal(child, to)
        if not castable(child.type, to):
            message = f"cannot use {type_name(child.type)} as {type_name(to)}: {child}"
            raise TypeMismatchError(message, self.text, node.at)
        return Cast(child, to, at=child.at)

    def cast_literal(self, literal: Literal, to: pa.DataType) -> Literal:
        if is_integer(to) and is_integer(literal.type) and literal.value is not None and fits(literal.value, to):
            return Literal(literal.value, to, at=literal.at)  # most of what an OR of 50,000 tests needs
        return self.cast_literals([literal], to)[0]

    def unreadable(self, literal: Literal, to: pa.DataType) -> TypeMismatchError:
        return TypeMismatchError(f"cannot read {shortened(str(literal), 60)} as {type_name(to)}", self.text, literal.at)

    def boolean(self, child: Expr) -> Expr:
        if child.type is None or child.type == pa.bool_():
            return child
        if pa.types.is_null(child.type):
            return Literal(None, pa.bool_(), at=child.at)
        if child.type == pa.string():
            return self.to(child, pa.bool_(), child)
        message = f"{child} is {type_name(child.type)}, not a condition"
        raise TypeMismatchError(message, self.text, child.at, expected="a boolean")

    def lookup(self, node: Lookup, container: Expr, key: Expr) -> Expr:
        t = container.type
        if t is None or key.type is None:
            return Lookup(container, key, at=node.at)
        if pa.types.is_map(t):
            return Lookup(container, self.to(key, t.key_type, node), t.item_type, at=node.at)
        if pa.types.is_list(t):
            return Lookup(container, key, t.value_type, at=node.at)
        if pa.types.is_struct(t) and isinstance(container, Column) and isinstance(key, Literal):
            return self.column(Column((*container.path, str(key.value)), at=node.at))
        message = f"{container} is {type_name(t)}; only maps, arrays and structs have values under a key"
        raise TypeMismatchError(message, self.text, node.at)

    def call(self, node: Call, args: tuple[Expr, ...]) -> Expr:
        if node.name in ("element_at", "try_element_at") and len(args) == 2 and _is_map(args[0]):
            return self.lookup(Lookup(args[0], args[1], at=node.at), *args)
        if node.name == "like" and len(args) == 2 and isinstance(args[1], Literal) and args[1].type == pa.string():
            return Like(self.to(args[0], pa.string(), node), args[1].value, at=node.at)
        moment = self.moment(node.name) if not args else None
        if moment is not None:
            return moment
        if node.name in DECIMAL_OPERATORS and any(arg.type is not None and is_decimal(arg.type) for arg in args):
            args = tuple(with_its_digits(*pair) for pair in zip(node.args, args, strict=True))
        return self.folded(self.signed(with_interval(Call(node.name, args, at=node.at))))

    def signed(self, node: Call) -> Call:
        """The call with its arguments cast as its signature says; unchanged and untyped without a signature."""
        function = functions.find(node.name)
        if function is None or any(arg.type is None for arg in node.args):
            return node
        signature = function.signature([arg.type for arg in node.args], constants_of(node))
        if signature is None:
            return replace(node, hint=quoted_word(node, self.text))
        pairs = list(zip(node.args, signature.arguments, strict=True))
        if not all(castable(arg.type, t) for arg, t in pairs):
            return node
        try:
            args = tuple(self.to(arg, t, node) for arg, t in pairs)
        except TypeMismatchError:  # of a constant: Spark raises here, so it is left to Spark
            return node
        hint = quoted_word(node, self.text) if any(arg.type == pa.string() for arg in node.args) else None
        return Call(node.name, args, signature.result, at=node.at, hint=hint)

    def folded(self, node: Expr) -> Expr:
        """A call over constants is a constant, unless it fails."""
        if node.type is None or not node.children or not all(isinstance(c, Literal) for c in node.children):
            return node
        value = evaluate_constant(node, self.context.timezone)
        return node if value is None else Literal(value[0], node.type, at=node.at)

    def moment(self, name: str) -> Literal | None:
        now = self.context.now
        if now is None or name not in _TODAY | _NOW:
            return None
        moment = now if now.tzinfo is not None else now.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        stamp = Literal((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds, TIMESTAMP)
        return self.cast_literal(stamp, pa.date32()) if name in _TODAY else stamp


def bind_value(text: str, schema: Any, context: Context | None = None) -> Expr:
    """Parse and bind an expression of any type.

    >>> bind_value("n + 1", pa.schema({"n": pa.int64()})).type
    DataType(int64)
    """
    from penstock.expr.limits import check_operations
    from penstock.expr.parse import parse
    from penstock.expr.schema import as_schema

    binder = _Binder(as_schema(schema), context or Context(), text)
    bound = fold(parse(text), binder.visit)
    check_operations(bound)
    return bound


def _is_map(expr: Expr) -> bool:
    return expr.type is not None and bool(pa.types.is_map(expr.type))


def bind_text(text: str, schema: Any, context: Context | None = None) -> Expr:
    """Parse and bind in one step; `schema` is anything `as_schema` takes."""
    from penstock.expr.limits import check_operations
    from penstock.expr.parse import parse
    from penstock.expr.schema import as_schema

    bound = bind(parse(text), as_schema(schema), context, text)
    check_operations(bound)
    return bound
