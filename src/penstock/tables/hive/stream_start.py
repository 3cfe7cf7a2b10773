"""Where a stream over directories begins: `earliest`, `latest`, a partition or a time, all of them inclusive.

    starting="dt=2026-05-17/hr=9"     that partition and those that sort after it, by type
    starting="2026-05-17 09:00"       files written then or later; with the order partition-time, such partitions

A partition is a floor that stays with the position: what is below it is not even listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, LayoutError
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.python_values import from_arrow
from penstock.expr.sql_text import quote_name, quote_text
from penstock.expr.tree import Expr
from penstock.expr.types import TIMESTAMP, type_name
from penstock.stream.stream_options import StreamOptions
from penstock.tables.hive.directory_names import parse_name
from penstock.tables.hive.file_order import partition_times, time_column
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.seen_files import FoundFile
from penstock.tables.source import bind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        day = time_column(self.table.columns)
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
        times = partition_times(self.table.columns, self.options.partition_time, self.table.context.timezone)
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
