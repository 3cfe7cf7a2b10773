"""Tests of a function turned into tests of the column, for the two functions whose inverse is plain arithmetic.

* A cast that only widens: `CAST(n AS bigint) < 5` is `n < 5`, and `CAST(n AS decimal(12,2)) < 5.01` is `n < 6`.
* A prefix: `substring(s, 1, 2) < 'b'` is `s < 'b'`.

Both stand in most predicates that Spark sends, and as tests of the column they meet its other tests: `CAST(n AS bigint)
> 5 AND n < 3` is impossible by itself. Every other function is evaluated at the ends of ranges (`image`).
"""

from __future__ import annotations

import pyarrow as pa

from penstock.expr.tree import Call, Cast, Expr, Literal, is_term
from penstock.expr.types import decimal_for, is_decimal, is_integer
from penstock.prune.domain import Domain, Interval
from penstock.prune.ordered_keys import Key, next_prefix


def preimage(expr: Expr, domain: Domain) -> tuple[Expr, Domain] | None:
    """The term of an expression and its non-null values for which the expression lies in the set; None for others."""
    domain = domain.with_null(False)
    if is_term(expr):
        return expr, domain
    width, factor = _prefix_width(expr), _factor(expr)
    term = expr.children[0] if expr.children else expr
    if width is not None:
        intervals = [_prefixed(interval, width) for interval in domain.intervals]
        return term, Domain.union_of(pa.string(), [interval for interval in intervals if interval is not None])
    if factor is not None and term.type is not None:
        ends = [(_divided(low, factor), _divided(high, factor)) for low, high in domain.intervals]
        return term, Domain.union_of(term.type, ends)
    return None


def _prefix_width(expr: Expr) -> int | None:
    """n for `left(term, n)` and `substring(term, 1, n)`."""
    if not isinstance(expr, Call) or not expr.args or not is_term(expr.args[0]) or expr.args[0].type != pa.string():
        return None
    constants = [arg.value if isinstance(arg, Literal) else None for arg in expr.args[1:]]
    if expr.name in ("substring", "substr") and len(constants) == 2 and constants[0] == 1:
        constants = constants[1:]
    elif expr.name != "left":
        return None
    return constants[0] if isinstance(constants[0], int) and constants[0] > 0 else None


def _prefixed(interval: Interval, width: int) -> Interval | None:
    """The strings whose first `width` characters lie in the interval; None when there are none."""
    low, high = interval
    start = _first_with_prefix(low, width) if low is not None else None
    if low is not None and start is None:
        return None  # no prefix of this width reaches so far
    return start, None if high is None else _first_with_prefix(high, width)


def _first_with_prefix(key: Key, width: int) -> Key | None:
    """The smallest string whose first `width` characters are not below `key`; None when no string is."""
    return key if len(key) <= width else next_prefix(key[:width])


def _factor(expr: Expr) -> int | None:
    """m when the key of `expr` is m times the key of its term: widening casts."""
    if not isinstance(expr, Cast) or expr.safe or not is_term(expr.child):
        return None
    source, to = expr.child.type, expr.type
    if source is None:
        return None
    if is_integer(source) and is_integer(to) and to.bit_width >= source.bit_width:
        return 1
    if is_decimal(to) and (is_integer(source) or is_decimal(source)):
        scale = source.scale if is_decimal(source) else 0
        digits = source.precision - scale if is_decimal(source) else decimal_for(source).precision
        if to.scale >= scale and to.precision - to.scale >= digits:
            return int(10 ** (to.scale - scale))
    return None


def _divided(key: Key | None, factor: int) -> Key | None:
    return None if key is None else -(-key // factor)
