"""Operands as Spark sees them before it compares or computes: how wide a constant is, and what an interval moves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.expr.functions.interval_functions import NAME as ADD_INTERVAL
from penstock.expr.tree import Call, Expr, Literal
from penstock.expr.types import integer_range, is_decimal, is_integer


def comparison_type(side: Expr, others: set[pa.DataType | None]) -> pa.DataType:
    """The type a side brings into a comparison: a constant integer is no wider than it needs to be.

    Spark reaches the same by moving casts from columns to constants: `CAST(smallint_column AS int) = 5` is
    `smallint_column = 5`, and beside a decimal an integer has as many digits as it has.
    """
    assert side.type is not None
    if not isinstance(side, Literal) or not is_integer(side.type) or side.value is None:
        return side.type
    if any(t is not None and is_decimal(t) for t in others):
        return _digits(side.value)
    other = next(iter(others)) if len(others) == 1 else None
    return other if other is not None and is_integer(other) and fits(side.value, other) else side.type


def _digits(value: int) -> pa.DataType:
    return pa.decimal128(len(str(abs(value))), 0)


def is_beyond_bigint(left: Expr, right: Expr) -> bool:
    """An integer beside a decimal that no bigint reaches: Spark's analyzer answers without looking, even for NULL."""
    if left.type is None or not is_integer(left.type) or not isinstance(right, Literal) or right.value is None:
        return False
    return is_decimal(right.type) and not fits(right.value, pa.int64())


def fits(value: Any, t: pa.DataType) -> bool:
    """Whether a number is in the range of an integer type."""
    low, high = integer_range(t)
    return bool(low <= value <= high)


def with_its_digits(written: Expr, bound: Expr) -> Expr:
    """Beside a decimal, an integer that is written out has as many digits as it has; any other has those of its type.

    For other types than int, `2L` and `CAST(2 AS bigint)` look the same here.
    """
    if not isinstance(written, Literal) or written.type != pa.int32() or written.value is None:
        return bound
    return Literal(Decimal(written.value), _digits(written.value), at=bound.at)


def with_interval(node: Call) -> Call:
    """`x - INTERVAL 7 DAYS` as the function that moves x."""
    if node.name not in ("+", "-") or len(node.args) != 2:
        return node
    value, interval = node.args if not _is_interval(node.args[0]) or node.name == "-" else node.args[::-1]
    if not _is_interval(interval) or _is_interval(value):
        return node
    amount, unit = interval.children
    assert isinstance(amount, Literal)
    moved = Literal(-amount.value if node.name == "-" else amount.value, pa.int64())
    return Call(ADD_INTERVAL, (value, moved, unit), at=node.at)


def _is_interval(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.name == "interval" and len(expr.args) == 2
