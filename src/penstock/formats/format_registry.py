"""The formats of data files that Penstock reads and writes, and how a file of one is told from other files."""

from __future__ import annotations

from penstock.formats.avro_file import AVRO
from penstock.formats.csv_file import CSV
from penstock.formats.file_format import FileFormat, IcebergFormat, WrittenFormat
from penstock.formats.iceberg_avro import ICEBERG_AVRO
from penstock.formats.iceberg_orc import ICEBERG_ORC
from penstock.formats.json_file import JSON
from penstock.formats.orc import ORC
from penstock.formats.parquet import PARQUET
from penstock.formats.plain_text import TEXT

FORMATS: tuple[FileFormat, ...] = (PARQUET, ORC, CSV, JSON, AVRO, TEXT)
ICEBERG_FORMATS: tuple[IcebergFormat, ...] = (PARQUET, ICEBERG_ORC, ICEBERG_AVRO)  # of data files in Iceberg tables
WRITTEN: tuple[WrittenFormat, ...] = (PARQUET,)  # by Penstock, into its own tables
DEFAULT = PARQUET  # of new tables, and of files whose names do not tell, as Hive's `000000_0`
TITLES = ", ".join(each.title for each in ICEBERG_FORMATS[:-1]) + f" or {ICEBERG_FORMATS[-1].title}"
COMPRESSIONS = ("gz", "bz2", "zst", "snappy", "lz4", "deflate", "xz")  # of text, behind the suffix of the format
_BY_NAME = {each.name: each for each in FORMATS}
_BY_SUFFIX = {suffix: each for each in FORMATS for suffix in each.suffixes}


def format_named(name: str) -> FileFormat | None:
    """A format by the name that Spark, a table's property or a user has for it; None when it is not known.

    >>> format_named("PARQUET").title, format_named("lance")
    ('Parquet', None)
    """
    return _BY_NAME.get(name.lower())


def iceberg_format(name: str) -> IcebergFormat | None:
    """A format of Iceberg's data files, by the name that a manifest or a table's property has for it."""
    return next((each for each in ICEBERG_FORMATS if each.name == name.lower()), None)


def written_format(name: str) -> WrittenFormat | None:
    """A format that Penstock writes, by the name that a table's property has for it."""
    return next((each for each in WRITTEN if each.name == name.lower()), None)


def iceberg_format_of(path: str) -> IcebergFormat:
    """The format of a data file of an Iceberg table by its name; the default where it tells none."""
    stem = path.rpartition("/")[2].lower()
    return next((each for each in ICEBERG_FORMATS if stem.endswith(tuple(f".{s}" for s in each.suffixes))), DEFAULT)


def format_by_name(path: str) -> FileFormat | None:
    """The format that the name of a file tells; None where it tells none.

    >>> format_by_name("dt=2026-05-17/part-0.snappy.parquet").name, format_by_name("000000_0")
    ('parquet', None)
    """
    stem, _, suffix = path.rpartition("/")[2].lower().rpartition(".")
    if suffix in COMPRESSIONS:
        suffix = stem.rpartition(".")[2]
    return _BY_SUFFIX.get(suffix)


def format_of(path: str) -> FileFormat:
    """The format of a data file by its name; the default where it tells none."""
    return format_by_name(path) or DEFAULT


def format_of_bytes(start: bytes) -> FileFormat | None:
    """The format of a file by its first bytes."""
    return next((each for each in FORMATS if each.magic and start.startswith(each.magic)), None)


def is_hidden(name: str) -> bool:
    """Whether readers of Hive layouts pass over the name; a partition column may start with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def is_data_file(name: str) -> bool:
    """Whether a file is read, as in Spark: unless it is hidden, or `hadoop fs -put` is still writing it."""
    return not is_hidden(name) and not name.endswith("._COPYING_")
