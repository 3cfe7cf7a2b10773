"""What reports and notebooks show of a table: what it is, all its files, and how a query judges each of them.

The plan is the judge. Files that it never looked at, because a directory or a manifest above was skipped, are judged
here once more, by what is known of the file itself, and only to say the reason.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from penstock.expr.kernels.vector import Mask
from penstock.prune.judge import Judgement, Pruner
from penstock.tables.pieces import Pieces

MOST_KEYS = 200


class Description(ABC):
    """One version of a table, described; nothing is listed or read before it is asked for."""

    kind: ClassVar[str]
    level: ClassVar[str] = "file"  # what a plan skips together with all files in it
    no_advice: ClassVar[str]  # why there is no advice on how to write such a table

    def __init__(self, name: str, location: str, partitioned_by: list[str]) -> None:
        self.name, self.location = name, location  # what people call the table; the URL below which its files lie
        self.partitioned_by = partitioned_by  # the partition fields as people write them

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Lines with a head each, for a notebook; from metadata that is loaded already."""
        return [(self.kind, self.name), ("partitions", ", ".join(self.partitioned_by) or "nothing")]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a page."""
        about = {"name": self.name, "kind": self.kind, "location": self.location}
        return {**about, "partitioned_by": self.partitioned_by}

    @cached_property
    @abstractmethod
    def pieces(self) -> Pieces | None:
        """All files by their partitions; None where there are more than may be listed."""

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file by what is known of it."""
        return [pruner.judge(containers) for containers in pieces.containers]

    def matching_pieces(self, judgements: Sequence[Judgement], pieces: Pieces) -> Mask:
        """Which pieces of kept files may match themselves; where no file is shared, all."""
        return np.ones(len(pieces.of_file), np.bool_)

    def hot_keys(self, pieces: Pieces) -> list[dict[str, Any]]:
        """The keys of maps that have columns of their own."""
        return []

    def advice(self) -> dict[str, str]:
        """What could be better about how the table is written."""
        return {"said": self.no_advice}
