"""Hive layouts as SQL declares them: `CREATE TABLE … USING parquet PARTITIONED BY (dt, app) LOCATION …`.

Without columns they are inferred from the files, as Spark does it. OPTIONS, or properties, are those of the format of
the files and the parameters of `penstock.hive`: limits and the time zone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError, PenstockError
from penstock.expr.sql_text import quote_name
from penstock.expr.types import type_name
from penstock.formats.file_format import FileFormat
from penstock.formats.format_options import declared_format
from penstock.formats.format_registry import is_hidden
from penstock.storage.path_names import Names, is_below
from penstock.storage.schemes import open_storage
from penstock.tables.hive.hive_table import HiveTable, hive

if TYPE_CHECKING:
    from penstock.lake.lake import Lake

_NUMBERS = ("lists_at_once", "warn_partitions", "max_partitions", "max_lists")
_OPTIONS = (*_NUMBERS, "timezone")
_OF_TABLES = ("metadata", "data")  # the folders of an Iceberg table


def layout(
    name: str,
    location: str,
    format_name: str,
    schema: pa.Schema,
    partition_by: Sequence[str],
    options: Mapping[str, str],
) -> HiveTable:
    """The layout that a statement declares."""
    transform = next((text for text in partition_by if "(" in text), None)
    if transform is not None:
        message = f"{name}: a Hive layout is not partitioned by {transform}"
        raise LakeError(message, hint="name the columns of directories")
    arguments = {"format": format_name, **_arguments(name, declared_format(format_name), options)}
    if not len(schema):
        return hive(location, **arguments)
    names = [text.strip("`") for text in partition_by]
    by = ", ".join(f"{quote_name(each)} {type_name(schema.field(each).type)}" for each in names)
    table = hive(location, by, pa.schema([field for field in schema if field.name not in names]), **arguments)
    if not names:
        _check_flat(name, table)
    return table


def _check_flat(name: str, table: HiveTable) -> None:
    """Refuse directories of partitions that the statement does not name."""
    entries = table.storage.entries(table.storage.path)
    directories = [
        each for i, each in enumerate(entries.names) if entries.entry(i).is_directory and not is_hidden(each)
    ]
    if directories:
        message = f"CREATE TABLE {name}: {table.root_url} has directories, such as {min(directories)}"
        raise LakeError(message, hint="write PARTITIONED BY with the columns of directories")


def _arguments(name: str, file_format: FileFormat, options: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"options": {}}
    of_files = {each.lower() for each in (*file_format.options, *file_format.spark_options)}
    for key, text in options.items():
        if key in ("path", "serialization.format", "comment"):  # Spark's own words
            continue
        if key.lower() in of_files:
            arguments["options"][key] = text
            continue
        if key not in _OPTIONS:
            known = ", ".join((*_OPTIONS, *file_format.options))
            raise LakeError(f"CREATE TABLE {name}: {key} is no option of a layout", hint=f"use {known}")
        if key in _NUMBERS and not text.isdecimal():
            raise LakeError(f"CREATE TABLE {name}: {key} is {text!r}", hint="write a number")
        arguments[key] = int(text) if key in _NUMBERS else text
    return arguments


def layout_options(table: HiveTable) -> dict[str, str]:
    """The options that differ from their defaults, as Spark keeps options of tables."""
    values = {
        "lists_at_once": table.lists_at_once,
        "warn_partitions": table.limits.warn_partitions,
        "max_partitions": table.limits.max_partitions,
        "max_lists": table.max_lists,
        "timezone": table.context.timezone,
    }
    defaults = signature(hive).parameters
    changed = {name: value for name, value in values.items() if value != defaults[name].default}
    return {f"option.{name}": str(value) for name, value in {**changed, **dict(table.options)}.items()}


def check_place(lake: Lake, name: str, location: str) -> None:
    """Refuse to put a table among the files of others: its metadata would be files of a layout."""
    names = Names()
    place = names.folder(location)
    roots = {} if lake.declarations is None else lake.declarations.roots()
    for other, root in roots.items():
        folder = names.folder(root)
        if place == folder or is_below(place, folder) or is_below(folder, place):
            message = f"CREATE TABLE {name}: {location} has the files of {other}"
            raise LakeError(message, hint="choose another LOCATION, or leave it out")
    try:
        storage = open_storage(location, dict(lake.catalog.properties))
        entries = storage.entries(storage.path)
    except PenstockError:  # there is no such folder yet, or the catalog knows how to reach it
        return
    if entries.names and not set(_OF_TABLES) & set(entries.names):
        hint = "USING parquet or csv declares a Hive layout; "
        hint += "for a table of the lake choose an empty folder, or no LOCATION"
        raise LakeError(f"CREATE TABLE {name}: there are files in {location}", hint=hint)
