"""From what a metastore says of files to a format and its options; tables that are read in another way are refused.

A table of a data source (`USING parquet`) is read by the format of that name. A Hive table (`STORED AS ORC`) is read
by the format that Spark reads it with, which is known of Parquet and ORC. Other serdes of Hive, such as that of
TEXTFILE, give other rows than any format: an empty text is NULL in CSV, and a text in Hive.
"""

from __future__ import annotations

from penstock.errors import LakeError
from penstock.formats.file_format import FileFormat, Options
from penstock.formats.format_options import read_options
from penstock.formats.format_registry import FORMATS, format_named
from penstock.tables.metastore.metastore import Stored, StoredTable

HIVE = "hive"
_SERDES = ("parquet", "orc")  # what stands in the names of the serdes that Spark reads as these formats
# Options that choose among the files of a table, or say which of them may be broken.
_CHOOSING = ("recursivefilelookup", "pathglobfilter", "modifiedbefore", "modifiedafter", "ignorecorruptfiles",
             "ignoremissingfiles", "datetimerebasemode", "int96rebasemode")  # fmt: skip
_OF_WRITERS = ("path", "serialization.format", "compression", "codec", "mergeschema")
_INSTEAD = {
    "delta": "read it with Delta Lake",
    "iceberg": "open it with penstock.connect(catalog=…) or penstock.iceberg(…)",
    "jdbc": "a database has no files to prune",
}


def stored_format(table: StoredTable) -> tuple[FileFormat, Options]:
    """The format of a table's files, and the options of its reader."""
    name = table.provider.lower()
    other = next((kind for kind in ("iceberg", "delta") if kind in _maker(table)), None)
    if other is not None:
        raise _refused(table, f"is a table of {other}", _INSTEAD[other])
    if name == HIVE:
        return _of_serde(table), ()
    file_format = format_named(name)
    if file_format is None:
        known = ", ".join(each.name for each in FORMATS)
        instead = _INSTEAD.get(name, f"known formats are {known}")
        raise _refused(table, f"is a table of the data source {name!r}", f"{instead}, or use spark.table")
    options = {key: value for key, value in table.stored.options if key.lower() not in _OF_WRITERS}
    chosen = next((key for key in options if key.lower() in _CHOOSING), None)
    if chosen is not None:
        raise _refused(table, f"has the option {chosen}", "use spark.table, or leave the option out")
    if file_format.has_types:  # options of writers have any name, and readers of such files need few
        known_options = {each.lower() for each in file_format.options}
        options = {key: value for key, value in options.items() if key.lower() in known_options}
    return file_format, read_options(file_format, options)


def other_format(table: StoredTable, own: Stored) -> str | None:
    """What to call the format of a partition that is not stored as the table is; None for one that is."""
    if table.provider.lower() != HIVE or _name_of(own) == _name_of(table.stored):
        return None
    return _name_of(own) or own.serde


def _of_serde(table: StoredTable) -> FileFormat:
    if table.properties.get("transactional", "").lower() == "true":
        raise _refused(table, "is a transactional table of Hive", "read it with Hive, or copy it to a plain table")
    name = _name_of(table.stored)
    known = None if name is None else format_named(name)
    if known is None:
        what = f"is stored by Hive's {table.stored.serde.rpartition('.')[2] or 'own handler'}"
        hint = "use spark.table, or write it again STORED AS PARQUET or ORC"
        raise _refused(table, f"{what}, which is not supported", hint)
    return known


def _name_of(stored: Stored) -> str | None:
    return next((name for name in _SERDES if name in stored.serde.lower()), None)


def _maker(table: StoredTable) -> str:
    """What others note of whose table it is: with Hive, Iceberg's and Delta Lake's have the provider `hive`."""
    notes = (table.properties.get(key, "") for key in ("table_type", "spark.sql.sources.provider", "storage_handler"))
    return " ".join(notes).lower()


def _refused(table: StoredTable, what: str, hint: str) -> LakeError:
    return LakeError(f"{table.name} {what}", hint=hint)
