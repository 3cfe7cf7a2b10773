"""Why a predicate has no value on a row, for the error that says so: the innermost part that failed, and its values.

>>> from penstock.expr.bind import bind_text
>>> from penstock.expr.kernels.evaluate import read_terms
>>> table = pa.table({"app": ["shop", "café"]})
>>> predicate = bind_text("upper(app) = 'SHOP'", table.schema)
>>> why_failed(predicate, read_terms(predicate, table), 1, "UTC")
"upper(app) cannot be computed for text that is not ASCII where app is 'café'"
"""

from __future__ import annotations

import pyarrow as pa

from penstock.expr.kernels.evaluate import Rows, evaluate, short
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.kernels.vector import Vector
from penstock.expr.text_size import MAX_TEXT_BYTES, text_bytes
from penstock.expr.tree import Call, Cast, Expr, terms_of
from penstock.expr.types import type_name

_LONGEST_VALUE = 60


def why_failed(predicate: Expr, rows: Rows, row: int, zone: str) -> str:
    """What failed on one row, as the end of a sentence."""
    one = {term: values.slice(row, 1) for term, values in rows.items()}
    failed: list[tuple[Expr, tuple[Vector, ...]]] = []

    def look(node: Expr, below: tuple[Vector, ...], vector: Vector) -> None:
        if vector.failed is not None and not any(v.failed is not None for v in below):
            failed.append((node, below))

    evaluate(predicate, one, 1, zone, look)
    if not failed:  # together the rows were too many
        return f"its text would take more than {MAX_TEXT_BYTES >> 20} MiB of memory"
    node, below = failed[0]
    values = [f"{term} is {_shown(one[term])}" for term in terms_of(node) if term in one]
    return " where ".join(part for part in (_problem(node, below), " and ".join(values)) if part)


def _problem(node: Expr, below: tuple[Vector, ...]) -> str:
    if isinstance(node, Cast):
        return f"{short(node.child)} cannot be cast to {type_name(node.type)}"
    arrays = [vector.values for vector in below]
    if not isinstance(node, Call):
        return f"{short(node)} has no value"
    if text_bytes(node.name, arrays) > MAX_TEXT_BYTES:
        return f"{short(node)} would be a text of more than {MAX_TEXT_BYTES >> 20} MiB"
    texts = [value for array in arrays if array.type == pa.string() for value in array.to_pylist() if value]
    if any(not text.isascii() for text in texts):
        return f"{short(node)} cannot be computed for text that is not ASCII"
    return f"{short(node)} overflows, divides by zero or is out of range"


def _shown(values: pa.Array) -> str:
    try:
        value = repr(values[0].as_py())
    except (OverflowError, ValueError):  # before year 1 or after 9999: Python has no such date
        value = f"{from_arrow(values)[0]} {'days' if values.type == pa.date32() else 'microseconds'} after 1970-01-01"
    return value if len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"
