"""Tables of every kind that a stream can read, and a stream as Spark runs one.

A stream's position goes through JSON, and every batch is asked for again by a feed that another process would have: it
must be the same batch.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import penstock
from penstock.lake.managed_table import ManagedTable
from penstock.stream.feed import Feed, Limit, Look, Work
from penstock.stream.position import Position
from penstock.stream.stream_options import as_options
from tests.fixtures.hive_writer import directory_of, write_file
from tests.fixtures.iceberg_tables import create
from tests.fixtures.managed_tables import NAME, managed_table

BORN = 1_780_000_000  # seconds: when the first file of a layout is written
KINDS = ["hive", "catalog", "managed"]
SCHEMA = pa.schema([("id", pa.int64()), ("app", pa.string())])


def rows_of(app: str | None, ids: Iterable[int]) -> pa.Table:
    listed = list(ids)
    return pa.table({"id": listed, "app": [app] * len(listed)}, schema=SCHEMA)


def touch(path: Path, seconds: float) -> None:
    """Say when a file was written; whole milliseconds stay whole."""
    octets = round(seconds * 1000) * 1_000_000
    os.utime(path, ns=(octets, octets))


@dataclass
class HiveSource:
    """Directories of one or more levels; a file is a second younger than the one before unless it is said."""

    root: Path
    by: str = "app string"
    files: int = 0

    @property
    def table(self) -> Any:
        self.root.mkdir(parents=True, exist_ok=True)
        return penstock.hive(self.root, self.by, "id bigint")

    def add(self, partition: str | None, ids: Iterable[int], at: float | None = None, name: str | None = None) -> Path:
        """A file; the partition is an app, or the directories as they are written."""
        self.files += 1
        where = partition if partition is not None and "=" in partition else directory_of("app", partition)
        file = self.root / where / (name or f"{self.files:04}.parquet")
        write_file(file, pa.table({"id": pa.array(list(ids), pa.int64())}))
        touch(file, BORN + (self.files if at is None else at))
        return file

    def mark(self, partition: str, at: float, name: str = "_SUCCESS") -> None:
        place = self.root / partition / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        touch(place, BORN + at)


@dataclass
class IcebergSource:
    """A table that PyIceberg writes, found in its catalog or by its folder."""

    root: Path
    by_folder: bool = False

    def __post_init__(self) -> None:
        self.written: Table = create(self.root, SCHEMA, ["app"])
        self.lake = penstock.connect(self.root)
        self._hint()

    @property
    def table(self) -> Any:
        if not self.by_folder:
            return self.lake.table("web.t")
        return penstock.iceberg(self.written.location().removeprefix("file://"))

    def add(self, app: str | None, ids: Iterable[int]) -> None:
        self.append(rows_of(app, ids))

    def append(self, rows: pa.Table) -> None:
        self.written.append(rows)
        self._hint()

    def delete(self, where: str) -> None:
        self.written.delete(where)
        self._hint()

    def _hint(self) -> None:
        """What tells the newest metadata file to who opens the folder."""
        newest = Path(self.written.metadata_location.removeprefix("file://"))
        (newest.parent / "version-hint.text").write_text(newest.name)


@dataclass
class ManagedSource:
    """A table of Penstock's own, whose apps share files."""

    root: Path
    options: dict[str, Any] = field(default_factory=lambda: {"coalesce": "app"})

    def __post_init__(self) -> None:
        self.written: ManagedTable = managed_table(self.root, SCHEMA, ["app"], **self.options)
        self.lake = penstock.connect(self.root)

    @property
    def table(self) -> Any:
        return self.lake.table(NAME)

    def add(self, app: str | None, ids: Iterable[int]) -> None:
        self.append(rows_of(app, ids))

    def append(self, rows: pa.Table) -> None:
        self.written.append(rows)

    def delete(self, where: str) -> None:
        self.written.delete(where)


Source = HiveSource | IcebergSource | ManagedSource


def make_source(kind: str, root: Path) -> Source:
    if kind == "hive":
        return HiveSource(root / "layout")
    return ManagedSource(root) if kind == "managed" else IcebergSource(root, kind == "folder")


class Stream:
    """A stream over a source; `position` is what a checkpoint would hold."""

    def __init__(self, source: Source, where: str | None = None, **options: Any) -> None:
        self.source = source
        self.options: dict[str, Any] = {"where": where, "retry_seconds": 0, **options}
        self.feed = self.fresh()
        self.position = stored(self.feed.start())
        self.before = self.position
        self.look = Look()
        self.files: list[str] = []
        self.got: list[int] = []

    def fresh(self, **options: Any) -> Feed:
        """The feed that another process has."""
        opened = self.source.table.feed(as_options({**self.options, **options}))
        found: Feed = pickle.loads(pickle.dumps(opened))
        return found

    def restart(self, **options: Any) -> Stream:
        """Go on with another feed, perhaps with other options."""
        self.options |= options
        self.feed = self.fresh()
        return self

    def poll(self, files: int | None = None, octets: int | None = None) -> list[int]:
        """The ids that one batch brings, in the order of the files, committed."""
        step = self.feed.step(self.position, Limit(files, octets))
        self.before, self.position, self.look = self.position, stored(step.end), step.look
        self.files = paths_of(step.work)
        found = ids_of(self.feed, step.work)
        if self.position != self.before:
            assert paths_of(self.feed.again(self.before, self.position)) == self.files
            assert self.replayed() == found
        self.got += found
        return found

    def replayed(self, **options: Any) -> list[int]:
        """The last batch as a process reads it that was started after a crash."""
        feed = self.fresh(**options)
        return ids_of(feed, feed.again(self.before, self.position))

    def drain(self, files: int | None = None, octets: int | None = None) -> list[list[int]]:
        """All batches until there is nothing to read."""
        found = []
        for _ in range(200):
            found.append(self.poll(files, octets))
            if self.position == self.before:
                return [batch for batch in found if batch]
        raise AssertionError("the stream does not come to an end")


def stored(position: Position) -> Position:
    """A position as a checkpoint gives it back."""
    found: Position = json.loads(json.dumps(position))
    return found


def paths_of(work: Sequence[Work]) -> list[str]:
    return [task.path for each in work for task in (*(each.before or ()), *each.tasks)]


def ids_of(feed: Feed, work: Sequence[Work]) -> list[int]:
    return [i for each in work for rows in feed.rows().read(each) for i in rows["id"].to_pylist()]


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """An empty table of each kind."""
    return make_source(str(request.param), tmp_path)


@pytest.fixture(params=KINDS[1:])
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """An empty Iceberg table of each kind."""
    return make_source(str(request.param), tmp_path)


@pytest.fixture
def layout(tmp_path: Path) -> HiveSource:
    return HiveSource(tmp_path / "layout")


@pytest.fixture
def layout_of(tmp_path: Path) -> Callable[[str], HiveSource]:
    """A layout by its partition columns."""
    return lambda by: HiveSource(tmp_path / "layout", by)
