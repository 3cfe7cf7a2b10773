"""What every kind of table gives a stream: the next step from a position, and the same step again after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from penstock.prune.file_task import FileTask
from penstock.stream.position import Position
from penstock.stream.stream_options import StreamOptions


@dataclass(frozen=True)
class Work:
    """Files that are read together; with `before`, only what differs between their rows and those before.

    `snapshot` is the one that brought them.
    """

    tasks: tuple[FileTask, ...]
    size: int
    snapshot: int | None = None
    before: tuple[FileTask, ...] | None = None


@dataclass(frozen=True)
class Look:
    """What was looked at to find a step, what of it was pruned, and what is left for later.

    Of directories, those at the bottom are partitions, and so is each that was pruned above them: what is below it was
    not looked at. Of an Iceberg table, partitions are counted for each snapshot that was looked at.
    """

    partitions: int = 0
    partitions_pruned: int = 0
    files: int = 0
    files_pruned: int = 0
    list_calls: int = 0
    manifests: int = 0
    snapshots: int = 0
    pending_files: int = 0
    pending_snapshots: int = 0
    incomplete_partitions: int = 0
    lag_seconds: float = 0.0

    def after(self, before: Look) -> Look:
        """What was seen last, where this look had nothing new to see."""
        if self.partitions or self.files:
            return self
        names = ("pending_files", "pending_snapshots", "lag_seconds")
        return replace(before, **{name: getattr(self, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """The way from one position to another, which is the same one when there is nothing to read."""

    end: Position
    work: Sequence[Work]
    look: Look


class Rows(Protocol):
    """Reads the matching rows of files, anywhere."""

    def read(self, work: Work) -> Iterator[pa.Table]: ...


class Feed(Protocol):
    """What is new in a table.

    `step` is what comes next: without a start, only the position after everything that is there. `again` is what lies
    between two positions, and `rows` reads the files of the last step. After `stop_at_present`, what comes later is
    left out. `unchecked` says why the rows still need the predicate after they were read; None when they do not.
    """

    options: StreamOptions
    has_snapshots: ClassVar[bool]  # whether what comes are snapshots; otherwise directories are looked at

    @property
    def schema(self) -> pa.Schema: ...
    @property
    def unchecked(self) -> str | None: ...
    def start(self) -> Position: ...
    def step(self, start: Position | None, limit: Limit) -> Step: ...
    def again(self, start: Position, end: Position) -> Sequence[Work]: ...
    def stop_at_present(self) -> None: ...
    def rows(self) -> Rows: ...


@dataclass(frozen=True)
class Limit:
    """How much one step may have."""

    files: int | None = None
    bytes: int | None = None

    @staticmethod
    def of(options: StreamOptions) -> Limit:
        return Limit(options.max_files_per_trigger, options.max_bytes_per_trigger)


class Budget:
    """What is left of a limit; the first file always fits."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._files = self._bytes = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further file fits."""
        full = self._limit.files is not None and self._files >= self._limit.files
        return full or (self._limit.bytes is not None and self._bytes >= self._limit.bytes and self._files > 0)

    def take(self, sizes: Sequence[int]) -> int:
        """How many of the files fit, in their order."""
        most = len(sizes)
        if self._limit.files is not None:
            most = min(most, self._limit.files - self._files)
        if self._limit.bytes is not None:
            sums = self._bytes + np.cumsum(np.asarray(sizes, np.int64))
            fit = int(np.searchsorted(sums, self._limit.bytes, side="right"))
            most = min(most, max(fit, 0 if self._files else 1))
        self._files += most
        self._bytes += int(sum(sizes[:most]))
        return most
