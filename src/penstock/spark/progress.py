"""What is going on, told on a terminal while it goes on, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_shown: list[Any] = []  # a step of something that is shown already is a line below it: a terminal has one display


@contextmanager
def progress(doing: str, counted: Callable[[], str] | None = None) -> Iterator[None]:
    """Show what is being done, for how long and how far it is, on stderr when that is a terminal.

    `counted` is asked for each picture, so what does the work need not know that somebody looks.
    """
    if not sys.stderr.isatty():
        yield
        return
    if _shown:
        step = _shown[0].add_task(doing, total=None, counted=counted)
        try:
            yield
        finally:
            _shown[0].remove_task(step)
        return
    with _display() as shown:
        shown.add_task(doing, total=None, counted=counted)
        _shown.append(shown)
        try:
            yield
        finally:
            _shown.clear()


def _display() -> Any:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Count(ProgressColumn):
        def render(self, task: Task) -> Text:
            counted = task.fields["counted"]
            return Text("" if counted is None else counted())

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), Count(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
