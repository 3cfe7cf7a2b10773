"""What reports and notebooks show of a table: what it is, all its files, and how a query judges each of them.

The plan is the judge. Files that it never looked at, because a directory or a manifest above was skipped, are judged
here once more, by what is known of the file itself, and only to say the reason.

A *piece* is the rows of one partition in one file. A file lies in one partition and is one piece, or small partitions
share it, and it is one piece for each; its bytes are divided by rows. Pieces do not depend on a query: they are found
once, and looked at with many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.physical import from_arrow
from penstock.expr.kernels.vector import Mask
from penstock.expr.kernels.zones import in_zone
from penstock.prune.containers import Containers
from penstock.prune.facts import Derived, Exact
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.transforms import transform_of

Numbers = npt.NDArray[np.int64]
Label = tuple[tuple[str, str | None], ...]  # the fields of a partition: name, and value as text
UNREADABLE = "(cannot be read as its type)"
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


@dataclass(frozen=True)
class Field:
    """The values of one partition field, as codes into texts; the last text is that of NULL."""

    name: str
    codes: Numbers
    texts: Sequence[str | None]


@dataclass(frozen=True)
class Part:
    """Some pieces with the same fields: the file of each in its batch, its bytes and its rows (-1: not known)."""

    fields: Sequence[Field]
    of_file: Numbers
    bytes: Numbers
    rows: Numbers
    places: Numbers | None = None  # of the pieces of shared files: among the tuples of the batch


class Pieces:
    """All files, and their pieces by partition."""

    def __init__(self, batches: Sequence[tuple[Containers, Sequence[Part]]]) -> None:
        self.containers = [containers for containers, _ in batches]
        names = [c.names for c in self.containers if c.names is not None]
        self.names: pa.Array = pa.concat_arrays(names) if names else pa.array([], pa.string())
        self.sizes = joined(integers(c.sizes, c.count, 0) for c in self.containers)
        self.rows = joined(integers(c.rows, c.count, -1) for c in self.containers)
        self.starts = np.cumsum([0, *(c.count for c in self.containers)])
        self.parts = [(batch, part) for batch, (_, parts) in enumerate(batches) for part in parts]
        known: dict[Label, int] = {}
        self.group = joined(_groups(part, known) for _, part in self.parts)
        self.labels = list(known)
        self.of_file = joined(part.of_file + self.starts[batch] for batch, part in self.parts)
        self.bytes = joined(part.bytes for _, part in self.parts)
        self.piece_rows = joined(part.rows for _, part in self.parts)

    @cached_property
    def sharing(self) -> Numbers:
        """How many partitions each file holds."""
        return np.bincount(self.of_file, minlength=len(self.names)).astype(np.int64)


def _groups(part: Part, known: dict[Label, int]) -> Numbers:
    """The number of each piece's partition."""
    if not len(part.of_file):
        return np.array([], np.int64)
    if not part.fields:
        return np.full(len(part.of_file), known.setdefault((), len(known)), np.int64)
    codes = np.column_stack([field.codes for field in part.fields])
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    labels = [tuple((f.name, f.texts[int(c)]) for f, c in zip(part.fields, row, strict=True)) for row in distinct]
    numbers = np.array([known.setdefault(label, len(known)) for label in labels], np.int64)
    return numbers[which.ravel()]


def pieces_of_files(batches: Sequence[Containers], zone: str = "UTC") -> Pieces:
    """Files by the partition that each lies in."""
    return Pieces([(batch, [whole_files(batch, np.arange(batch.count), zone)]) for batch in batches])


def whole_files(containers: Containers, files: Numbers, zone: str) -> Part:
    """Files of a batch that lie in one partition each."""
    facts = [fact for fact in containers.facts if isinstance(fact, Exact) and fact.name is not None]
    sizes, rows = integers(containers.sizes, containers.count, 0), integers(containers.rows, containers.count, -1)
    return Part([_field(fact, files, zone) for fact in facts], files, sizes[files], rows[files])


def _field(fact: Exact, files: Numbers, zone: str) -> Field:
    transform = fact.term.transform if isinstance(fact.term, Derived) else "identity"
    codes, dictionary = fact.encoded
    texts = [*value_texts(dictionary, transform, zone), None]
    chosen = codes.astype(np.int64)[files]
    if fact.known is not None:
        chosen = np.where(fact.known[files], chosen, len(texts))
        texts.append(UNREADABLE)
    return Field(fact.name or "", chosen, texts)


def value_texts(values: pa.Array, transform: str, zone: str) -> list[str]:
    """Partition values for people."""
    return transform_of(transform).texts(values) or [_text(in_zone(value, zone)) for value in _natural(values)]


def _natural(values: pa.Array) -> Iterable[Any]:
    """Python's own objects; outside of its calendar the numbers."""
    try:
        return list(values.to_pylist())
    except (ValueError, OverflowError):
        return from_arrow(values)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def joined(parts: Iterator[Numbers] | Sequence[Numbers]) -> Numbers:
    """One column out of several."""
    return np.concatenate([np.array([], np.int64), *parts])


def integers(column: pa.Array | None, count: int, unknown: int) -> Numbers:
    """A column of numbers that may be missing."""
    if column is None:
        return np.full(count, unknown, np.int64)
    numbers: Numbers = column.fill_null(unknown).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
