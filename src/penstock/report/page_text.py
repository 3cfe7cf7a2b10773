r"""Text on its way to a page: what a browser would not simply draw is shown as its escape, and nothing is endless.

Names of tables, columns, keys and values come from anybody. Markup in them is no danger, because a page puts texts in
as texts; but a character that turns the direction of writing makes one name look like another.

>>> plain("a\u202eb\tc")
'a\\u202eb\\tc'
>>> cut("x" * 10, 5), cut_left("/a/long/path", 6)
('xxxx…', '…/path')
"""

from __future__ import annotations

from typing import Any

from penstock.errors import printable


def plain(text: str) -> str:
    """A text with every character that is not simply drawn as its escape; lines stay."""
    return printable(text, keep="\n")


def all_plain(value: Any) -> Any:
    """The same for every text in plain data."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): all_plain(each) for key, each in value.items()}
    return [all_plain(each) for each in value] if isinstance(value, list) else value


def cut(text: str, longest: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def cut_left(text: str, longest: int) -> str:
    """The end of a text: of a path it tells more."""
    return text if len(text) <= longest else "…" + text[1 - longest :]
