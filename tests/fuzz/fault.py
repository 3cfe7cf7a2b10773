"""A fault that is planted in Penstock: one function is replaced by one that is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True)
class Fault:
    """What is replaced, and by what; `kinds` are the layouts in which it can show."""

    name: str
    module: Any
    attribute: str
    make: Callable[[Any], Any]
    kinds: tuple[str, ...] = ("hive", "iceberg", "managed")
    writes: bool = False

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """Penstock with this fault."""
        with patch.object(self.module, self.attribute, self.make(getattr(self.module, self.attribute))):
            yield
