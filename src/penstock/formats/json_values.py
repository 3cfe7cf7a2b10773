"""Values of JSON as values of a column, by the rules of Spark's reader.

| column | reads | else |
|---|---|---|
| string | strings; numbers, `true` and `false` as they are written | an error: Spark takes the text of the file |
| integers | numbers without a point; -128 to 255 as tinyint, of which what is above 127 is negative | NULL |
| float, double | numbers, and the strings `NaN`, `Infinity`, `+INF`, … | NULL |
| boolean | `true` and `false` | NULL |
| decimal | numbers, and strings of digits | NULL |
| date, timestamp | strings; a timestamp also whole seconds | NULL |
| struct, array, map | objects and arrays | NULL |

A bad value in a struct is NULL and the rest of the struct stays. One in an array or map is an error that names the
line: what Spark's reader makes of the values behind it depends on where it stands.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.expr.kernels.physical import from_arrow, to_arrow
from penstock.expr.types import TIMESTAMP, integer_range, is_decimal, is_float, is_integer, is_timestamp, type_name
from penstock.formats.file_format import UnreadableError
from penstock.formats.json_lines import Members, Number, Word, in_line
from penstock.formats.text_values import TextValues, parse_decimal, parse_float, parse_integer

_SPECIAL = ("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF")
_BYTES = 255  # the largest number that is read as a tinyint


class _Malformed(Exception):
    """A value that does not fit its column."""


@dataclass(frozen=True)
class JsonValues:
    """Converts values; texts that repeat are read once."""

    texts: TextValues
    _read: dict[tuple[str, pa.DataType], Any] = field(default_factory=dict)

    def column(self, rows: Sequence[tuple[int, Members | None]], to: pa.Field) -> pa.Array:
        """One field of all rows."""
        values = [None if row is None else self._field(row, to, line) for line, row in rows]
        return pa.array(values, to.type) if pa.types.is_nested(to.type) else to_arrow(values, to.type)

    def _field(self, members: Members, to: pa.Field, line: int) -> Any:
        """The last value of a name that can be read: one that cannot leaves what was there."""
        last = None
        for name, value in members:
            if name == to.name:
                try:
                    last = self._value(value, to.type, line)
                except _Malformed:
                    continue
        return last

    def _value(self, value: Any, to: pa.DataType, line: int) -> Any:
        if value is None:
            return None
        if pa.types.is_struct(to):
            return self._struct(value, to, line)
        if pa.types.is_list(to):
            return self._list(value, to, line)
        if pa.types.is_map(to):
            return self._map(value, to, line)
        return self._scalar(value, to, line)

    def _struct(self, value: Any, to: pa.DataType, line: int) -> dict[str, Any]:
        if not isinstance(value, Members):
            raise _Malformed
        return {to.field(i).name: self._field(value, to.field(i), line) for i in range(to.num_fields)}

    def _list(self, value: Any, to: pa.DataType, line: int) -> list[Any]:
        if type(value) is not list:
            raise _Malformed
        return [self._inner(each, to.value_type, line) for each in value]

    def _map(self, value: Any, to: pa.DataType, line: int) -> list[tuple[str, Any]]:
        if to.key_type != pa.string():
            raise in_line(line, f"a map of {type_name(to.key_type)} is not read")
        if not isinstance(value, Members):
            raise _Malformed
        return [(_text(key), self._inner(each, to.item_type, line)) for key, each in value]

    def _inner(self, value: Any, to: pa.DataType, line: int) -> Any:
        try:
            return self._value(value, to, line)
        except _Malformed:
            raise in_line(line, f"a value that is no {type_name(to)} stands in an array or a map") from None

    def _scalar(self, value: Any, to: pa.DataType, line: int) -> Any:
        if type(value) is list or isinstance(value, Members):
            if to != pa.string():
                raise _Malformed
            raise in_line(line, f"an {'array' if type(value) is list else 'object'} stands where a string should")
        try:
            return self._known(value, to)
        except ValueError:
            raise _Malformed from None

    def _known(self, value: Any, to: pa.DataType) -> Any:
        if to == pa.string():
            return _text(value) if isinstance(value, str) else "true" if value else "false"
        if isinstance(value, bool) or to == pa.bool_():
            if isinstance(value, bool) and to == pa.bool_():
                return value
            raise ValueError(value)
        if isinstance(value, Number | Word):
            return _number(value, to)
        return self._of_text(value, to)

    def _of_text(self, text: str, to: pa.DataType) -> Any:
        """The value of a string."""
        if is_integer(to) or (is_float(to) and text not in _SPECIAL):
            raise ValueError(text)
        if to == pa.binary():
            return base64.b64decode(text, validate=True)
        key = (text, to)
        if key not in self._read:
            (self._read[key],) = from_arrow(self.texts.read(pa.array([text], pa.string()), to))
        if self._read[key] is None:
            raise ValueError(text)
        return self._read[key]


def _text(value: str) -> str:
    """A string as Java writes it: half of a surrogate pair is no character."""
    return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()


def _number(number: Number | Word, to: pa.DataType) -> Any:
    """The value of a number."""
    text = str(number)
    if is_float(to):
        return 0.0 if text == "-0" else parse_float(text, to)
    if isinstance(number, Word):
        raise ValueError(number)
    if is_decimal(to):
        return parse_decimal(text, to)
    if to == pa.int8():
        small = parse_integer(text, pa.int16())
        if not integer_range(to)[0] <= small <= _BYTES:
            raise ValueError(number)
        return small if small <= integer_range(to)[1] else small - _BYTES - 1
    if is_integer(to):
        return parse_integer(text, to)
    if to == TIMESTAMP:
        micros = parse_integer(text, pa.int64()) * 1_000_000
        return parse_integer(str(micros), pa.int64())
    if is_timestamp(to) or to in (pa.date32(), pa.binary()):
        raise ValueError(number)
    raise UnreadableError(f"JSON has no values of type {type_name(to)}", hint="declare another type")
