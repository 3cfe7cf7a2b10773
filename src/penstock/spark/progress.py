"""What is going on, told on a terminal while it goes on, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_shown: list[Any] = []  # a step of something that is shown already is a line below it: a terminal has one display


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show what is being done and for how long, on stderr when that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    if _shown:
        step = _shown[0].add_task(doing, total=None)
        try:
            yield
        finally:
            _shown[0].remove_task(step)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(doing, total=None)
        _shown.append(shown)
        try:
            yield
        finally:
            _shown.clear()
