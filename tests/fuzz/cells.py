"""The cells that must be covered: every function of the registry with every type each argument can have, every cast.

A cell is one function with a column of one type at one of its arguments; the other arguments are constants that the
signature takes. Nothing is listed by hand: a function that is added to the registry brings its cells with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa

from penstock.expr.functions.function import Function, Law
from penstock.expr.functions.function_registry import FUNCTIONS
from penstock.expr.kernels.cast import castable
from penstock.expr.types import type_name
from tests.fuzz.values import SCALARS, TIMESTAMP, TIMESTAMP_NTZ, TYPES

_OPERATORS = {"+", "-", "*", "/", "%", "div", "||", "&", "|", "^"}
_SIGNS = {"negative": "-", "positive": "+", "~": "~"}
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


@dataclass(frozen=True)
class Constant:
    """A constant argument: its SQL text, its type, and its value as a signature sees it."""

    text: str
    type: pa.DataType
    value: Any


CONSTANTS = (
    Constant("2", pa.int32(), 2),
    Constant("-1", pa.int32(), -1),
    Constant("3L", pa.int64(), 3),
    Constant("'a'", pa.string(), "a"),
    Constant("'MONTH'", pa.string(), "MONTH"),
    Constant("1.5D", pa.float64(), 1.5),
    Constant("1.25BD", pa.decimal128(3, 2), None),
    Constant("DATE '2026-05-01'", pa.date32(), 20_574),
    Constant("TIMESTAMP '2026-05-01 10:00:00+00:00'", TIMESTAMP, 1_777_629_600_000_000),
    Constant("TIMESTAMP_NTZ '2026-05-01 10:00:00'", TIMESTAMP_NTZ, 1_777_629_600_000_000),
    Constant("TRUE", pa.bool_(), True),
    Constant("X'61'", pa.binary(), b"a"),
    Constant("NULL", pa.null(), None),
)
_FEW = tuple(constant for constant in CONSTANTS if constant.text not in ("-1", "3L", "NULL"))
INTERVALS = tuple(Constant(f"'{unit}'", pa.string(), unit) for unit in _UNITS)


@dataclass(frozen=True)
class Cell:
    """A function at one argument of one type, or, with `position` None, a cast to the type `function`."""

    function: str
    position: int | None
    type: str

    def __str__(self) -> str:
        if self.position is None:
            return f"cast {self.type} to {self.function}"
        return f"{self.function}: argument {self.position + 1} {self.type}"


@dataclass(frozen=True)
class Call:
    """One way to call a function with a column of a cell's type: the constants around it and the result's type."""

    function: str
    position: int
    constants: tuple[Constant | None, ...]
    result: pa.DataType

    def text(self, column: str) -> str:
        """The call as SQL, with some SQL in the column's place."""
        arguments = [column if constant is None else constant.text for constant in self.constants]
        return render(self.function, arguments)


def render(name: str, arguments: Sequence[str]) -> str:
    """A call as SQL: operators between their arguments, CASE and intervals in their own syntax."""
    if name in _OPERATORS:
        return f"({f' {name} '.join(arguments)})"
    if name in _SIGNS:
        return f"({_SIGNS[name]}({arguments[0]}))"
    if name == "add_interval":
        return f"({arguments[0]} + INTERVAL '{arguments[1].strip('L')}' {arguments[2].strip(chr(39))})"
    if name == "case":
        pairs = "".join(f" WHEN {arguments[i]} THEN {arguments[i + 1]}" for i in range(0, len(arguments) - 1, 2))
        return f"CASE{pairs}{f' ELSE {arguments[-1]}' if len(arguments) % 2 else ''} END"
    if name == "position":
        return f"position({', '.join(arguments)})"
    return f"{name}({', '.join(arguments)})"


@cache
def calls(name: str) -> dict[Cell, list[Call]]:
    """All cells of a function, each with the calls that its signature takes."""
    function = FUNCTIONS[name]
    found: dict[Cell, list[Call]] = {}
    for type_text, t in TYPES.items():
        for call in _calls(function, t):
            found.setdefault(Cell(name, call.position, type_text), []).append(call)
    return found


def _calls(function: Function, t: pa.DataType) -> Iterator[Call]:
    for arity in (1, 2, 3):
        pools = [_FEW if arity == 3 else CONSTANTS] * (arity - 1)
        if function.name == "add_interval":
            pools = [CONSTANTS[:3], INTERVALS]
            if arity != 3:
                continue
        for position in range(arity):
            for others in product(*pools):
                around = (*others[:position], None, *others[position:])
                yield from _taken(function, t, position, around)


def _taken(function: Function, t: pa.DataType, position: int, around: tuple[Constant | None, ...]) -> Iterator[Call]:
    types = [t if constant is None else constant.type for constant in around]
    constants = [None if constant is None else (constant.value,) for constant in around]
    signature = function.signature(types, constants)
    if signature is not None:
        yield Call(function.name, position, around, signature.result)


@cache
def function_cells() -> tuple[Cell, ...]:
    """Every function with every type of each argument."""
    return tuple(cell for name in FUNCTIONS for cell in calls(name))


@cache
def cast_cells() -> tuple[Cell, ...]:
    """Every known cast between two plain types."""
    return tuple(
        Cell(type_name(to), None, source)
        for source, t in SCALARS.items()
        for to in SCALARS.values()
        if t != to and castable(t, to)
    )


def all_cells() -> tuple[Cell, ...]:
    """What a run has to cover."""
    return (*function_cells(), *cast_cells())


def zoned_cells() -> tuple[Cell, ...]:
    """Cells whose answer may depend on the session's zone: functions and casts of dates and timestamps."""
    return tuple(cell for cell in all_cells() if cell.type in ("date", "timestamp", "timestamp_ntz"))


def law_of(call: Call) -> Law | None:
    """How bounds travel through a call, if they do."""
    constants = [None if constant is None else (constant.value,) for constant in call.constants]
    return FUNCTIONS[call.function].law(call.position, constants)


@cache
def lawful_calls() -> tuple[tuple[Cell, Call], ...]:
    """All calls through which bounds travel: where most can go wrong."""
    return tuple((cell, call) for cell in function_cells() for call in calls(cell.function)[cell] if law_of(call))
