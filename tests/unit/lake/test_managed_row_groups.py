"""Inside a shared file each row group has some logical partitions, so a query of one reads little of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import bag, local, managed_table

SIZES = {"a": 130_000, "b": 300, "c": 40_000, "d": 9_000, **{f"e{i:03d}": 40 for i in range(200)}}


def skewed() -> pa.Table:
    """Rows in no order, of one large, three middle and many tiny apps."""
    apps = np.repeat(list(SIZES), list(SIZES.values()))
    np.random.default_rng(5).shuffle(apps)
    ids = np.arange(len(apps))
    return pa.table({"id": ids, "app": apps, "text": [f"{i * 7919 % 100_003:016x}" for i in range(len(apps))]})


def groups(table: ManagedTable) -> list[tuple[str, str, int]]:
    """The first and the last app of each row group of the one file, and its rows."""
    (task,) = table.plan().files
    footer = pq.read_metadata(local(task.path))
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        statistics = group.column(1).statistics
        found.append((statistics.min, statistics.max, group.num_rows))
    return found


@pytest.fixture
def shared(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, "id bigint, app string, text string", ["app"], coalesce=["app"])
    table.append(skewed())
    return table


def test_an_app_lies_in_as_few_row_groups_as_it_needs(shared: ManagedTable) -> None:
    found = groups(shared)
    assert sum(rows for *_, rows in found) == sum(SIZES.values())
    of_app = {app: [rows for low, high, rows in found if low <= app <= high] for app in SIZES}
    assert len(of_app["a"]) == 2
    assert max(of_app["a"]) == 65_536  # no row group has more rows
    assert {app for app, own in of_app.items() if len(own) > 1} == {"a"}
    assert max(own[0] for app, own in of_app.items() if app != "a") < 60_000
    assert of_app["e000"] == of_app["e001"]  # tiny ones share a row group too


@pytest.mark.parametrize("app", ["b", "d", "e000", "e199"])
def test_rows_are_those_that_were_written(shared: ManagedTable, app: str) -> None:
    rows = skewed()
    expected = rows.filter(pa.compute.equal(rows["app"], app))
    assert bag(shared.arrow(f"app = '{app}'")) == bag(expected)


def test_the_files_of_one_partition_have_large_row_groups(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, app string, text string")
    table.append(skewed())
    assert len(groups(table)) == 1


def test_wide_rows_make_row_groups_of_more_bytes(tmp_path: Path) -> None:
    """Thousands of tiny column chunks would cost more than they spare."""
    rows, columns = skewed(), 30
    wide = {f"text{i}": rows["text"] for i in range(columns)}
    fields = ", ".join(f"{name} string" for name in wide)
    table = managed_table(tmp_path, f"id bigint, app string, text string, {fields}", ["app"], coalesce=["app"])
    table.append(pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **wide}))
    (task,) = table.plan().files
    footer = pq.read_metadata(local(task.path))
    smallest = min(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups - 1))
    assert smallest > (columns + 3) * 20_000
