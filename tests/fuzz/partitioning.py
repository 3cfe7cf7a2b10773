"""What managed tables and tables in memory are partitioned by, and the partition of each row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform

from tests.fuzz.iceberg_file import transformed
from tests.fuzz.rows import Rows, physical
from tests.fuzz.values import UUID

_TRANSFORMS = {
    "boolean": ("{}",),
    "int": ("{}", "bucket(3, {})", "truncate(10, {})"),
    "bigint": ("{}", "bucket(3, {})", "truncate(10, {})"),
    "string": ("{}", "bucket(3, {})", "truncate(3, {})"),
    "date": ("{}", "year({})", "month({})", "day({})"),
    "timestamp": ("year({})", "day({})", "hour({})"),
    "timestamp_ntz": ("month({})", "day({})"),
    "decimal(9,2)": ("{}", "bucket(3, {})"),
    "decimal(38,10)": ("{}", "bucket(3, {})"),
    "float": ("{}",),
    "double": ("{}",),
    UUID: ("{}", "bucket(3, {})"),
}
_TRANSFORM = re.compile(r"(\w+)\((?:(\d+), )?(\w+)\)")


def partitioning(rng: Random, rows: Rows) -> tuple[list[str], list[str]]:
    """What a table is partitioned by, and which of the plain columns share files."""
    candidates = _candidates(rows)
    fields, coalesced = [], []
    for column in rng.sample(candidates, min(len(candidates), rng.choice([0, 1, 1, 2, 2]))):
        field = _field(rng, rows, column)
        fields.append(field)
        if field == column and rng.random() < 0.8:
            coalesced.append(column)
    doubles = [c for c in candidates if rows.types[c] == "double" and c not in fields]
    if doubles and rng.random() < 0.4:  # of all values, doubles are the easiest to lose digits of in a manifest
        fields.append(rng.choice(doubles))
    return fields, coalesced


def another_field(rng: Random, rows: Rows, by: Sequence[str]) -> str:
    """A partition field that is not there yet."""
    fields = [transform.format(c) for c in _candidates(rows) for transform in _TRANSFORMS[rows.types[c]]]
    return rng.choice([field for field in fields if field not in by])


def source_of(field: str) -> str:
    """The column of a partition field."""
    match = _TRANSFORM.fullmatch(field)
    return field if match is None else match[3]


def partition_keys(rows: Rows, by: Sequence[str], schema: Schema) -> list[Any]:
    """The partition of each row, by PyIceberg's transforms; NaN is one value, and zero has no sign."""
    columns = []
    for text in by:
        match = _TRANSFORM.fullmatch(text)
        name = "identity" if match is None else match[1] + (f"[{match[2]}]" if match[2] else "")
        kind = schema.find_field(source_of(text)).field_type
        function = parse_transform(name).transform(kind)
        keys = [transformed(value, kind, function) for value in physical(rows.table.column(source_of(text)))]
        columns.append(["NaN" if key != key else 0.0 if key == 0 and isinstance(key, float) else key for key in keys])
    return list(zip(*columns, strict=True)) if by else [()] * rows.table.num_rows


def _candidates(rows: Rows) -> list[str]:
    return [c for c, t in rows.types.items() if t in _TRANSFORMS and c.isidentifier() and c.isascii()]


def _field(rng: Random, rows: Rows, column: str) -> str:
    return rng.choice(_TRANSFORMS[rows.types[column]]).format(column)
