"""One entry of the registry of functions: names, types, exact meaning over Arrow, and the law that lets bounds through.

A function is *evaluable* when its kernel gives exactly Spark's answer. A function without an entry is opaque: it
parses, prints itself and is never evaluated while planning, so it never prunes.

A *law* lets the bounds of a column say something about a function of it. It declares how the result moves with one
argument while all others are constants, and it is a statement about Spark's function, not about the kernel:

* The arguments for which the function has a value form one interval. `x + 1` fails for the largest integer only.
* Over that interval the result never falls (`RISING`) or never rises (`FALLING`). NaN is not part of any range and is
  looked at on its own.
* `clock` says that the function reads or sets the clock of the session's zone, so that the order holds only away from
  clock changes; `slack` says by how many microseconds a timestamp may fall back anywhere (`ts + INTERVAL 1 MONTH` maps
  January 30th, 10:00 to a later moment than January 31st, 09:00).
* `total` says that the function has a value for every argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expr.kernels.vector import Vector
from penstock.expr.tree import Expr, Literal


@dataclass(frozen=True, slots=True)
class Signature:
    """The types to which the arguments are cast, and the type of the result."""

    arguments: tuple[pa.DataType, ...]
    result: pa.DataType


@dataclass(frozen=True, slots=True)
class Law:
    """How a result moves with one argument: +1 never falls, -1 never rises."""

    direction: int
    clock: bool = False
    slack: int = 0
    total: bool = False


RISING, FALLING = Law(1), Law(-1)

# A constant argument is a one-element tuple of its physical value, an argument that varies is None.
Constants = Sequence[tuple[object] | None]
Kernel = Callable[[Sequence[Any], str], Vector]
LawOf = Callable[[int, Constants], Law | None]


def constants_of(node: Expr) -> Constants:
    """The value of each child that is a constant, in a tuple; None for what varies."""
    return [(child.value,) if isinstance(child, Literal) else None for child in node.children]


def by_argument(*laws: Law | None) -> LawOf:
    """The law of each argument; the last is that of all that follow."""
    return lambda argument, constants: laws[min(argument, len(laws) - 1)]


rising, falling, opposed = by_argument(RISING), by_argument(FALLING), by_argument(RISING, FALLING)
rising_first = by_argument(RISING, None)
lawless = by_argument(None)  # only single values prune


@dataclass(frozen=True, slots=True)
class Function:
    """One function under its Spark name.

    `signature` gets the argument types and the constants among them and answers None when it does not take them.
    `kernel` gets arrays of the signature's types, all of one length, and the session's time zone; one that chooses
    among its arguments gets them as vectors, with the rows that failed.
    `aliases` are its other names in SQL, `catalyst` the names of Spark's classes with the same arguments in the same
    order. A class may fail where the kernel fails or give NULL there, as it does with ANSI mode off.
    """

    name: str
    signature: Callable[[Sequence[pa.DataType], Constants], Signature | None]
    kernel: Kernel
    law: LawOf = lawless
    aliases: tuple[str, ...] = ()
    catalyst: tuple[str, ...] = ()
    null_in_null_out: bool = True
    chooses: bool = False
