"""What a stream is asked for. Spark's options are texts, and their names may be written as Spark writes its own.

| option | meaning |
|---|---|
| `where`, `columns` | a predicate in Spark SQL; the columns, or keys of maps, that are read |
| `starting` | `earliest`, `latest`, a time, a partition (`dt=2026-05-17/hr=9`), or a snapshot or tag; all inclusive |
| `max_files_per_trigger`, `max_bytes_per_trigger` | how much one trigger reads; at least one file |
| `order` | of files in directories: `create-time`, `partition-name` or `partition-time` |
| `partition_time` | how the time of a partition is written: `{dt} {hr}:00:00` |
| `marker` | the file that says that a partition is complete: `_SUCCESS` |
| `on_change` | rows that were changed or removed: `error`, `skip`, or `changes` as rows of their own |
| `on_missing` | a file that disappeared before it was read: `error` or `skip` |
| `allow_filter_change` | whether a checkpoint may go on with another predicate |
| `remember_files` | how many names of files a position holds |
| `poll_seconds` | how long to wait before looking again when nothing was new, whatever the trigger |
| `retry_seconds` | how long a storage or catalog that does not answer is asked again |

>>> as_options({"maxFilesPerTrigger": "10", "columns": "id, headers['a']"}).columns
('id', "headers['a']")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from penstock.errors import LakeError
from penstock.quantities import parse_size

ORDERS = ("create-time", "partition-name", "partition-time")
_CHOICES = {"order": ORDERS, "on_change": ("error", "skip", "changes"), "on_missing": ("error", "skip")}


@dataclass(frozen=True)
class StreamOptions:
    """What a stream is asked for; see the module."""

    where: str | None = None
    columns: tuple[str, ...] | None = None
    starting: str = "earliest"
    max_files_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    order: str = "create-time"
    partition_time: str | None = None
    marker: str | None = None
    on_change: str = "error"
    on_missing: str = "error"
    allow_filter_change: bool = False
    remember_files: int = 1_000
    poll_seconds: float = 1.0
    retry_seconds: float = 600.0


_NAMES = {field.name.replace("_", ""): field.name for field in fields(StreamOptions)}


def option_name(name: str) -> str | None:
    """The option that a name stands for: `maxFilesPerTrigger` is `max_files_per_trigger`; None for none of them."""
    return _NAMES.get(name.replace("_", "").lower())


def as_options(options: Mapping[str, Any]) -> StreamOptions:
    """Options as they were given, texts or values; those that are None are not given."""
    values: dict[str, Any] = {}
    for name, value in options.items():
        known = option_name(name)
        if known is None:
            raise LakeError(f"a stream has no option {name!r}", hint=f"there are: {', '.join(_NAMES.values())}")
        if value is not None:
            values[known] = _read(known, value)
    return StreamOptions(**values)


def _read(name: str, value: Any) -> Any:
    if name == "columns":
        return _columns(value)
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise LakeError(f"{name} is {value!r}", hint=f"one of {', '.join(_CHOICES[name])}")
        return value
    if name == "allow_filter_change":
        return truth(name, value)
    if name == "max_bytes_per_trigger":
        return _number(name, parse_size(int(value) if str(value).isdigit() else value), int, least=1)
    if name in ("max_files_per_trigger", "remember_files"):
        return _number(name, value, int, least=1)
    if name in ("poll_seconds", "retry_seconds"):
        return _number(name, value, float, least=0)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _columns(value: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value)
    try:
        parts = sqlglot.parse_one(f"SELECT {value}", read="spark").expressions
    except SqlglotError:
        raise LakeError(f"columns is {value!r}", hint="write them as in SELECT: id, headers['a']") from None
    return tuple(part.name if part.key == "column" else part.sql(dialect="spark") for part in parts)


def truth(name: str, value: Any) -> bool:
    """An option that is true or false, as text or as it is."""
    text = str(value).lower()
    if text not in ("true", "false"):
        raise LakeError(f"{name} is {value!r}", hint="write true or false")
    return text == "true"


def _number(name: str, value: Any, kind: type[int] | type[float], least: int) -> Any:
    try:
        number = kind(value)
    except (TypeError, ValueError):
        raise LakeError(f"{name} is {value!r}", hint="write a number") from None
    if not number >= least:  # NaN is none of both
        raise LakeError(f"{name} is {number}", hint=f"give {least} or more")
    return number
