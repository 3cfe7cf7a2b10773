"""The schema of a file of JSON, as Spark infers it: names in order, the narrowest type of all values of a name.

| values | type |
|---|---|
| whole numbers | bigint; decimal where they are too long for it, double beyond 38 digits |
| other numbers | double |
| strings; null only; values of different kinds | string |
| objects, arrays | struct, array; without the members that have no type |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.expr.types import is_decimal
from penstock.formats.file_format import UnreadableError
from penstock.formats.json_lines import Members, Number, Root, Word, structs

_DECLARE = "declare the schema"
_NOTHING = pa.null()
_MOST_DIGITS = 38
_DIGITS_OF_BIGINT = 20  # a decimal that holds any


def inferred(roots: Iterable[Root]) -> pa.Schema:
    """The columns of a file."""
    known: pa.DataType = pa.struct([])
    for root in roots:
        if not root.is_json:
            raise UnreadableError(f"line {root.line:,} is not JSON", hint=f"{_DECLARE}, and the line is a row of NULLs")
        if root.value is None:
            continue
        for line, members in structs([root]):
            if members is None:
                raise UnreadableError(f"line {line:,} is not a JSON object", hint=_DECLARE)
            known = _common(known, _type_of(members, line))
    fields = _canonical(known)
    if fields is None:
        raise UnreadableError("it has no object with a value", hint=_DECLARE)
    return pa.schema(list(fields))


def _type_of(value: Any, line: int) -> pa.DataType:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, Number):
        return _type_of_number(value)
    if isinstance(value, Word):
        return pa.float64()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, Members):
        names = [name for name, _ in value]
        if len(set(names)) < len(names):
            raise UnreadableError(f"line {line:,} has a name twice in one object", hint=_DECLARE)
        return _struct([pa.field(name, _type_of(each, line)) for name, each in value])
    kind = _NOTHING
    for each in value:
        kind = _common(kind, _type_of(each, line))
    return pa.list_(kind)


def _type_of_number(number: Number) -> pa.DataType:
    digits = number.lstrip("-")
    if not digits.isdecimal():
        return pa.float64()
    if -(2**63) <= int(number) < 2**63:
        return pa.int64()
    return pa.decimal128(len(digits), 0) if len(digits) <= _MOST_DIGITS else pa.float64()


def _struct(fields: list[pa.Field]) -> pa.DataType:
    return pa.struct(sorted(fields, key=lambda field: field.name.encode("utf-16-be")))


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of values of two types."""
    if left == right or right == _NOTHING:
        return left
    if left == _NOTHING:
        return right
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        types = {field.name: field.type for field in left}
        for field in right:
            types[field.name] = _common(types.get(field.name, _NOTHING), field.type)
        return _struct([pa.field(name, kind) for name, kind in types.items()])
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(_common(left.value_type, right.value_type))
    if not all(kind in (pa.int64(), pa.float64()) or is_decimal(kind) for kind in (left, right)):
        return pa.string()
    if pa.float64() in (left, right):
        return pa.float64()
    digits = max(kind.precision if is_decimal(kind) else _DIGITS_OF_BIGINT for kind in (left, right))
    return pa.decimal128(digits, 0)


def _canonical(kind: pa.DataType) -> pa.DataType | None:
    """A type without members that have none, which text of null only has: those are strings."""
    if kind == _NOTHING:
        return pa.string()
    if pa.types.is_list(kind):
        inner = _canonical(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(kind):
        types = ((field.name, _canonical(field.type)) for field in kind)
        fields = [pa.field(name, inner) for name, inner in types if name and inner is not None]
        return pa.struct(fields) if fields else None
    return kind
