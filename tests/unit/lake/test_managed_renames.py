"""Rules follow their columns when another engine renames them: files stay shared, and maps stay shredded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import MapType, StringType

from penstock import Coalesce, Shred
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import entries, managed_table, reopened

SCHEMA = "id bigint, app string, region string, headers map<string, string>, s struct<m: map<string, string>>"


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rows(names: list[str], first: int, apps: str = "aabc") -> pa.Table:
    kind = pa.map_(pa.string(), pa.string())
    maps = [{"k": str(i), "x": "y"} for i in range(len(apps))]
    columns = [
        pa.array(range(first, first + len(apps)), pa.int64()), pa.array(list(apps)), pa.array(["eu"] * len(apps)),
        pa.array([list(m.items()) for m in maps], kind),
        pa.array([{"m": list(m.items())} for m in maps], pa.struct({"m": kind})),
    ]  # fmt: skip
    return pa.table(columns, names=names)


def renamed(root: Path, **names: str) -> ManagedTable:
    """The table after PyIceberg has renamed columns in one commit."""
    table = reopened(root)
    with table.table.update_schema() as update:
        for old, new in names.items():
            update.rename_column(old.replace("__", "."), new)
    return reopened(root)


def shared_specs(table: ManagedTable) -> set[int]:
    return {entry.data_file.spec_id for entry in entries(table)}


def made(root: Path, **options: Any) -> ManagedTable:
    table = managed_table(root, SCHEMA, ["app"], **options)
    table.append(rows(["id", "app", "region", "headers", "s"], 0))
    table.append(rows(["id", "app", "region", "headers", "s"], 10))
    return table


NEW = ["id", "application", "region", "headers", "s"]


@pytest.mark.parametrize("rule", [Coalesce("app"), Coalesce("app", values=["a", "b", "c"])])
def test_a_rule_for_sharing_files_follows_its_column(tmp_path: Path, rule: Coalesce) -> None:
    before = made(tmp_path, coalesce=rule)
    specs = shared_specs(before)
    table = renamed(tmp_path, app="application")
    assert table.coalesce is not None
    assert table.coalesce.columns == ("application",)
    assert table.coalesce.values == rule.values
    table.append(rows(NEW, 20))
    done = table.compact()
    assert (done.files_after, done.promoted) == (1, 0)
    assert shared_specs(table) == specs, "nothing got files of its own"
    assert table.partitions().num_rows == 3
    assert len(table.plan("application = 'x'").files) == 0
    assert sorted(table.arrow("application = 'a'")["id"].to_pylist()) == [0, 1, 10, 11, 20, 21]


def test_a_rule_follows_its_column_though_another_one_got_the_name(tmp_path: Path) -> None:
    made(tmp_path, shred={"headers": ["k"]})
    table = renamed(tmp_path, headers="old")
    with table.table.update_schema() as update:
        update.add_column("headers", MapType(90, StringType(), 91, StringType()))
    table = reopened(tmp_path)
    assert table.shred == {"old": Shred("k")}
    data = rows(["id", "app", "region", "old", "s"], 20)
    table.append(data.append_column("headers", data["old"]))
    assert len(table.plan("old['k'] = '9'").files) == 0
    assert len(table.plan("headers['k'] = '9'").files) > 0


def test_a_rule_that_was_set_as_a_property_follows_its_column_too(tmp_path: Path) -> None:
    table = made(tmp_path)
    with table.table.transaction() as change:
        change.set_properties({"penstock.coalesce.columns": "app", "penstock.coalesce.below-bytes": "1000000"})
    table = renamed(tmp_path, app="application")
    assert table.compact().folded == 3
    assert table.coalesce is not None
    assert table.coalesce.columns == ("application",)


@pytest.mark.parametrize("rule", [Shred("k"), Shred("k", mode="mirror"), Shred(auto=True)])
def test_rules_for_maps_follow_their_columns(tmp_path: Path, rule: Shred) -> None:
    before = made(tmp_path, shred={"headers": rule, "s.m": rule})
    records = {task.shredding for task in before.plan().files}
    table = renamed(tmp_path, headers="hdrs", s__m="inner", s="o")
    assert table.shred == {"hdrs": rule, "o.inner": rule}
    names = ["id", "app", "region", "hdrs", "o"]
    data = rows(names, 20)
    struct = pa.array([{"inner": each["m"]} for each in data["o"].to_pylist()],
                      pa.struct({"inner": data["o"].type.field(0).type}))  # fmt: skip
    table.append(data.set_column(4, "o", struct))
    table.compact()
    assert {task.shredding for task in table.plan().files} == records, "the same sidecars as before"
    assert str(table.compact()) == "nothing to compact"
    assert sorted(table.arrow("hdrs['k'] = '1' AND o.inner['k'] = '1'")["id"].to_pylist()) == [1, 11, 21]
    assert len(table.plan("hdrs['k'] = '9'").files) == 0
    table.set_shred({"hdrs": ["x"]})
    assert reopened(tmp_path).shred == {"o.inner": rule, "hdrs": Shred("x")}
    table.set_shred({"hdrs": None, "o.inner": None})
    assert reopened(tmp_path).shred == {}
    assert [name for name in reopened(tmp_path).table.metadata.properties if "headers" in name] == []
