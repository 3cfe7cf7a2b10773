"""The few shapes of kernel that functions share: over numbers, integers of 64 bits, Arrow arrays, or row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.function import Kernel
from penstock.expr.kernels.physical import Numbers, all_valid, integer_vector, numbers, vector
from penstock.expr.kernels.vector import Mask, Vector

# What is computed, and the rows for which it fails.
Answer = tuple[Numbers, Mask]


def of_numbers(compute: Callable[..., Numbers | Answer], to: pa.DataType | None = None) -> Kernel:
    """A function of physical values, null where an argument is; a result that does not fit its integer type fails.

    Without `to`, the result has the type of the first argument.
    """

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        with np.errstate(all="ignore"):
            result = compute(*map(numbers, arrays))
        values, failed = result if isinstance(result, tuple) else (result, None)
        build = integer_vector if values.dtype.kind == "i" else vector
        return build(values, arrays[0].type if to is None else to, all_valid(*arrays), failed)

    return kernel


def of_integers(compute: Callable[..., Numbers | Answer], to: pa.DataType | None = None) -> Kernel:
    """The same of days, months and other counts, with 64 bits."""
    return of_numbers(lambda *columns: compute(*(column.astype(np.int64) for column in columns)), to)


def of_arrays(compute: Callable[..., pa.Array]) -> Kernel:
    """A function of Arrow's."""
    return lambda arrays, zone: Vector(compute(*arrays))


def by_row(to: pa.DataType, compute: Callable[..., Any]) -> Kernel:
    """A Python function of the arguments, called once for each combination; null when any is null."""

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        remembered = lru_cache(maxsize=4096)(compute)
        rows = zip(*(values.to_pylist() for values in arrays), strict=True)
        return Vector(pa.array([None if None in row else remembered(*row) for row in rows], to))

    return kernel


def uniform(values: pa.Array) -> tuple[Any] | None:
    """The one value that every row has, in a tuple; None when there are several, or nulls, or no rows."""
    if len(values) == 0 or values.null_count:
        return None
    first = values[0]
    return (first.as_py(),) if len(values) == 1 or pc.all(pc.equal(values, first)).as_py() else None


unchanged = of_arrays(lambda values: values)  # a function that is its argument, cast as its signature says
