"""Where a stream stands: small JSON with a version, which says of which table and filter it is.

    {"penstock": 1, "table": "…", "name": "web.events", "filter": "9f3c…", "where": "app = 'A'", …,
     "batch": {"files": 3, "bytes": 8112, "digest": "…"}, "total": {"files": 90, "bytes": 310222}}

Where it stands is said by what each kind of table adds to that. `batch` is about the files between the position before
and this one, so that a batch that is read again after a crash is known to be the same. `total` counts from the start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import LakeError
from penstock.predicate.sql import summarize, to_sql
from penstock.predicate.tree import Expr

VERSION = 1
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

    def position(
        self, place: Mapping[str, Any], before: Position | None = None, batch: Batch | None = None
    ) -> Position:
        """A position at a place, after a batch that began at another position."""
        head = {"penstock": VERSION, "table": self.table, "name": self.name, "filter": self.filter, "where": self.where}
        total = dict((before or {}).get("total", {"files": 0, "bytes": 0}))
        if batch is None:
            return {**head, **place, "total": total}
        total = {"files": total["files"] + batch.files, "bytes": total["bytes"] + batch.bytes}
        return {**head, **place, "batch": batch.to_json(), "total": total}

    def filter_changed(self, position: Position, allowed: bool) -> bool:
        """Whether a position was made with another filter, which is an error unless allowed; that it is not of this
        table at all, or that this version of Penstock does not know it, always is."""
        if position.get("penstock") != VERSION:
            said = f"the checkpoint's position has version {position.get('penstock')!r}, this Penstock reads {VERSION}"
            raise LakeError(said, hint="use the Penstock that wrote it, or a new checkpoint")
        if position["table"] != self.table:
            said = f"the checkpoint is of {position['name']}, and this is {self.name}"
            raise LakeError(said, hint="give the stream a checkpoint of its own")
        if position["filter"] == self.filter:
            return False
        if not allowed:
            said = f"the checkpoint was made with the filter {position['where']}, and now it is {self.where}"
            hint = "restore it, take a new checkpoint, or set allow_filter_change to filter what comes by the new one"
            raise LakeError(said, hint=hint)
        return True


@dataclass(frozen=True)
class Batch:
    """The files between two positions."""

    files: int
    bytes: int
    digest: str

    def to_json(self) -> dict[str, Any]:
        """As a position holds it."""
        return {"files": self.files, "bytes": self.bytes, "digest": self.digest}


def digest(texts: Iterable[str]) -> str:
    """A short digest of texts in any order."""
    found = hashlib.sha256("\n".join(sorted(texts)).encode("utf-8", "surrogateescape"))
    return found.hexdigest()[:16]
