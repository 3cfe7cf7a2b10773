"""Failures while a managed table is written: the table and its folder are as they were, or it is said."""

from __future__ import annotations

import datetime as dt
import errno
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFile

import penstock
from penstock import Coalesce
from penstock.errors import LakeError, StorageError
from penstock.lake.commit.commit import UnknownOutcomeError, commit
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import writes as writing
from penstock.tables.iceberg.manifest.manifest_list import ManifestLists
from penstock.tables.iceberg.metadata.catalogs import _lists
from tests.fixtures.managed_tables import (
    bag,
    files_below,
    local,
    managed_table,
    reachable,
    reopened,
    snapshot_ids,
)
from tests.fixtures.managed_values import EVENTS, events, events_table
from tests.fixtures.variants import variants


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    return events_table(tmp_path)


class Full:
    """A disk that takes so many octets and no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._lock = threading.Lock()

    def take(self, octets: int) -> None:
        with self._lock:
            if octets > self.room:
                self.room = 0
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= octets


class OnAFullDisk:
    """A stream to a file of that disk."""

    closed = False

    def __init__(self, inner: Any, disk: Full) -> None:
        self._inner, self._disk = inner, disk

    def write(self, data: Any) -> int:
        self._disk.take(len(memoryview(data)))
        return int(self._inner.write(data) or len(memoryview(data)))

    def flush(self) -> None:
        self._inner.flush()

    def tell(self) -> int:
        return int(self._inner.tell())

    def close(self) -> None:
        self.closed = True
        self._inner.close()

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def __enter__(self) -> OnAFullDisk:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    found = Full(1 << 40)
    create = PyArrowFile.create

    def full(self: PyArrowFile, overwrite: bool = False) -> Any:
        made = OnAFullDisk(create(self, overwrite), found)
        return pa.PythonFile(made, mode="w") if self.location.endswith(".parquet") else made

    monkeypatch.setattr(PyArrowFile, "create", full)
    yield found
    monkeypatch.undo()


WRITES: dict[str, Callable[[ManagedTable], Any]] = {
    "append": lambda table: table.append(events(10, "abcdefgh")),
    "overwrite where": lambda table: table.overwrite(events(10), "id = 1 OR id >= 10"),
    "overwrite dynamic": lambda table: table.overwrite(events(10, "b"), dynamic=True),
    "delete": lambda table: table.delete("id = 1"),
    "compact": lambda table: table.compact(),
}


class TestFailures:
    @pytest.mark.parametrize("step", variants([2_603, 1_301], every_run=1))
    @pytest.mark.parametrize("write", WRITES)
    def test_a_full_disk_leaves_the_table_and_the_folder_as_they_were(
        self, tmp_path: Path, disk: Full, write: str, step: int
    ) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
        table.append(events())
        table.append(events(4))
        rows, before = bag(table.arrow()), files_below(tmp_path)
        messages: list[str] = []
        failed = room = 0
        while True:
            disk.room = room
            try:
                WRITES[write](table)
                break
            except UnknownOutcomeError:  # the catalog itself could not write: it may not be known what it did
                assert any(path.endswith(".metadata.json") for path in files_below(tmp_path) - before)
                before = files_below(tmp_path)
            except penstock.PenstockError as error:
                messages.append(str(error))
                assert files_below(tmp_path) == before, room
            failed += 1
            disk.room = 1 << 40
            assert bag(reopened(tmp_path).arrow()) == rows, room
            room += step
        assert failed > 5, "the disk was never full"
        assert all("No space left on device" in each and "free some space" in each for each in messages)
        assert not any("\n" in each for each in messages)
        disk.room = 1 << 40
        table.refresh()
        table.sweep(older_than=dt.timedelta(0), force=True)
        assert files_below(tmp_path) == reachable(table)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_folder_that_may_not_be_written_is_a_clear_error_and_nothing_changes(
        self, table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        table.append(events(4))
        before, rows, create = files_below(tmp_path), bag(table.arrow()), PyArrowFile.create

        for kind in (".parquet", ".avro"):

            def refused(self: PyArrowFile, overwrite: bool = False, kind: str = kind) -> Any:
                if self.location.endswith(kind):
                    raise PermissionError(errno.EACCES, "Permission denied", self.location)
                return create(self, overwrite)

            monkeypatch.setattr(PyArrowFile, "create", refused)
            said = r"cannot be written: .*Permission denied.*; check permissions"
            with pytest.raises(StorageError, match=said) as raised:
                WRITES[write](table)
            assert "\n" not in str(raised.value)
            monkeypatch.undo()
            assert files_below(tmp_path) == before
            assert bag(reopened(tmp_path).arrow()) == rows

    @pytest.mark.parametrize("write", [w for w in WRITES if w != "overwrite dynamic"])
    def test_a_write_that_meets_expire_tries_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        made = managed_table(tmp_path, EVENTS, ["app"])
        made.append(events(0, "abcd"))
        made.append(events(4, "abcd"))
        twin = managed_table(tmp_path / "twin", EVENTS, ["app"])
        twin.append(events(0, "abcd"))
        twin.append(events(4, "abcd"))
        WRITES[write](twin)
        twin.append(events(6, "ab"))
        _lists.cache_clear()
        table, calls = reopened(tmp_path), []

        def meanwhile(of: Any, sources: Any, change: Any) -> Any:
            if not calls:
                calls.append(1)
                other = reopened(tmp_path)
                other.append(events(6, "ab"))
                other.expire(dt.timedelta(0))
                _lists.cache_clear()
                sources = replace(sources, lists=ManifestLists())
            return commit(of, sources, change)

        monkeypatch.setattr(writing, "commit", meanwhile)
        WRITES[write](table)
        assert bag(table.arrow()) == bag(twin.arrow()) == bag(reopened(tmp_path).arrow())
        assert reachable(table) <= files_below(tmp_path)

    def test_a_writer_that_is_behind_appends_without_loss(self, table: ManagedTable, tmp_path: Path) -> None:
        behind = [reopened(tmp_path) for _ in range(4)]
        table.append(events(10))
        behind[0].append(events(20))
        behind[1].delete("app = 'a'")
        behind[2].overwrite(events(30, "b"), dynamic=True)
        behind[3].set_coalesce(None)
        table.append(events(40, "a"))
        assert sorted(table.arrow()["id"].to_pylist()) == [2, 12, 22, 30, 40]
        assert table.coalesce is None

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize(
        "answer",
        [
            ConnectionResetError("the connection was reset"),
            CommitFailedException("409 to a repeated request"),
        ],
    )
    def test_a_commit_whose_answer_gets_lost_is_recognised(
        self, table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str, answer: Exception
    ) -> None:
        table.append(events(4))
        twin = managed_table(tmp_path / "twin", EVENTS, ["app"], coalesce=["app"])
        twin.append(events())
        twin.append(events(4))
        WRITES[write](twin)
        commit = SqlCatalog.commit_table

        def lost(self: SqlCatalog, *args: Any) -> Any:
            commit(self, *args)
            raise answer

        monkeypatch.setattr(SqlCatalog, "commit_table", lost)
        WRITES[write](table)
        monkeypatch.undo()
        assert bag(reopened(tmp_path).arrow()) == bag(twin.arrow()) == bag(table.arrow())
        assert len(snapshot_ids(table)) == 3
        assert files_below(tmp_path) - files_below(tmp_path / "twin") == reachable(table)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_catalog_that_is_gone_is_a_clear_error_and_no_file_of_the_table_is_lost(
        self, table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        table.append(events(4))
        rows = bag(table.arrow())

        def gone(self: SqlCatalog, *args: Any) -> Any:
            raise ConnectionResetError("the connection was reset")

        monkeypatch.setattr(SqlCatalog, "commit_table", gone)
        with pytest.raises(LakeError, match="the connection was reset"):
            WRITES[write](table)
        monkeypatch.undo()
        assert bag(reopened(tmp_path).arrow()) == rows
        assert reachable(table) <= files_below(tmp_path)

    def test_a_data_file_that_is_gone_is_a_clear_error_and_nothing_changes(
        self, table: ManagedTable, tmp_path: Path
    ) -> None:
        table.append(events(10))
        (path,) = [local(task.path) for task in table.plan("id = 10").files]
        Path(path).unlink()
        before = files_below(tmp_path)
        for write in (lambda: table.delete("id = 10"), lambda: table.overwrite(events(20), "id = 10 OR id >= 20")):
            with pytest.raises(StorageError, match="does not exist"):
                write()
        assert files_below(tmp_path) == before
        table.delete("id >= 10")  # needs no row of it
        assert bag(table.arrow()) == bag(events())
