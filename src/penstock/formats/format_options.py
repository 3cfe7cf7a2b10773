"""What a person says of the files of a table: their format by its name, and options under Spark's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import LayoutError, name_hint
from penstock.formats.file_format import FileFormat, Options
from penstock.formats.format_registry import FORMATS, format_named


def declared_format(name: str) -> FileFormat:
    """The format of a name; an error that has all names for one that is not known."""
    known = format_named(name)
    if known is None:
        raise LayoutError(f"unknown file format {name!r}", hint=name_hint(name, [each.name for each in FORMATS]))
    return known


def read_options(file_format: FileFormat, options: Mapping[str, Any] | None) -> Options:
    """Options as they are kept: names in lower case, values as Spark writes them, in order."""
    names = {name.lower(): name for name in (*file_format.options, *file_format.spark_options)}
    known: dict[str, str] = {}
    for name, value in (options or {}).items():
        if name.lower() not in names:
            message = f"{file_format.title} files have no option {name!r}"
            hint = name_hint(name, sorted(names.values())) if names else "leave the options out"
            raise LayoutError(message, hint=hint)
        known[name.lower()] = str(value).lower() if isinstance(value, bool) else str(value)
    return tuple(sorted(known.items()))
