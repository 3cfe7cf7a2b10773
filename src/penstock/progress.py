"""What is going on and how far it is, told on a terminal while it goes on, and nowhere else.

    ⠹ compacting web.events                                         0:00:07
    ⠹ reading and rewriting ━━━━━━╸━━━━━━━━━━━━━ 12 of 40 files     0:00:05

Whoever does the work says what it is, and may give a function that tells how far it is. That one is asked for each
picture, by a thread of the display, and when it fails no count is shown: work never depends on who looks at it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from penstock.errors import printable

T = TypeVar("T")

_BAR = 20  # columns
_lock = Lock()
_shown: list[Any] = []  # a terminal has one display: what begins while there is one is a line of it


class Counted(NamedTuple):
    """How far some work is: so many are done, of so many where that is known.

    >>> print(Counted(12, 40, "file"), Counted(1_234, None, "directory"), Counted(1, 1, "task"), sep="; ")
    12 of 40 files; 1,234 directories; 1 of 1 task
    """

    done: int
    total: int | None
    unit: str  # of one

    def __str__(self) -> str:
        unit = self.unit if (self.done if self.total is None else self.total) == 1 else self._several
        return f"{self.done:,} {unit}" if self.total is None else f"{self.done:,} of {self.total:,} {unit}"

    @property
    def _several(self) -> str:
        if self.unit.endswith("y") and not self.unit.endswith("ey"):
            return f"{self.unit[:-1]}ies"
        return f"{self.unit}es" if self.unit.endswith("ch") else f"{self.unit}s"


def counted(number: int, unit: str) -> str:
    """A number of things, in words.

    >>> counted(1, "file"), counted(1_200, "directory"), counted(2, "batch"), counted(3, "key")
    ('1 file', '1,200 directories', '2 batches', '3 keys')
    """
    return str(Counted(number, None, unit))


class Count:
    """Counts what goes through it.

    >>> files = Count(3, "file")
    >>> [str(files()) for _ in files.each("abc")]
    ['0 of 3 files', '1 of 3 files', '2 of 3 files']
    >>> print(files())
    3 of 3 files
    """

    def __init__(self, total: int | None, unit: str) -> None:
        self._done, self._total, self._unit = 0, total, unit

    def __call__(self) -> Counted:
        """How many went through so far."""
        return Counted(self._done, self._total, self._unit)

    def each(self, items: Iterable[T], size: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
        """Give items on; each is done when the next one is asked for."""
        for item in items:
            yield item
            self._done += size(item)


def is_shown() -> bool:
    """Whether there is a terminal to show anything on."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


@contextmanager
def progress(
    doing: str, counted: Callable[[], Counted | None] | None = None, *, is_detail: bool = False
) -> Iterator[None]:
    """Show what is being done, how far it is and for how long, on stderr when that is a terminal.

    A detail is shown only as part of something larger that is shown already.
    """
    if (is_detail and not _shown) or not is_shown():
        yield
        return
    with _lock:
        if not _shown:
            _shown.append(_display())
            _shown[0].start()
        display = _shown[0]
        line = display.add_task(printable(doing), total=None, counted=counted)
    try:
        yield
    finally:
        with _lock:
            with suppress(OSError):  # the terminal may be gone
                display.refresh()
            display.remove_task(line)
            if not display.tasks:  # the display goes with its last line, and nothing of it stays
                _shown.clear()
                with suppress(OSError):
                    display.stop()


def _display() -> Any:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress_bar import ProgressBar
    from rich.table import Column, Table

    class HowFar(ProgressColumn):
        def render(self, task: Task) -> Table:
            counted = _count(task.fields["counted"])
            if counted is None:
                return Table.grid()
            bar = [ProgressBar(counted.total, counted.done, _BAR)] if counted.total else []
            shown = Table.grid(*(Column() for _ in bar), Column(no_wrap=True), padding=(0, 1))
            shown.add_row(*bar, str(counted))
            return shown

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), HowFar(), TimeElapsedColumn())
    # What others print meanwhile must not end up on stderr when stdout is a file or a pipe.
    aside = sys.stdout is not None and sys.stdout.isatty()
    return Progress(*columns, console=Console(stderr=True), refresh_per_second=5, transient=True, redirect_stdout=aside)


def _count(counted: Callable[[], Counted | None] | None) -> Counted | None:
    try:
        return None if counted is None else counted()
    except Exception:  # whatever it is, the work goes on
        return None
