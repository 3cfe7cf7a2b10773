"""List calls: bounded in number and in how many run at once, and cached when asked for.

A cached answer is not a List call. Errors are not cached. Two threads that ask for one directory at the same time make
one call. The key holds the file system's identity (endpoint, bucket, a digest of the account) and never a secret.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from cachetools import TTLCache

from penstock.errors import ForbiddenError, LimitError
from penstock.storage.entries import NOTHING, Entries
from penstock.storage.storage import Storage

_Key = tuple[str, str]


class ListingCache:
    """Listings for a limited time, at most so many; the ones used longest ago go first."""

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._listings: TTLCache[_Key, Future[Entries]] = TTLCache(most, seconds, lambda: time.monotonic())

    def claim(self, key: _Key) -> tuple[Future[Entries], bool]:
        """The listing, perhaps still on its way, and whether the caller is the one who must make it."""
        with self._lock:
            known = self._listings.get(key)
            if known is not None:
                return known, False
            fresh = self._listings[key] = Future()
            return fresh, True

    def forget(self, key: _Key, future: Future[Entries]) -> None:
        """Drop a listing that failed."""
        with self._lock:
            if self._listings.get(key) is future:
                del self._listings[key]


class Lister:
    """The List calls of one plan."""

    def __init__(
        self, storage: Storage, at_once: int, most: int, cache: ListingCache | None, skips_forbidden: bool = False
    ) -> None:
        self.storage, self.at_once, self.most, self.cache = storage, at_once, most, cache
        self.calls = 0
        self.skips_forbidden = skips_forbidden
        self.forbidden: list[str] = []  # directories that were left out, because they may not be read
        self._stopped = False
        self._lock = threading.Lock()

    def list_all(self, paths: Sequence[str]) -> list[Entries]:
        """The entries of several directories, listed at the same time; the first error stops the rest."""
        if len(paths) <= 1 or self.at_once == 1:
            return [self.list_one(path) for path in paths]
        results: list[Entries | None] = [None] * len(paths)
        waiting = iter(enumerate(paths))
        with ThreadPoolExecutor(min(self.at_once, len(paths)), thread_name_prefix="penstock-list") as pool:
            workers = [pool.submit(self._work, waiting, results) for _ in range(min(self.at_once, len(paths)))]
            try:
                wait(workers, return_when=FIRST_EXCEPTION)
            finally:
                self._stopped = any(entries is None for entries in results)
        for worker in workers:
            worker.result()
        return [entries for entries in results if entries is not None]

    def _work(self, waiting: Iterator[tuple[int, str]], results: list[Entries | None]) -> None:
        """List one directory after the other until none is waiting."""
        while not self._stopped:
            with self._lock:
                following = next(waiting, None)
            if following is None:
                return
            position, path = following
            results[position] = self.list_one(path)

    def list_one(self, path: str) -> Entries:
        """The entries of one directory."""
        try:
            return self._list(path)
        except ForbiddenError:
            if not self.skips_forbidden or path == self.storage.path:
                raise
            self.forbidden.append(path)
            return NOTHING

    def _list(self, path: str) -> Entries:
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
            entries = self._call(path)
        except BaseException as error:
            self.cache.forget(key, future)
            future.set_exception(error)
            raise
        future.set_result(entries)
        return entries

    def _call(self, path: str) -> Entries:
        with self._lock:
            if self.calls >= self.most:
                hint = "filter on the first partition columns, or raise max_lists"
                raise LimitError(f"{self.storage.url} needs more than {self.most:,} List calls", hint=hint)
            self.calls += 1
        return self.storage.entries(path)
