"""Values as SQL literals, in forms that Spark and Penstock both read and that lose no digit."""

from __future__ import annotations

import datetime as dt
import math
from random import Random
from typing import Any

import pyarrow as pa

from tests.fuzz.values import TIMESTAMP, digits, draw

_EPOCH = dt.datetime(1970, 1, 1)
_FIRST, _LAST = -62_135_596_800 * 10**6, 253_402_300_799_999_999  # what Python's `datetime` holds
_SUFFIX = {pa.int8(): "Y", pa.int16(): "S", pa.int32(): "", pa.int64(): "L"}
_ESCAPES = {"'": "\\'", "\\": "\\\\", "\n": "\\n"}


def literal(value: Any, t: pa.DataType) -> str:
    """A literal of exactly this type."""
    if value is None:
        return "NULL"
    if pa.types.is_boolean(t):
        return "TRUE" if value else "FALSE"
    if pa.types.is_integer(t):
        lowest = value == -(1 << t.bit_width - 1)  # its digits alone do not fit the type
        return f"CAST('{value}' AS {_INTEGERS[t]})" if lowest else f"{value}{_SUFFIX[t]}"
    if pa.types.is_floating(t):
        return _float(value, "float" if t == pa.float32() else "double")
    if pa.types.is_decimal(t):
        return f"CAST('{digits(value, t.scale):f}' AS decimal({t.precision},{t.scale}))"
    if pa.types.is_string(t):
        return quoted(value)
    if pa.types.is_binary(t):
        return f"X'{value.hex().upper()}'"
    if pa.types.is_date(t):
        day = date_text(value)
        return f"date_from_unix_date({value})" if day is None else f"DATE '{day}'"
    return _timestamp(value, t)


def has_literal(value: Any, t: pa.DataType) -> bool:
    """Whether `literal` has exactly this value; a time without a zone outside of the years 1 to 9999 has none."""
    return value is None or not pa.types.is_timestamp(t) or t == TIMESTAMP or _FIRST <= value <= _LAST


_INTEGERS = {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}


def loose_literal(rng: Random, value: Any, t: pa.DataType) -> str:
    """A literal that means the same or is cast to it: without suffix, as text, or of a wider type."""
    if value is None or rng.random() < 0.6:
        return literal(value, t)
    if pa.types.is_integer(t):
        return rng.choice([str(value), f"{value}.0BD", f"{value}.5BD", f"'{value}'", f"{value}D"])
    if pa.types.is_decimal(t):
        return rng.choice([f"{digits(value, t.scale):f}BD", f"'{digits(value, t.scale):f}'", f"{value % 1000}"])
    if pa.types.is_date(t) and date_text(value) is not None:
        return rng.choice([f"'{date_text(value)}'", f"TIMESTAMP '{date_text(value)} 10:00:00'"])
    if pa.types.is_timestamp(t) and _FIRST <= value <= _LAST:
        return rng.choice(
            [f"'{clock_text(value)}'", f"DATE '{clock_text(value)[:10]}'", f"TIMESTAMP '{clock_text(value)}'"]
        )
    return literal(value, t)


def random_literal(rng: Random, t: pa.DataType) -> str:
    """A literal of a plain type."""
    return literal(draw(rng, t), t)


def quoted(text: str) -> str:
    """A text between single quotes."""
    return "'" + "".join(_ESCAPES.get(c, c) for c in text) + "'"


def date_text(days: int) -> str | None:
    """A date as ISO text; None outside of the years 1 to 9999."""
    if not _FIRST <= days * 86_400_000_000 <= _LAST:
        return None
    return (dt.date(1970, 1, 1) + dt.timedelta(days=days)).isoformat()


def clock_text(micros: int) -> str:
    """A timestamp within the years 1 to 9999 as text, without a zone."""
    return (_EPOCH + dt.timedelta(microseconds=micros)).isoformat(" ", timespec="microseconds")


def _timestamp(value: int, t: pa.DataType) -> str:
    if t == TIMESTAMP:
        inside = _FIRST <= value <= _LAST
        return f"TIMESTAMP '{clock_text(value)}+00:00'" if inside else f"timestamp_micros({value}L)"
    return f"TIMESTAMP_NTZ '{clock_text(max(_FIRST, min(_LAST, value)))}'"


def _float(value: float, name: str) -> str:
    if math.isfinite(value):
        return (
            f"CAST('{value!r}' AS {name})"
            if value == 0 or name == "float"
            else f"{value!r}{'' if 'e' in repr(value) else 'D'}"
        )
    text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{text}' AS {name})"
