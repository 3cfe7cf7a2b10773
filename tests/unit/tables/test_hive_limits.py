"""Limits hold however many listings run at once, and say which option or which predicate helps."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import penstock
from penstock.errors import LimitError, PenstockWarning, StorageError
from penstock.storage.entries import Entries
from penstock.storage.storage import Storage
from penstock.tables.hive.hive_table import HiveTable


class Listings:
    """Stands before the storage: counts its listings, makes them slow, makes one fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        self.seconds = 0.0
        self.fails = ""
        self._real, self._lock = Storage.entries, threading.Lock()
        monkeypatch.setattr(Storage, "entries", lambda storage, path: self._list(storage, path))

    def _list(self, storage: Storage, path: str) -> Entries:
        with self._lock:
            self.paths.append(path)
        if self.fails and path.endswith(self.fails):
            raise StorageError(f"{path} is broken")
        time.sleep(self.seconds)
        return self._real(storage, path)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> Listings:
    return Listings(monkeypatch)


def make(root: Path, directories: int, **options: object) -> HiveTable:
    for i in range(directories):
        (root / f"k={i}").mkdir()
        (root / f"k={i}" / "a.parquet").write_bytes(b"PAR1")
    return penstock.hive(root, "k int", "n bigint", **options)


def test_the_defaults_are_those_that_are_documented(tmp_path: Path) -> None:
    table = make(tmp_path, 1)
    assert (table.limits.warn_partitions, table.limits.max_partitions, table.max_lists) == (5_000, 50_000, 10_000)
    assert table.cache is None


def test_more_partitions_than_warn_partitions_warn_and_plan(tmp_path: Path) -> None:
    table = make(tmp_path, 6, warn_partitions=4)
    with pytest.warns(PenstockWarning, match=r"6 partitions match; filter on a partition column, or raise warn_part"):
        assert len(table.plan().files) == 6
    assert len(table.plan("k < 4").files) == 4, "as many as the limit are fine"


def test_more_partitions_than_max_partitions_are_an_error_before_they_are_listed(
    tmp_path: Path, listings: Listings
) -> None:
    table = make(tmp_path, 6, max_partitions=4)
    for ask in (table.plan, table.arrow, table.partitions):
        listings.paths.clear()
        message = "6 partitions match; filter on a partition column, or raise max_partitions"
        with pytest.raises(LimitError, match=message) as caught:
            ask()
        assert str(tmp_path) in str(caught.value)
        assert listings.paths == [str(tmp_path)]
    assert len(table.plan("k < 4").files) == 4


@pytest.mark.parametrize("at_once", [1, 2, 16, 64])
def test_more_listings_than_max_lists_are_an_error_and_not_one_more_is_made(
    tmp_path: Path, listings: Listings, at_once: int
) -> None:
    table = make(tmp_path, 40, max_lists=10, lists_at_once=at_once)
    listings.seconds = 0.001
    message = "more than 10 List calls; filter on the first partition columns, or raise max_lists"
    with pytest.raises(LimitError, match=message):
        table.plan()
    assert len(listings.paths) <= 10
    assert table.plan("k < 9").report.list_calls == 10, "as many as the limit are fine, and each plan counts anew"


def test_limits_hold_for_each_of_several_plans_at_once(tmp_path: Path, listings: Listings) -> None:
    table = make(tmp_path, 12, max_lists=10, lists_at_once=4)
    listings.seconds = 0.002
    outcomes: list[object] = []

    def run(where: str) -> None:
        try:
            outcomes.append(len(table.plan(where).files))
        except LimitError:
            outcomes.append("limit")

    threads = [threading.Thread(target=run, args=(where,)) for where in ["k < 9", "k < 10"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["9"] * 4 + ["limit"] * 4


def test_the_first_error_stops_the_peers_and_leaves_no_thread(tmp_path: Path, listings: Listings) -> None:
    table = make(tmp_path, 200, lists_at_once=4)
    listings.seconds, listings.fails = 0.005, "k=0"
    before = threading.active_count()
    with pytest.raises(StorageError, match="k=0 is broken"):
        table.plan()
    assert len(listings.paths) < 30, "of 201"
    assert threading.active_count() == before


@pytest.mark.parametrize("at_once", [1, 3, 16])
def test_files_come_in_one_order_however_many_listings_run_at_once(tmp_path: Path, at_once: int) -> None:
    paths = make(tmp_path, 30, lists_at_once=at_once).plan().files.paths.to_pylist()
    assert paths == sorted(paths)
    assert len(paths) == 30
