"""Timing that checks the answer: a number for a wrong answer is worth nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def best(run: Callable[[], Answer], expected: Answer, repeats: int) -> float:
    """Seconds of the best of some runs, each with its answer checked."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - start)
        assert found == expected, f"{found}, expected {expected}"
    return min(times)
