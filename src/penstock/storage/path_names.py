"""One name for one file, however its path is written, so that two paths can be compared.

`file:///x`, `file:/x` and `/x` are the same, and so are `s3`, `s3a` and `s3n`. On a local disk links to directories are
followed: a table that was made through a link is the same table. Nothing is unescaped: `%5B` is part of a name.
"""

from __future__ import annotations

import os
import re

from penstock.storage.schemes import normal_scheme

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


class Names:
    """Normal names of paths; the directories of a local disk are looked up once."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The normal name of a file."""
        scheme, rest = split(path)
        if scheme != "file":
            return f"{scheme}:{rest}"
        folder, _, name = rest.rpartition("/")
        return f"{self._folder(folder or '/')}/{name}"

    def folder(self, path: str) -> str:
        """The normal name of a directory, without a slash at its end."""
        scheme, rest = split(path)
        return f"{scheme}:{rest.rstrip('/')}" if scheme != "file" else self._folder(rest)

    def _folder(self, path: str) -> str:
        if path not in self._real:
            self._real[path] = os.path.realpath(path).rstrip("/")
        return self._real[path]


def split(path: str) -> tuple[str, str]:
    """Scheme and the rest of a path.

    >>> split("file:///data/t"), split("file:/data/t"), split("/data/t"), split("s3a://lake/t")
    (('file', '/data/t'), ('file', '/data/t'), ('file', '/data/t'), ('s3', '//lake/t'))
    """
    match = _SCHEME.fullmatch(path)
    if match is None:
        return "file", os.path.abspath(path)
    scheme, rest = match[1].lower(), match[2]
    if scheme == "file":
        return "file", rest[2:].removeprefix("localhost") if rest.startswith("//") else rest
    return normal_scheme(scheme), rest


def is_below(name: str, folder: str) -> bool:
    """Whether a normal name is that of something in a directory, at any depth."""
    return name.startswith(f"{folder}/")
