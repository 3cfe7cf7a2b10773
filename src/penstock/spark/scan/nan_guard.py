"""Float columns on Spark Connect, behind a function that Spark does not push to Parquet.

A server has no reader of ours (`NanSafeParquet.java`), so a filter such as `d > 1e9` would skip the row groups whose
statistics leave NaN out. `nanvl(d, d)` has the value of `d`, and filters on it are evaluated on rows only.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.expr.sql_text import quote_name, quote_text
from penstock.expr.types import is_float


def guarded(value: str, t: pa.DataType) -> str:
    """A value as Spark SQL, with its floats guarded; filters never reach what is inside lists and maps.

    >>> guarded("d", pa.float64())
    'nanvl(d, d)'
    >>> guarded("i", pa.int32())
    'i'
    """
    if is_float(t):
        return f"nanvl({value}, {value})"
    if not has_floats(t):
        return value
    parts = [f"{quote_text(f.name)}, {guarded(f'{value}.{quote_name(f.name)}', f.type)}" for f in t]
    return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"


def has_floats(t: pa.DataType) -> bool:
    """Whether a filter can reach a float in values of a type."""
    return is_float(t) or (pa.types.is_struct(t) and any(has_floats(f.type) for f in t))
