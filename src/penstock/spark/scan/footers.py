"""What was read of footers, by file; a file is immutable, so it is kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

_AT_ONCE = 16
File = TypeVar("File", bound=Hashable)
Content = TypeVar("Content")


class Footers(Generic[File, Content]):
    """What was read of the footers of so many files at most."""

    def __init__(self, most: int) -> None:
        self._lock = Lock()
        self._known: LRUCache[File, Content] = LRUCache(most)

    def of(self, files: Sequence[File], read: Callable[[File], Content]) -> list[Content]:
        """The footers of files; those not seen before are read, several at once."""
        with self._lock:
            contents = {file: self._known[file] for file in files if file in self._known}
        missing = [file for file in dict.fromkeys(files) if file not in contents]
        if missing:
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-footers") as pool:
                fresh = dict(zip(missing, pool.map(read, missing), strict=True))
            contents |= fresh
            with self._lock:
                self._known.update(fresh)
        return [contents[file] for file in files]
