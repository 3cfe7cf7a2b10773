"""What one List call found: the names as a column, and each entry when it is asked for.

A directory of 50,000 partitions is judged by its names alone; a local disk tells the kind and size of an entry only for
one more call each, so they are asked for the few that are kept. S3 tells everything at once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyarrow.fs import FileType

from penstock.errors import LayoutError, MissingError, StorageError


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a directory, by its name as it was found."""

    name: str
    is_directory: bool
    size: int
    modified_ns: int


@dataclass(frozen=True)
class Entries:
    """The entries of one directory, in the order in which the storage gave them; `entry` tells all of one of them."""

    names: Sequence[str]
    entry: Callable[[int], Entry]

    def in_order(self) -> list[int]:
        """The positions in the order of the names."""
        return sorted(range(len(self.names)), key=self.names.__getitem__)


def _none(i: int) -> Entry:
    raise IndexError(i)


NOTHING = Entries((), _none)


def local_entries(path: str) -> Entries:
    """Those of a local directory; the disk is asked about each one when that is wanted."""
    names = os.listdir(path)
    return Entries(names, lambda i: _local_entry(f"{path}/{names[i]}", names[i]))


def remote_entries(infos: Sequence[Any]) -> Entries:
    """Those that one of pyarrow's file systems has listed."""
    names = [info.base_name for info in infos]

    def entry(i: int) -> Entry:
        info = infos[i]
        return Entry(names[i], info.type == FileType.Directory, info.size or 0, info.mtime_ns or 0)

    return Entries(names, entry)


def _local_entry(path: str, name: str) -> Entry:
    """An error for what is neither a file nor a directory, because opening it may hang."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if not os.path.islink(path):
            raise MissingError(f"{path} has disappeared", hint="plan again") from None
        hint = "restore its target, or remove the link"
        raise MissingError(f"{path} is a symbolic link to a missing target", hint=hint) from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", hint="check permissions") from None
    is_directory = stat.S_ISDIR(status.st_mode)
    if not is_directory and not stat.S_ISREG(status.st_mode):
        hint = "remove it from the table's directory"
        raise LayoutError(f"{path} is a pipe, socket or device, expected a file or directory", hint=hint)
    return Entry(name, is_directory, status.st_size, status.st_mtime_ns)
