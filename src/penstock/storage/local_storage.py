"""Local disks: paths, and `file://` URLs without a host."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from pyarrow.fs import LocalFileSystem

from penstock.errors import StorageError
from penstock.storage.entries import Entries, local_entries
from penstock.storage.storage import Properties, Storage


class LocalStorage(Storage):
    """A directory of a local disk."""

    schemes = ("file",)
    read_hint = "check permissions"
    missing_hint = "check the path"
    property_prefix = "file."

    @classmethod
    def from_url(cls, scheme: str, rest: str, properties: Properties) -> Self:
        """Read `file:///path`, `file:/path` and `file://localhost/path`; escapes are decoded."""
        parts = urlsplit(f"{scheme}:{rest}")
        if parts.netloc not in ("", "localhost"):
            raise StorageError(f"file://{parts.netloc}/… names a host", hint="an absolute path has three slashes")
        return cls.from_path(unquote(parts.path), properties)

    @classmethod
    def from_path(cls, path: str, properties: Properties) -> Self:
        """The directory of a path, which may be relative or begin with `~`."""
        if not path:
            raise StorageError("the path is empty", hint="give the root of the table")
        absolute = os.path.abspath(os.path.expanduser(path))
        return cls("file", "", absolute.rstrip("/") or "/", properties)

    @cached_property
    def identity(self) -> str:
        """All local paths are of one file system; positions of streams hold it in this form."""
        return "file|||default"

    @cached_property
    def filesystem(self) -> Any:
        return LocalFileSystem()

    def shown(self, path: str) -> str:
        return path

    def _list(self, path: str) -> Entries:
        return local_entries(path)
