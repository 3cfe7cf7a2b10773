"""The values of an expression, one per row, and the rows that have no value.

Spark in ANSI mode raises on `1 / 0` or `cast('x' AS int)`. The evaluator must be able to go on without raising: one
bad value in one container must not stop the planning of the others, and must not be taken for a null either. So every
kernel answers with a `Vector`: the values, and a mask of the rows that failed. A failed row means *unknown*: Spark
would raise there, or this evaluator cannot promise Spark's exact answer. Pruning keeps such a row, filtering raises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Vector:
    """`values[i]` is meaningful only where `failed[i]` is false; `failed` is None when no row failed."""

    values: pa.Array
    failed: Mask | None = None


def union(*masks: Mask | None) -> Mask | None:
    """Rows that failed in any of the masks.

    >>> union(None, np.array([True, False]))
    array([ True, False])
    """
    failed: Mask | None = None
    for mask in masks:
        if mask is not None:
            failed = mask if failed is None else failed | mask
    return failed if failed is not None and failed.any() else None
