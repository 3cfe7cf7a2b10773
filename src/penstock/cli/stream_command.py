"""`penstock stream TABLE`: what comes, as rows or counts, with a line that tells what was seen. It needs no Spark.

Rows and counts go to stdout. The line below them goes to stderr, on a terminal only; at the end it stays as a summary.
Of directories it counts partitions, because files of those that were pruned are never seen; of an Iceberg table, files.
"""

from __future__ import annotations

import json as jsonlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.cli.output import as_json, echo
from penstock.cli.table_commands import open_table, tell
from penstock.errors import LakeError, printable
from penstock.progress import counted, is_shown
from penstock.stream.feed import Feed, Limit, Look
from penstock.stream.position import OTHER_FILTER
from penstock.stream.stream_options import as_options

STREAM_OPTIONS = ("where", "columns", "starting", "order", "marker", "on_change", "allow_filter_change")


@dataclass
class Printing:
    """How what comes is printed."""

    count: bool
    json: bool
    limit: int | None
    once: bool
    interval: float
    position: str | None


@dataclass
class Told:
    """What was seen so far."""

    has_snapshots: bool
    look: Look = field(default_factory=Look)
    files: int = 0
    bytes: int = 0
    rows: int = 0

    def __str__(self) -> str:
        look = self.look
        seen, pruned, unit = look.partitions, look.partitions_pruned, "partition"
        if self.has_snapshots:
            seen, pruned, unit = look.files, look.files_pruned, "file"
        parts = [f"{counted(seen, unit)} seen, {pruned:,} pruned"]
        parts.append(f"{counted(self.files, 'file')} read, {counted(self.rows, 'row')}")
        if look.pending_files:
            parts.append(f"{counted(look.pending_files, 'file')} behind, lag {look.lag_seconds:.1f} s")
        elif self.has_snapshots:
            parts.append(f"{counted(look.pending_snapshots, 'snapshot')} behind, lag {look.lag_seconds:.1f} s")
        return " · ".join(parts)


def stream(place: Mapping[str, str], options: Mapping[str, Any], printing: Printing) -> None:
    """Print what comes until it is enough, or until somebody stops it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        feed = open_table(place).feed(as_options(options))
    tell(caught, ())
    if feed.unchecked is not None:
        raise LakeError(f"the filter cannot be checked without Spark: {feed.unchecked}", hint="leave that part out")
    progress = Told(feed.has_snapshots)
    with _live_line() as line, suppress(KeyboardInterrupt), _own_hints(printing.position):
        _follow(feed, printing, progress, line)
    echo(jsonlib.dumps(_summary(progress)) if printing.json else str(progress), err=True)


@contextmanager
def _own_hints(position: str | None) -> Iterator[None]:
    """The way out of a filter that is another one, by the names of the options here."""
    try:
        yield
    except LakeError as error:
        if error.hint != OTHER_FILTER:
            raise
        message = error.message.replace("the checkpoint", f"the position in {position}", 1)
        hint = "restore it, go on with --allow-filter-change, or give another file: --position"
        raise LakeError(message, hint=hint) from None


def _follow(feed: Feed, printing: Printing, progress: Told, line: _Line) -> None:
    position = _saved(printing.position) or feed.start()
    if printing.once:
        feed.stop_at_present()
    left = printing.limit
    while True:
        step = feed.step(position, Limit.of(feed.options))
        progress.look = step.look.after(progress.look)
        line.show(str(progress))
        before = progress.rows
        for work in step.work:
            progress.files += len(work.tasks)
            progress.bytes += work.size
            for rows in feed.rows().read(work):
                shown = rows if left is None else rows.slice(0, left)
                progress.rows += shown.num_rows
                if not printing.count and shown.num_rows:
                    with line.away():
                        _print_rows(shown, printing.json, first=progress.rows == shown.num_rows)
                if left is not None:
                    left -= shown.num_rows
                    if left == 0:  # the rest of the step was not shown, and comes again
                        return
            line.show(str(progress))
        if printing.count and step.work:
            with line.away():
                _print_count(progress, progress.rows - before, len(step.work), printing.json)
        moved = step.end != position
        position = step.end
        if moved:
            _save(printing.position, position)
        elif printing.once:
            return
        if not step.work and not printing.once:
            time.sleep(printing.interval)


def _print_rows(rows: pa.Table, json: bool, first: bool) -> None:
    if first and not json:
        echo("\t".join(map(printable, rows.column_names)))
    for row in rows.to_pylist(maps_as_pydicts="lossy"):
        echo(as_json(row) if json else "\t".join(_shown(value) for value in row.values()))


def _shown(value: Any) -> str:
    return "NULL" if value is None else printable(str(value))


def _print_count(progress: Told, rows: int, files: int, json: bool) -> None:
    if json:
        echo(jsonlib.dumps({"files": files, "rows": rows, **_summary(progress)}))
    else:
        new = f"{counted(files, 'file')}, {counted(rows, 'row')}"
        echo(f"{datetime.now():%H:%M:%S}  {new}; {counted(progress.rows, 'row')} in all")


def _summary(progress: Told) -> dict[str, Any]:
    total = {"files": progress.files, "bytes": progress.bytes, "rows": progress.rows}
    return {"total": total, "look": progress.look.to_dict()}


def _saved(path: str | None) -> dict[str, Any] | None:
    """The position in a file, where there is one."""
    if path is None or not os.path.exists(path):
        return None
    try:
        with open(path) as file:
            position = jsonlib.load(file)
    except (OSError, ValueError) as error:
        raise LakeError(f"the position in {path} cannot be read: {error}", hint="give another file") from None
    if not isinstance(position, dict):
        raise LakeError(f"{path} holds no position", hint="give another file")
    return position


def _save(path: str | None, position: Mapping[str, Any]) -> None:
    if path is None:
        return
    folder = os.path.dirname(os.path.abspath(path))
    try:
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False) as file:
            jsonlib.dump(position, file)
        os.replace(file.name, path)
    except OSError as error:
        raise LakeError(f"the position cannot be kept in {path}: {error}", hint="give another file") from None


class _Line:
    """The line below what is printed; where there is no terminal, nothing is shown."""

    def __init__(self, status: Any | None) -> None:
        self._status = status

    def show(self, text: str) -> None:
        """Another text."""
        if self._status is not None:
            self._status.update(text)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Erase it, and draw it again afterwards: rows and the line may share a terminal."""
        if self._status is not None:
            self._status.stop()
        yield
        if self._status is not None:
            self._status.start()


@contextmanager
def _live_line() -> Iterator[_Line]:
    """The last line of a terminal, or nothing elsewhere."""
    if not is_shown():
        yield _Line(None)
        return
    from rich.console import Console

    with Console(stderr=True).status("looking …") as status:
        yield _Line(status)
