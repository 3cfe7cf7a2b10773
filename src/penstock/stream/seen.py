"""Which files of a directory tree a stream has read, in little room: the newest by name, all older ones by their time.

Files are ordered by the time when they appeared, then by path. Up to the *edge* everything counts as read. After it,
a file is read if its name is remembered. So a file that appears late, or with the time of one that was read, is read
once as long as fewer than `remember_files` files that are newer than it have been read before.

Of each name 8 octets of a hash are kept, and 3 that tell whether the file is still the one that was read.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

Key = tuple[int, str]  # when a file appeared, in milliseconds, and its path below the root
NOTHING: Key = (-1, "")
_NAME, _TAG = 8, 3


class FoundFile(NamedTuple):
    """A file that was listed: its place in the plan, when it appeared and was last written (ms), path and size."""

    place: int
    appeared: int
    written: int
    path: str
    size: int

    @property
    def key(self) -> Key:
        """What files are ordered by."""
        return self.appeared, self.path

    @property
    def written_key(self) -> Key:
        """What an epoch is read by: unlike the time when a file appeared, it stays when a marker is written again."""
        return self.written, self.path

    @property
    def name(self) -> bytes:
        """The hash of its path."""
        return _hash(self.path, _NAME)

    @property
    def tag(self) -> bytes:
        """What changes when it is written again."""
        return _hash(f"{self.written} {self.size}", _TAG)


@dataclass(frozen=True)
class Seen:
    """The files that were read; `front` is the newest of them."""

    edge: Key = NOTHING
    front: Key = NOTHING
    names: Mapping[bytes, bytes] = field(default_factory=dict)

    def has(self, file: FoundFile) -> bool:
        """Whether a file was read, or one of its name."""
        return file.key <= self.edge or file.name in self.names

    def is_rewritten(self, file: FoundFile) -> bool:
        """Whether the file that was read under this name was another one."""
        return file.key > self.edge and self.names.get(file.name, file.tag) != file.tag

    def plus(self, files: Sequence[FoundFile], most: int) -> Seen:
        """After all of the files are read; names of files that are gone are kept while there is room."""
        after = sorted((file for file in files if file.key > self.edge), key=lambda file: file.key)
        dropped, kept = after[: max(0, len(after) - most)], after[-most:]
        names = {file.name: file.tag for file in kept}
        gone = [name for name in self.names if name not in names and name not in {file.name for file in dropped}]
        names.update((name, self.names[name]) for name in gone[: most - len(names)])
        edge = dropped[-1].key if dropped else self.edge
        return Seen(edge, max(self.front, after[-1].key if after else self.front), names)

    def forgotten(self) -> Seen:
        """Without names: everything up to the newest counts as read."""
        return Seen(max(self.edge, self.front), self.front)

    @cached_property
    def json(self) -> dict[str, Any]:
        """As a position holds it."""
        packed = b"".join(name + tag for name, tag in sorted(self.names.items()))
        return {"edge": list(self.edge), "front": list(self.front), "names": base64.b64encode(packed).decode()}


def read_seen(json: Mapping[str, Any]) -> Seen:
    """As a position holds it."""
    packed = base64.b64decode(json["names"])
    step = _NAME + _TAG
    pairs = (packed[i : i + step] for i in range(0, len(packed), step))
    return Seen(as_key(json["edge"]), as_key(json["front"]), {pair[:_NAME]: pair[_NAME:] for pair in pairs})


def as_key(json: Sequence[Any]) -> Key:
    """A key as JSON has it."""
    return int(json[0]), str(json[1])


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).digest()
