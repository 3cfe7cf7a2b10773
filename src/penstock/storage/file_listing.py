"""All files below the folders of a table, and how they are deleted: on a local disk and on S3.

Links to directories are not followed, and names that begin with `_` or `.` are not looked at, unless they are a
partition's (`_region=eu`): other programs keep things of their own under such names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyarrow.fs import FileSelector, FileType

from penstock.errors import StorageError
from penstock.progress import Counted, progress
from penstock.storage.local_storage import LocalStorage
from penstock.storage.path_names import Names, is_below
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Storage


class Listed(NamedTuple):
    """A file that was found: its path in the storage, its normal name, size and age."""

    storage: Storage
    path: str
    name: str
    size: int
    modified_ns: int

    @property
    def url(self) -> str:
        """The path as people write it."""
        return self.storage.url_of(self.path)


class Folder(NamedTuple):
    """A directory of a local disk that was found."""

    path: str
    modified_ns: int


class Listing(NamedTuple):
    """What lies below some folders."""

    files: list[Listed]
    folders: list[Folder]

    def without(self, claimed: Sequence[str], names: Names) -> Listing:
        """The same without some folders, by their normal names, and all that lies in them."""
        if not claimed:
            return self

        def is_free(name: str) -> bool:
            return not any(name == folder or is_below(name, folder) for folder in claimed)

        files = [file for file in self.files if is_free(file.name)]
        return Listing(files, [folder for folder in self.folders if is_free(names.folder(folder.path))])


def list_folders(places: Iterable[str], properties: Mapping[str, str], names: Names) -> Listing:
    """Everything below some folders; one that does not exist holds nothing."""
    listing = Listing([], [])
    with progress("listing", lambda: Counted(len(listing.files), None, "file")):
        for place in places:
            storage = open_storage(place, properties)
            if isinstance(storage, LocalStorage):
                _local(storage, storage.path, listing, names)
            else:
                listing.files.extend(_remote(storage, names))
    return listing


def outermost(places: Iterable[str], names: Names) -> list[str]:
    """Folders without those that lie in another of them."""
    known = {names.folder(place): place for place in places}
    return [place for name, place in known.items() if not any(is_below(name, other) for other in known)]


def delete(file: Listed) -> bool:
    """Delete a file; false when it is gone already."""
    files = file.storage.filesystem
    try:
        files.delete_file(file.path)
    except FileNotFoundError:
        return False
    except OSError as error:
        # On S3, Arrow may fail to keep a directory alive whose last file it has deleted.
        if files.get_file_info(file.path).type != FileType.NotFound:
            message = file.storage.trouble(file.path, error)
            raise StorageError(message.message.replace("cannot read", "cannot delete", 1), hint=message.hint) from None
    return True


def remove_empty(folders: Iterable[Folder], before_ns: int) -> None:
    """Remove directories that are empty, the deepest first, unless they are young: a writer may have made them."""
    for folder in sorted(folders, key=lambda each: -len(each.path)):
        if folder.modified_ns < before_ns:
            try:
                os.rmdir(folder.path)
            except OSError:  # it is not empty
                continue


def _local(storage: Storage, root: str, listing: Listing, names: Names) -> None:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage.trouble(path, error) from None
        for entry in entries:
            if _is_hidden(entry.name):
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
                is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file()
            except FileNotFoundError:
                continue
            if is_folder:
                waiting.append(entry.path)
                listing.folders.append(Folder(entry.path, stat.st_mtime_ns))
            elif is_file:
                name = names.of(entry.path)
                listing.files.append(Listed(storage, entry.path, name, stat.st_size, stat.st_mtime_ns))


def _remote(storage: Storage, names: Names) -> Iterator[Listed]:
    try:
        infos = storage.filesystem.get_file_info(FileSelector(storage.path, allow_not_found=True, recursive=True))
    except OSError as error:
        raise storage.trouble(storage.path, error) from None
    for info in infos:
        inside = info.path.removeprefix(f"{storage.path}/")
        if info.type == FileType.File and not any(map(_is_hidden, inside.split("/"))):
            name = names.of(storage.url_of(info.path))
            yield Listed(storage, info.path, name, info.size or 0, info.mtime_ns or 0)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name
