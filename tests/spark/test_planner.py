"""How Spark asks Python: nothing listens, and what nobody can ask for any more is not kept."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.spark.scan import planner
from tests.fixtures.processes import wait_until
from tests.spark.hive_layouts import make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def listening_sockets() -> set[str]:
    """The TCP sockets of this process that accept connections."""
    tables = [Path(f"/proc/self/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    listening = {line.split()[9] for lines in tables for line in lines if line.split()[3] == "0A"}
    links = [_link(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    return {link for link in links if link.removeprefix("socket:[").removesuffix("]") in listening}


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


@pytest.mark.usefixtures("utc")
def test_python_does_not_listen_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    gateway = spark.sparkContext._gateway.__dict__  # type: ignore[union-attr]
    before, server = listening_sockets(), gateway.get("_callback_server")  # another test's foreachBatch starts one
    layout = make(tmp_path / "t", "app string", [["a"], ["b"]])
    assert layout.ours(spark).where("app = 'a'").count() == 3
    assert listening_sockets() <= before
    assert gateway.get("_callback_server") is server


@pytest.mark.usefixtures("utc")
def test_sources_without_a_dataframe_are_forgotten_and_others_are_not(spark: SparkSession, tmp_path: Path) -> None:
    layouts = [make(tmp_path / str(i), "app string", [["a"], ["b"]]) for i in range(20)]
    kept = layouts[0].ours(spark)
    names = {name for layout in layouts for name in _sources_of(layout.root)}
    for layout in layouts:
        assert layout.ours(spark).where("app = 'a'").count() == 3

    def only_one_is_left() -> bool:
        gc.collect()
        spark._jvm.System.gc()  # type: ignore[union-attr]
        return {name for layout in layouts for name in _sources_of(layout.root)} == names

    assert len(names) == 1
    wait_until(only_one_is_left)
    assert kept.where("app = 'b'").count() == 3


def _sources_of(root: Path) -> list[str]:
    return [name for name in list(planner._sources) if f"{root} " in name]


@pytest.mark.usefixtures("utc")
def test_a_dataframe_whose_files_are_gone_says_so_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.t", "id bigint")
    table.append(pa.table({"id": [1, 2, 3]}))
    old = table.dataframe(spark)
    rows: Any = old.where("id > 1")
    assert rows.count() == 2
    table.overwrite(pa.table({"id": [4]}))
    table.expire("0 seconds")
    for query in (rows, old):
        with pytest.raises(PenstockError, match="does not exist") as raised:
            query.collect()
        assert "\n" not in str(raised.value)
    assert table.dataframe(spark).count() == 1


@pytest.mark.usefixtures("utc")
def test_files_that_are_missing_elsewhere_are_sparks_own_error(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    rows = spark.read.parquet(str(tmp_path / "plain"))
    shutil.rmtree(tmp_path / "plain")
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as raised:
        rows.collect()
    assert not isinstance(raised.value, PenstockError)
