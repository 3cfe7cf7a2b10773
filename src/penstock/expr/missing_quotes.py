"""Hints for missing quotes: `dt = 2026-05-15` is a subtraction, and so is `app = app-003`.

>>> from penstock.expr.parse import parse
>>> text = "dt >= 2026-05-15"
>>> quoted_date(parse(text), pa.date32(), text)
"write dt >= '2026-05-15'"

They change no result: a text means what Spark says it means. Errors and notes show them.
"""

from __future__ import annotations

import re
from datetime import date

import pyarrow as pa

from penstock.expr.tree import Call, Expr, In, Literal
from penstock.expr.types import is_integer, type_name

_COMPARED = re.compile(r"[\w.`]+\s*[=<>!]+\s*")
_HYPHENATED = re.compile(r"[A-Za-z_]\w*(?:-\w+)+")


def quoted_date(node: Expr, kind: pa.DataType, text: str | None) -> str:
    """How to write the date or time that a comparison has as a number; `kind` is the type it is compared with."""
    sides: tuple[Expr, ...] = node.options if isinstance(node, In) else node.children
    for side in sides:
        day = _subtracted(side)
        if day is not None:
            before = "" if text is None or node.at is None or side.at is None else text[node.at : side.at]
            return f"write {before if _COMPARED.fullmatch(before) else ''}'{day}'"
    return f"write a {type_name(kind)} in quotes"


def quoted_word(node: Call, text: str | None) -> str | None:
    """The words with hyphens that a subtraction stands for, in quotes."""
    if node.name != "-" or text is None or node.at is None:
        return None
    match = _HYPHENATED.match(text, node.at)
    return None if match is None else f"did you mean '{match[0]}' in quotes?"


def _subtracted(expr: Expr) -> date | None:
    """The date that `2026-05-15` would be: two subtractions of integers."""
    if not (_is_difference(expr) and _is_difference(expr.children[0])):
        return None
    parts = (*expr.children[0].children, expr.children[1])
    if not all(isinstance(part, Literal) and is_integer(part.type) for part in parts):
        return None
    try:
        return date(*(part.value for part in parts if isinstance(part, Literal)))
    except (ValueError, OverflowError):
        return None


def _is_difference(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.name == "-" and len(expr.args) == 2
