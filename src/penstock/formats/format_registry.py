"""The formats of data files that Penstock reads and writes, and how a file of one is told from other files."""

from __future__ import annotations

from penstock.formats.file_format import FileFormat
from penstock.formats.parquet import PARQUET

FORMATS = (PARQUET,)
DEFAULT = PARQUET  # of new tables, and of files whose names do not tell, as Hive's `000000_0`
TITLES = " or ".join(each.title for each in FORMATS)
_BY_NAME = {each.name: each for each in FORMATS}


def format_named(name: str) -> FileFormat | None:
    """A format by the name that Spark, a table's property or a manifest has for it; None when it is not known.

    >>> format_named("PARQUET").title, format_named("avro")
    ('Parquet', None)
    """
    return _BY_NAME.get(name.lower())


def format_of(path: str) -> FileFormat:
    """The format of a data file by its name.

    >>> format_of("dt=2026-05-17/part-0.snappy.parquet").name
    'parquet'
    """
    return _BY_NAME.get(path.rpartition(".")[2].lower(), DEFAULT)


def format_of_bytes(start: bytes) -> FileFormat | None:
    """The format of a file by its first bytes."""
    return next((each for each in FORMATS if start.startswith(each.magic)), None)


def is_hidden(name: str) -> bool:
    """Whether readers of Hive layouts pass over the name; a partition column may start with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_data_file(name: str) -> bool:
    """Whether a file is read, as in Spark: unless it is hidden, or `hadoop fs -put` is still writing it."""
    return not is_hidden(name) and not name.endswith("._COPYING_")
