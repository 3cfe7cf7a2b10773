"""Literals as they are written: numbers (`5`, `5L`, `1.5D`, with or without a minus), `X'1F'`, intervals of one unit.

They get the types that Spark gives them.

>>> number("5000000000", "", None)
<Literal 5000000000L>
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from penstock.errors import PredicateError, shortened
from penstock.expr.functions.interval_functions import UNITS
from penstock.expr.tree import Call, Cast, Expr, Literal
from penstock.expr.types import MAX_PRECISION


def number(digits: str, text: str, at: int | None) -> Literal:
    """The number that digits stand for: an int, a bigint, a decimal, or with an exponent a double."""
    if "e" in digits.lower():
        double = float(digits)
        if math.isinf(double):
            raise PredicateError(f"the number {shortened(digits, 50)} is beyond the range of double", text, at)
        return Literal(double, pa.float64(), at=at)
    value = Decimal(digits)
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    precision = max(len(parts.digits), scale, 1)
    if precision > MAX_PRECISION:
        message = f"the number {shortened(digits, 50)} has {precision:,} digits; Spark has {MAX_PRECISION}"
        raise PredicateError(message, text, text.find(digits))
    if "." not in digits and value < 1 << 63:
        return Literal(int(value), pa.int32() if value < 1 << 31 else pa.int64(), at=at)
    return Literal(value, pa.decimal128(precision, scale), at=at)


def is_signed(node: exp.Neg, literal: Literal) -> bool:
    """Whether the minus belongs to the number. Before parentheses it is a function, and Spark's rounds to 34 digits."""
    if isinstance(literal.value, Decimal):
        return isinstance(node.this, exp.Literal)
    return not isinstance(literal.value, str | bytes | None) and not isinstance(node.this, exp.Paren | exp.Neg)


def negated(literal: Literal, at: int | None) -> Expr:
    """-2147483648 is an int although 2147483648 is not; -(-2147483648) overflows and is left to Spark."""
    # Minus on a Decimal rounds to 28 digits; `copy_negate` never does.
    value = literal.value.copy_negate() if isinstance(literal.value, Decimal) else -literal.value
    for narrow, limit in ((pa.int32(), 1 << 31), (pa.int64(), 1 << 63)):
        if value == -limit and literal.type in (pa.int64(), pa.decimal128(19, 0)):
            return Literal(-limit, narrow, at=at)
    if pa.types.is_integer(literal.type) and value >= 1 << literal.type.bit_width - 1:
        return Call("negative", (literal,), at=at)
    return Literal(value, literal.type, at=at)


def negated_suffixed(cast: Cast, at: int | None) -> Expr:
    """`-128Y` is a tinyint although `128Y` is not."""
    child = cast.child
    if isinstance(child, Literal) and isinstance(child.value, int | Decimal) and pa.types.is_integer(cast.type):
        value = -int(child.value)
        if value == -(1 << cast.type.bit_width - 1):
            return Literal(value, cast.type, at=at)
    return Call("negative", (cast,), at=at)


def suffixed(child: Literal, to: pa.DataType) -> Literal | None:
    """`5L`, `1.5D` arrive as casts of a number; they are literals of that type. No suffix makes an int."""
    if pa.types.is_integer(to) and to != pa.int32() and isinstance(child.value, int):
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


def hexadecimal(digits: str, text: str, at: int | None) -> Literal:
    """The bytes of `X'1F'`; an odd number of digits begins with a zero."""
    try:
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), pa.binary(), at=at)
    except ValueError:
        raise PredicateError(f"X'{digits[:50]}' is not hexadecimal", text, text.find(digits)) from None


def interval(node: exp.Interval, at: int | None) -> Call | None:
    """A whole number of one unit; None for any other interval."""
    amount = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    unit = str(node.args["unit"].name).upper().removesuffix("S") if isinstance(node.args.get("unit"), exp.Var) else ""
    if amount.removeprefix("-").isdigit() and unit in UNITS and len(amount) < 10:
        return Call("interval", (Literal(int(amount), pa.int64()), Literal(unit, pa.string())), at=at)
    return None
