"""A tree printed back as Spark SQL, such that parsing and binding the text gives the same tree again.

Literals carry their type: `5L`, `1.50BD`, `DATE '2026-05-17'`. Only an integer that is compared with something is
printed bare, because binding gives it the other side's type anyway and people read `user_id = 5` more easily.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.expr import tree
from penstock.expr.tree import And, Call, Cast, Column, Compare, Expr, In, IsNull, Like, Literal, Lookup, Not, Or
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_integer, type_name

_SUFFIX = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_SUM, _UNARY, _ATOM = 60, 80, 90
_OPERATORS = {"+": _SUM, "-": _SUM, "||": _SUM, "*": 70, "/": 70, "%": 70, "div": 70, "&": 54, "^": 52, "|": 50}
_RESERVED = frozenset(  # words that Spark or sqlglot would not read as a column
    word
    for line in (
        "all and any between case cast cross current_date current_timestamp current_user distinct else end",
        "exists false for from having if ilike in interval is join lateral like not null on or regexp rlike",
        "select session_user then true try_cast union using values when where with xor",
    )
    for word in line.split()
)
_TRIMMED = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\000", "\x1a": "\\Z"}
# How tightly a printed node binds; an operand that binds less tightly than its parent gets parentheses.
_OR, _AND, _NOT, _TEST = 10, 20, 30, 40
_Printed = tuple[str, int]
_MOST_OPTIONS, _SHOWN_OPTIONS = 6, 3


def to_sql(root: Expr) -> str:
    """The tree as Spark SQL.

    >>> to_sql(Or((Compare("<", Column(("a", "b")), Literal(5, pa.int64())), IsNull(Column(("order by",))))))
    'a.b < 5 OR `order by` IS NULL'
    """
    return tree.fold(root, _print)[0]


def summarize(root: Expr, longest: int = 160) -> str:
    """The tree as SQL for people: long lists and long texts are cut.

    >>> summarize(In(Column(("x",)), tuple(Literal(i, pa.int32()) for i in range(100))))
    'x IN (0, 1, 2, … 97 more)'
    """
    text = tree.fold(root, _print_short)[0]
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _print_short(node: Expr, below: tuple[_Printed, ...]) -> _Printed:
    inner = node.child if isinstance(node, Not) else node
    if isinstance(inner, In) and len(inner.options) > _MOST_OPTIONS:
        few = In(inner.child, inner.options[:_SHOWN_OPTIONS])
        text = to_sql(Not(few) if isinstance(node, Not) else few)
        return f"{text[:-1]}, … {len(inner.options) - _SHOWN_OPTIONS:,} more)", _TEST
    return _print(node, below)


def quote_text(value: str) -> str:
    """A string as a Spark literal."""
    return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"


def quote_name(name: str) -> str:
    """An identifier, in backticks when it needs them."""
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def literal_sql(literal: Literal) -> str:
    """A literal with its type spelled out."""
    value, t = literal.value, literal.type
    if value is None:
        return "NULL" if t in (pa.bool_(), pa.null()) else f"CAST(NULL AS {type_name(t)})"
    if t == pa.bool_():
        return "TRUE" if value else "FALSE"
    if is_integer(t):
        return f"{value}{_SUFFIX[t]}"
    if is_decimal(t):
        return _decimal_sql(value, t)
    if t in (pa.float32(), pa.float64()):
        if math.isnan(value) or math.isinf(value):
            word = "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
            return f"CAST('{word}' AS {type_name(t)})"
        return f"{float(value)!r}{'F' if t == pa.float32() else 'D'}"
    if t == pa.string():
        return quote_text(value)
    if t == pa.binary():
        return f"X'{value.hex().upper()}'"
    return _temporal_sql(value, t)


def _decimal_sql(value: Decimal, t: pa.DataType) -> str:
    text = f"{value:f}BD"
    digits = value.as_tuple()
    scale = max(0, -int(digits.exponent))
    natural = pa.decimal128(max(len(digits.digits), scale, 1), scale)
    return text if natural == t else f"CAST({text} AS {type_name(t)})"


def _temporal_sql(value: int, t: pa.DataType) -> str:
    if t == pa.date32():
        return f"DATE '{_signed_year(str(np.datetime64(value, 'D')))}'"
    text = _signed_year(str(np.datetime64(value, "us")).replace("T", " "))
    whole, _, fraction = text.partition(".")
    text = f"{whole}.{fraction}".rstrip("0").rstrip(".")
    if t == TIMESTAMP:
        return f"TIMESTAMP '{text}Z'"
    assert t == TIMESTAMP_NTZ, t
    return f"TIMESTAMP_NTZ '{text}'"


def _signed_year(text: str) -> str:
    """NumPy prints years past 9999 without the sign that Spark wants."""
    year = text[1:].split("-")[0] if text.startswith("-") else text.split("-")[0]
    return text if text.startswith("-") or len(year) <= 4 else "+" + text


def _print(node: Expr, below: tuple[_Printed, ...]) -> _Printed:
    if isinstance(node, Column):
        return ".".join(quote_name(part) for part in node.path), _ATOM
    if isinstance(node, Literal):
        return literal_sql(node), _UNARY if isinstance(node.value, int | float | Decimal) and node.value < 0 else _ATOM
    if isinstance(node, Lookup):
        return f"{_within(below[0], _ATOM)}[{below[1][0]}]", _ATOM
    if isinstance(node, Cast):
        return f"{'TRY_CAST' if node.safe else 'CAST'}({below[0][0]} AS {type_name(node.type)})", _ATOM
    if isinstance(node, Call):
        return _print_call(node, below)
    if isinstance(node, Not):
        inner = node.child
        if isinstance(inner, In | IsNull | Like) or (isinstance(inner, Compare) and inner.op == "="):
            # Printed again from the parts: the child's own text has no room for the word.
            return _print_test(inner, tuple(tree.fold(c, _print) for c in inner.children), "NOT ")
        return f"NOT {_within(below[0], _NOT)}", _NOT
    if isinstance(node, And | Or):
        word, level = (" AND ", _AND) if isinstance(node, And) else (" OR ", _OR)
        return word.join(_within(arm, level + 1) for arm in below), level
    return _print_test(node, below)


def _print_test(node: Expr, below: tuple[_Printed, ...], word: str = "") -> _Printed:
    operands = [_within(operand, _TEST + 1) for operand in below]
    if isinstance(node, Compare):
        left, right = (_compared(n, text) for n, text in zip(node.children, operands, strict=True))
        return f"{left} {'<>' if word else node.op} {right}", _TEST
    if isinstance(node, In):
        options = ", ".join(_compared(option, tree.fold(option, _print)[0]) for option in node.options)
        return f"{operands[0]} {word}IN ({options})", _TEST
    if isinstance(node, IsNull):
        return f"{operands[0]} IS {word}NULL", _TEST
    assert isinstance(node, Like), node
    escape = "" if node.escape == "\\" else f" ESCAPE {quote_text(node.escape)}"
    return f"{operands[0]} {word}LIKE {quote_text(node.pattern)}{escape}", _TEST


def _print_call(node: Call, below: tuple[_Printed, ...]) -> _Printed:
    if node.name in _OPERATORS and len(below) == 2:
        level = _OPERATORS[node.name]
        symbol = node.name.upper()
        if node.name in "&|^":  # each beside another in parentheses: few know how they bind
            return f"{_within(below[0], _SUM)} {symbol} {_within(below[1], _SUM)}", level
        return f"{_within(below[0], level)} {symbol} {_within(below[1], level + 1)}", level
    if node.name in ("negative", "~") and len(below) == 1:
        return f"{'-' if node.name == 'negative' else '~'}{_within(below[0], _ATOM)}", _UNARY
    if node.name == "interval" and len(node.args) == 2:
        return _interval_sql(*node.args), _ATOM
    if node.name == "add_interval":
        return f"{_within(below[0], _SUM)} + {_interval_sql(*node.args[1:])}", _SUM
    if node.name == "case":
        words = [("WHEN", "THEN")[i % 2] for i in range(len(below) // 2 * 2)] + ["ELSE"]
        return f"CASE {' '.join(f'{word} {text}' for word, (text, _) in zip(words, below, strict=False))} END", _ATOM
    if node.name == tree.UNKNOWN and isinstance(node.args[0], Literal):
        return f"({node.args[0].value})", _ATOM
    if node.name in _TRIMMED and len(below) == 2:
        return f"trim({_TRIMMED[node.name]} {below[1][0]} FROM {below[0][0]})", _ATOM
    return f"{node.name}({', '.join(text for text, _ in below)})", _ATOM


def _interval_sql(amount: Expr, unit: Expr) -> str:
    assert isinstance(amount, Literal)
    assert isinstance(unit, Literal)
    return f"INTERVAL '{amount.value}' {unit.value}"


def _compared(node: Expr, text: str) -> str:
    """A literal beside something that gives it its type."""
    if not isinstance(node, Literal):
        return text
    if node.value is None:
        return "NULL"
    if is_decimal(node.type):
        return f"{node.value:f}"
    return str(node.value) if is_integer(node.type) else text


def _within(printed: _Printed, level: int) -> str:
    text, own = printed
    return text if own >= level else f"({text})"
