"""Managed tables on S3: old snapshots and leftovers are removed through the server, and nothing else is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector

import penstock
from penstock.errors import LakeError, PenstockError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.iceberg_tables import catalog_at
from tests.s3.door import door_to
from tests.s3.server import SECRET, S3Server

NOW = dt.timedelta(0)


@pytest.fixture
def place(s3: S3Server) -> Path:
    return s3.new_bucket()


@pytest.fixture
def properties(s3: S3Server) -> Iterator[dict[str, str]]:
    with door_to(s3.port) as address:
        yield {**s3.properties, "s3.endpoint": address}


@pytest.fixture
def table(s3: S3Server, place: Path, properties: dict[str, str], tmp_path: Path) -> ManagedTable:
    """Two appends of shared files, then a delete that rewrites the first."""
    lake = penstock.connect(catalog=catalog_at(tmp_path, s3.url(place), properties))
    made = lake.create_table("web.t", "app string, n bigint", ["app"], coalesce=["app"])
    made.append(pa.table({"app": ["a", "b"], "n": [1, 2]}))
    made.append(pa.table({"app": ["b", "[x] #1%"], "n": [3, 4]}))
    made.delete("app = 'a'")
    return made


def keys(s3: S3Server, place: Path) -> set[str]:
    """All objects of the bucket, as the server lists them."""
    found = s3._client.get_file_info(FileSelector(place.name, recursive=True))
    return {info.path for info in found if info.is_file}


def put(s3: S3Server, key: str) -> str:
    with s3._client.open_output_stream(key) as file:
        file.write(b"left")
    return key


def test_expire_and_sweep_remove_what_nothing_needs(s3: S3Server, place: Path, table: ManagedTable) -> None:
    rows, before = table.arrow().sort_by("n"), keys(s3, place)
    expired = table.expire(NOW)
    assert (expired.snapshots, expired.files) == (2, 4)
    live = keys(s3, place)
    assert len(before - live) == 4
    assert table.sweep().files == 0  # all are young
    home = next(iter(live)).partition("/data/")[0].partition("/metadata/")[0]
    left = {put(s3, f"{home}/data/app=%5B%23small%5D/left.parquet"), put(s3, f"{home}/metadata/left-m0.avro")}
    kept = put(s3, f"{place.name}/beside.parquet")
    told = table.sweep(NOW, dry_run=True, force=True)
    assert (told.files, told.bytes, set(told.paths)) == (2, 8, {f"s3://{key}" for key in left})
    assert keys(s3, place) == live | left | {kept}
    assert table.sweep(NOW, force=True).files == 2
    assert keys(s3, place) == live | {kept}
    assert table.refresh().arrow().sort_by("n") == rows
    assert table.count() == 3


def test_the_names_of_s3_are_one(s3: S3Server, place: Path, table: ManagedTable) -> None:
    with table.table.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"{table.table.location()}/data".replace("s3://", "s3a://")})
    table.refresh()
    table.append(pa.table({"app": ["z"], "n": [5]}))
    assert any(task.path.startswith("s3a://") for task in table.plan().files)
    before = keys(s3, place)
    assert table.sweep(NOW, force=True).files == 0
    assert keys(s3, place) == before
    assert table.count() == 4


def test_an_unsafe_age_and_a_wrong_secret_delete_nothing(
    s3: S3Server, place: Path, table: ManagedTable, tmp_path: Path
) -> None:
    before = keys(s3, place)
    with pytest.raises(LakeError, match="not safe"):
        table.sweep("1 minute")
    wrong = {**s3.properties, "s3.secret-access-key": f"not-{SECRET}"}
    with pytest.raises(PenstockError) as caught:
        penstock.connect(catalog=catalog_at(tmp_path, s3.url(place), wrong)).table("web.t").sweep(NOW, force=True)
    assert SECRET not in str(caught.value)
    assert keys(s3, place) == before
