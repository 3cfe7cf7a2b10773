"""Functions that stand for other expressions, replaced as Spark's parser and analyzer replace them.

`nullif(a, b)` is `if(a = b, NULL, a)`, `string(x)` is a cast. They need no kernel of their own, and prune as that does
which they stand for.

>>> from penstock.expr.tree import Column
>>> str(replaced(Call("nvl2", (Column(("a",)), Column(("b",)), Column(("c",))))))
'if(a IS NOT NULL, b, c)'
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.expr.tree import Call, Cast, Compare, Expr, IsNull, Like, Literal, Not
from penstock.expr.types import TYPE_NAMES

_CASTS = {name: t for t, name in TYPE_NAMES.items() if name not in ("timestamp_ntz", "void")}
_CASTS["decimal"] = pa.decimal128(10, 0)
# Each part of a date or time with the function that reads it and its other names; `second`, which has a fraction, and
# the rest are left to Spark.
_PARTS = {
    name: words.split()[0]
    for words in (
        "year y years yr yrs",
        "quarter qtr",
        "month mon mons months",
        "weekofyear w week weeks",
        "day d days",
        "dayofweek dow",
        "dayofyear doy",
        "hour h hours hr hrs",
        "minute m min mins minutes",
    )
    for name in words.split()
}
_ZERO, _NOTHING = Literal(0, pa.int32()), Literal(None, pa.null())


def case_insensitive(value: Expr, pattern: Expr, escape: str = "\\", at: int | None = None) -> Expr:
    """ILIKE, which is LIKE of both in lower case; only ASCII patterns are known in lower case without Spark."""
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and pattern.value.isascii():
        return Like(Call("lower", (value,), at=at), pattern.value.lower(), escape, at=at)
    return Call("ilike", (value, pattern, Literal(escape, pa.string())), at=at)


def date_part(part: Expr, value: Expr) -> Expr:
    """EXTRACT and `date_part`: the function of that part."""
    name = _PARTS.get(str(part.value).lower()) if isinstance(part, Literal) else None
    return Call("date_part", (part, value)) if name is None else Call(name, (value,))


_REPLACED: dict[tuple[str, int], Callable[..., Expr]] = {
    ("btrim", 1): lambda text: Call("trim", (text,)),
    ("btrim", 2): lambda text, characters: Call("trim", (text, characters)),
    ("date_part", 2): date_part,
    ("datepart", 2): date_part,
    ("equal_null", 2): lambda left, right: Compare("<=>", left, right),
    ("ifnull", 2): lambda first, second: Call("coalesce", (first, second)),
    ("ilike", 2): case_insensitive,
    ("isnotnull", 1): lambda value: Not(IsNull(value)),
    ("isnull", 1): IsNull,
    ("ltrim", 2): lambda characters, text: Call("ltrim", (text, characters)),
    ("nullif", 2): lambda first, second: Call("if", (Compare("=", first, second), _NOTHING, first)),
    ("nullifzero", 1): lambda value: Call("if", (Compare("=", value, _ZERO), _NOTHING, value)),
    ("nvl", 2): lambda first, second: Call("coalesce", (first, second)),
    ("nvl2", 3): lambda tested, known, unknown: Call("if", (Not(IsNull(tested)), known, unknown)),
    ("rtrim", 2): lambda characters, text: Call("rtrim", (text, characters)),
    ("zeroifnull", 1): lambda value: Call("coalesce", (value, _ZERO)),
}


def replaced(call: Call) -> Expr:
    """The expression that a call stands for; the call itself where it is just that."""
    if call.name in _CASTS and len(call.args) == 1:
        return Cast(call.args[0], _CASTS[call.name], at=call.at)
    build = _REPLACED.get((call.name, len(call.args)))
    return call if build is None else build(*call.args)
