"""Python values in physical form to Arrow arrays and back.

Dates are days, timestamps microseconds, decimals `decimal.Decimal`: the form in which literals and keys are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.expr.types import is_float, is_timestamp


def to_arrow(values: Sequence[Any], t: pa.DataType) -> pa.Array:
    """Physical values as an array.

    >>> to_arrow([0, None], pa.date32()).to_pylist()
    [datetime.date(1970, 1, 1), None]
    """
    if t == pa.date32():
        return pa.array(values, pa.int32()).view(t)
    if is_timestamp(t):
        return pa.array(values, pa.int64()).view(t)
    if is_float(t):
        return pa.array([None if v is None else float(v) for v in values], t)
    return pa.array(values, t)


def from_arrow(values: pa.Array) -> list[Any]:
    """An array as physical values."""
    if values.type == pa.date32():
        return list(values.view(pa.int32()).to_pylist())
    if is_timestamp(values.type):
        return list(values.view(pa.int64()).to_pylist())
    return list(values.to_pylist())
