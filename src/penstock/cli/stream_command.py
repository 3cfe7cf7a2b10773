"""`penstock stream TABLE`: what comes, as rows or counts, with a line that tells what was seen. It needs no Spark.

Rows and counts go to stdout. The line below them goes to stderr, on a terminal only; at the end it stays as a summary.
Of directories it counts partitions, because files of those that were pruned are never seen; of an Iceberg table, files.
"""

from __future__ import annotations

import json as jsonlib
import os
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import options
from penstock.cli.group import Predicated
from penstock.cli.output import as_json, echo, warnings_as_notes
from penstock.cli.table_commands import open_table
from penstock.errors import LakeError, printable
from penstock.progress import counted, is_shown

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.status import Status

    from penstock.stream.feed import Feed, Work

_STREAM_OPTIONS = ("where", "columns", "starting", "order", "marker", "on_change", "allow_filter_change")


@click.command(cls=Predicated, short_help="Print rows that match, and those that come.")
@options.table
@options.where
@click.option("--columns", help="What is read: 'id, headers['content-type']'.")
@click.option("--starting", default="earliest", show_default=True,
              help="earliest, latest, a time, a partition (dt=2026-05-17), or a snapshot or tag.")  # fmt: skip
@click.option("--order", help="Of files in directories: create-time, partition-name or partition-time.")
@click.option("--marker", help="The file that completes a partition, such as _SUCCESS.")
@click.option("--on-change", help="Rows that were changed or removed: error, skip or changes.")
@click.option("--count", is_flag=True, help="Print counts instead of rows.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many rows.")
@click.option("--once", is_flag=True, help="Read what is there now, and stop.")
@click.option("--interval", type=click.FloatRange(0.1), default=2.0, show_default=True,
              help="Seconds between two looks when nothing is new.")  # fmt: skip
@click.option("--allow-filter-change", is_flag=True, help="Go on from a position that was made with another filter.")
@click.option("--position", help="A file that keeps where the stream stands; it goes on from there.")
@options.place
@options.json
def stream(
    count: bool, json: bool, limit: int | None, once: bool, interval: float, position: str | None, **place: Any
) -> None:
    """Print the rows of TABLE that match, and those that come, until it is stopped.

    TABLE is a name, or the path or URL of a Hive layout. No Spark is needed.
    """
    from rich.console import Console

    from penstock.stream.position import OTHER_FILTER
    from penstock.stream.stream_options import as_options

    with warnings_as_notes():
        feed = open_table(place).feed(as_options({name: place[name] for name in _STREAM_OPTIONS}))
    if feed.unchecked is not None:
        raise LakeError(f"the filter cannot be checked without Spark: {feed.unchecked}", hint="leave that part out")
    console = Console(stderr=True, force_terminal=None if is_shown() else False)
    with console.status("looking …") as line:
        follower = _Follower(feed, line, count, json, limit)
        try:
            follower.follow(once, interval, position)
        except KeyboardInterrupt:
            pass
        except LakeError as error:
            if error.hint != OTHER_FILTER:
                raise
            message = error.message.replace("the checkpoint", f"the position in {position}", 1)
            hint = "restore it, go on with --allow-filter-change, or give another file: --position"
            raise LakeError(message, hint=hint) from None
    echo(as_json(follower.summary()) if json else str(follower), err=True)


class _Follower:
    """Prints what comes, and knows what was seen so far."""

    def __init__(self, feed: Feed, line: Status, count: bool, json: bool, limit: int | None) -> None:
        from penstock.stream.feed import Look

        self._feed, self._line, self._count, self._json, self._left = feed, line, count, json, limit
        self._look = Look()
        self._files = self._bytes = self._rows = 0

    def __str__(self) -> str:
        look = self._look
        seen, pruned, unit = look.partitions, look.partitions_pruned, "partition"
        if self._feed.has_snapshots:
            seen, pruned, unit = look.files, look.files_pruned, "file"
        parts = [f"{counted(seen, unit)} seen, {pruned:,} pruned"]
        parts.append(f"{counted(self._files, 'file')} read, {counted(self._rows, 'row')}")
        if look.pending_files:
            parts.append(f"{counted(look.pending_files, 'file')} behind, lag {look.lag_seconds:.1f} s")
        elif self._feed.has_snapshots:
            parts.append(f"{counted(look.pending_snapshots, 'snapshot')} behind, lag {look.lag_seconds:.1f} s")
        return " · ".join(parts)

    def summary(self) -> dict[str, Any]:
        """Plain values for machines."""
        total = {"files": self._files, "bytes": self._bytes, "rows": self._rows}
        return {"total": total, "look": self._look.to_dict()}

    def follow(self, once: bool, interval: float, path: str | None) -> None:
        """Print what comes until it is enough; the position is kept in the file at the path."""
        from penstock.stream.feed import Limit

        position = _saved(path) or self._feed.start()
        if once:
            self._feed.stop_at_present()
        while True:
            step = self._feed.step(position, Limit.of(self._feed.options))
            self._look = step.look.after(self._look)
            self._line.update(str(self))
            before = self._rows
            for work in step.work:
                self._read(work)
                if self._left == 0:  # the rest of the step was not shown, and comes again
                    return
            if self._count and step.work:
                self._print_count(len(step.work), self._rows - before)
            if step.end != position:
                position = step.end
                _save(path, position)
            elif once:
                return
            if not step.work and not once:
                time.sleep(interval)

    def _read(self, work: Work) -> None:
        self._files += len(work.tasks)
        self._bytes += work.size
        for rows in self._feed.rows().read(work):
            shown = rows if self._left is None else rows.slice(0, self._left)
            self._rows += shown.num_rows
            if not self._count and shown.num_rows:
                self._print_rows(shown, first=self._rows == shown.num_rows)
            if self._left is not None:
                self._left -= shown.num_rows
                if self._left == 0:
                    return
        self._line.update(str(self))

    def _print_rows(self, rows: pa.Table, first: bool) -> None:
        self._line.stop()  # rows and the line may share a terminal
        if first and not self._json:
            echo("\t".join(map(printable, rows.column_names)))
        for row in rows.to_pylist(maps_as_pydicts="lossy"):
            values = ("NULL" if value is None else printable(str(value)) for value in row.values())
            echo(as_json(row) if self._json else "\t".join(values))
        self._line.start()

    def _print_count(self, files: int, rows: int) -> None:
        self._line.stop()
        if self._json:
            echo(as_json({"files": files, "rows": rows, **self.summary()}))
        else:
            new = f"{counted(files, 'file')}, {counted(rows, 'row')}"
            echo(f"{datetime.now():%H:%M:%S}  {new}; {counted(self._rows, 'row')} in all")
        self._line.start()


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
