"""Which files of a directory tree a stream has read, in little room: the newest by name, all older ones by their time.

Files are ordered by the time when they were written, then by path. Up to the *edge* everything counts as read. After
it, a file is read if its name is remembered. So a file that appears late, or with the time of one that was read, is
read once as long as fewer than `remember_files` files that are newer than it have been read before.

Partitions that wait for their marker are remembered too: when it comes, all their files are new, however old they are.

Of each name 8 bytes of a hash are kept, and 3 that tell whether the file is still the one that was read.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

Key = tuple[int, str]  # when a file was written, in milliseconds, and its path below the root
Incomplete = Mapping[str, Sequence[str]]  # partitions that wait for their marker, and the paths of their files
NOTHING: Key = (-1, "")
_NAME, _TAG = 8, 3


class FoundFile(NamedTuple):
    """A file that was listed: its place in the plan, when it was written (ms), its path and size."""

    place: int
    written: int
    path: str
    size: int

    @property
    def key(self) -> Key:
        """What files are ordered by."""
        return self.written, self.path

    @property
    def partition(self) -> bytes:
        return _hash(self.path.rpartition("/")[0], _NAME)

    @property
    def name(self) -> bytes:
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
    waiting: frozenset[bytes] = frozenset()

    def has(self, file: FoundFile) -> bool:
        """Whether a file was read, or one of its name."""
        old = file.key <= self.edge and not (self.waiting and file.partition in self.waiting)
        return old or file.name in self.names

    def is_rewritten(self, file: FoundFile) -> bool:
        """Whether the file that was read under this name was another one."""
        return file.key > self.edge and self.names.get(file.name, file.tag) != file.tag

    def plus(self, files: Sequence[FoundFile], most: int, incomplete: Incomplete) -> Seen:
        """After all of the files are read; names of files that are gone are kept while there is room.

        Of a partition that is incomplete no file was read, unless one is remembered: then it lost its marker.
        """
        after = sorted((file for file in files if file.key > self.edge), key=lambda file: file.key)
        dropped, kept = after[: max(0, len(after) - most)], after[-most:]
        names = {file.name: file.tag for file in kept}
        gone = [name for name in self.names if name not in names and name not in {file.name for file in dropped}]
        names.update((name, self.names[name]) for name in gone[: most - len(names)])
        edge = dropped[-1].key if dropped else self.edge
        front = max(self.front, after[-1].key if after else self.front)
        unread = (path for path, own in incomplete.items() if not any(_hash(f, _NAME) in self.names for f in own))
        return Seen(edge, front, names, frozenset(_hash(path, _NAME) for path in unread))

    def forgotten(self) -> Seen:
        """Without names: everything up to the newest counts as read."""
        return Seen(max(self.edge, self.front), self.front, waiting=self.waiting)

    @cached_property
    def json(self) -> dict[str, Any]:
        """As a position holds it."""
        packed = b"".join(name + tag for name, tag in sorted(self.names.items()))
        fields = {"edge": list(self.edge), "front": list(self.front), "names": _text(packed)}
        return fields | ({"waiting": _text(b"".join(sorted(self.waiting)))} if self.waiting else {})


@dataclass(frozen=True)
class Epoch:
    """New files that are being read: those of `target`, up to `after` in their order."""

    target: Seen
    after: Key


def read_seen(json: Mapping[str, Any]) -> Seen:
    """As a position holds it."""
    names = {pair[:_NAME]: pair[_NAME:] for pair in _pieces(json["names"], _NAME + _TAG)}
    waiting = frozenset(_pieces(json.get("waiting", ""), _NAME))
    return Seen(as_key(json["edge"]), as_key(json["front"]), names, waiting)


def as_key(json: Sequence[Any]) -> Key:
    """A key as JSON has it."""
    return int(json[0]), str(json[1])


def _text(packed: bytes) -> str:
    return base64.b64encode(packed).decode()


def _pieces(text: str, size: int) -> list[bytes]:
    packed = base64.b64decode(text)
    return [packed[i : i + size] for i in range(0, len(packed), size)]


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).digest()
