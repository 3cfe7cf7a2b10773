"""The verdict on a container, and its reason.

| verdict | proven | what happens |
|---|---|---|
| SKIP | no row can match | the container is not read |
| KEEP | nothing | it is read, and the residual is checked on its rows |
| KEEP_WHOLE | every row matches | it is read, and nothing is checked: its residual is empty |

>>> Verdict.KEEP_WHOLE.keeps
True
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Verdict(IntEnum):
    """What becomes of a file: `SKIP` (no row matches), `KEEP` (not proven) or `KEEP_WHOLE` (every row matches).

    An enum and never a bool: "not skipped" and "matches whole" are different things.
    """

    SKIP = 0
    KEEP = 1
    KEEP_WHOLE = 2

    @property
    def keeps(self) -> bool:
        """Whether the container is read."""
        return self is not Verdict.SKIP


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict was reached: the kind of knowledge that proved it, and the part of the predicate it was about."""

    source: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.detail}" if self.detail else self.source
