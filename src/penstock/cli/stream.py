"""`penstock stream TABLE`: what comes, as rows or counts, with a line that tells what was seen. It needs no Spark.

Rows and counts go to stdout. The line below them goes to stderr, on a terminal only; at the end it stays as a summary.
"""

from __future__ import annotations

import json as jsonlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click
import pyarrow as pa

from penstock.cli.tables import open_table, tell
from penstock.errors import LakeError
from penstock.stream.feed import Feed, Limit, Look
from penstock.stream.open import open_feed
from penstock.stream.options import as_options


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

    look: Look = field(default_factory=Look)
    files: int = 0
    bytes: int = 0
    rows: int = 0

    def __str__(self) -> str:
        look = self.look
        behind = f"{look.pending_files:,} files" if look.pending_files else f"{look.pending_snapshots:,} snapshots"
        return (
            f"{look.partitions:,} partitions seen, {look.partitions_pruned:,} pruned · {self.files:,} files read, "
            f"{self.rows:,} rows · {behind} behind, lag {look.lag_seconds:.1f} s"
        )


def stream(place: Mapping[str, str], options: Mapping[str, Any], printing: Printing) -> None:
    """Print what comes until it is enough, or until somebody stops it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        feed = open_feed(open_table(place), as_options(options))
    tell(found, ())
    if feed.unchecked is not None:
        raise LakeError(f"the filter cannot be checked without Spark: {feed.unchecked}", hint="leave that part out")
    told = Told()
    with _live_line() as show, suppress(KeyboardInterrupt):
        _follow(feed, printing, told, show)
    click.echo(jsonlib.dumps(_summary(told)) if printing.json else str(told), err=True)


def _follow(feed: Feed, printing: Printing, told: Told, show: Callable[[str], None]) -> None:
    position = _saved(printing.position) or feed.start()
    if printing.once:
        feed.stop_at_present()
    left = printing.limit
    while True:
        step = feed.step(position, Limit.of(feed.options))
        told.look = step.look.after(told.look)
        show(str(told))
        before = told.rows
        for work in step.work:
            for rows in feed.rows().read(work):
                shown = rows if left is None else rows.slice(0, left)
                told.rows += shown.num_rows
                if not printing.count:
                    _print_rows(shown, printing.json, first=told.rows == shown.num_rows)
                if left is not None:
                    left -= shown.num_rows
                    if left == 0:  # the rest of the step was not shown, and comes again
                        return
            told.files += len(work.tasks)
            told.bytes += work.size
            show(str(told))
        if printing.count and step.work:
            _print_count(told, told.rows - before, len(step.work), printing.json)
        moved = step.end != position
        position = step.end
        if moved:
            _save(printing.position, position)
        elif printing.once:
            return
        if not step.work and not printing.once:
            time.sleep(printing.interval)


def _print_rows(rows: pa.Table, json: bool, first: bool) -> None:
    if first and not json and rows.num_rows:
        click.echo("\t".join(rows.column_names))
    for row in rows.to_pylist():
        click.echo(jsonlib.dumps(row, default=str) if json else "\t".join(_shown(value) for value in row.values()))


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value).replace("\t", "\\t").replace("\n", "\\n")


def _print_count(told: Told, rows: int, files: int, json: bool) -> None:
    if json:
        click.echo(jsonlib.dumps({"files": files, "rows": rows, **_summary(told)}))
    else:
        click.echo(f"{datetime.now():%H:%M:%S}  {files:,} files, {rows:,} rows; {told.rows:,} rows in all")


def _summary(told: Told) -> dict[str, Any]:
    total = {"files": told.files, "bytes": told.bytes, "rows": told.rows}
    return {"total": total, "look": told.look.to_dict()}


def _saved(path: str | None) -> dict[str, Any] | None:
    """The position in a file, where there is one."""
    if path is None or not os.path.exists(path):
        return None
    try:
        with open(path) as file:
            found = jsonlib.load(file)
    except (OSError, ValueError) as error:
        raise LakeError(f"the position in {path} cannot be read: {error}", hint="give another file") from None
    if not isinstance(found, dict):
        raise LakeError(f"{path} holds no position", hint="give another file")
    return found


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


@contextmanager
def _live_line() -> Iterator[Callable[[str], None]]:
    """What shows a text on the last line of a terminal, and shows nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("looking …") as status:
        yield status.update
