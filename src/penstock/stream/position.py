"""Where a stream stands: small JSON with a version, which says of which table and filter it is.

    {"penstock": 1, "table": "…", "name": "web.events", "filter": "9f3c…", "where": "app = 'A'", "at": {…},
     "batch": {"files": 3, "bytes": 8112, "digest": "…"}, "total": {"files": 90, "bytes": 310222}}

`at` is said by each kind of table in its own way. `batch` is about the files between the position before and this one,
so that a batch that is read again after a crash is known to be the same. `total` counts from the start.

Spark keeps where a batch ends, not where the first one began: when that one is run again, it asks for the beginning
anew, and `latest` would be another one by then. So the position after the first batch has `begin` too, and the first
step always makes one, even if there was nothing to read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.errors import LakeError
from penstock.expr.sql_text import summarize, to_sql
from penstock.expr.tree import Expr

VERSION = 1
OTHER_FILTER = "restore it, take a new checkpoint, or set allow_filter_change to filter what comes by the new one"
Position = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """The table and the filter that a position is about."""

    table: str
    name: str
    filter: str
    where: str

    @staticmethod
    def of(table: str, name: str, predicate: Expr) -> Identity:
        """That of a table with a predicate in normal form."""
        return Identity(table, name, digest([to_sql(predicate)]), summarize(predicate))

    def first(self, at: Mapping[str, Any]) -> Position:
        """The position at which a stream begins."""
        return {**self._head, "at": dict(at), "total": {"files": 0, "bytes": 0}}

    def position(self, at: Mapping[str, Any], before: Position, batch: Batch) -> Position:
        """The position after a batch that began at another one."""
        total = {"files": before["total"]["files"] + batch.files, "bytes": before["total"]["bytes"] + batch.bytes}
        begin = {"begin": before["at"]} if is_first(before) else {}
        return {**self._head, "at": dict(at), **begin, "batch": asdict(batch), "total": total}

    @property
    def _head(self) -> dict[str, Any]:
        return {"penstock": VERSION, "table": self.table, "name": self.name, "filter": self.filter, "where": self.where}

    def filter_changed(self, position: Position, allowed: bool) -> bool:
        """Whether a position was made with another filter, which is an error unless allowed; that it is not of this
        table at all, or that this version of Penstock does not know it, always is."""
        if position.get("penstock") != VERSION:
            message = (
                f"the checkpoint's position has version {position.get('penstock')!r}, this Penstock reads {VERSION}"
            )
            raise LakeError(message, hint="use the Penstock that wrote it, or a new checkpoint")
        if position["table"] != self.table:
            message = f"the checkpoint is of {position['name']}, and this is {self.name}"
            raise LakeError(message, hint="give the stream a checkpoint of its own")
        if position["filter"] == self.filter:
            return False
        if not allowed:
            message = f"the checkpoint was made with the filter {position['where']}, and now it is {self.where}"
            raise LakeError(message, hint=OTHER_FILTER)
        return True


@dataclass(frozen=True)
class Batch:
    """The files between two positions, as the later one has it."""

    files: int = 0
    bytes: int = 0
    digest: str = ""


def is_first(position: Position) -> bool:
    """Whether a position is the one at which a stream begins."""
    return "batch" not in position


def began(start: Position, end: Position) -> Mapping[str, Any]:
    """Where a batch began, whatever is now said to be the beginning."""
    beginning: Mapping[str, Any] = end["begin"] if "begin" in end else start["at"]
    return beginning


def digest(texts: Iterable[str]) -> str:
    """A short digest of texts in any order."""
    hashed = hashlib.sha256("\n".join(sorted(texts)).encode("utf-8", "surrogateescape"))
    return hashed.hexdigest()[:16]
