"""INT96 as microseconds when PyIceberg reads it.

Parquet's old form of timestamps, which Spark writes unless it is told otherwise, holds days and nanoseconds of a day.
PyIceberg lets Arrow make one number of nanoseconds of them, which has no room for the year 9999 and wraps around.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any


@cache
def read_int96_as_microseconds() -> None:
    """Let PyIceberg read INT96 of all years, once in a process."""
    from pyiceberg.io import pyarrow as files
    from pyiceberg.manifest import FileFormat

    original = files._get_file_format

    @lru_cache
    def file_format(kind: FileFormat, **options: Any) -> Any:
        moments = {"coerce_int96_timestamp_unit": "us"} if kind == FileFormat.PARQUET else {}
        return original(kind, **options, **moments)

    files._get_file_format = file_format
