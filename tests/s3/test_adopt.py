"""Trees on S3 become tables there: one List call a directory, one footer a file, and no file goes with the table."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import PenstockError
from tests.fixtures.iceberg_tables import catalog_at
from tests.s3.server import S3Server

DAYS, APPS = 3, ["a b", "c%20d"]


@pytest.fixture
def tree(s3: S3Server) -> str:
    """A tree of days and apps, two files each."""
    bucket = s3.new_bucket()
    for day in range(DAYS):
        for app in APPS:
            for part in range(2):
                rows = pa.table({"id": [day * 100 + part]})
                place = bucket / "tree" / f"dt=2026-05-0{day + 1}" / f"app={app}"
                place.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, place / f"{part}.parquet")
    return f"{s3.url(bucket)}/tree"


def test_tree_on_s3_is_adopted_where_it_lies(
    s3: S3Server, tree: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    lake = penstock.connect(catalog=catalog_at(tmp_path, s3.url(s3.new_bucket()), s3.properties))
    partition_by = "dt date, app string"
    with s3.requests() as seen:
        done = lake.adopt(tree, "web.t", partition_by, storage=s3.properties, coalesce=["app"])
    assert (done.files, done.rows) == (12, 12)
    listed = 3 + (1 + DAYS + DAYS * len(APPS))  # three lead to the first file, which the layout is opened by
    assert len([path for path in seen.listings if "tree" in str(path)]) == listed
    opened = [path for path in seen.gets if path.endswith(".parquet")]
    assert (len(set(opened)), len(opened)) == (12, 13)
    table: Any = lake.table("web.t")
    assert len(table.plan("dt = '2026-05-02' AND app = 'a b'").files) == 2
    plain = penstock.hive(tree, partition_by, storage=s3.properties).arrow()
    assert table.arrow().sort_by("id").to_pylist() == plain.sort_by("id").to_pylist()
    table.compact()
    assert table.arrow().sort_by("id").to_pylist() == plain.sort_by("id").to_pylist()
    assert table.sweep(dt.timedelta(0), force=True).files == 0
    assert lake.adopt(tree, "web.t", storage=s3.properties).files == 0
    lake.drop_table("web.t", purge=True)
    assert penstock.hive(tree, partition_by, storage=s3.properties).arrow().num_rows == 12


def test_catalog_that_cannot_read_the_tree_is_one_line_and_changes_nothing(
    s3: S3Server, tree: str, tmp_path: Path
) -> None:
    lake = penstock.connect(tmp_path / "lake")
    with pytest.raises(PenstockError, match="cannot be read with the settings of the catalog"):
        lake.adopt(tree, "web.t", "dt date, app string", storage=s3.properties)
    assert lake.tables() == []
