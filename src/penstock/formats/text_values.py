"""Values from text as Spark's readers of CSV and JSON read them, which is not how its CAST does.

| type | what is read | else |
|---|---|---|
| integers | digits with a sign, of any script; no blanks, no point | NULL |
| float, double | what Java reads: `1e3`, `1d`, `0x1p3`, blanks around, words for NaN and infinities | NULL |
| boolean | `true` and `false` in any case | NULL |
| decimal | digits with an exponent, without their commas, rounded HALF_UP | NULL |
| date, timestamp | as CAST reads them | NULL |

A text of which it is not certain what Spark makes (`10:00:00` is a time of today, `PST` a zone with an abbreviation) is
an error and never a guess. Texts repeat, so each distinct one is read once.

>>> TextValues().read(pa.array(["1", "+2", " 3", "4.0"]), pa.int32()).to_pylist()
[1, 2, None, None]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import shortened
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.cast_text import parse_date, parse_timestamp
from penstock.expr.kernels.physical import by_distinct
from penstock.expr.kernels.vector import Mask
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, integer_range, is_decimal, is_float, is_integer, type_name
from penstock.formats.file_format import UnreadableError

_BLANKS = "".join(map(chr, range(0x21)))  # what Java's `trim` removes
_INTEGER = re.compile(r"[+-]?\d+")
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DOUBLE = re.compile(rf"([+-]?(?:NaN|Infinity|{_DIGITS}))", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
# A text that does not even begin like a time is none; one that does, and has no zone, was read to its end.
_LIKE_A_TIME = re.compile(r"[+-]?[0-9]{4,6}(?:-.*)?|.*:.*|T.*", re.DOTALL)
_WITHOUT_ZONE = re.compile(r"[+-]?[0-9]{4,6}(?:-[0-9]{1,2}(?:-[0-9]{1,2}(?:[ T][0-9:]*(?:\.[0-9]*)?)?)?)?")
_SHOWN = 60
_MOST_DIGITS = 38


@dataclass(frozen=True)
class TextValues:
    """How the texts of a file are read: in which zone times without one are, and which words stand for numbers."""

    zone: str = "UTC"
    nan: str = "NaN"
    positive: str = "Inf"
    negative: str = "-Inf"

    def read(self, texts: pa.Array, to: pa.DataType) -> pa.Array:
        """The value of each text; NULL for what is none."""
        if to == pa.string():
            return texts
        if to == pa.binary():
            return texts.cast(to)
        if to == TIMESTAMP:
            return self._moments(texts)
        parse = self._parser(to)
        if to == pa.date32() or is_integer(to):
            plain = cast(texts, to, self.zone)
            if plain.failed is None and _has_no_blanks(texts):
                return plain.values
        return by_distinct(texts, to, parse).values

    def _parser(self, to: pa.DataType) -> Callable[[str], Any]:
        if is_integer(to):
            return lambda text: parse_integer(text, to)
        if is_float(to):
            return lambda text: self._float(text, to)
        if is_decimal(to):
            return lambda text: parse_decimal(text.replace(",", ""), to)
        if to == TIMESTAMP_NTZ:
            return _parse_zoneless
        if to == pa.date32():
            return lambda text: _parse_day(text)
        if to == pa.bool_():
            return parse_boolean
        raise UnreadableError(f"text has no values of type {type_name(to)}", hint="declare another type")

    def _float(self, text: str, to: pa.DataType) -> float:
        words = {self.nan: "NaN", self.negative: "-Infinity", self.positive: "Infinity"}
        return parse_float(words.get(text, text), to)

    def _moments(self, texts: pa.Array) -> pa.Array:
        moments = cast(texts, TIMESTAMP, self.zone)
        if moments.failed is not None:
            _check_none_is_a_time(texts, moments.failed)
        return moments.values


def _has_no_blanks(texts: pa.Array) -> bool:
    """CAST reads over blanks around a number, as the readers of files do not."""
    return pc.any(pc.match_substring_regex(texts, r"[\x00-\x20\x7f]")).as_py() is not True


def _check_none_is_a_time(texts: pa.Array, failed: Mask) -> None:
    """Whether what was not read as a timestamp is none to Spark either."""
    for text in pc.unique(texts.filter(pa.array(failed))).to_pylist():
        trimmed = text.strip(_BLANKS + "\x7f")
        if not _LIKE_A_TIME.fullmatch(trimmed) and "GMT" not in trimmed:
            continue
        if not _WITHOUT_ZONE.fullmatch(trimmed) or _is_on_a_clock(trimmed):
            raise _uncertain(text, TIMESTAMP)


def _is_on_a_clock(text: str) -> bool:
    """Whether it is a time, of which only the moment could not be told: its zone is not known so far back."""
    try:
        parse_timestamp(text)
    except ValueError:
        return False
    return True


def _uncertain(text: str, to: pa.DataType) -> UnreadableError:
    message = f"how Spark reads {shortened(text, _SHOWN)!r} as {type_name(to)} is not known without it"
    return UnreadableError(message, hint="declare the column as string, or read it by dataframe(spark)")


def parse_integer(text: str, to: pa.DataType) -> int:
    """As `Integer.parseInt` of Java."""
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise ValueError(text)
    low, high = integer_range(to)
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > len(str(high)):
        raise ValueError(text)
    number = int(text)
    if not low <= number <= high:
        raise ValueError(text)
    return number


def parse_float(text: str, to: pa.DataType) -> float:
    """As `Double.parseDouble` and `Float.parseFloat` of Java, rounded once."""
    trimmed = text.strip(_BLANKS)
    if trimmed[-1:] in tuple("fFdD"):
        trimmed = _without_suffix(trimmed)
    if _DOUBLE.fullmatch(trimmed):
        double = float(trimmed)
    elif _HEXADECIMAL.fullmatch(trimmed):
        try:
            double = float.fromhex(trimmed)
        except OverflowError:
            double = float("-inf" if trimmed.startswith("-") else "inf")
    else:
        raise ValueError(text)
    return double if to == pa.float64() else _nearest_float(double, trimmed)


def _without_suffix(text: str) -> str:
    """Java's letter for the type of a number, which is no digit: `0x1p3d`."""
    number = text[:-1]
    return number if number[-1:].isdigit() or number[-1:] == "." else text


def _nearest_float(double: float, text: str) -> float:
    """The float that is nearest to digits: by way of the double, unless that lies between two of them."""
    with np.errstate(over="ignore"):
        near = np.float32(double)
    if float(near) == double or not np.isfinite(near) or "x" in text.lower():
        return float(near)
    other = np.nextafter(near, np.float32(np.inf if double > float(near) else -np.inf))
    if abs(double - float(near)) != abs(float(other) - double):
        return float(near)
    exact = Fraction(text)
    if exact == Fraction(double):
        return float(near)
    return float(max(near, other) if exact > Fraction(double) else min(near, other))


def parse_boolean(text: str) -> bool:
    """The two words of Scala."""
    word = text.upper()
    if word not in ("TRUE", "FALSE"):
        raise ValueError(text)
    return word == "TRUE"


def parse_decimal(text: str, to: pa.DataType) -> Decimal:
    """As `BigDecimal` of Java, rounded HALF_UP to the scale of a type."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    exact = Decimal(text)
    if exact and exact.adjusted() >= to.precision - to.scale:
        raise ValueError(text)
    if exact.adjusted() < -to.scale - 1:
        return Decimal(0).scaleb(-to.scale)
    context = Context(prec=len(text) + 2 * _MOST_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)
    rounded = exact.quantize(Decimal(1).scaleb(-to.scale), ROUND_HALF_UP, context)
    if rounded and rounded.adjusted() >= to.precision - to.scale:
        raise ValueError(text)
    return rounded


def _parse_day(text: str) -> int:
    try:
        return parse_date(text)
    except ValueError:
        if "GMT" in text:  # Spark tries again without it
            raise _uncertain(text, pa.date32()) from None
        raise


def _parse_zoneless(text: str) -> int:
    micros, zone = parse_timestamp(text)
    if zone is not None:
        raise ValueError(text)
    return micros
