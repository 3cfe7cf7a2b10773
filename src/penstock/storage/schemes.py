"""The kinds of storage there are, by the schemes of their URLs: a new one is a module and an entry in `KINDS`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from penstock.errors import StorageError
from penstock.storage.local_storage import LocalStorage
from penstock.storage.s3_storage import S3Storage
from penstock.storage.storage import Properties, Storage, properties_of

KINDS: Sequence[type[Storage]] = (LocalStorage, S3Storage)
_BY_SCHEME = {scheme: kind for kind in KINDS for scheme in kind.schemes}
HARMLESS_PROPERTIES = frozenset().union(*(kind.harmless_properties for kind in KINDS))


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
    scheme, colon, rest = text.partition(":")
    kind = _BY_SCHEME.get(scheme.lower()) if colon else None
    # A local path needs no account; reading PyIceberg's configuration loads pydantic and more, a fifth of a first plan.
    is_local = kind in (None, LocalStorage)
    properties = {} if is_local and storage is None else properties_of(storage)
    if kind is not None:
        return kind.from_url(scheme.lower(), rest, properties)
    if "://" in text:
        *others, last = (f"{each}://" for each in _BY_SCHEME)
        hint = f"local paths, {', '.join(others)} and {last} are supported"
        raise StorageError(f"unknown kind of storage in {scheme.lower()}://…", hint=hint)
    return LocalStorage.from_path(text, properties)


def normal_scheme(scheme: str) -> str:
    """The scheme that stands for all that mean the same: `s3` for `s3a`."""
    kind = _BY_SCHEME.get(scheme.lower())
    return scheme.lower() if kind is None else kind.schemes[0]


def bucket_url(path: str) -> str:
    """`s3://bucket` of a path; nothing for what is local or of an unknown kind.

    >>> bucket_url("s3a://lake/t/x.parquet"), bucket_url("/data/x.parquet")
    ('s3a://lake', '')
    """
    scheme, separator, rest = path.partition("://")
    kind = _BY_SCHEME.get(scheme)
    return "" if not separator or kind is None or kind.hadoop is None else f"{scheme}://{rest.partition('/')[0]}"
