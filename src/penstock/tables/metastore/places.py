"""Directories anywhere, as one storage: a path in it is a URL, and each is opened where it lies.

Partitions of one table may lie in several buckets, and below each other. Spark reads them with the session's own
configuration, as it reads the table itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

from penstock.errors import StorageError
from penstock.storage.entries import Entries
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Properties, Storage


@dataclass(frozen=True)
class Places(Storage):
    """All that the URLs of a metastore lead to; `path` is that of a table."""

    schemes: ClassVar[tuple[str, ...]] = ()
    property_prefix: ClassVar[str] = ""
    read_hint: ClassVar[str] = "check permissions"
    missing_hint: ClassVar[str] = "check the location in the metastore"

    opened: dict[str, Storage] = field(default_factory=dict, compare=False, repr=False)
    named: Properties | str | None = field(default=None, repr=False)  # the account, as it was given

    @classmethod
    def at(cls, location: str, named: Properties | str | None) -> Places:
        """The places of a table that lies at a location."""
        return cls("", "", as_url(location), {}, named=named)

    @classmethod
    def from_url(cls, scheme: str, rest: str, properties: Properties) -> Self:
        return cls(scheme, "", as_url(f"{scheme}:{rest}"), properties)

    @cached_property
    def identity(self) -> str:
        return self._of(self.path).identity

    @cached_property
    def filesystem(self) -> NoReturn:
        """There is no single one: `entries` and `open` go to the storage of each place, and nothing else is called."""
        raise NotImplementedError("each place has a file system of its own")

    def shown(self, path: str) -> str:
        place = self._of(path)
        return place.shown(place.path_of(path))

    def url_of(self, path: str) -> str:
        return path

    def path_of(self, url: str) -> str:
        return url

    def entries(self, path: str) -> Entries:
        place = self._of(path)
        return place.entries(place.path_of(path))

    def open(self, path: str) -> Any:
        place = self._of(path)
        return place.open(place.path_of(path))

    def trouble(self, path: str, error: OSError) -> StorageError:
        place = self._of(path)
        return place.trouble(place.path_of(path), error)

    def _of(self, url: str) -> Storage:
        """The storage of a URL; that of one bucket is opened once, for an account is looked up for each."""
        scheme, _, rest = url.partition("://")
        root = f"{scheme}://{rest.partition('/')[0]}"
        if root not in self.opened:
            self.opened[root] = open_storage("/" if root == "file://" else root, self.named)
        return self.opened[root]


def as_url(location: str) -> str:
    """A location of a metastore, as Hadoop writes it, with the slashes of a URL.

    >>> as_url("file:/warehouse/dw.db/t/"), as_url("s3a://lake/t")
    ('file:///warehouse/dw.db/t', 's3a://lake/t')
    """
    scheme, _, rest = location.partition(":")
    if location.startswith("/"):
        scheme, rest = "file", location
    path = f"///{rest.lstrip('/')}" if scheme == "file" else rest
    return f"{scheme}:{path}".rstrip("/")
