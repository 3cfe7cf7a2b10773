"""Iceberg tables through Spark Connect: by field id on the server, or an error that says what needs another session."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock.errors import LakeError, PenstockError
from tests.fixtures.iceberg_deletes import data_files, delete_positions
from tests.fixtures.iceberg_tables import create
from tests.spark.iceberg_layouts import opened
from tests.spark.test_hive_sessions import run_python

pytestmark = pytest.mark.spark
NEEDED = ("grpc", "grpc_status", "google.protobuf", "google.rpc", "pandas", "zstandard")
CONNECT = """
import json, os, sys
from pyspark.sql import SparkSession
import penstock
os.environ["SPARK_TESTING"] = "1"  # the server takes any free port
spark = SparkSession.builder.remote("local").getOrCreate()
table = penstock.connect(sys.argv[1]).table("web.t")
found = {}
for text in ["b = 'x' AND id > 4", "a = 'p' AND c = 'm'", "TRUE", "b = 'none'"]:
    df = table.dataframe(spark, where=text)
    found[text] = [sorted(row.id for row in df.collect()), df.columns]
print(json.dumps(found))
spark.stop()
"""


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def rows() -> pa.Table:
    return pa.table({"id": pa.array(range(20)), "a": ["x", "y"] * 10, "b": ["p", "q"] * 10, "c": ["m", "n"] * 10})


def _has_connect() -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in NEEDED)
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not _has_connect(), reason="pyspark[connect] is not installed")
def test_swapped_columns_are_read_by_id_on_the_server(tmp_path: Path) -> None:
    table = create(tmp_path, rows().schema, ["c"])
    table.append(rows())
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    found = json.loads(run_python(CONNECT, str(tmp_path), timeout=400).splitlines()[-1])
    assert {columns == ["id", "b", "a", "c"] for _, columns in found.values()} == {True}
    assert {text: ids for text, (ids, _) in found.items()} == {
        "b = 'x' AND id > 4": [6, 8, 10, 12, 14, 16, 18],
        "a = 'p' AND c = 'm'": list(range(0, 20, 2)),
        "TRUE": list(range(20)),
        "b = 'none'": [],
    }


def test_what_connect_cannot_be_given_is_said(tmp_path: Path) -> None:
    session = SimpleNamespace()  # a session of Spark Connect has no `_jsparkSession`
    table = create(tmp_path, rows().schema, ["c"])
    table.append(rows())
    with pytest.raises(PenstockError, match="the filter is needed here"):
        opened(tmp_path).dataframe(session)
    delete_positions(table, {data_files(table)[0].file_path: [0]})
    with pytest.raises(LakeError, match="has deleted rows, which Spark Connect cannot be given; use a classic"):
        opened(tmp_path).dataframe(session, where="TRUE")
