"""In which order files of a directory tree are read: by when they were written, by partition, or by its time.

Partitions are ordered by the types of their columns, so `hr=9` comes before `hr=10`; NULL comes first, NaN last. Within
one partition files are ordered by when they were written.

The time of a partition is made of its values: by a pattern such as `{year}-{month}-{day} {hour}:00:00`, or, without
one, of its first date or timestamp column, and of a column of whole numbers called hour, hr or h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.python_values import from_arrow
from penstock.expr.types import TIMESTAMP, is_integer, is_timestamp
from penstock.tables.hive.directory_names import parse_name
from penstock.tables.hive.seen_files import Key

_FIELD = re.compile(r"\{([^{}]*)\}")
_HOURS = ("hour", "hr", "h")
Place = tuple[Any, ...]
Placed = Callable[[Sequence[Key]], list[Place]]  # what files are sorted by


def order_of(name: str, columns: Sequence[pa.Field], pattern: str | None, zone: str) -> Placed:
    """What files are sorted by in an order."""
    if name == "create-time":
        return lambda keys: list(keys)
    by_name = name == "partition-name"
    partition = partial(_by_name, columns, zone) if by_name else partition_times(columns, pattern, zone)

    def placed(keys: Sequence[Key]) -> list[Place]:
        places = partition([path for _, path in keys])
        return [(place, *key) for place, key in zip(places, keys, strict=True)]

    return placed


def _partition_texts(paths: Sequence[str], depth: int) -> list[list[str | None]]:
    """The texts of the partition of each file."""
    parts = [path.split("/")[:depth] for path in paths]
    return [[parsed[1] if (parsed := parse_name(name, "")) else None for name in row] for row in parts]


def _by_name(columns: Sequence[pa.Field], zone: str, paths: Sequence[str]) -> list[Place]:
    texts = _partition_texts(paths, len(columns))
    arrays = [pa.array([row[i] for row in texts], pa.string()) for i in range(len(columns))]
    values = [from_arrow(cast(array, c.type, zone).values) for array, c in zip(arrays, columns, strict=True)]
    return [tuple(_comparable(value) for value in row) for row in zip(*values, strict=True)]


def _comparable(value: Any) -> Place:
    """A value that can be compared with every other of its column: NULL is the first, NaN the last."""
    if value is None:
        return (0, 0)
    return (2, 0) if value != value else (1, value)


def partition_times(
    columns: Sequence[pa.Field], pattern: str | None, zone: str
) -> Callable[[Sequence[str]], list[Place]]:
    """What tells the time of files' partitions, in microseconds; partitions without a time come first."""
    pattern = _default_pattern(columns) if pattern is None else pattern
    places = {column.name.lower(): i for i, column in enumerate(columns)}
    named = [name.lower() for name in _FIELD.findall(pattern)]
    unknown = next((name for name in named if name not in places), None)
    if unknown is not None or not named:
        message = f"partition_time is {pattern!r}"
        hint = f"name partition columns in braces: {', '.join(f'{{{column.name}}}' for column in columns)}"
        raise LakeError(f"{message}, and {unknown!r} is no partition column" if unknown else message, hint=hint)

    def times(paths: Sequence[str]) -> list[Place]:
        texts = _partition_texts(paths, len(columns))
        written = [_written(pattern, {name: row[places[name]] for name in named}) for row in texts]
        moments = from_arrow(cast(pa.array(written, pa.string()), TIMESTAMP, zone).values)  # null where it cannot be
        return [(False, 0) if moment is None else (True, moment) for moment in moments]

    return times


def _written(pattern: str, texts: dict[str, str | None]) -> str | None:
    if any(text is None for text in texts.values()):
        return None
    return _FIELD.sub(lambda match: str(texts[match.group(1).lower()]), pattern)


def _default_pattern(columns: Sequence[pa.Field]) -> str:
    """The time of a partition without a pattern."""
    day = time_column(columns)
    if day is None:
        message = "the order partition-time needs a time, and no partition column is a date or a timestamp"
        raise LakeError(message, hint="set partition_time, such as '{year}-{month}-{day} {hour}:00:00'")
    hour = next((c.name for c in columns if c.name.lower() in _HOURS and is_integer(c.type)), None)
    return f"{{{day.name}}} {{{hour}}}:00:00" if hour is not None and day.type == pa.date32() else f"{{{day.name}}}"


def time_column(columns: Sequence[pa.Field]) -> pa.Field | None:
    """The first partition column that is a date or a timestamp."""
    return next((column for column in columns if column.type == pa.date32() or is_timestamp(column.type)), None)
