"""A table that is replaced in one commit: schema, partitioning, rules and rows; its history stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import ConflictError
from penstock.lake.create import define
from penstock.lake.layout.coalesce import Coalesce
from penstock.lake.replace import Replacement
from penstock.maps.shred_rule import as_rules


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.t", "app string, n bigint, h map<string,string>", ["app"], coalesce=["app"])
    table.append(pa.Table.from_pylist([{"app": app, "n": 1} for app in "abc"], table.schema))
    return lake


def replacement(table: Any, ddl: str, by: Any = (), rule: Any = None, shred: Any = None) -> Replacement:
    metadata = table.table.metadata
    return Replacement.of(table, define(ddl, by, rule, as_rules(shred), {}, metadata))


def test_everything_is_replaced_and_the_history_stays(lake: Any) -> None:
    table = lake.table("web.t")
    before, uuid = table.version.snapshot_id, table.table.metadata.table_uuid
    new = replacement(table, "n int, site string", ["bucket(4, n)", "site"], Coalesce("site"))
    new.write(pa.table({"n": pa.array([7, 8], pa.int32()), "site": ["x", "y"]}))
    assert lake.table("web.t").count() == 3  # nobody sees it yet
    new.commit()
    table = lake.table("web.t")
    assert table.arrow().sort_by("n").to_pylist() == [{"n": 7, "site": "x"}, {"n": 8, "site": "y"}]
    assert table.plan("site = 'nope'").report.files.kept == 0
    assert table.coalesce.columns == ("site",)
    assert table.table.metadata.table_uuid == uuid
    assert table.at(before).arrow(columns=["app"]).sort_by("app").to_pylist() == [{"app": each} for each in "abc"]


def test_a_replaced_table_is_written_compacted_and_swept(lake: Any) -> None:
    table = lake.table("web.t")
    new = replacement(table, "app string, h map<string,string>", ["app"], Coalesce("app"), {"h": ["k"]})
    new.write(pa.Table.from_pylist([{"app": "z", "h": [("k", "1")]}], new.future.schema))
    new.commit()
    table = lake.table("web.t")
    table.append(pa.Table.from_pylist([{"app": "y", "h": [("k", "2"), ("o", "3")]}], table.schema))
    table.compact()
    assert table.arrow("h['k'] = '2'").to_pylist() == [{"app": "y", "h": [("o", "3"), ("k", "2")]}]
    assert table.partitions().column("app").to_pylist() == ["y", "z"]
    assert table.sweep("1 hour").files == 0


def test_a_replacement_by_no_rows_leaves_an_empty_table(lake: Any) -> None:
    replacement(lake.table("web.t"), "x int").commit()
    assert lake.table("web.t").schema.names == ["x"]
    assert lake.table("web.t").count() == 0


def test_an_empty_table_is_replaced_by_an_empty_one(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "other")
    table = lake.create_table("web.t", "a int")
    replacement(table, "b string", ["b"]).commit()
    assert lake.table("web.t").schema.names == ["b"]


def test_a_writer_in_between_is_not_lost(lake: Any, tmp_path: Path) -> None:
    table = lake.table("web.t")
    new = replacement(table, "x int")
    new.write(pa.table({"x": pa.array([1], pa.int32())}))
    lake.table("web.t").append(pa.Table.from_pylist([{"app": "d", "n": 1}], table.schema))
    files = set((tmp_path / "lake").rglob("*.parquet"))
    with pytest.raises(ConflictError, match="was changed by another writer while it was replaced"):
        new.commit()
    assert lake.table("web.t").count() == 4
    assert len(files) - len(set((tmp_path / "lake").rglob("*.parquet"))) == 1  # what was written is removed


def test_an_abandoned_replacement_leaves_no_file(lake: Any, tmp_path: Path) -> None:
    before = set((tmp_path / "lake").rglob("*.parquet"))
    new = replacement(lake.table("web.t"), "x int")
    new.write(pa.table({"x": pa.array([1], pa.int32())}))
    new.abort()
    assert set((tmp_path / "lake").rglob("*.parquet")) == before
    assert lake.table("web.t").count() == 3


def test_columns_of_a_replaced_table_change_though_an_old_spec_has_their_names(lake: Any) -> None:
    table = lake.table("web.t")
    new = replacement(table, "n int, app string", ["bucket(4, n)"])
    new.write(pa.table({"n": pa.array([7], pa.int32()), "app": ["x"]}))
    new.commit()
    table = lake.table("web.t")
    with table.change_schema() as schema:
        schema.add_column(("more",), pa.int32())
    with table.change_schema() as schema:
        schema.rename_column(("app",), "site")
    with table.change_schema() as schema:
        schema.add_column(("app",), pa.string())
    assert table.arrow().to_pylist() == [{"n": 7, "site": "x", "more": None, "app": None}]
    table.append(table.arrow())
    assert lake.table("web.t").count() == 2


@pytest.mark.parametrize("rows", [True, False])
def test_a_column_that_is_added_while_a_table_is_replaced_is_a_conflict(lake: Any, rows: bool) -> None:
    table = lake.table("web.t") if rows else lake.create_table("web.e", "app string, n bigint")
    new = replacement(table, "n int, site string")
    if rows:
        new.write(pa.table({"n": pa.array([7], pa.int32()), "site": ["x"]}))
    lake.table(table.name).add_column("c", "string")
    with pytest.raises(ConflictError, match="was changed by another writer while it was replaced"):
        new.commit()
    now = lake.table(table.name)
    schemas = [schema.schema_id for schema in now.table.metadata.schemas]
    assert len(set(schemas)) == len(schemas)
    assert (now.count(), now.schema.names[-1]) == (3 if rows else 0, "c")
