"""The path of a column as it is written: `address.zip`; a name with a dot in it stands in backticks."""

from __future__ import annotations

import re

from penstock.errors import SchemaError

Path = tuple[str, ...]
_PART = re.compile(r"\s*(?:`((?:``|[^`])+)`|([^`.]+?))\s*(\.|$)")


def parts_of(name: str) -> Path:
    """The names of a column and of the structs that it lies in, the outermost first."""
    parts, position = list[str](), 0
    while match := _PART.match(name, position):
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        if match[3] == "":
            return tuple(parts)
        position = match.end()
    raise SchemaError(f"invalid column name {name!r}", hint="write app, or address.zip for a nested field")
