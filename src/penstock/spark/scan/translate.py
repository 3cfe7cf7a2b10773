"""Catalyst's filters, as the JSON of `Filters.java`, to predicate trees.

Only what is understood exactly is translated. Every other expression becomes an opaque call: it keeps files and never
skips one. Spark evaluates data filters again on the rows, and partition filters are applied again in Java, so what is
not translated costs pruning only.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.expr.bind import Context, bind, bind_tree
from penstock.expr.functions.function_registry import CATALYST
from penstock.expr.functions.interval_functions import NAME as ADD_INTERVAL
from penstock.expr.schema import as_schema
from penstock.expr.tree import (
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
from penstock.expr.types import is_decimal, is_float, is_integer, is_nested

_NODES: dict[str, Callable[[list[Expr]], Expr]] = {
    "EqualTo": lambda children: Compare("=", children[0], children[1]),
    "EqualNullSafe": lambda children: Compare("<=>", children[0], children[1]),
    "LessThan": lambda children: Compare("<", children[0], children[1]),
    "LessThanOrEqual": lambda children: Compare("<=", children[0], children[1]),
    "GreaterThan": lambda children: Compare(">", children[0], children[1]),
    "GreaterThanOrEqual": lambda children: Compare(">=", children[0], children[1]),
    "And": lambda children: And(tuple(children)),
    "Or": lambda children: Or(tuple(children)),
    "Not": lambda children: Not(children[0]),
    "IsNull": lambda children: IsNull(children[0]),
    "IsNotNull": lambda children: Not(IsNull(children[0])),
    "GetMapValue": lambda children: Lookup(children[0], children[1]),
    "ElementAt": lambda children: Lookup(children[0], children[1]),
}
# The types whose values mean here what they mean to Spark. A string with a collation, a char or an interval does not.
_PLAIN = frozenset(["boolean", "tinyint", "smallint", "int", "bigint", "float", "double"])
_PLAIN |= {"string", "binary", "date", "timestamp", "timestamp_ntz"}
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")
_NESTED = re.compile(r"(struct|map|array)<")
# Days and less come as microseconds, months and years as months.
_DAY_TIME = frozenset(["TimeAdd", "TimestampAddInterval"])
_YEAR_MONTH = frozenset(["TimestampAddYMInterval", "DateAddYMInterval"])


def translate(filters: Sequence[dict[str, Any]], schema: pa.Schema, context: Context) -> Expr:
    """The conjunction of Spark's filters as a bound predicate."""
    parts = [_bound(filter_, schema, context) for filter_ in filters]
    return TRUE if not parts else (parts[0] if len(parts) == 1 else And(tuple(parts)))


def translate_value(value: dict[str, Any], schema: pa.Schema, context: Context) -> Expr | None:
    """An expression of Spark's, of any type, as a bound tree; None where it is not understood."""
    try:
        return bind_tree(_convert(value, context.timezone), schema, context)
    except PenstockError:
        return None


def _bound(filter_: dict[str, Any], schema: pa.Schema, context: Context) -> Expr:
    try:
        return bind(_convert(filter_, context.timezone), schema, context)
    except PenstockError:
        return Call("spark_expression", (), at=None)


def _convert(node: dict[str, Any], zone: str) -> Expr:
    t = _type(node["type"])
    if "column" in node:  # with casts, one gave its fields other names
        return _opaque(node) if t is None or "casts" in node else Column(tuple(node["column"]))
    if "value" in node:
        return _opaque(node) if t is None or is_nested(t) else Literal(_value(node["value"], t), t)
    name = node["call"]
    if not node["deterministic"] or _is_of_another_zone(node, zone):
        return _opaque(node)
    if name in _DAY_TIME | _YEAR_MONTH:
        return _moved(node, zone)
    children = [_convert(child, zone) for child in node["children"]]
    if name in _NODES:
        return _NODES[name](children)
    match name:
        case "In" if all(isinstance(child, Literal) for child in children[1:]):
            return In(children[0], tuple(child for child in children[1:] if isinstance(child, Literal)))
        case "InSet":
            kind = _type(node["children"][0]["type"])
            if kind is None or is_nested(kind):
                return _opaque(node)
            return In(children[0], tuple(Literal(_value(value, kind), kind) for value in node["set"]))
        case "Like" if isinstance(children[1], Literal) and isinstance(children[1].value, str):
            return Like(children[0], children[1].value, node["escape"])
        case "Cast" if t is not None and _is_known_cast(node):
            return Cast(children[0], t, node["mode"] == "TRY")
    return _call(node, children)


def _call(node: dict[str, Any], children: Sequence[Expr]) -> Expr:
    """A function of the registry that takes these types, or wider integers, and gives the type that Spark gives."""
    function = CATALYST.get(node["call"])
    types = [_type(child["type"]) for child in node["children"]]
    if function is None or None in types:
        return _opaque(node)
    signature = function.signature(types, [(c.value,) if isinstance(c, Literal) else None for c in children])
    if signature is None or signature.result != _type(node["type"]):
        return _opaque(node)
    if any(
        t != to and not (is_integer(t) and is_integer(to)) for t, to in zip(types, signature.arguments, strict=True)
    ):
        return _opaque(node)
    return Call(function.name, tuple(children))


def _moved(node: dict[str, Any], zone: str) -> Expr:
    """A timestamp or date moved by a constant interval, whose literal is the number of its smallest units."""
    value, interval = node["children"]
    if not isinstance(interval.get("value"), int) or not interval["type"].startswith("interval "):
        return _opaque(node)
    unit = "MICROSECOND" if node["call"] in _DAY_TIME else "MONTH"
    amount = Literal(interval["value"], pa.int64())
    return Call(ADD_INTERVAL, (_convert(value, zone), amount, Literal(unit, pa.string())))


def _is_of_another_zone(node: dict[str, Any], zone: str) -> bool:
    """Whether Spark evaluates it in a zone that is not the table's. A cast has a zone always and needs it seldom."""
    if node.get("zone", zone) == zone:
        return False
    return node["call"] != "Cast" or "timestamp" in (node["type"], node["children"][0]["type"])


def _is_known_cast(node: dict[str, Any]) -> bool:
    """Whether the cast gives what ANSI mode gives, or a value where that fails; texts of numbers are others without."""
    types = (node["type"], node["children"][0]["type"])
    return node["mode"] in ("ANSI", "TRY") or "string" not in types or "binary" in types


def _opaque(node: dict[str, Any]) -> Expr:
    return Call(f"spark:{node.get('call', 'literal')}", ())


@lru_cache(maxsize=1024)
def _type(name: str) -> pa.DataType | None:
    """The type that Spark calls by a name; None for one that is not exactly one of ours."""
    nested = _NESTED.match(name) is not None and "collate" not in name.lower()
    if name not in _PLAIN and not nested and not _DECIMAL.fullmatch(name):
        return None
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
