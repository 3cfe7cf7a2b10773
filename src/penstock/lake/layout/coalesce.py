"""The rule that says which logical partitions share files.

    Coalesce("app")                              those that hold less than 32 MB
    Coalesce("app", below="8MB")                 those that hold less than 8 MB
    Coalesce("app", values=["beta", "test"])     these and no others
    Coalesce("app", below="8MB", values=[…])     these, whatever they hold, and all that are small
    Coalesce("app", "region", values=[("beta", "eu")])   several columns: values are tuples

What a shared file holds is recorded in its manifest entry. A file is cut where that record would become longer than
`record_bytes`, so that every value can be pruned and no manifest entry is large.

A rule is kept in the table's properties and read again by every writer. It decides about files that are written from
then on; a file that exists is read by what was recorded in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from pyiceberg.conversions import from_json, to_json
from pyiceberg.expressions.literals import literal
from pyiceberg.types import BooleanType, IcebergType, IntegerType, LongType, StringType
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, time_to_micros

from penstock.deprecation import deprecated
from penstock.errors import LakeError
from penstock.maps.name_lists import read_names, write_names
from penstock.quantities import Size, parse_size

COLUMNS, BELOW = "penstock.coalesce.columns", "penstock.coalesce.below-bytes"
VALUES, RECORD = "penstock.coalesce.values", "penstock.coalesce.record-bytes"
FIELD_IDS = "penstock.coalesce.field-ids"
PROPERTIES = (COLUMNS, FIELD_IDS, BELOW, VALUES, RECORD)
_BELOW, _RECORD = "32MB", 256 << 10
# The one NaN of all tuples: a set finds it by what it is, not by what it equals.
NAN = float("nan")


@dataclass(frozen=True, init=False)
class Coalesce:
    """A rule: logical partitions of `columns` that are smaller than `below`, or listed in `values`, share files.

    `below` is 32 MB unless `values` are listed; with `values` and no `below`, only these share files. Sizes are bytes,
    or text such as `"8MB"`. Of several columns, each value is a tuple. A shared file ends where the record of its
    logical partitions would be longer than `record_bytes` (256 KB).
    """

    columns: tuple[str, ...]
    below: int | None
    values: tuple[tuple[Any, ...], ...]
    record_bytes: int

    def __init__(
        self,
        *columns: str,
        below: Size | None = None,
        values: Iterable[Any] | None = None,
        record_bytes: Size = _RECORD,
        tuples_per_file: int | None = None,
    ) -> None:
        if tuples_per_file is not None:
            name = "Coalesce(tuples_per_file=…)"
            deprecated(name, since="0.2", removed_in="0.4", instead="record_bytes=")
        if not columns or not all(isinstance(column, str) and column for column in columns):
            raise LakeError("a rule names the columns whose partitions share files", hint='write Coalesce("app")')
        if len({column.lower() for column in columns}) < len(columns):
            raise LakeError(f"a rule names a column twice: {', '.join(columns)}", hint="name it once")
        if below is None and values is None:
            below = _BELOW
        vars(self).update(
            columns=tuple(columns),
            below=None if below is None else parse_size(below),
            values=tuple(_tuple(value, columns) for value in values or ()),
            record_bytes=parse_size(record_bytes),
        )

    def shares(self, values: tuple[Any, ...], size: float) -> bool:
        """Whether a logical partition of so many bytes shares files; values as the table's manifests have them."""
        return values in self.values or (self.below is not None and size < self.below)


def as_rule(rule: Coalesce | str | Sequence[str] | None) -> Coalesce | None:
    """A rule as people write it: one, the name of a column, or several names."""
    if rule is None or isinstance(rule, Coalesce):
        return rule
    names = [rule] if isinstance(rule, str) else list(rule)
    return Coalesce(*names)


def to_properties(rule: Coalesce, kinds: Sequence[Any]) -> dict[str, str]:
    """A rule as properties of a table; `kinds` are Iceberg's types of its columns."""
    properties = {COLUMNS: write_names(rule.columns), RECORD: str(rule.record_bytes)}
    if rule.below is not None:
        properties[BELOW] = str(rule.below)
    if rule.values:
        listed = [
            [None if v is None else to_json(k, as_python(v, k)) for k, v in zip(kinds, value, strict=True)]
            for value in rule.values
        ]
        properties[VALUES] = json.dumps(listed, ensure_ascii=False)
    return properties


def from_properties(properties: Mapping[str, str], kinds: Mapping[str, IcebergType]) -> Coalesce | None:
    """The rule of a table; `kinds` are Iceberg's types of all columns, by name."""
    if COLUMNS not in properties:
        return None
    try:
        columns = read_names(properties[COLUMNS])
        below = int(properties[BELOW]) if BELOW in properties else None
        listed = json.loads(properties.get(VALUES, "[]"))
        own = [kinds[column] for column in columns if column in kinds]
        values = [internal(value, own) for value in listed] if len(own) == len(columns) else ()
        return Coalesce(*columns, below=below, values=values, record_bytes=int(properties.get(RECORD, _RECORD)))
    except (ValueError, TypeError, AttributeError) as error:
        message = f"the coalescing rule in the table's properties cannot be read: {error}"
        raise LakeError(message, hint="set it again: table.set_coalesce(…)") from None


def internal(values: Sequence[Any], kinds: Sequence[Any]) -> tuple[Any, ...]:
    """One tuple of JSON's single values as manifests have them: dates and times as numbers, a uuid as its bytes."""
    own = (StringType, IntegerType, LongType, BooleanType)  # JSON has them as manifests do
    if len(values) == len(kinds) and all(isinstance(kind, own) for kind in kinds):
        return tuple(values)
    return tuple(None if v is None else as_stored(from_json(k, v), k) for v, k in zip(values, kinds, strict=True))


def as_stored(value: Any, kind: IcebergType | None) -> Any:
    """A value of Python's as a manifest has it: dates and times as numbers, a uuid as its bytes."""
    if isinstance(value, str) and kind is not None and str(kind) != "string":
        value = literal(value).to(kind).value
    match value:
        case datetime():
            return datetime_to_micros(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_micros(value)
        case UUID():
            return value.bytes
        case float() if value != value:
            return NAN
        case _:
            return value


def as_python(value: Any, kind: IcebergType) -> Any:
    """A value as a manifest has it as PyIceberg takes it for JSON: a uuid is not bytes there."""
    return UUID(bytes=value) if str(kind) == "uuid" and isinstance(value, bytes) else value


def _tuple(value: Any, columns: Sequence[str]) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(values) != len(columns):
        message = f"the rule on {', '.join(columns)} lists {value!r}, which has {len(values)} values"
        raise LakeError(message, hint="list one value for each column, as a tuple")
    return values
