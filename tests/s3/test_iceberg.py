"""Iceberg tables on S3: the same answers as on a disk, and exactly the requests that they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.tables.iceberg.manifest.manifest_cache import default_cache
from penstock.tables.iceberg.metadata import catalogs as opening
from tests.fixtures.iceberg_tables import append_by_hand, catalog_at, repartition
from tests.s3.server import S3Server


@pytest.fixture
def made(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of three days, each with a manifest of its own; nothing of it is in a cache."""
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    for kept in (default_cache, opening._lists, opening._batches):
        kept.cache_clear()
    catalog = catalog_at(tmp_path, s3.url(s3.new_bucket()), s3.properties)
    table = catalog.create_table("web.t", pa.schema({"id": pa.int64(), "day": pa.int32(), "app": pa.string()}))
    repartition(table, ["day"])
    for day in range(3):
        rows = {"id": [2 * day, 2 * day + 1], "day": pa.array([day, day], pa.int32()), "app": ["a", f"b{day}"]}
        append_by_hand(table, pa.table(rows))
    yield catalog
    default_cache.cache_clear()


def kinds(paths: list[str]) -> list[str]:
    """What was read, by the end of its name."""
    ends = {".metadata.json": "metadata", ".parquet": "data"}
    found = [next((kind for end, kind in ends.items() if path.endswith(end)), path) for path in paths]
    return ["manifest list" if "snap-" in path else ("manifest" if path.endswith(".avro") else path) for path in found]


def test_a_point_query_reads_the_manifest_list_and_the_one_manifest(s3: S3Server, made: Any) -> None:
    with s3.requests() as seen:
        table = penstock.connect(catalog=made).table("web.t")
    assert kinds(seen.gets) == ["metadata"]
    with s3.requests() as seen:
        plan = table.plan("day = 1 AND app = 'a'")
    assert (len(plan.files), seen.listings) == (1, [])
    assert sorted(set(kinds(seen.gets))) == ["manifest", "manifest list"]
    assert len({path for path in seen.gets if path.endswith(".avro")}) == 2


def test_a_second_plan_reads_nothing(s3: S3Server, made: Any) -> None:
    table = penstock.connect(catalog=made).table("web.t")
    assert len(table.plan().files) == 3
    with s3.requests() as seen:
        assert len(table.plan("day >= 1").files) == 2
        assert table.count("day = 2") == 2
        assert table.partitions().num_rows == 3
    assert (seen.gets, seen.heads, seen.listings) == ([], [], [])


def test_what_was_decoded_is_found_on_the_disk_by_another_process(s3: S3Server, made: Any) -> None:
    penstock.connect(catalog=made).table("web.t").plan()
    for kept in (default_cache, opening._lists, opening._batches):
        kept.cache_clear()
    table = penstock.connect(catalog=made).table("web.t")
    with s3.requests() as seen:
        assert len(table.plan().files) == 3
    assert set(kinds(seen.gets)) == {"manifest list"}


def test_only_files_that_can_match_are_read(s3: S3Server, made: Any) -> None:
    table = penstock.connect(catalog=made).table("web.t")
    with s3.requests() as seen:
        found = table.arrow("day = 1 AND app = 'b1'")
    assert found.to_pylist() == [{"id": 3, "day": 1, "app": "b1"}]
    assert len({path for path in seen.gets if path.endswith(".parquet")}) == 1


def test_a_metadata_file_opens_with_storage_properties(s3: S3Server, made: Any) -> None:
    place = made.load_table("web.t").metadata_location
    assert penstock.iceberg(place, storage=s3.properties).count("app LIKE 'b%'") == 3
    wrong = {**s3.properties, "s3.secret-access-key": "not-the-secret"}
    with pytest.raises(PenstockError) as caught:
        penstock.iceberg(place, storage=wrong)
    assert "not-the-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
