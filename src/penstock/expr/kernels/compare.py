"""Comparison as Spark does it: a total order in which NaN equals itself and stands above everything, and -0.0 = 0.0.

Arrow compares floats as IEEE 754 says, where NaN is neither below nor above nor equal to anything. Everything else
(integers, decimals, strings by their bytes, dates, timestamps) Arrow orders as Spark does.

>>> compare("=", pa.array([float("nan"), 1.0]), pa.array([float("nan"), None])).to_pylist()
[True, None]
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import is_float

_ARROW = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_MIRROR = {">": "<", ">=": "<="}


def compare(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """`left op right` for each row, null where either is null (`<=>` never is)."""
    if op == "<=>":
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, pc.fill_null(compare("=", left, right), False))
    if not is_float(left.type):
        return _ARROW[op](left, right)
    if op in _MIRROR:
        return compare(_MIRROR[op], right, left)
    return _compare_floats(op, left, right)


def _compare_floats(op: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if op == "=":
        return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if op == "<":
        return pc.or_(pc.less(left, right), pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return pc.or_(pc.less_equal(left, right), pc.is_nan(right))


def is_member(values: pa.Array, options: pa.Array, has_null: bool) -> pa.Array:
    """`values IN (options…)`; options hold no null, `has_null` says whether the list did."""
    if is_float(values.type):
        values, options = _one_zero_one_nan(values), _one_zero_one_nan(options)
    unknown = pa.scalar(None, pa.bool_())
    members = pc.if_else(pc.is_valid(values), pc.is_in(values, value_set=options), unknown)
    return pc.if_else(members, True, unknown) if has_null else members


def _one_zero_one_nan(values: pa.Array) -> pa.Array:
    """Floats that are equal with equal bits: -0.0 is 0.0, and every NaN is the same, as a hash tells both apart."""
    summed = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(summed), pa.scalar(float("nan"), values.type), summed)
