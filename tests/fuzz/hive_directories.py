"""Rows as directories of Hive: the names that say what partition columns are, and the rows that lie below each."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from tests.fixtures.hive_writer import NULL, escape
from tests.fuzz.literals import clock_text, date_text
from tests.fuzz.rows import Rows, physical
from tests.fuzz.values import TIMESTAMP, digits

_UTC = ZoneInfo("UTC")
_SMALLEST = 2.0**-126


def pieces(rows: Rows, keys: list[str], zone: str) -> list[tuple[tuple[str, ...], pa.Table]]:
    """The rows of each group and each combination of partition values, with the names of its directories.

    A row whose value no directory can hold unchanged is left out.
    """
    parts = []
    for group in rows.groups():
        columns = [_texts(group.column(key), zone) for key in keys]
        positions: dict[tuple[str, ...], list[int]] = {}
        for i, texts in enumerate(zip(*columns, strict=True)):
            if all(text is not None for text in texts):
                folders = tuple(f"{escape(key)}={text}" for key, text in zip(keys, texts, strict=True))
                positions.setdefault(folders, []).append(i)
        parts += [(folders, group.take(pa.array(chosen))) for folders, chosen in positions.items()]
    return parts


def _texts(values: pa.ChunkedArray, zone: str) -> list[str | None]:
    """The directory's text of each value; None where there is none that means the same."""
    t = values.type
    texts = []
    for value in physical(values):
        text = NULL if value is None else _text(value, t, zone)
        texts.append(text if text in (None, NULL) else escape(str(text)))
    return texts


def _text(value: Any, t: pa.DataType, zone: str) -> str | None:
    if pa.types.is_boolean(t):
        return str(value).lower()
    if pa.types.is_floating(t):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if t == pa.float32() and 0 < abs(value) < _SMALLEST:
            return None  # Penstock reads no text as one of the smallest floats, and refuses the directory
        return repr(float(value)) if t == pa.float64() else str(pc.cast(pa.scalar(value, t), pa.string()).as_py())
    if pa.types.is_decimal(t):
        return f"{digits(value, t.scale):f}"
    if pa.types.is_string(t):
        # Hive has no name for the empty text, a file system none of more than 255 bytes; Penstock refuses controls.
        return value if value.isprintable() and 0 < len(escape(value).encode()) < 200 and value != NULL else None
    if pa.types.is_date(t):
        return date_text(value)
    if pa.types.is_timestamp(t):
        return _clock(value, zone if t == TIMESTAMP else "UTC")
    return str(value)


def _clock(micros: int, zone: str) -> str | None:
    """The reading on the zone's clock, unless the clock shows it twice or Python's zones may differ from Java's."""
    if not -2_208_988_800 * 10**6 < micros < 2_000_000_000 * 10**6:
        return None if zone != "UTC" or date_text(micros // 86_400_000_000) is None else clock_text(micros)
    moment = dt.datetime(1970, 1, 1, tzinfo=_UTC) + dt.timedelta(microseconds=micros)
    reading = moment.astimezone(ZoneInfo(zone))
    if reading.replace(fold=0).utcoffset() != reading.replace(fold=1).utcoffset():
        return None
    return reading.replace(tzinfo=None).isoformat(" ", timespec="microseconds")
