"""Which files of a folder are opened, by whatever process: the kernel tells it (inotify, Linux only)."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

_OPEN, _OVERFLOW = 0x20, 0x4000
_EVENT = struct.Struct("iIII")  # watch, what happened, cookie, length of the name behind it


@contextmanager
def opened_files(folder: Path) -> Iterator[set[str]]:
    """The names of the files of a folder that are opened meanwhile; complete when the block ends."""
    names: set[str] = set()
    events, (stopped, stop) = _watch(folder), os.pipe()
    reader = Thread(target=_collect, args=(events, stopped, names))
    reader.start()
    try:
        yield names
    finally:
        os.close(stop)
        reader.join()
        os.close(events)
        os.close(stopped)


def _watch(folder: Path) -> int:
    """A descriptor from which events are read."""
    libc = ctypes.CDLL(None, use_errno=True)
    events = int(libc.inotify_init1(os.O_CLOEXEC))
    if events < 0 or libc.inotify_add_watch(events, os.fsencode(folder), _OPEN) < 0:
        raise OSError(ctypes.get_errno(), f"cannot watch {folder}")
    return events


def _collect(events: int, stopped: int, names: set[str]) -> None:
    """Read events until the other end of a pipe is closed and none is left; an open file has its event at once."""
    while True:
        readable, _, _ = select.select([events, stopped], [], [])
        if events not in readable:
            return
        data, start = os.read(events, 1 << 18), 0
        while start < len(data):
            _, what, _, length = _EVENT.unpack_from(data, start)
            assert not what & _OVERFLOW, "the kernel dropped events"
            start += _EVENT.size + length
            names.add(os.fsdecode(data[start - length : start].rstrip(b"\0")))
