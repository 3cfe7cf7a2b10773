"""Lists of names in a property of a table: separated by commas, or a JSON array when a name has a comma."""

from __future__ import annotations

import json
from collections.abc import Sequence

from penstock.errors import LakeError


def read_names(text: str) -> list[str]:
    """Names out of a list that is separated by commas, or a JSON array.

    >>> read_names("a, b"), read_names('["a,b"]'), read_names("")
    (['a', 'b'], ['a,b'], [])
    """
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError:
            names = None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        raise LakeError(f"{text[:80]!r} is no JSON array of texts", hint='write a,b or ["a", "b"]')
    return [name.strip() for name in text.split(",") if name.strip()]


def write_names(names: Sequence[str]) -> str:
    """Names as one text; a JSON array where commas would not do.

    >>> write_names(["a", "b"]), write_names(["a,b"])
    ('a,b', '["a,b"]')
    """
    plain = all(name and name == name.strip() and "," not in name and not name.startswith("[") for name in names)
    return ",".join(names) if plain else json.dumps(list(names), ensure_ascii=False)
