"""The order in which a stream over directories reads files, and where in it the stream begins.

The order is by when files were written, by partition, or by the partition's time. Partitions are ordered by the types
of their columns, so `hr=9` comes before `hr=10`; NULL comes first, NaN last. Within one partition files are ordered by
when they were written. The time of a partition is made of its values: by a pattern such as
`{year}-{month}-{day} {hour}:00:00`, or, without one, of its first date or timestamp column, and of a column of whole
numbers called hour, hr or h.

A stream begins at `earliest`, `latest`, a partition or a time, all of them inclusive:

    starting="dt=2026-05-17/hr=9"     that partition and those that sort after it, by type
    starting="2026-05-17 09:00"       files written then or later; with the order partition-time, such partitions

A partition is a floor that stays with the position: what is below it is not even listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, LayoutError
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.sql_text import quote_name, quote_text
from penstock.expr.tree import Expr
from penstock.expr.types import TIMESTAMP, is_integer, is_timestamp, type_name
from penstock.stream.stream_options import StreamOptions
from penstock.tables.hive.directory_names import parse_name
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.seen_files import FoundFile, Key
from penstock.tables.source import bind

_FIELD = re.compile(r"\{([^{}]*)\}")
_HOURS = ("hour", "hr", "h")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Place = tuple[Any, ...]
Placed = Callable[[Sequence[Key]], list[Place]]  # what files are sorted by


def order_of(name: str, columns: Sequence[pa.Field], pattern: str | None, zone: str) -> Placed:
    """What files are sorted by in an order."""
    if name == "create-time":
        return lambda keys: list(keys)
    by_name = name == "partition-name"
    partition = partial(_by_name, columns, zone) if by_name else _partition_times(columns, pattern, zone)

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


def _partition_times(
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
    day = _time_column(columns)
    if day is None:
        message = "the order partition-time needs a time, and no partition column is a date or a timestamp"
        raise LakeError(message, hint="set partition_time, such as '{year}-{month}-{day} {hour}:00:00'")
    hour = next((c.name for c in columns if c.name.lower() in _HOURS and is_integer(c.type)), None)
    return f"{{{day.name}}} {{{hour}}}:00:00" if hour is not None and day.type == pa.date32() else f"{{{day.name}}}"


def _time_column(columns: Sequence[pa.Field]) -> pa.Field | None:
    """The first partition column that is a date or a timestamp."""
    return next((column for column in columns if column.type == pa.date32() or is_timestamp(column.type)), None)


@dataclass(frozen=True)
class Beginning:
    """Where a stream begins."""

    table: HiveTable
    options: StreamOptions
    latest: bool = False
    written_from: int | None = None  # milliseconds
    floor: str | None = None  # a partition
    time_floor: int | None = None  # the time of a partition, in microseconds

    @property
    def floor_json(self) -> dict[str, Any]:
        """What stays with the position."""
        floors = {"floor": self.floor, "time_floor": self.time_floor}
        return {name: value for name, value in floors.items() if value is not None}

    def with_floor(self, position: Mapping[str, Any]) -> Beginning:
        """With the floor of a position, whatever the options say now."""
        return replace(self, floor=position.get("floor"), time_floor=position.get("time_floor"))

    @property
    def floor_predicate(self) -> Expr | None:
        """The floor as a predicate on the partition columns."""
        if self.floor is not None:
            return bind(self.table, _at_or_after(_values(self.floor, self.table)))
        day = _time_column(self.table.columns)
        if self.time_floor is None or day is None or self.options.partition_time is not None:
            return None
        text = quote_text((_EPOCH + timedelta(microseconds=self.time_floor)).isoformat())
        since = f"CAST(CAST({text} AS timestamp) AS {type_name(day.type)})"
        return bind(self.table, f"{quote_name(day.name)} >= {since} OR {quote_name(day.name)} IS NULL")

    def not_before(self, files: list[FoundFile]) -> list[FoundFile]:
        """The files in partitions whose time is not before the floor; a partition without a time is not."""
        if self.time_floor is None or not files:
            return files
        floor = self.time_floor
        times = _partition_times(self.table.columns, self.options.partition_time, self.table.context.timezone)
        places = times([file.path for file in files])
        return [file for file, (known, moment) in zip(files, places, strict=True) if not known or moment >= floor]


def read_beginning(options: StreamOptions, table: HiveTable) -> Beginning:
    """Where the options say that a stream begins."""
    text = options.starting.strip()
    if text.lower() in ("earliest", "latest"):
        return Beginning(table, options, latest=text.lower() == "latest")
    if "=" in text:
        if not table.columns:
            raise LakeError(f"{table.storage.url} has no partitions to begin at", hint="begin at a time")
        _values(text, table)
        return Beginning(table, options, floor=text.strip("/"))
    moment = _moment(text, table)
    if options.order == "partition-time":
        return Beginning(table, options, time_floor=moment)
    return Beginning(table, options, written_from=-(-moment // 1000))


def _moment(text: str, table: HiveTable) -> int:
    vector = cast(pa.array([text], pa.string()), TIMESTAMP, table.context.timezone)
    if vector.values.null_count:
        raise _wrong(text, table)
    return int(from_arrow(vector.values)[0])


def _wrong(text: str, table: HiveTable, why: str = "") -> LakeError:
    shown = _pattern(table) or "dt=…"
    hint = f"write earliest, latest, a partition such as {shown}, or a time such as 2026-05-17 09:00"
    return LakeError(f"starting is {text!r}{why}", hint=hint)


def _pattern(table: HiveTable) -> str:
    return "/".join(f"{column.name}=…" for column in table.columns)


def _values(text: str, table: HiveTable) -> list[tuple[pa.Field, str]]:
    """The values of a partition, as far as they are given; each must fit its column."""
    try:
        names = [parse_name(name, "") for name in text.strip("/").split("/")]
    except LayoutError as error:
        raise _wrong(text, table, f": {error.message}") from None
    pairs: list[tuple[pa.Field, str]] = []
    for parsed, column in zip_longest(names, table.columns[: len(names)]):
        key, value = parsed or (None, None)
        if key is None or value is None or column is None or key.lower() != column.name.lower():
            raise _wrong(text, table, f", and partitions are {_pattern(table)}")
        if cast(pa.array([value], pa.string()), column.type, table.context.timezone).failed is not None:
            raise LakeError(f"starting is {text!r}, and {value!r} is no {type_name(column.type)}")
        pairs.append((column, value))
    return pairs


def _at_or_after(pairs: Sequence[tuple[pa.Field, str]]) -> str:
    """`a > x OR (a = x AND b >= y)`, as SQL."""
    column, value = pairs[0]
    name, literal = quote_name(column.name), f"CAST({quote_text(value)} AS {type_name(column.type)})"
    if len(pairs) == 1:
        return f"{name} >= {literal}"
    return f"{name} > {literal} OR ({name} = {literal} AND ({_at_or_after(pairs[1:])}))"
