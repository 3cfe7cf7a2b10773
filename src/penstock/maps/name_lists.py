"""What properties of a table hold: lists of names, separated by commas or as a JSON array, and JSON objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

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


def read_object(text: str | None) -> dict[str, Any]:
    """The JSON object in a text; an empty one where somebody has written something else.

    >>> read_object('{"a": 1}'), read_object("[]"), read_object("{"), read_object(None)
    ({'a': 1}, {}, {}, {})
    """
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
