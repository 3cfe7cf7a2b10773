"""A batch of containers: how many, what is known of them, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from penstock.prune.delete_file import DeleteFile
from penstock.prune.facts import Fact
from penstock.prune.joint import Joint, joint_facts


@dataclass(frozen=True)
class Containers:
    """A batch of containers with everything that is known of them; files of one batch share one partition spec."""

    count: int
    facts: Sequence[Fact] = ()
    names: pa.Array | None = None
    rows: pa.Array | None = None
    sizes: pa.Array | None = None
    spec_id: int | None = None
    shredding: pa.Array | None = None  # what is recorded of each file's sidecars
    formats: pa.Array | None = None  # of the files; None where all have the default one
    deletes: Mapping[int, tuple[DeleteFile, ...]] = field(default_factory=dict)  # by the position of the file

    @cached_property
    def joint(self) -> tuple[Joint, ...]:
        """What several facts about one term say together."""
        return tuple(joint_facts(self.facts))
