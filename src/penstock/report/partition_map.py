"""The map: partitions with their files, as many as a page can hold, and what the rest adds up to.

The largest partitions and files are told one by one. Half of the room is kept for what the query reads: of a table of a
million files, the ten that are read are what people look for, however small they are. The other partitions are summed
up by the value of their first field, such as the day, and what is too much even so, as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.progress import counted
from penstock.report.page_text import cut, cut_left
from penstock.report.query_view import ALONG, KEEP, KINDS, SKIP, WHOLE, Seen, Texts
from penstock.tables.description import Label, Numbers, Pieces

MOST_GROUPS, MOST_CELLS, MOST_SUMS = 300, 2_000, 1_000
_LONGEST, _LONGEST_PATH = 120, 240


class Map:
    """The map of a table for one query."""

    def __init__(self, pieces: Pieces, seen: Seen, location: str) -> None:
        self.pieces, self.seen, self.location = pieces, seen, location.rstrip("/") + "/"
        self.reads = (seen.kinds == KEEP) | (seen.kinds == WHOLE)
        count = len(pieces.labels)
        self.bytes = summed(pieces.group, pieces.bytes, count)
        self.read = summed(pieces.group, self.reads.astype(np.int64), count) > 0
        self._order = np.argsort(pieces.group, kind="stable")
        self._starts = np.searchsorted(pieces.group[self._order], np.arange(count + 1))
        self._files: dict[int, int] = {}
        self._residuals = Texts()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a page."""
        shown = chosen(self.read, self.bytes, MOST_GROUPS)
        limit = fair_limit(np.diff(self._starts)[shown], MOST_CELLS)
        groups = [self._group(int(group), limit) for group in shown]
        return {
            "totals": self._totals(),
            "groups": groups,
            "others": self._others(np.setdiff1d(np.arange(len(self.bytes)), shown)),
            "partitions": len(self.bytes),
            "files": [self._file(file) for file in self._files],
            "reasons": list(self.seen.reasons),
            "residuals": list(self._residuals),
        }

    def _others(self, groups: Numbers) -> list[dict[str, Any]]:
        """What partitions add up to that are not told one by one."""
        blocks: dict[str, list[int]] = {}
        for group in groups.tolist():
            label = self.pieces.labels[group]
            blocks.setdefault(label_text(label[:1]) if len(label) > 1 else "", []).append(group)
        rest = blocks.pop("", [])
        names, members = list(blocks), list(blocks.values())
        sizes = np.array([self.bytes[own].sum() for own in members], np.int64)
        reads = np.array([self.read[own].any() for own in members], np.bool_)
        shown = set(chosen(reads, sizes, MOST_SUMS).tolist())
        rest += [group for i, own in enumerate(members) if i not in shown for group in own]
        sums = [self._sum(members[i], names[i], self.pieces.labels[members[i][0]][:1]) for i in sorted(shown)]
        return [*sums, *([self._sum(rest, "", ())] if rest else [])]

    def _sum(self, groups: Sequence[int], name: str, first: Label) -> dict[str, Any]:
        more = f"{counted(len(groups), 'partition')} more"
        own = np.concatenate([self._own(group) for group in groups])
        values = [*(_value(value) for _, value in first), more]
        label = f"{name}, {more}" if name else more
        return {"label": label, "values": values, "partitions": len(groups), "cells": self._sums(own)}

    def _own(self, group: int) -> Numbers:
        """The pieces of a partition."""
        return self._order[self._starts[group] : self._starts[group + 1]]

    def _totals(self) -> dict[str, dict[str, int]]:
        """Files and bytes by verdict; of what is read along, partitions and their bytes."""
        totals = {}
        for kind in (SKIP, KEEP, WHOLE):
            own = self.seen.verdicts == kind
            totals[KINDS[kind]] = {"files": int(own.sum()), "bytes": int(self.pieces.sizes[own].sum())}
        along = self.seen.kinds == ALONG
        totals[KINDS[ALONG]] = {"pieces": int(along.sum()), "bytes": int(self.pieces.bytes[along].sum())}
        return totals

    def _group(self, group: int, limit: int) -> dict[str, Any]:
        own = self._own(group)
        shown = own[chosen(self.reads[own], self.pieces.bytes[own], limit)]
        cells = [self._cell(int(piece)) for piece in shown]
        rows = self.pieces.piece_rows[own]
        return {
            "label": label_text(self.pieces.labels[group]),
            "values": [_value(value) for _, value in self.pieces.labels[group]],
            "bytes": int(self.bytes[group]),
            "rows": None if (rows < 0).any() else int(rows.sum()),
            "files": len(np.unique(self.pieces.of_file[own])),
            "shared_files": int((self.pieces.sharing[self.pieces.of_file[own]] > 1).sum()),
            "cells": [*cells, *self._sums(np.setdiff1d(own, shown))],
        }

    def _cell(self, piece: int) -> dict[str, Any]:
        file = int(self.pieces.of_file[piece])
        number = self._files.setdefault(file, len(self._files))
        size, rows = int(self.pieces.bytes[piece]), int(self.pieces.piece_rows[piece])
        return {
            "verdict": KINDS[self.seen.kinds[piece]],
            "file": number,
            "bytes": size,
            "rows": None if rows < 0 else rows,
        }

    def _sums(self, pieces: Numbers) -> list[dict[str, Any]]:
        """What is not told one by one, by kind."""
        sums = []
        for kind, name in enumerate(KINDS):
            own = pieces[self.seen.kinds[pieces] == kind]
            if len(own):
                files = len(np.unique(self.pieces.of_file[own]))
                sums.append({"verdict": name, "files": files, "bytes": int(self.pieces.bytes[own].sum())})
        return sums

    def _file(self, file: int) -> dict[str, Any]:
        residual, deletes = self.seen.residual(file), self.seen.deletes(file)
        rows = int(self.pieces.rows[file])
        file_facts: dict[str, Any] = {
            "path": cut_left(str(self.pieces.names[file]).removeprefix(self.location), _LONGEST_PATH),
            "bytes": int(self.pieces.sizes[file]),
            "rows": None if rows < 0 else rows,
            "verdict": KINDS[int(self.seen.verdicts[file])],
            "reason": int(self.seen.codes[file]),
            "looked": bool(self.seen.looked[file]),
            "partitions": int(self.pieces.sharing[file]),
        }
        file_facts |= {} if residual is None else {"residual": self._residuals[residual]}
        return file_facts | ({"deletes": deletes} if deletes else {})


def label_text(label: Label) -> str:
    """A partition in one line.

    >>> label_text((("ts_day", "2026-05-17"), ("app", None)))
    'ts_day=2026-05-17, app=NULL'
    """
    return ", ".join(f"{cut(name, _LONGEST)}={_value(value)}" for name, value in label) or "all rows"


def _value(text: str | None) -> str:
    return "NULL" if text is None else cut(text, _LONGEST)


def chosen(first: npt.NDArray[np.bool_], sizes: Numbers, most: int) -> Numbers:
    """Which are told one by one, the largest first: at most so many, and up to half of them for those that go first.

    >>> chosen(np.array([False, False, True]), np.array([5, 9, 1]), 2).tolist()
    [1, 2]
    """
    order = np.argsort(-sizes, kind="stable")
    if len(order) <= most:
        return order
    ahead = order[first[order]][: max(1, most // 2)]
    rest = order[~np.isin(order, ahead)][: most - len(ahead)]
    both = np.concatenate([ahead, rest])
    return both[np.argsort(-sizes[both], kind="stable")]


def fair_limit(counts: Numbers, room: int) -> int:
    """How many each may have at most, so that all together have room; at least one.

    >>> fair_limit(np.array([1, 1, 100]), 12)
    10
    """
    low, high = 1, max(1, int(counts.max(initial=1)))
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(np.minimum(counts, middle).sum()) <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def summed(where: Numbers, what: Numbers, count: int) -> Numbers:
    """Sums by group."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, where, what)
    return sums
