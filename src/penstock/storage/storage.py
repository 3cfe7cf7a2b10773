"""Where files lie: a directory of a file system, configured as PyIceberg is; each kind of storage is a subclass.

A subclass says which schemes are its own, how a URL is read, which of Arrow's file systems reads it and with which
options Hadoop does; `schemes.py` lists the subclasses and opens URLs. What stands here is the same for every storage
that Arrow reads.

Nothing that is printed of a storage holds a credential: `identity` names an account by a digest of its key id.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from pyarrow.fs import FileSelector, FileType

from penstock.errors import CLIENT_ERRORS, ForbiddenError, LakeError, MissingError, PenstockError, StorageError
from penstock.storage.entries import Entries, remote_entries
from penstock.storage.redaction import one_line

Properties = Mapping[str, str]


@dataclass(frozen=True)
class Hadoop:
    """How Hadoop, and so Spark, reads a kind of storage."""

    storage: str  # as people call it
    file_system: str
    package: str
    prefix: str  # of its options
    bucket_prefix: str  # of its options for one bucket alone, which win
    account: tuple[str, ...]  # the options by which two clients differ in what they read
    options: Callable[[Properties], dict[str, str]]  # without a prefix


@dataclass(frozen=True)
class Storage(ABC):
    """A directory and everything below it."""

    schemes: ClassVar[tuple[str, ...]]  # the first stands for all of them
    property_prefix: ClassVar[str]
    read_hint: ClassVar[str]
    missing_hint: ClassVar[str]
    harmless_properties: ClassVar[frozenset[str]] = frozenset()  # say where and how data is read, never by whom
    impatient: ClassVar[Properties] = {}  # properties for a look that must not take long
    hadoop: ClassVar[Hadoop | None] = None  # None: it reads local files without any options

    scheme: str
    bucket: str
    path: str
    properties: Properties = field(repr=False)

    @classmethod
    @abstractmethod
    def from_url(cls, scheme: str, rest: str, properties: Properties) -> Self:
        """The storage of a URL, of which `rest` follows the colon."""

    @cached_property
    @abstractmethod
    def identity(self) -> str:
        """What tells two file systems apart: endpoint, bucket and account, never a secret."""

    @cached_property
    @abstractmethod
    def filesystem(self) -> Any:
        """pyarrow's file system for it."""

    def endpoint(self) -> tuple[str, str] | None:
        """The property with the address that is asked, and the address; None when it is not known."""
        return None

    @property
    def url(self) -> str:
        """The directory as the user may write it."""
        return self.shown(self.path)

    def shown(self, path: str) -> str:
        """A path in this file system as the user may write it."""
        return self.url_of(path)

    def url_of(self, path: str) -> str:
        """The URL of a path in this file system, in the form Spark takes."""
        return f"{self.scheme}://{path}"

    def path_of(self, url: str) -> str:
        """The path of a URL that `url_of` made."""
        return url.removeprefix(f"{self.scheme}://")

    def entries(self, path: str) -> Entries:
        """The entries of one directory: one List call."""
        try:
            return self._list(path)
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(path) from None
        except OSError as error:
            raise self.trouble(path, error) from None

    def open(self, path: str) -> Any:
        """A file for reading."""
        try:
            return self.filesystem.open_input_file(path)
        except FileNotFoundError:
            raise MissingError(f"{self.url_of(path)} has disappeared", hint="plan again") from None
        except OSError as error:
            raise self.trouble(path, error) from None

    def trouble(self, path: str, error: OSError) -> StorageError:
        """What the storage said, in one line, without a credential in it."""
        message = one_line(error, self.properties)
        is_forbidden = isinstance(error, PermissionError) or "ACCESS_DENIED" in str(error)
        kind = ForbiddenError if is_forbidden else StorageError
        return kind(f"cannot read {self.url_of(path)}: {message}", hint=self.read_hint)

    def _list(self, path: str) -> Entries:
        return remote_entries(self.filesystem.get_file_info(FileSelector(path, recursive=False)))

    def _missing(self, path: str) -> StorageError:
        """An object has nothing below it either; one more request tells the two apart."""
        try:
            is_file = self.filesystem.get_file_info(path).type == FileType.File
        except OSError as error:
            return self.trouble(path, error)
        if is_file:
            return StorageError(f"{self.shown(path)} is not a directory", hint="give the root of the table")
        return MissingError(f"{self.shown(path)} does not exist", hint=self.missing_hint)


@contextmanager
def clear_storage_errors(what: str) -> Iterator[None]:
    """What a disk or a storage refuses, as one line."""
    try:
        yield
    except PenstockError:
        raise
    except OSError as error:
        hint = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check permissions"
        raise StorageError(f"{what}: {one_line(error)}", hint=hint) from error


@contextmanager
def clear_read_errors(what: str, hint: str) -> Iterator[None]:
    """What goes wrong when a file of a table is read, as one line."""
    try:
        yield
    except PenstockError:
        raise
    except FileNotFoundError:
        raise StorageError(f"{what} does not exist", hint=hint) from None
    except CLIENT_ERRORS as error:  # of Arrow and of bitmaps too
        raise LakeError(f"{what} cannot be read: {one_line(error)}", hint=hint) from error


def properties_of(storage: Properties | str | None) -> Properties:
    """Properties as given; by a catalog's name, or those of PyIceberg's default catalog."""
    if isinstance(storage, Mapping):
        return dict(storage)
    from pyiceberg.utils.config import Config

    try:
        config = Config()
        configured = config.get_catalog_config(storage or config.get_default_catalog_name())
    except Exception as error:  # the reader of YAML quotes the file, and so perhaps a secret
        message = str(error) if isinstance(error, ValueError) else "it is not the YAML that PyIceberg takes"
        hint = "correct .pyiceberg.yaml"
        raise StorageError(f"PyIceberg's configuration cannot be read: {message}", hint=hint) from None
    if configured is None and storage is not None:
        hint = "name a catalog of .pyiceberg.yaml, or give properties such as {'s3.endpoint': …}"
        raise StorageError(f"no catalog {storage!r} is configured", hint=hint)
    return {str(name): str(value) for name, value in (configured or {}).items()}
