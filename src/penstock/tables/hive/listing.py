"""List calls: bounded in number and in how many run at once, and cached when asked for.

A cached answer is not a List call. Errors are not cached. Two threads that ask for one directory at the same time make
one call. The key holds the file system's identity (endpoint, bucket, a digest of the account) and never a secret.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from penstock.errors import LimitError
from penstock.tables.storage import Entry, Storage

_Key = tuple[str, str]


class ListingCache:
    """Listings for a limited time, at most so many; the ones used longest ago go first."""

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds, self.most = seconds, most
        self._lock = threading.Lock()
        self._found: OrderedDict[_Key, tuple[float, Future[list[Entry]]]] = OrderedDict()

    def claim(self, key: _Key) -> tuple[Future[list[Entry]], bool]:
        """The listing, perhaps still on its way, and whether the caller is the one who must make it."""
        with self._lock:
            known = self._found.get(key)
            if known is not None and time.monotonic() - known[0] < self.seconds:
                self._found.move_to_end(key)
                return known[1], False
            fresh: Future[list[Entry]] = Future()
            self._found[key] = (time.monotonic(), fresh)
            self._found.move_to_end(key)
            while len(self._found) > self.most:
                self._found.popitem(last=False)
            return fresh, True

    def forget(self, key: _Key, future: Future[list[Entry]]) -> None:
        """Drop a listing that failed."""
        with self._lock:
            if self._found.get(key, (0.0, None))[1] is future:
                del self._found[key]


class Lister:
    """The List calls of one plan."""

    def __init__(self, storage: Storage, at_once: int, most: int, cache: ListingCache | None) -> None:
        self.storage, self.at_once, self.most, self.cache = storage, at_once, most, cache
        self.calls = 0
        self._lock = threading.Lock()

    def list_all(self, paths: Sequence[str]) -> list[list[Entry]]:
        """The entries of several directories, listed at the same time; the first error stops the rest."""
        if len(paths) <= 1 or self.at_once == 1:
            return [self.list_one(path) for path in paths]
        with ThreadPoolExecutor(min(self.at_once, len(paths)), thread_name_prefix="penstock-list") as pool:
            futures = [pool.submit(self.list_one, path) for path in paths]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                future.cancel()
            failed = next((f for f in futures if not f.cancelled() and f.exception() is not None), None)
            if failed is not None:
                failed.result()
            return [future.result() for future in futures]

    def list_one(self, path: str) -> list[Entry]:
        """The entries of one directory."""
        if self.cache is None:
            return self._call(path)
        key = (self.storage.identity, path)
        future, mine = self.cache.claim(key)
        while not mine:
            try:
                return future.result()
            except LimitError:  # the limit of the plan that was first, which may have listed more than this one
                future, mine = self.cache.claim(key)
        try:
            found = self._call(path)
        except BaseException as error:
            self.cache.forget(key, future)
            future.set_exception(error)
            raise
        future.set_result(found)
        return found

    def _call(self, path: str) -> list[Entry]:
        with self._lock:
            if self.calls >= self.most:
                hint = "filter on the first partition columns, or raise max_lists"
                raise LimitError(f"{self.storage.url} needs more than {self.most:,} List calls", hint=hint)
            self.calls += 1
        return self.storage.entries(path)
