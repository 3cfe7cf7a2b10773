"""Partition values as people and machines see them: source, transform, range, and the clock of the table's zone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from penstock.prune.notebook import _rows
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.managed_tables import NAME, managed_table
from tests.fixtures.pages import collect

MOMENT = datetime(2026, 5, 17, 6, 40, tzinfo=UTC)
TOKYO = "2026-05-17 15:40:00+09:00"


def rows() -> pa.Table:
    moments = pa.array([MOMENT, None], pa.timestamp("us", "UTC"))
    return pa.table({"ts": moments, "app": ["a", "b"], "n": pa.array([1, 2], pa.int64())})


@pytest.fixture
def lake(tmp_path: Path) -> penstock.lake.lake.Lake:  # type: ignore[name-defined]
    schema = "ts timestamp, app string, n bigint"
    managed_table(tmp_path, schema, ["day(ts)", "ts", "bucket(4, n)"]).append(rows())
    return penstock.connect(tmp_path, timezone="Asia/Tokyo")


def test_a_plan_for_machines_has_source_transform_and_range_of_every_field(lake: penstock.lake.lake.Lake) -> None:  # type: ignore[name-defined]
    (task,) = lake.table(NAME).plan("app = 'a'").to_dict()["tasks"]
    day, ts, bucket = task["partition"].values()
    assert day == {
        "value": "2026-05-17",
        "source": "ts",
        "transform": "day",
        "lower": "2026-05-17 09:00:00+09:00",
        "upper": "2026-05-18 09:00:00+09:00",
    }
    assert (ts["value"], ts["lower"], ts["upper"]) == (TOKYO, TOKYO, "2026-05-17 15:40:00.000001+09:00")
    assert bucket["transform"] == "bucket[4]"
    assert (bucket["source"], bucket["lower"], bucket["upper"]) == ("n", None, None)
    assert task["logical"] is None
    assert json.loads(json.dumps(task)) == task


def test_a_plan_for_machines_has_the_logical_values_of_a_shared_file(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "ts timestamp, app string, n bigint", ["ts", "app"], coalesce=["app", "ts"])
    table.append(rows())
    (task,) = penstock.connect(tmp_path, timezone="Asia/Tokyo").table(NAME).plan().to_dict()["tasks"]
    assert task["logical"]["complete"] is True
    values = [dict(zip(task["logical"]["columns"], each, strict=True)) for each in task["logical"]["tuples"]]
    assert sorted(values, key=str) == sorted([{"ts": TOKYO, "app": "a"}, {"ts": None, "app": "b"}], key=str)


def test_the_value_itself_is_the_same_moment(lake: penstock.lake.lake.Lake) -> None:  # type: ignore[name-defined]
    (file,) = lake.table(NAME).plan("app = 'a'").files
    assert file.partition["ts"].value == MOMENT
    assert str(file.partition["ts"].value) == TOKYO


def test_commands_notebooks_and_pages_show_the_clock_of_the_zone(tmp_path: Path) -> None:
    data = rows().select(["n"]).append_column("ts", pa.array(["2026-05-17 15:40:00", None]))
    write_hive(tmp_path / "t", data, ["ts"])
    words = [str(tmp_path / "t"), "--partition-by", "ts timestamp", "--timezone", "Asia/Tokyo"]
    for command in (["partitions"], ["partitions", "--json"], ["explain", "--json"]):
        done = CliRunner().invoke(main, [command[0], *words, *command[1:]])
        assert TOKYO in done.output, done.output
    table = penstock.hive(tmp_path / "t", "ts timestamp", timezone="Asia/Tokyo")
    assert TOKYO in _rows(table.partitions())
    assert TOKYO in json.dumps(collect(table))
    assert table.partitions().schema.field("ts").type == pa.timestamp("us", "UTC")
