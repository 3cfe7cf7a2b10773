"""Threads for work that may wait for other work of the same kind: as many as there is work, a few kept for the next.

Each thread that talks to the JVM has a connection, and a thread of its own there: to make them costs as much as a small
query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]
_MOST_IDLE = 4


class Threads:
    """Daemon threads; work never waits for one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._idle, self._most_idle = 0, _MOST_IDLE
        self._lock = threading.Lock()

    def run(self, work: Work, *, is_kept: bool) -> None:
        """Do something in another thread: in one that is kept for such work, or in a new one that ends with it."""
        with self._lock:
            has_idle = is_kept and self._idle > 0
            self._idle -= has_idle
        if has_idle:
            self._work.put(work)
        else:
            target, arguments = (self._run_more, (work,)) if is_kept else (work, ())
            threading.Thread(target=target, args=arguments, name=self._name, daemon=True).start()

    def stop(self) -> None:
        """No thread is kept any more."""
        with self._lock:
            idle, self._idle, self._most_idle = self._idle, 0, 0
        for _ in range(idle):
            self._work.put(None)

    def _run_more(self, work: Work | None) -> None:
        while work is not None:
            work()
            with self._lock:
                if self._idle >= self._most_idle:
                    return
                self._idle += 1
            work = self._work.get()
