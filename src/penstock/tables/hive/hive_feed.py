"""What is new in a directory tree. Each poll lists only branches that the predicate admits, born before or after.

A position says which files were read (`seen_files.py`). When there are new ones, all of them together are an *epoch*:
they are read in the order that was asked for, in as many triggers as the limits want, and later files wait for the next
one. So no partition is passed over because another one that sorts above it was read first.

    {"seen": {…}, "epoch": {"target": {…}, "order": "partition-name", "after": [1789…, "dt=2026-05-17/a.parquet"]}}

A file that is written again while its epoch is read has lost its place in it: whether it was read cannot be told.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, LayoutError, MissingError, PenstockWarning
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.simplify import simplify
from penstock.expr.tree import TRUE, And
from penstock.progress import counted
from penstock.prune.plan import Plan
from penstock.stream.feed import Budget, Limit, Look, Step, Work
from penstock.stream.position import Batch, Identity, Position, began, digest, is_first
from penstock.stream.retry import retried
from penstock.stream.stream_options import StreamOptions
from penstock.tables.hive.hive_table import HiveRows, HiveTable
from penstock.tables.hive.seen_files import Epoch, FoundFile, Incomplete, Seen, as_key, read_seen
from penstock.tables.hive.stream_order import Beginning, order_of, read_beginning
from penstock.tables.hive.walk import check_readable
from penstock.tables.source import bind, empty, outputs

_OLD_FILTER = "run the stream to the end of what is there with the old filter first"


@dataclass(frozen=True)
class Listing:
    """What one poll found: the files that may be new, and what it looked at."""

    plan: Plan
    files: list[FoundFile]
    incomplete: Incomplete
    look: Look


class HiveFeed:
    """The new files of a directory tree."""

    has_snapshots: ClassVar[bool] = False

    def __init__(self, table: HiveTable, options: StreamOptions) -> None:
        self.table, self.options = replace(table, cache=None), options
        self.predicate = simplify(bind(table, options.where))
        self.unchecked = unevaluable(self.predicate)
        self.names, self.keys = outputs(options.columns, table)
        self.schema = empty(self.names, self.keys, table.schema).schema
        root = f"{table.storage.identity} {table.storage.path}"
        self.identity = Identity.of(digest([root]), table.storage.url, self.predicate)
        self.order = order_of(options.order, table.columns, options.partition_time, table.context.timezone)
        self._order_name = " ".join(text for text in (options.order, options.partition_time) if text is not None)
        self.beginning = read_beginning(options, table)
        if options.on_change == "changes":
            raise LakeError("a directory tree does not tell which rows were changed", hint="on_change: error or skip")
        self._polls: int | None = None  # how many epochs may still begin
        self._last: tuple[Position, Position, list[Work]] | None = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {"table": self.table, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def rows(self) -> HiveRows:
        return HiveRows(self.table, tuple(self.names), self.keys, self.options.on_missing)

    def start(self) -> Position:
        return self._everything().end if self.beginning.latest else self._first(self._nothing)

    def _first(self, seen: Seen) -> Position:
        return self.identity.first({"seen": seen.json, **self.beginning.floor_json})

    @property
    def _nothing(self) -> Seen:
        """What counts as read before anything was."""
        since = self.beginning.written_from
        return Seen() if since is None else Seen((since - 1, "\U0010ffff"), (since - 1, "\U0010ffff"))

    def _after(self, seen: Seen, listing: Listing) -> Seen:
        return seen.plus(listing.files, self.options.remember_files, listing.incomplete)

    def stop_at_present(self) -> None:
        """Begin one more epoch at most."""
        self._polls = 1

    def step(self, start: Position | None, limit: Limit) -> Step:
        """The next files: the rest of an epoch, or those of a new one."""
        if start is None:
            return self._everything()
        changed = self.identity.filter_changed(start, self.options.allow_filter_change)
        seen, epoch = self._standing(start, start["at"], changed)
        listing = self._list(seen, self.beginning.with_floor(start["at"]))
        if epoch is not None:
            unchanged = self._unread(self._unchanged(listing.files, seen, epoch), seen, epoch)
            files = [file for file in unchanged if epoch.target.has(file)]
            if files or self._polls == 0:
                return self._taken(start, seen, epoch.target, files, listing, limit)
            seen = epoch.target
        files = [] if self._polls == 0 else self._new(listing.files, seen)
        if not files:
            moved = epoch is not None or changed or is_first(start)
            end = self._position(start, seen, None, Batch(digest=_digest([]))) if moved else start
            return Step(end, [], listing.look)
        if self._polls is not None:
            self._polls -= 1
        return self._taken(start, seen, self._after(seen, listing), files, listing, limit)

    def again(self, start: Position, end: Position) -> list[Work]:
        """The files between two positions; an error when they are not all there as they were."""
        if self._last is not None and self._last[:2] == (start, end):
            return self._last[2]
        if self.identity.filter_changed(end, self.options.allow_filter_change):
            message = f"the filter changed before a batch that was found with {end['where']} was done"
            raise LakeError(message, hint=_OLD_FILTER)
        changed = self.identity.filter_changed(start, self.options.allow_filter_change)
        begun = began(start, end)
        (seen, epoch), (until, later) = self._standing(start, begun, changed), self._read(end["at"])
        listing = self._list(seen, self.beginning.with_floor(begun))
        unread = self._unread(self._unchanged(listing.files, seen, epoch), seen, epoch)
        still_unread = set(self._unread(unread, until, later))
        files = [file for file in unread if file not in still_unread]
        self._check_same(files, end)
        if is_first(end):
            self._check_names(listing.files, seen, until)
        return self._work(self._sorted(files), listing.plan)

    def _everything(self) -> Step:
        """The position after all files, for a Spark that does not tell where the stream stands."""
        listing = self._list(self._nothing, self.beginning)
        return Step(self._first(self._after(self._nothing, listing)), [], listing.look)

    def _list(self, seen: Seen, begin: Beginning) -> Listing:
        return retried(lambda: self._listed(seen, begin), self.table.storage.url, self.options.retry_seconds)

    def _listed(self, seen: Seen, begin: Beginning) -> Listing:
        """One poll; of files before the edge no object is made, however many there are."""
        floor = begin.floor_predicate
        walk = self.table.walk(self.predicate if floor is None else And((self.predicate, floor)), self.options.marker)
        plan = walk.plan()
        check_readable(plan, self.table.columns)
        (judgement,) = plan.judgements
        written = np.array(walk.written, np.int64)[judgement.kept]
        places = np.flatnonzero((written >= seen.edge[0]) | bool(seen.waiting))
        root = len(self.table.root_url.rstrip("/")) + 1
        paths, sizes = (c.take(pa.array(places)).to_pylist() for c in (plan.files.paths, plan.files.sizes))
        columns = (places.tolist(), written[places].tolist(), (path[root:] for path in paths), sizes)
        files = begin.not_before([FoundFile(*values) for values in zip(*columns, strict=True)])
        directories, level = plan.report.level("directories"), plan.report.files
        pruned = directories.total - directories.kept
        look = Look(
            partitions=pruned + (len(walk.levels[-1].kept) if walk.levels else 0),
            partitions_pruned=pruned,
            files=level.total,
            files_pruned=level.total - level.kept,
            list_calls=plan.report.list_calls,
            incomplete_partitions=len(walk.incomplete),
        )
        below = len(self.table.storage.path.rstrip("/")) + 1
        incomplete = {path[below:]: [f"{path[below:]}/{name}" for name in own] for path, own in walk.incomplete.items()}
        return Listing(plan, files, incomplete, look)

    def _new(self, files: Sequence[FoundFile], seen: Seen) -> list[FoundFile]:
        """The files that were not read; those that were, and are others now, are said."""
        for file in files:
            if seen.is_rewritten(file):
                self._rewritten(file, "after the stream had read it")
        return self._unread(files, seen, None)

    def _unchanged(self, files: Sequence[FoundFile], seen: Seen, epoch: Epoch | None) -> list[FoundFile]:
        """Without the files of an epoch that were written again since it began, which is said."""
        if epoch is None:
            return list(files)
        other = {file for file in files if epoch.target.is_rewritten(file) and not seen.has(file)}
        for file in sorted(other):
            self._rewritten(file, "while the stream was about to read it, or just had")
        return [file for file in files if file not in other]

    def _rewritten(self, file: FoundFile, when: str) -> None:
        message = f"{self.table.storage.url}/{file.path} was written again {when}"
        if self.options.on_change == "error":
            hint = "a stream reads a file once: write new rows to new files, or set on_change to skip to go on without"
            raise LayoutError(message, hint=hint)
        if file.path not in self._warned:
            self._warned.add(file.path)
            warnings.warn(f"{message}; its new rows are not read", PenstockWarning, stacklevel=3)

    def _unread(self, files: Sequence[FoundFile], seen: Seen, epoch: Epoch | None) -> list[FoundFile]:
        """The files that were not read: not before, and not as one of an epoch."""
        unseen = [file for file in files if not seen.has(file)]
        if epoch is None:
            return unseen
        after, *places = self.order([epoch.after, *(file.key for file in unseen)])
        placed = zip(unseen, places, strict=True)
        return [file for file, place in placed if place > after or not epoch.target.has(file)]

    def _taken(
        self, start: Position, seen: Seen, target: Seen, files: list[FoundFile], listing: Listing, limit: Limit
    ) -> Step:
        """As many of the files as the limit lets through, and the position after them."""
        ordered = self._sorted(files)
        chosen = ordered[: Budget(limit).take([file.size for file in ordered])]
        left = ordered[len(chosen) :]
        batch = Batch(len(chosen), sum(file.size for file in chosen), _digest(chosen))
        epoch = Epoch(target, chosen[-1].key) if left else None
        end = self._position(start, seen if left else target, epoch, batch)
        work = self._work(chosen, listing.plan)
        self._last = (start, end, work)
        lag = (max(f.written for f in left) - chosen[-1].written) / 1000 if left else 0.0
        return Step(end, work, replace(listing.look, pending_files=len(left), lag_seconds=max(0.0, lag)))

    def _sorted(self, files: Sequence[FoundFile]) -> list[FoundFile]:
        places = self.order([file.key for file in files])
        return [files[i] for i in sorted(range(len(files)), key=places.__getitem__)]

    def _work(self, files: Sequence[FoundFile], plan: Plan) -> list[Work]:
        tasks = [plan.files[file.place] for file in files]
        if self.unchecked is not None:
            tasks = [replace(t, residual=TRUE) if unevaluable(t.residual) is not None else t for t in tasks]
        return [Work((task,), task.size or 0) for task in tasks]

    def _check_same(self, files: Sequence[FoundFile], end: Position) -> None:
        """Whether a batch that is read again has the files that it had."""
        known = end.get("batch")
        if known is None or known["digest"] == _digest(files):
            return
        had = f"an unfinished batch had {counted(known['files'], 'file')}"
        message = f"{self.table.storage.url}: {had}, and now it has {len(files):,}"
        if len(files) > known["files"]:  # they were there unseen, and are read now
            warnings.warn(f"{message}: files came late", PenstockWarning, stacklevel=3)
        elif self.options.on_missing == "skip":
            warnings.warn(f"{message}: some vanished or were written again", PenstockWarning, stacklevel=3)
        else:
            hint = "restore what vanished or was written again, or set on_missing to skip to read what is there"
            raise MissingError(message, hint=hint)

    def _check_names(self, files: Sequence[FoundFile], seen: Seen, until: Seen) -> None:
        """The same for a batch of which only the names are known that a position holds."""
        gone = until.names.keys() - seen.names.keys() - {file.name for file in files}
        if gone and self.options.on_missing == "error":
            hint = "restore them, or set on_missing to skip to read what is there"
            message = f"{self.table.storage.url}: {counted(len(gone), 'file')} of an unfinished batch vanished"
            raise MissingError(message, hint=hint)

    def _standing(self, position: Position, at: Mapping[str, Any], changed: bool) -> tuple[Seen, Epoch | None]:
        """Where a stream stands; a changed filter begins after everything that was read with the old one."""
        seen, epoch = self._read(at)
        if changed and epoch is not None:
            message = f"the filter changed while files that were found with {position['where']} are still to be read"
            raise LakeError(message, hint=_OLD_FILTER)
        return seen.forgotten() if changed else seen, epoch

    def _read(self, at: Mapping[str, Any]) -> tuple[Seen, Epoch | None]:
        """Where a position stands."""
        pending = at.get("epoch")
        if pending is None:
            return read_seen(at["seen"]), None
        if pending["order"] != self._order_name:
            message = f"the checkpoint stands among files in the order {pending['order']}"
            hint = "run the stream to the end of what is there with the old order first"
            raise LakeError(f"{message}, and now it is {self._order_name}", hint=hint)
        return read_seen(at["seen"]), Epoch(read_seen(pending["target"]), as_key(pending["after"]))

    def _position(self, start: Position, seen: Seen, epoch: Epoch | None, batch: Batch) -> Position:
        place: dict[str, Any] = {"seen": seen.json, **self.beginning.with_floor(start["at"]).floor_json}
        if epoch is not None:
            place["epoch"] = {"target": epoch.target.json, "order": self._order_name, "after": list(epoch.after)}
        return self.identity.position(place, start, batch)


def _digest(files: Sequence[FoundFile]) -> str:
    return digest(f"{file.path} {file.written} {file.size}" for file in files)
