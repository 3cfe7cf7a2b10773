"""The page: one file with its style, its script and its data, that asks nobody for anything.

Its policy allows this style and this script by their digests and nothing else; only the served page may ask its own
server. Data is JSON in which no character can end the element it stands in, and the script puts it in as text.

>>> embedded({"name": "</script><b>"})
'{"name":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_SCRIPTS = ("dom.js", "map.js", "sections.js", "live.js")
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}
_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(data: Mapping[str, Any]) -> str:
    """The page about what `Collector.look` gives; with `live` in it, the one that is served."""
    parts = {
        "policy": policy(live="live" in data),
        "title": html.escape(data["table"]["name"]),
        "style": _asset("page.css"),
        "script": _script(),
        "text": html.escape(data["explain"]),
        "data": embedded(data),
    }
    return _PLACE.sub(lambda place: parts[place.group(1)], _asset("page.html"))  # once: no part is looked into


def policy(live: bool) -> str:
    """What the page may load: itself; the served one may ask its server too."""
    allowed = [
        "default-src 'none'",
        f"script-src '{_digest(_script())}'",
        f"style-src '{_digest(_asset('page.css'))}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*allowed, *(["connect-src 'self'"] if live else [])])


def embedded(data: Mapping[str, Any]) -> str:
    """Data as JSON for a script element: ASCII, without any character that means something in HTML."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_UNSAFE)


@cache
def _asset(name: str) -> str:
    return files("penstock.report").joinpath("assets", name).read_text("utf-8")


@cache
def _script() -> str:
    return "\n".join(map(_asset, _SCRIPTS))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
