"""The cache of listings: off unless asked for, bounded in time and size; threads that ask at once make one call."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock.errors import LimitError, StorageError
from penstock.storage import lister as listing
from penstock.storage.entries import Entries
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Storage
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_file


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the cache, to be set by hand."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(listing, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def make(root: Path, **options: object) -> HiveTable:
    for i in range(3):
        write_file(root / f"k={i}" / "a.parquet")
    return penstock.hive(root, "k int", "n bigint", **options)


def test_without_a_cache_every_plan_lists_anew(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert [table.plan("k >= 0").report.list_calls for _ in range(2)] == [4, 4]
    write_file(tmp_path / "k=3" / "a.parquet")
    assert len(table.plan("k >= 0").files) == 4


def test_a_cached_listing_is_no_list_call(tmp_path: Path, clock: SimpleNamespace) -> None:
    table = make(tmp_path, cache_seconds=60)
    assert table.plan("k = 1").report.list_calls == 2
    assert table.plan("k = 1").report.list_calls == 0
    assert table.plan("k IN (1, 2)").report.list_calls == 1, "of the one directory not yet seen"
    assert table.arrow("k IN (1, 2)").num_rows == 2


def test_a_cached_listing_does_not_count_against_the_limit(tmp_path: Path) -> None:
    table = make(tmp_path, cache_seconds=60, max_lists=2)
    for where in ("k = 0", "k = 1", "k = 2"):
        table.plan(where)
    assert (len(table.plan().files), table.plan().report.list_calls) == (3, 0)


def test_a_listing_is_forgotten_when_its_time_is_over(tmp_path: Path, clock: SimpleNamespace) -> None:
    table = make(tmp_path, cache_seconds=60)
    table.plan()
    write_file(tmp_path / "k=3" / "a.parquet")
    clock.seconds += 59.9
    assert (len(table.plan().files), table.plan().report.list_calls) == (3, 0)
    clock.seconds += 0.1
    plan = table.plan()
    assert (len(plan.files), plan.report.list_calls) == (4, 5)


def test_the_listings_used_longest_ago_go_first(tmp_path: Path, clock: SimpleNamespace) -> None:
    table = make(tmp_path, cache_seconds=60, cache_entries=2)
    table.plan("k = 0")
    table.plan("k = 1")
    assert table.plan("k = 1").report.list_calls == 0
    assert table.plan("k = 0").report.list_calls == 1
    assert len(table.cache._listings) == 2


def test_errors_are_not_cached(tmp_path: Path) -> None:
    table = penstock.hive(tmp_path / "t", "k int", "n bigint", cache_seconds=60)
    for _ in range(2):
        with pytest.raises(StorageError, match="does not exist"):
            table.plan()
    assert not table.cache._listings
    write_file(tmp_path / "t" / "k=1" / "a.parquet")
    assert len(table.plan().files) == 1


def test_threads_that_ask_at_once_list_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path, cache_seconds=60)
    listed, real, lock = [], Storage.entries, threading.Lock()

    def slowly(self: Storage, path: str) -> Entries:
        with lock:
            listed.append(path)
        time.sleep(0.05)
        return real(self, path)

    monkeypatch.setattr(Storage, "entries", slowly)
    plans: list[tuple[int, int]] = []

    def run() -> None:
        plan = table.plan("k = 1")
        plans.append((len(plan.files), plan.report.list_calls))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(listed) == [str(tmp_path), str(tmp_path / "k=1")]
    assert [files for files, _ in plans] == [1] * 8
    assert sum(calls for _, calls in plans) == 2


def test_an_error_reaches_all_who_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path, cache_seconds=60)
    calls: list[str] = []
    everybody = threading.Barrier(4)
    claim = table.cache.claim

    def claim_together(key: Any) -> Any:
        claimed = claim(key)
        everybody.wait()
        return claimed

    def fails(self: Storage, path: str) -> Entries:
        calls.append(path)
        raise StorageError("broken")

    monkeypatch.setattr(table.cache, "claim", claim_together)
    monkeypatch.setattr(Storage, "entries", fails)
    caught: list[str] = []

    def run() -> None:
        with pytest.raises(StorageError) as error:
            table.plan("k = 1")
        caught.append(str(error.value))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caught == ["broken"] * 4
    assert len(calls) == 1


def test_the_limit_of_one_plan_does_not_stop_another_that_waits_for_its_listing(tmp_path: Path) -> None:
    make(tmp_path)
    storage, cache = open_storage(tmp_path), listing.ListingCache(60, 100)
    spent, fresh = (listing.Lister(storage, 1, most, cache) for most in (0, 1))
    key = (storage.identity, storage.path)
    future, mine = cache.claim(key)
    assert mine
    found: list[int] = []
    waiter = threading.Thread(target=lambda: found.append(len(fresh.list_one(storage.path).names)))
    waiter.start()
    time.sleep(0.05)
    cache.forget(key, future)
    future.set_exception(LimitError("the first plan is at its limit"))
    waiter.join()
    assert found == [3]
    assert (fresh.calls, len(spent.list_one(storage.path).names), spent.calls) == (1, 3, 0)


def test_the_key_of_a_listing_tells_accounts_apart_without_a_credential() -> None:
    secret = {"s3.secret-access-key": "top-Secret", "s3.session-token": "a-Token"}
    given = [
        {"s3.endpoint": "http://a", "s3.access-key-id": "key-one"},
        {"s3.endpoint": "http://b", "s3.access-key-id": "key-one"},
        {"s3.endpoint": "http://a", "s3.access-key-id": "key-two"},
        {"s3.endpoint": "http://a", "client.access-key-id": "key-two"},
        {"s3.endpoint": "http://a", "s3.access-key-id": "key-one", "s3.role-arn": "a-role"},
        {"s3.endpoint": "http://a"},
    ]
    places = [open_storage("s3://lake/t", {**one, **secret}) for one in given]
    identities = [place.identity for place in places]
    assert len(set(identities)) == len(identities)
    assert open_storage("s3://lake/t", given[0]).identity == identities[0], "the secret itself is no part of it"
    assert open_storage("s3://other/t", given[0]).identity != identities[0]
    for place in places:
        for shown in (place.identity, repr(place), str(place)):
            assert not any(word in shown for word in ("top-Secret", "a-Token", "key-one", "key-two"))
