"""What a query costs, as the S3 server itself logged it: List requests with their pages, Heads and Gets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_file, write_hive
from tests.s3.server import S3Server

MANY = 1_800


@pytest.fixture(scope="module")
def days(s3: S3Server) -> HiveTable:
    """1,800 directories in one level; S3 lists them in two pages."""
    root = s3.new_bucket() / "t"
    octets = write_file(root / "k=0" / "a.parquet").read_bytes()
    for i in range(1, MANY):
        directory = root / f"k={i}"
        directory.mkdir()
        (directory / "a.parquet").write_bytes(octets)
    return penstock.hive(s3.url(root), "k int", "n bigint", storage=s3.properties)


@pytest.fixture(scope="module")
def two_levels(s3: S3Server) -> HiveTable:
    """Four days of three hours."""
    rows = pa.table({"n": range(12), "day": [i // 3 for i in range(12)], "hour": [i % 3 for i in range(12)]})
    root = write_hive(s3.new_bucket() / "t", rows, ["day", "hour"])
    return penstock.hive(s3.url(root), "day bigint, hour bigint", "n bigint", storage=s3.properties)


@pytest.fixture(scope="module")
def apps(s3: S3Server) -> HiveTable:
    rows = pa.table({"n": range(4), "app": ["shop", "blog", "a/b ü'\"%:=", None]})
    root = write_hive(s3.new_bucket() / "t", rows, ["app"])
    return penstock.hive(s3.url(root), "app string", "n bigint", storage=s3.properties)


def test_a_point_query_on_one_level_lists_the_root_and_the_one_directory(s3: S3Server, apps: HiveTable) -> None:
    with s3.requests() as seen:
        plan = apps.plan("app = 'shop'")
    assert seen.pages == [("t/", ""), ("t/app=shop/", "")]
    assert (seen.gets, seen.heads, plan.report.list_calls) == ([], [], 2)


def test_the_strangest_name_costs_no_more(s3: S3Server, apps: HiveTable) -> None:
    with s3.requests() as seen:
        found = apps.arrow("app LIKE 'a/b%'")
    name = "t/app=a%2Fb ü%27%22%25%3A%3D"
    assert seen.listings == ["t/", f"{name}/"]
    assert set(seen.gets) == set(seen.heads) == {f"{name}/part-0.parquet"}
    assert found.to_pylist() == [{"n": 2, "app": "a/b ü'\"%:="}]


def test_in_of_two_lists_three_directories(s3: S3Server, apps: HiveTable) -> None:
    with s3.requests() as seen:
        plan = apps.plan("app IN ('shop', 'blog', 'nosuch')")
    assert sorted(seen.listings) == ["t/", "t/app=blog/", "t/app=shop/"]
    assert len(seen.pages) == plan.report.list_calls == 3


def test_what_no_directory_matches_lists_the_root_alone(s3: S3Server, apps: HiveTable) -> None:
    with s3.requests() as seen:
        assert apps.arrow("app = 'nosuch'").num_rows == 0
    assert (seen.pages, seen.gets, seen.heads) == ([("t/", "")], [], [])


def test_two_levels_with_a_predicate_on_both_list_three_directories(s3: S3Server, two_levels: HiveTable) -> None:
    with s3.requests() as seen:
        plan = two_levels.plan("day = 2 AND hour = 1")
    assert seen.pages == [("t/", ""), ("t/day=2/", ""), ("t/day=2/hour=1/", "")]
    assert (plan.report.list_calls, len(plan.files)) == (3, 1)


@pytest.mark.parametrize(
    ("where", "lists"),
    [
        ("day = 2", 1 + 1 + 3),
        ("hour = 1", 1 + 4 + 4),
        ("(day = 1 AND hour = 0) OR (day = 3 AND hour = 2)", 1 + 2 + 2),
        ("day = 2 AND hour = 9", 1 + 1),
        ("day * 3 + hour = 7", 1 + 4 + 1),
        ("n = 5", 1 + 4 + 12),
        (None, 1 + 4 + 12),
    ],
)
def test_only_matching_branches_are_listed_each_once(
    s3: S3Server, two_levels: HiveTable, where: str | None, lists: int
) -> None:
    with s3.requests() as seen:
        plan = two_levels.plan(where)
    assert len(seen.listings) == len(set(seen.listings)) == plan.report.list_calls == lists
    assert not seen.gets
    assert not seen.heads


def test_a_range_of_ten_in_1800_makes_eleven_listings_and_the_root_takes_two_pages(
    s3: S3Server, days: HiveTable
) -> None:
    with s3.requests() as seen:
        plan = days.plan("k BETWEEN 500 AND 509")
    assert sorted(seen.listings) == ["t/", *(f"t/k={i}/" for i in range(500, 510))]
    assert plan.report.list_calls == 11
    assert [prefix for prefix, marker in seen.pages if marker] == ["t/"], "one more page, of the root"
    assert len(seen.pages) == 12
    assert (plan.report.level("directories").total, len(plan.files)) == (MANY, 10)


def test_without_a_predicate_every_directory_is_listed_once(s3: S3Server, days: HiveTable) -> None:
    with s3.requests() as seen:
        plan = days.plan()
    assert sorted(seen.listings) == sorted(["t/", *(f"t/k={i}/" for i in range(MANY))])
    assert (plan.report.list_calls, len(seen.pages), len(plan.files)) == (MANY + 1, MANY + 2, MANY)
    assert (seen.gets, seen.heads) == ([], [])


def test_only_files_that_are_read_are_asked_for(s3: S3Server, two_levels: HiveTable) -> None:
    with s3.requests() as seen:
        found = two_levels.arrow("day = 2 AND hour > 0")
    assert sorted(found["n"].to_pylist()) == [7, 8]
    files = {f"t/day=2/hour={hour}/part-0.parquet" for hour in (1, 2)}
    assert set(seen.gets) == files
    assert sorted(seen.heads) == sorted(files), "one Head for each file"
    assert len(seen.gets) <= 2 * len(files), "the footer, and the rest"


def test_partitions_are_counted_from_listings_alone(s3: S3Server, two_levels: HiveTable) -> None:
    with s3.requests() as seen:
        assert two_levels.partitions("day = 2").num_rows == 3
    assert len(seen.pages) == 5
    assert not seen.gets
    assert not seen.heads


def test_filters_on_the_path_open_no_other_file(s3: S3Server, two_levels: HiveTable) -> None:
    with s3.requests() as seen:
        assert two_levels.arrow("day = 2", path="%/hour=1/%")["n"].to_pylist() == [7]
    assert set(seen.gets) == {"t/day=2/hour=1/part-0.parquet"}


def test_opening_reads_one_footer_and_nothing_when_the_schema_is_given(s3: S3Server, two_levels: HiveTable) -> None:
    root, storage = two_levels.storage.url, s3.properties
    with s3.requests() as seen:
        penstock.hive(root, "day bigint, hour bigint", storage=storage)
    first = "t/day=0/hour=0/"
    assert seen.listings == ["t/", "t/day=0/", first]
    assert (set(seen.gets), set(seen.heads)) == ({f"{first}part-0.parquet"}, {f"{first}part-0.parquet"})
    with s3.requests() as seen:
        penstock.hive(root, "day bigint, hour bigint", "n bigint", storage=storage)
    assert (seen.pages, seen.gets, seen.heads) == ([], [], [])


@pytest.mark.parametrize("where", ["nope = 1", "day =", "day = 'x' AND"])
def test_a_bad_predicate_costs_no_request(s3: S3Server, two_levels: HiveTable, where: str) -> None:
    with s3.requests() as seen:
        for ask in (two_levels.plan, two_levels.arrow, two_levels.partitions):
            with pytest.raises(PenstockError):
                ask(where)
    assert (seen.pages, seen.gets, seen.heads) == ([], [], [])


def test_a_neighbour_with_a_longer_name_is_not_below_the_root(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    for name in ("data", "data2"):
        write_file(bucket / name / "k=1" / f"{name}.parquet")
    table = penstock.hive(f"{s3.url(bucket)}/data", "k int", "n bigint", storage=s3.properties)
    with s3.requests() as seen:
        (path,) = table.plan().files.paths.to_pylist()
    assert path == f"{s3.url(bucket)}/data/k=1/data.parquet"
    assert seen.listings == ["data/", "data/k=1/"]


def test_the_concurrent_listing_of_many_directories_is_bounded(
    s3: S3Server, days: HiveTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from penstock.storage.storage import Storage

    listed, running, most, lock = Storage.entries, 0, 0, threading.Lock()

    def counted(self: Storage, path: str) -> object:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            return listed(self, path)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(Storage, "entries", counted)
    table = penstock.hive(days.storage.url, "k int", "n bigint", storage=s3.properties, lists_at_once=3)
    assert len(table.plan("k < 60").files) == 60
    assert 1 < most <= 3


def test_the_same_rows_and_counts_as_on_a_disk(s3: S3Server, two_levels: HiveTable) -> None:
    disk = penstock.hive(Path(s3.root) / two_levels.storage.path, "day bigint, hour bigint", "n bigint")
    for where in (None, "day = 2", "hour IN (0, 2) AND n > 3", "day = 9"):
        mine, other = two_levels.plan(where).report, disk.plan(where).report
        assert (mine.list_calls, mine.files, mine.level("directories")) == (
            other.list_calls,
            other.files,
            other.level("directories"),
        )
        assert two_levels.arrow(where).equals(disk.arrow(where))
