"""LIKE patterns: what a pattern says of its beginning, and the match itself.

A pattern is read once into *parts*: literal text, `%` (any run) and `_` (any one character). The literal text before
the first wildcard is what prunes. Spark refuses an escape character before anything but `%`, `_` and itself, and at
the end of the pattern; such a pattern has no parts (None) and is left to Spark to complain about.

>>> prefix_of(parts_of("ab\\\\%c%d", "\\\\"))
('ab%c', False)
"""

from __future__ import annotations

import re
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

ANY = "%"
ONE = "_"
# A literal stretch is a plain string, a wildcard a one-element tuple.
Part = str | tuple[str]


def parts_of(pattern: str, escape: str) -> list[Part] | None:
    """The pattern as literal stretches and wildcards; None when Spark would refuse it."""
    parts: list[Part] = []
    characters = iter(pattern)
    for c in characters:
        if c == escape:
            c = next(characters, "")
            if c not in (ANY, ONE, escape):
                return None
            parts.append(c)
        elif c not in (ANY, ONE):
            parts.append(c)
        elif c == ONE or parts[-1:] != [(ANY,)]:
            parts.append((c,))
    stretches = ((kind, list(group)) for kind, group in groupby(parts, type))
    return [part for kind, group in stretches for part in (["".join(map(str, group))] if kind is str else group)]


def prefix_of(parts: list[Part]) -> tuple[str, bool]:
    """The literal beginning that every match has, and whether having it is also enough (`'ab%'`)."""
    prefix = parts[0] if parts and isinstance(parts[0], str) else ""
    rest = parts[1:] if prefix else parts
    return prefix, rest == [(ANY,)]


def is_literal(parts: list[Part]) -> bool:
    """Whether the pattern has no wildcard: LIKE is then equality."""
    return all(isinstance(part, str) for part in parts)


def match(values: pa.Array, parts: list[Part]) -> pa.Array:
    """Which strings match; null for null."""
    match parts:
        case []:
            return pc.equal(values, "")
        case [str(text)]:
            return pc.equal(values, text)
        case [("%",)]:
            return pc.if_else(pc.is_valid(values), True, pa.scalar(None, pa.bool_()))
        case [str(text), ("%",)]:
            return pc.starts_with(values, pattern=text)
        case [("%",), str(text)]:
            return pc.ends_with(values, pattern=text)
        case [("%",), str(text), ("%",)]:
            return pc.match_substring(values, pattern=text)
    pattern = "".join(re.escape(p) if isinstance(p, str) else (".*" if p == (ANY,) else ".") for p in parts)
    return pc.match_substring_regex(values, pattern=f"(?s)\\A(?:{pattern})\\z")
