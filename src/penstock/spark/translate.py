"""Catalyst's filters, as the JSON of `Filters.java`, to predicate trees.

Only what is understood exactly is translated. Every other expression becomes an opaque call: it keeps files and never
skips one. Spark evaluates data filters again on the rows, and partition filters are applied again in Java, so what is
not translated costs pruning only.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.predicate.bind import Context, bind
from penstock.predicate.schema import as_schema
from penstock.predicate.tree import (
    TRUE,
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
from penstock.predicate.types import is_decimal, is_float, is_nested

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
# Catalyst's class to our function of the same arguments in the same order.
_FUNCTIONS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "UnaryMinus": "negative",
    "StartsWith": "startswith",
    "EndsWith": "endswith",
    "Contains": "contains",
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "DayOfMonth": "day",
    "DayOfWeek": "dayofweek",
    "DayOfYear": "dayofyear",
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
    "LastDay": "last_day",
    "DateAdd": "date_add",
    "DateSub": "date_sub",
    "DateDiff": "datediff",
    "TruncDate": "trunc",
    "TruncTimestamp": "date_trunc",
    "Substring": "substring",
    "Lower": "lower",
    "Upper": "upper",
    "Length": "length",
    "Coalesce": "coalesce",
    "Abs": "abs",
    "IsNaN": "isnan",
}


def translate(filters: Sequence[dict[str, Any]], schema: pa.Schema, context: Context) -> Expr:
    """The conjunction of Spark's filters as a bound predicate."""
    parts = [_bound(filter_, schema, context) for filter_ in filters]
    return TRUE if not parts else (parts[0] if len(parts) == 1 else And(tuple(parts)))


def _bound(filter_: dict[str, Any], schema: pa.Schema, context: Context) -> Expr:
    try:
        return bind(_convert(filter_, context.timezone), schema, context)
    except PenstockError:
        return Call("spark_expression", (), at=None)


def _convert(node: dict[str, Any], zone: str) -> Expr:
    if "column" in node and "casts" not in node:
        return Column(tuple(node["column"]))
    if "column" in node:
        return _opaque(node)  # a cast gave its fields other names
    t = _type(node["type"])
    if "value" in node:
        return _opaque(node) if t is None or is_nested(t) else Literal(_value(node["value"], t), t)
    name = node["call"]
    if not node["deterministic"] or _is_of_another_zone(node, zone):
        return _opaque(node)
    children = [_convert(child, zone) for child in node["children"]]
    if name in _COMPARISONS:
        return Compare(_COMPARISONS[name], children[0], children[1])
    match name:
        case "And":
            return And(tuple(children))
        case "Or":
            return Or(tuple(children))
        case "Not":
            return Not(children[0])
        case "IsNull":
            return IsNull(children[0])
        case "IsNotNull":
            return Not(IsNull(children[0]))
        case "In" if all(isinstance(child, Literal) for child in children[1:]):
            return In(children[0], tuple(child for child in children[1:] if isinstance(child, Literal)))
        case "InSet":
            kind = _type(node["children"][0]["type"])
            return _opaque(node) if kind is None or is_nested(kind) else In(children[0], _options(node["set"], kind))
        case "Like" if isinstance(children[1], Literal) and isinstance(children[1].value, str):
            return Like(children[0], children[1].value, node["escape"])
        case "Cast" if t is not None and node["mode"] in ("ANSI", "TRY"):
            return Cast(children[0], t, node["mode"] == "TRY")
        case "GetMapValue" | "ElementAt":
            return Lookup(children[0], children[1])
    return Call(_FUNCTIONS[name], tuple(children)) if name in _FUNCTIONS else _opaque(node)


def _is_of_another_zone(node: dict[str, Any], zone: str) -> bool:
    """Whether Spark evaluates it in a zone that is not the table's. A cast has a zone always and needs it seldom."""
    if node.get("zone", zone) == zone:
        return False
    return node["call"] != "Cast" or "timestamp" in (node["type"], node["children"][0]["type"])


def _options(values: list[Any], t: pa.DataType) -> tuple[Literal, ...]:
    return tuple(Literal(_value(value, t), t) for value in values)


def _opaque(node: dict[str, Any]) -> Expr:
    return Call(f"spark:{node.get('call', 'literal')}", ())


@lru_cache(maxsize=1024)
def _type(name: str) -> pa.DataType | None:
    try:
        return as_schema(f"x {name}").field(0).type
    except PenstockError:
        return None


def _value(value: Any, t: pa.DataType) -> Any:
    """Catalyst's internal form is ours but for decimals, floats and bytes, which come as text."""
    if value is None:
        return None
    if is_decimal(t):
        return Decimal(value)
    if is_float(t):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value) or float(value)
    return base64.b64decode(value) if t == pa.binary() else value
