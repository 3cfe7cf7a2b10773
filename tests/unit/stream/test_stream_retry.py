"""Asking again: what may pass is asked for again with longer and longer waits, and what may not is an error at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from penstock.errors import LakeError, LayoutError, MissingError, PenstockError, PenstockWarning, StorageError
from penstock.storage.entries import Entries
from penstock.storage.storage import Storage
from penstock.stream import retry
from penstock.stream.feed import Limit
from penstock.stream.retry import may_pass, retried
from tests.unit.stream.conftest import HiveSource, IcebergSource, Stream


class OperationalError(Exception):
    """As SQLAlchemy calls a database that is locked."""


class Failing:
    """Work that fails with each of some errors, and then works."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that moves only by waiting."""
    now = SimpleNamespace(seconds=0.0, waits=[])

    def wait(seconds: float) -> None:
        now.waits.append(seconds)
        now.seconds += seconds

    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: now.seconds, sleep=time.sleep))
    now.wait = wait
    return now


def said(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What work gives, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = work()
    assert all(each.category is PenstockWarning for each in found)
    return result, [str(each.message) for each in found]


def test_what_may_pass_is_asked_for_again_with_longer_waits_and_said(clock: SimpleNamespace) -> None:
    work = Failing(*[ConnectionError("timeout\n   reached") for _ in range(9)])
    result, messages = said(lambda: retried(work, "s3://lake", 600, clock.wait))
    assert (result, work.calls) == ("done", 10)
    assert clock.waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert messages[0] == "s3://lake: timeout reached; asked again in 0.5 s"
    assert len(messages) == 9


def test_it_is_not_asked_for_longer_than_was_said(clock: SimpleNamespace) -> None:
    work = Failing(*[ConnectionError("refused") for _ in range(99)])
    with pytest.warns(PenstockWarning, match="refused"), pytest.raises(ConnectionError):
        retried(work, "the catalog", 10, clock.wait)
    assert sum(clock.waits) <= 10
    assert work.calls == len(clock.waits) + 1 == 5


def test_with_no_time_it_is_asked_for_once(clock: SimpleNamespace) -> None:
    for error in (ConnectionError("refused"), MissingError("gone")):
        work = Failing(error)
        with pytest.raises(type(error)):
            retried(work, "x", 0, clock.wait)
        assert (work.calls, clock.waits) == (1, [])


PERMANENT = [
    PermissionError(13, "Permission denied"),
    FileNotFoundError("x"),
    NotADirectoryError("x"),
    StorageError("cannot read s3://b: AWS Error ACCESS_DENIED during ListObjectsV2"),
    OSError("When listing objects: AWS Error [code 100]: HTTP status 403"),
    StorageError("NoSuchBucket: the bucket does not exist"),
    LayoutError("k=x cannot be read as int"),
    LakeError("the table is damaged"),
    ValueError("a bug"),
    KeyError("a bug"),
]


@pytest.mark.parametrize("error", PERMANENT, ids=lambda error: type(error).__name__)
def test_what_asking_again_cannot_mend_is_an_error_at_once(clock: SimpleNamespace, error: Exception) -> None:
    work = Failing(error)
    with pytest.raises(type(error)):
        retried(work, "x", 600, clock.wait)
    assert (work.calls, clock.waits, may_pass(error)) == (1, [], False)


PASSING = [
    TimeoutError("timed out"),
    ConnectionResetError("reset"),
    OSError("AWS Error NETWORK_CONNECTION during GetObject: curlCode 28"),
    StorageError("cannot read s3://b: AWS Error SLOW_DOWN"),
    StorageError("cannot read s3://b/app=403/part-00403.parquet: timeout"),
    OperationalError("database is locked"),
]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_what_may_pass(error: Exception) -> None:
    assert may_pass(error)
    wrapped = LakeError("the catalog cannot be opened")
    wrapped.__cause__ = error
    assert may_pass(wrapped)


def test_an_error_of_penstock_passes_only_with_its_cause() -> None:
    wrapped = LakeError("the catalog cannot be opened")
    wrapped.__cause__ = PermissionError("no")
    assert not may_pass(wrapped)


def test_what_is_missing_is_asked_for_a_few_times_and_not_said(clock: SimpleNamespace) -> None:
    work = Failing(*[MissingError("dt=1 has disappeared") for _ in range(3)])
    assert said(lambda: retried(work, "x", 600, clock.wait)) == ("done", [])
    assert clock.waits == [0.1] * 3
    never = Failing(*[MissingError("dt=1 has disappeared") for _ in range(99)])
    with pytest.raises(MissingError):
        retried(never, "x", 600, clock.wait)
    assert never.calls == 6


def test_what_is_missing_once_does_not_shorten_later_waits(clock: SimpleNamespace) -> None:
    work = Failing(MissingError("gone"), TimeoutError("slow"), MissingError("gone"), TimeoutError("slow"))
    _, messages = said(lambda: retried(work, "x", 600, clock.wait))
    assert clock.waits == [0.1, 0.5, 0.1, 1]
    assert messages == ["x: slow; asked again in 0.5 s", "x: slow; asked again in 1 s"]


def test_a_stop_by_hand_is_not_asked_again(clock: SimpleNamespace) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retried(stopped, "x", 600, clock.wait)


def fail_first(monkeypatch: pytest.MonkeyPatch, errors: list[PenstockError]) -> list[str]:
    """Let the first List calls fail; all that are made."""
    entries, calls = Storage.entries, list[str]()

    def failing(self: Storage, path: str) -> Entries:
        calls.append(path)
        if errors:
            raise errors.pop(0)
        return entries(self, path)

    monkeypatch.setattr(Storage, "entries", failing)
    return calls


def test_a_poll_goes_on_when_the_storage_answers_again(layout: HiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.add("A", [1])
    stream = Stream(layout, retry_seconds=60)
    monkeypatch.setattr(retry, "_LONGEST_WAIT", 0.01)
    calls = fail_first(monkeypatch, [StorageError("timeout"), StorageError("timeout")])
    found, messages = said(stream.poll)
    assert (found, len(messages)) == ([1], 2)
    assert calls[:3] == [str(layout.root)] * 3
    monkeypatch.undo()
    layout.add("A", [2])
    assert stream.poll() == [2]


def test_a_directory_that_vanishes_between_two_list_calls_does_not_end_a_stream(
    layout: HiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.add("A", [1])
    gone = layout.add("B", [2])
    stream = Stream(layout, retry_seconds=60)
    entries = Storage.entries

    def drops(self: Storage, path: str) -> Entries:
        if path.endswith("app=B") and gone.exists():
            gone.unlink()
            gone.parent.rmdir()
        return entries(self, path)

    monkeypatch.setattr(Storage, "entries", drops)
    assert stream.poll() == [1]


def test_a_poll_without_permission_is_an_error_at_once(layout: HiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.add("A", [1])
    stream = Stream(layout, retry_seconds=60)
    calls = fail_first(monkeypatch, [StorageError("cannot read /x: Permission denied")])
    with pytest.raises(StorageError, match="Permission denied"):
        stream.feed.step(stream.position, Limit())
    assert len(calls) == 1


def test_a_catalog_that_is_busy_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = IcebergSource(tmp_path)
    source.add("A", [1])
    stream = Stream(source, retry_seconds=60)
    load, errors = SqlCatalog.load_table, [OperationalError("database is locked")]

    def busy(self: SqlCatalog, name: Any) -> Any:
        if errors:
            raise errors.pop()
        return load(self, name)

    monkeypatch.setattr(SqlCatalog, "load_table", busy)
    with pytest.warns(PenstockWarning, match=r"database is locked;.*asked again"):
        step = stream.feed.step(stream.position, Limit())
    assert len(step.work) == 1
