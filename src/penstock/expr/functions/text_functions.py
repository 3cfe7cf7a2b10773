"""Functions of strings: Spark counts characters where it says length or position, and bytes only for order.

Upper and lower case are known for ASCII text only. For the rest Java's tables decide, which are of another
Unicode version than Arrow's or Python's, so a row with any other character fails. Regular expressions are not
here at all: Java's dialect is its own.

`left(s, n)` and `substring(s, 1, n)` keep order: of two strings in byte order, their prefixes are in the same
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.function import RISING, Constants, Function, Kernel, Law, Signature, rising_first
from penstock.expr.functions.kernel_shapes import by_row, of_arrays, uniform
from penstock.expr.functions.signatures import INT, STRING, Types, any_of, exactly, is_text, with_constant
from penstock.expr.kernels.physical import blank_failed, mask_of
from penstock.expr.kernels.vector import Vector

_INT_MAX = 2**31 - 1


def _ascii_only(compute: Callable[[pa.Array], pa.Array]) -> Kernel:
    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        return blank_failed(compute(arrays[0]), mask_of(pc.invert(pc.string_is_ascii(arrays[0]))))

    return kernel


def _with_pattern(fast: Callable[..., pa.Array], slow: Callable[[str, str], bool]) -> Kernel:
    """A test against a pattern: Arrow's kernel when the pattern is the same in every row."""
    general = by_row(pa.bool_(), slow)

    def kernel(arrays: Sequence[pa.Array], zone: str) -> Vector:
        same = uniform(arrays[1])
        return general(arrays, zone) if same is None else Vector(fast(arrays[0], pattern=same[0]))

    return kernel


def slice_characters(text: str, position: int, length: int = _INT_MAX) -> str:
    """Spark's `substring`: positions count from 1, 0 counts as 1, negative ones from the end.

    A start before the string's first character still uses up length.

    >>> slice_characters("spark", -7, 3), slice_characters("spark", 0, 2)
    ('s', 'sp')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + length, _INT_MAX)
    return "" if end <= start or end <= 0 else text[max(start, 0) : end]


def _substring(arrays: Sequence[pa.Array], zone: str) -> Vector:
    places = [uniform(values) for values in arrays[1:]]
    if all(place is not None and place[0] > 0 for place in places):
        start = places[0][0] - 1  # type: ignore[index]
        stop = start + places[1][0] if len(places) == 2 else _INT_MAX  # type: ignore[index]
        return Vector(pc.utf8_slice_codeunits(arrays[0], start, min(stop, _INT_MAX)))
    return by_row(STRING, slice_characters)(arrays, zone)


def _left(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return _substring([arrays[0], pa.array(np.ones(len(arrays[0]), np.int32)), arrays[1]], zone)


def _replace(text: str, search: str, replacement: str = "") -> str:
    return text.replace(search, replacement) if search else text


def _trimmed(side: Callable[[pa.Array, str], pa.Array], slow: Callable[[str, str], str]) -> Kernel:
    """Spaces removed from the ends, or any characters of a second text."""
    general = by_row(STRING, slow)
    return lambda arrays, zone: general(arrays, zone) if len(arrays) == 2 else Vector(side(arrays[0], " "))


def _padding(text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _split_part(text: str, delimiter: str, part: int) -> str:
    parts = text.split(delimiter) if delimiter else [text]
    place = part - 1 if part > 0 else len(parts) + part
    return parts[place] if 0 <= place < len(parts) else ""


def _locate(sought: str, text: str, start: int = 1) -> int:
    if start <= 0:
        return 0
    return text.find(sought, start - 1) + 1 if sought else 1


def _substring_law(argument: int, constants: Constants) -> Law | None:
    position = constants[1]
    begins = position is not None and position[0] in (0, 1) and None not in constants[2:]
    return RISING if argument == 0 and begins else None


def _strings(types: Types, constants: Constants) -> Signature | None:
    return Signature((STRING,) * len(types), STRING) if types and all(map(is_text, types)) else None


_text = exactly([STRING], STRING)
_count = exactly([STRING], INT)
_test = exactly([STRING, STRING], pa.bool_())
_find = exactly([STRING, STRING], INT)
_slice = any_of(exactly([STRING, INT], STRING), exactly([STRING, INT, INT], STRING))
_replacing = any_of(exactly([STRING, STRING], STRING), exactly([STRING, STRING, STRING], STRING))
_place = by_row(INT, lambda text, sought: text.find(sought) + 1)
_right = by_row(STRING, lambda text, length: "" if length <= 0 else slice_characters(text, -length))
_lpad = by_row(STRING, lambda text, length, pad=" ": _padding(text, length, pad) + text[: max(length, 0)])
_rpad = by_row(STRING, lambda text, length, pad=" ": text[: max(length, 0)] + _padding(text, length, pad))
_length = of_arrays(pc.utf8_length)
_concatenated = of_arrays(lambda *texts: pc.binary_join_element_wise(*texts, "", null_handling="emit_null"))
_trimming = any_of(_text, exactly([STRING, STRING], STRING))
_locating = with_constant(any_of(_find, exactly([STRING, STRING, INT], INT)), 2, None)
# A column of lengths may hold one that no memory holds.
_padded = with_constant(any_of(exactly([STRING, INT], STRING), exactly([STRING, INT, STRING], STRING)), 1)
_part = with_constant(exactly([STRING, STRING, INT], STRING), 2, 0)

TEXT_FUNCTIONS = (
    Function("lower", _text, _ascii_only(pc.ascii_lower), aliases=("lcase",), catalyst=("Lower",)),
    Function("upper", _text, _ascii_only(pc.ascii_upper), aliases=("ucase",), catalyst=("Upper",)),
    Function("length", _count, _length, aliases=("len", "char_length", "character_length"), catalyst=("Length",)),
    Function("trim", _trimming, _trimmed(pc.utf8_trim, str.strip), catalyst=("StringTrim",)),
    Function("ltrim", _trimming, _trimmed(pc.utf8_ltrim, str.lstrip), catalyst=("StringTrimLeft",)),
    Function("rtrim", _trimming, _trimmed(pc.utf8_rtrim, str.rstrip), catalyst=("StringTrimRight",)),
    Function("reverse", _text, by_row(STRING, lambda text: text[::-1]), catalyst=("Reverse",)),
    Function("substring", _slice, _substring, _substring_law, aliases=("substr",), catalyst=("Substring",)),
    Function("left", exactly([STRING, INT], STRING), _left, rising_first),
    Function("right", exactly([STRING, INT], STRING), _right),
    Function("concat", _strings, _concatenated, aliases=("||",), catalyst=("Concat",)),
    Function("replace", _replacing, by_row(STRING, _replace), catalyst=("StringReplace",)),
    Function("startswith", _test, _with_pattern(pc.starts_with, str.startswith), catalyst=("StartsWith",)),
    Function("endswith", _test, _with_pattern(pc.ends_with, str.endswith), catalyst=("EndsWith",)),
    Function("contains", _test, _with_pattern(pc.match_substring, str.__contains__), catalyst=("Contains",)),
    Function("instr", _find, _place, catalyst=("StringInstr",)),
    Function("locate", _locating, by_row(INT, _locate), aliases=("position", "charindex"), catalyst=("StringLocate",)),
    Function("lpad", _padded, _lpad, catalyst=("StringLPad",)),
    Function("rpad", _padded, _rpad, catalyst=("StringRPad",)),
    Function("split_part", _part, by_row(STRING, _split_part)),
)
