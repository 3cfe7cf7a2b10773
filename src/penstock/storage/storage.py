"""Where files lie: a URL or path to a file system and a path in it, configured as PyIceberg is.

Local paths, `file://`, `s3://` and `s3a://` go through the same interface and give the same answers. The
configuration of storage is PyIceberg's, in one place for the user: properties such as `s3.endpoint` given here, or
those of a catalog in `.pyiceberg.yaml` or `PYICEBERG_…` variables, by its name.

Nothing that this module prints holds a credential: `identity` names an account by a digest of its key id.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.errors import MissingError, PenstockError, StorageError
from penstock.storage.entries import Entries, LocalEntries, RemoteEntries

Properties = Mapping[str, str]
_S3 = ("s3", "s3a", "s3n")


@dataclass(frozen=True)
class Storage:
    """A directory and everything below it."""

    scheme: str
    bucket: str
    path: str
    properties: Properties = field(repr=False)

    @property
    def url(self) -> str:
        """The directory as the user may write it."""
        return f"{self.scheme}://{self.path}" if self.scheme != "file" else self.path

    def url_of(self, path: str) -> str:
        """The URL of a path in this file system, in the form Spark takes."""
        return f"{self.scheme}://{path}" if self.scheme != "file" else f"file://{path}"

    @cached_property
    def identity(self) -> str:
        """What tells two file systems apart: endpoint, bucket and account, never a secret."""
        names = [f"{prefix}.{name}" for name in ("access-key-id", "role-arn") for prefix in ("s3", "client")]
        key = "|".join(self.properties.get(name, "") for name in names)
        account = hashlib.sha256(key.encode()).hexdigest()[:16] if key.strip("|") else "default"
        return f"{self.scheme}|{self.properties.get('s3.endpoint', '')}|{self.bucket}|{account}"

    @cached_property
    def filesystem(self) -> Any:
        """pyarrow's file system for it."""
        if self.scheme == "file":
            from pyarrow.fs import LocalFileSystem

            return LocalFileSystem()
        from pyiceberg.io.pyarrow import PyArrowFileIO

        properties = dict(self.properties)
        if properties.get("s3.endpoint") and not (properties.get("s3.region") or properties.get("client.region")):
            # Without a region PyIceberg asks Amazon where the bucket is, whoever's endpoint was given.
            properties["s3.region"] = "us-east-1"
        return PyArrowFileIO(properties).fs_by_scheme("s3", self.bucket)

    def entries(self, path: str) -> Entries:
        """The entries of one directory: one List call."""
        return self._local(path) if self.scheme == "file" else self._remote(path)

    def open(self, path: str) -> Any:
        """A file for reading."""
        try:
            return self.filesystem.open_input_file(path)
        except FileNotFoundError:
            raise MissingError(f"{self.url_of(path)} has disappeared", hint="plan again") from None
        except OSError as error:
            raise self.trouble(path, error) from None

    def _local(self, path: str) -> Entries:
        try:
            return LocalEntries(path)
        except FileNotFoundError:
            raise MissingError(f"{path} does not exist", hint="check the path") from None
        except NotADirectoryError:
            raise StorageError(f"{path} is not a directory", hint="give the root of the table") from None
        except OSError as error:
            raise self.trouble(path, error) from None

    def _remote(self, path: str) -> Entries:
        from pyarrow.fs import FileSelector

        try:
            return RemoteEntries(self.filesystem.get_file_info(FileSelector(path, recursive=False)))
        except FileNotFoundError:
            raise self._missing(path) from None
        except OSError as error:
            raise self.trouble(path, error) from None

    def _missing(self, path: str) -> StorageError:
        """An object has nothing below it either; one more request tells the two apart."""
        from pyarrow.fs import FileType

        try:
            is_file = self.filesystem.get_file_info(path).type == FileType.File
        except OSError as error:
            return self.trouble(path, error)
        if is_file:
            return StorageError(f"{self.url_of(path)} is not a directory", hint="give the root of the table")
        return MissingError(f"{self.url_of(path)} does not exist", hint="check the bucket and the path")

    def trouble(self, path: str, error: OSError) -> StorageError:
        """What the storage said, in one line, without a credential in it."""
        said = " ".join(str(error).split())
        for name, value in self.properties.items():
            if value and is_secret(name):
                said = said.replace(value, "***")
        hint = "check permissions"
        if self.scheme != "file":
            hint = "check the bucket, s3.endpoint, s3.region and the credentials"
        return StorageError(f"cannot read {self.url_of(path)}: {said[:300]}", hint=hint)


@contextmanager
def clear_storage_errors(what: str) -> Iterator[None]:
    """What a disk or a storage refuses, as one line."""
    try:
        yield
    except PenstockError:
        raise
    except OSError as error:
        hint = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check permissions"
        raise StorageError(f"{what}: {' '.join(str(error).split())[:300]}", hint=hint) from error


def is_secret(name: str) -> bool:
    """Whether the value of a property must not be shown or kept."""
    return any(word in name.lower() for word in ("secret", "token", "key", "password", "credential"))


def open_storage(location: str | os.PathLike[str], storage: Properties | str | None = None) -> Storage:
    """The storage of a path or URL.

    >>> open_storage("/data/events/").path
    '/data/events'
    >>> open_storage("s3a://lake/events").bucket
    'lake'
    """
    text = os.fspath(location).strip()
    if "\0" in text:
        raise StorageError(f"{text!r} is no path: it holds a NUL", hint="check the path")
    parts = urlsplit(text)
    if parts.scheme in _S3:
        return _open_s3(parts.scheme, text.split(":", 1)[1], properties_of(storage))
    # A local path needs no account; reading PyIceberg's configuration loads pydantic and more, a fifth of a first plan.
    properties = {} if storage is None else properties_of(storage)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise StorageError(f"file://{parts.netloc}/… names a host", hint="an absolute path has three slashes")
        return Storage("file", "", _absolute(unquote(parts.path)), properties)
    if "://" in text:
        hint = "local paths, file://, s3:// and s3a:// are supported"
        raise StorageError(f"unknown kind of storage in {parts.scheme}://…", hint=hint)
    return Storage("file", "", _absolute(text), properties)


def _open_s3(scheme: str, rest: str, properties: Properties) -> Storage:
    path = rest.removeprefix("//").rstrip("/")
    bucket = path.partition("/")[0]
    if not rest.startswith("//") or not bucket:
        raise StorageError(f"{scheme}: no bucket", hint=f"write {scheme}://bucket/path")
    if "@" in bucket:
        hint = "give s3.access-key-id and s3.secret-access-key as properties"
        raise StorageError(f"credentials in a {scheme}:// URL are not read", hint=hint)
    return Storage(scheme, bucket, path, properties)


def _absolute(path: str) -> str:
    if not path:
        raise StorageError("the path is empty", hint="give the root of the table")
    found = os.path.abspath(os.path.expanduser(path))
    return found.rstrip("/") or "/"


def properties_of(storage: Properties | str | None) -> Properties:
    """Properties as given; by a catalog's name, or those of PyIceberg's default catalog."""
    if isinstance(storage, Mapping):
        return dict(storage)
    from pyiceberg.utils.config import Config

    try:
        config = Config()
        found = config.get_catalog_config(storage or config.get_default_catalog_name())
    except Exception as error:  # the reader of YAML quotes the file, and so perhaps a secret
        said = str(error) if isinstance(error, ValueError) else "it is not the YAML that PyIceberg takes"
        hint = "correct .pyiceberg.yaml"
        raise StorageError(f"PyIceberg's configuration cannot be read: {said}", hint=hint) from None
    if found is None and storage is not None:
        hint = "name a catalog of .pyiceberg.yaml, or give properties such as {'s3.endpoint': …}"
        raise StorageError(f"no catalog {storage!r} is configured", hint=hint)
    return {str(name): str(value) for name, value in (found or {}).items()}
