"""The registry of functions and operators that Penstock evaluates, by their Spark names.

A name that is missing here is opaque: the predicate keeps it, and it never prunes. Operators are listed under their
symbols, unary minus as `negative`, `+ INTERVAL` as `add_interval`. `CATALYST` has the same functions by the names of
Spark's classes, so that a filter of a DataFrame prunes as the same text does. Each kind has a module in this package.
Functions that stand for another expression (`nvl`, `string(x)`) are in `rewrites`.

>>> find("YEAR").name, CATALYST["Year"].name
('year', 'year')
>>> find("rand") is None
True
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from penstock.expr.functions.arithmetic import ARITHMETIC_FUNCTIONS
from penstock.expr.functions.byte_functions import BYTES_FUNCTIONS
from penstock.expr.functions.choice_functions import OTHER_FUNCTIONS
from penstock.expr.functions.function import Function
from penstock.expr.functions.interval_functions import INTERVAL_FUNCTIONS
from penstock.expr.functions.number_functions import NUMBER_FUNCTIONS
from penstock.expr.functions.text_functions import TEXT_FUNCTIONS
from penstock.expr.functions.time_functions import TIME_FUNCTIONS

_ALL = (
    *ARITHMETIC_FUNCTIONS,
    *NUMBER_FUNCTIONS,
    *BYTES_FUNCTIONS,
    *TEXT_FUNCTIONS,
    *TIME_FUNCTIONS,
    *INTERVAL_FUNCTIONS,
    *OTHER_FUNCTIONS,
)
FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {name: function for function in _ALL for name in (function.name, *function.aliases)}
)
CATALYST: Mapping[str, Function] = MappingProxyType({name: each for each in _ALL for name in each.catalyst})


def find(name: str) -> Function | None:
    """The function of a name in any case; None when it is not known."""
    return FUNCTIONS.get(name.lower())
