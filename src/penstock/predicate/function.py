"""What Penstock knows of a SQL function: its types, its exact meaning over Arrow, and whether it keeps order.

A function is *evaluable* when a kernel gives exactly Spark's answer. A function without an entry is opaque: it parses,
prints itself and is never evaluated at planning, so it never prunes.

`direction` is what lets a bound travel through a function. It says how the result moves with one argument while all
others are constants: +1 never falls, -1 never rises, 0 unknown. The order is Spark's (NaN above everything, strings
by their bytes) and only rows that do not fail count: `x + 1` is +1 although it fails at the largest integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.predicate.vector import Vector


@dataclass(frozen=True, slots=True)
class Signature:
    """The types to which the arguments are cast, and the type of the result."""

    arguments: tuple[pa.DataType, ...]
    result: pa.DataType


# A constant argument is given as a one-element tuple of its physical value, an argument that varies as None.
Constants = Sequence[tuple[object] | None]
Kernel = Callable[[Sequence[pa.Array], str], Vector]


def _unordered(argument: int, constants: Constants) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Function:
    """One function under its Spark name.

    `signature` gets the argument types and the constants among them and answers None when it does not take them.
    `kernel` gets arrays of the signature's types, all of one length, and the session's time zone.
    """

    name: str
    signature: Callable[[Sequence[pa.DataType], Constants], Signature | None]
    kernel: Kernel
    direction: Callable[[int, Constants], int] = _unordered
    null_in_null_out: bool = True
