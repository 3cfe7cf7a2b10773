"""Lines of JSON, one value each, as Spark's parser (Jackson) takes them: malformed ones are rows of NULL.

Python's parser is as strict as Jackson in what matters, and stops where a value ends, as Spark does. What Jackson takes
beyond it (names in single quotes) is an error that names the line. A number keeps the text that it is written in, and
of a name that stands twice in an object all values are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.formats.file_format import UnreadableError

_BLANKS = " \t\r\n"
_LENIENT = ("'", "INF", "Infinity", "\ufeff")  # what Jackson may read where Python does not
_MOST_DIGITS = 1000


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Word(str):
    """A number in letters: `NaN`, `Infinity`, `-Infinity`."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The names and values of an object, in order."""


@dataclass(frozen=True)
class Root:
    """What stands in a line."""

    line: int
    value: Any
    is_json: bool = True


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Word)


def roots(lines: Sequence[bytes]) -> Iterator[Root]:
    """The value of each line that is not blank."""
    for number, line in enumerate(lines, 1):
        text = line.decode().strip(_BLANKS)
        try:
            yield Root(number, _DECODER.raw_decode(text)[0])
        except ValueError:
            lenient = next((each for each in _LENIENT if each in text), None)
            if lenient is not None:
                hint = "write JSON, or read it by dataframe(spark)"
                raise UnreadableError(f"line {number:,} is JSON to Spark alone ({lenient!r})", hint=hint) from None
            yield Root(number, None, False)
        except RecursionError:
            raise UnreadableError(f"line {number:,} is nested too deeply", hint="read it by dataframe(spark)") from None


def structs(values: Iterable[Root]) -> Iterator[tuple[int, Members | None]]:
    """The rows of values: an array of objects has one for each, what is no object is a row of NULLs."""
    for root in values:
        if isinstance(root.value, Members):
            yield root.line, root.value
        elif type(root.value) is list:
            elements = root.value
            if all(isinstance(each, Members) for each in elements):
                yield from ((root.line, each) for each in elements)
            else:
                yield root.line, None
        else:
            yield root.line, None


def in_line(line: int, message: str) -> UnreadableError:
    """What to say of a line that is read by Spark alone."""
    return UnreadableError(f"line {line:,}: {message}", hint="declare another type, or read it by dataframe(spark)")
