"""Work that waits for other work of its kind gets a thread in any case, and few threads are kept."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from penstock.spark.scan.threads import Threads


def test_work_that_waits_for_other_work_does_not_stop_it() -> None:
    threads, done = Threads("test"), threading.Event()
    waiting = [threading.Event() for _ in range(50)]
    for event in waiting:
        threads.run(lambda event=event: (event.set(), done.wait(60)), is_kept=True)  # type: ignore[misc]
    assert all(event.wait(60) for event in waiting)
    done.set()


def test_threads_are_used_again() -> None:
    threads, idents = Threads("test"), SimpleQueue[int]()
    seen = set()
    for _ in range(20):
        threads.run(lambda: idents.put(threading.get_ident()), is_kept=True)
        seen.add(idents.get(timeout=60))
        while not threads._idle:
            threading.Event().wait(0.001)
    assert len(seen) == 1


def test_work_that_is_not_to_be_kept_has_a_thread_that_ends() -> None:
    threads, names = Threads("test"), SimpleQueue[threading.Thread]()
    threads.run(lambda: None, is_kept=True)
    threads.run(lambda: names.put(threading.current_thread()), is_kept=False)
    thread = names.get(timeout=60)
    thread.join(60)
    assert not thread.is_alive()


def test_stop_ends_threads_that_wait_for_work() -> None:
    threads, own = Threads("test"), SimpleQueue[threading.Thread]()
    threads.run(lambda: own.put(threading.current_thread()), is_kept=True)
    thread = own.get(timeout=60)
    while not threads._idle:
        threading.Event().wait(0.001)
    threads.stop()
    thread.join(60)
    assert not thread.is_alive()
