"""Trees that become tables where they lie: their rows, what prunes, and what happens to them later."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.lake.adopt.adopted_tree import adopted_tree
from tests.fixtures.adopted_trees import (
    PARTITION_BY,
    contents,
    expected,
    hard_tree,
    ids,
    plain_tree,
    table_of,
    write,
)
from tests.fixtures.managed_tables import files_below, local

NOW = dt.timedelta(0)
Rows = list[str]


def as_rows(table: pa.Table, names: list[str] | None = None) -> Rows:
    columns = [table.column(name).to_pylist() for name in names or table.column_names]
    return sorted(repr(tuple(map(_plain, row))) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    """Structs with their fields in one order: files differ in it."""
    return sorted(value.items()) if isinstance(value, dict) else value


# What it is


def test_rows_are_those_of_the_files_with_the_values_of_the_path(lake: penstock.Lake, tree: Path) -> None:
    rows = hard_tree(tree)
    before = contents(tree)
    done = lake.adopt(tree, "web.t", PARTITION_BY, coalesce=["app"])
    assert (done.made, done.files, done.rows, done.known, done.empty) == (True, 24, 120, 0, 1)
    table = table_of(lake)
    assert as_rows(table.arrow()) == as_rows(expected(rows), table.schema.names)
    assert {type_name(f) for f in table.schema} >= {"id int64", "price decimal128(14, 2)", "y double", "dt date32[day]"}
    assert contents(tree) == before
    assert all(Path(local(task.path)).is_relative_to(tree) for task in table.plan().files)
    assert not [path for path in files_below(Path(local(table.table.metadata.location))) if path.endswith("parquet")]


def type_name(field: pa.Field) -> str:
    return f"{field.name} {field.type}"


def test_files_are_pruned_by_partition_and_by_bounds_exactly(lake: penstock.Lake, tree: Path) -> None:
    plain_tree(tree, days=10, files=5, rows=4)
    lake.adopt(tree, "web.t", "dt date")
    table = table_of(lake)
    kept = {
        "TRUE": 50,
        "dt = '2026-01-03'": 5,
        "dt >= '2026-01-09'": 10,
        "id = 77": 1,
        "id BETWEEN 78 AND 81": 2,
        "id = 77 AND dt = '2026-01-01'": 0,
        "dt IS NULL": 0,
        "id IS NULL": 0,
        "id < 0": 0,
    }
    assert {where: len(table.plan(where).files) for where in kept} == kept
    assert table.plan("dt = '2026-01-03'").files[0].partition["dt"].value == dt.date(2026, 1, 3)
    assert table.arrow("id BETWEEN 78 AND 81")["id"].to_pylist() == [78, 79, 80, 81]


def test_logical_partitions_are_known_of_each_file(lake: penstock.Lake, tree: Path) -> None:
    hard_tree(tree)
    lake.adopt(tree, "web.t", PARTITION_BY, coalesce=["app"])
    table = table_of(lake)
    assert (table.coalesce.columns, table.partitioned_by) == (("app",), ["dt", "app"])  # type: ignore[union-attr]
    listed = table.partitions().to_pylist()
    assert {(row["rows"], row["files"], row["shared"]) for row in listed} == {(10, 2, False)}
    assert len(listed) == 12


def test_nan_that_statistics_leave_out_keeps_its_file(lake: penstock.Lake, tree: Path) -> None:
    write(tree / "a.parquet", pa.table({"x": [1.0, float("nan")]}))
    write(tree / "b.parquet", pa.table({"x": [5.0, 6.0]}))
    lake.adopt(tree, "web.t")
    table = table_of(lake)
    assert len(table.plan("x > 100").files) == 2
    assert len(table.arrow("x > 100")) == 1
    assert len(table.plan("x < 3").files) == 1
    counts = table.table.inspect.files().to_pylist()
    assert [each["nan_value_counts"] for each in counts] == [[], []]
    assert [each["upper_bounds"] for each in counts] == [[], []]


def test_partition_value_wins_over_the_columns_of_files(lake: penstock.Lake, tree: Path) -> None:
    write(tree / "app=a" / "1.parquet", pa.table({"id": [1], "APP": ["z"]}))
    write(tree / "app=b" / "1.parquet", pa.table({"id": [2], "app": [7]}))
    lake.adopt(tree, "web.t", "app")
    table = table_of(lake)
    assert as_rows(table.arrow()) == as_rows(pa.table({"id": [1, 2], "app": ["a", "b"]}))
    by_pyiceberg = lake.catalog.load_table("web.t").scan().to_arrow()
    assert as_rows(by_pyiceberg) == as_rows(table.arrow())
    table.add_column("more", "string")  # which must not get the id of the file's column
    table.append(pa.table({"id": [3], "app": ["c"], "more": ["m"]}))
    assert table.arrow("app IN ('a', 'z')")["more"].to_pylist() == [None]


def test_layouts_by_name_and_as_objects_are_adopted(lake: penstock.Lake, tree: Path) -> None:
    plain_tree(tree, days=2, files=1)
    layout = penstock.hive(tree, "dt date")
    lake.register("raw.events", layout)
    assert lake.adopt("raw.events", "web.t").files == 2
    assert lake.adopt(layout, "web.u").files == 2
    assert as_rows(table_of(lake).arrow()) == as_rows(lake.table("raw.events").arrow())


def test_tree_of_more_partitions_than_a_query_may_list_is_adopted(
    lake: penstock.Lake, tree: Path, recwarn: pytest.WarningsRecorder
) -> None:
    plain_tree(tree, days=30, files=1)
    layout = penstock.hive(tree, "dt date", max_partitions=10, max_lists=3, warn_partitions=1)
    assert lake.adopt(layout, "web.t").files == 30
    assert not recwarn.list


def test_levels_in_any_order_are_adopted_and_forbidden_ones_are_an_error(lake: penstock.Lake, tree: Path) -> None:
    write(tree / "a=1" / "b=x" / "1.parquet", pa.table({"id": [1]}))
    write(tree / "b=y" / "a=2" / "2.parquet", pa.table({"id": [2], "more": [3]}))
    layout = penstock.hive(tree, "a int, b string", union_by_name=True, on_forbidden="skip")
    lake.adopt(layout, "web.t")
    wanted = [{"id": 1, "more": None, "a": 1, "b": "x"}, {"id": 2, "more": 3, "a": 2, "b": "y"}]
    assert table_of(lake).arrow().sort_by("id").to_pylist() == wanted
    assert adopted_tree(layout).layout.on_forbidden == "error"


# Again


def test_same_adoption_again_adds_what_is_new_and_tells_what_is_gone(lake: penstock.Lake, tree: Path) -> None:
    rows = plain_tree(tree, days=3, files=2)
    lake.adopt(tree, "web.t", "dt date")
    head = table_of(lake).table.metadata.current_snapshot_id
    again = lake.adopt(tree, "web.t", "dt date")
    assert (again.made, again.files, again.known) == (False, 0, 6)
    assert table_of(lake).table.metadata.current_snapshot_id == head
    more = plain_tree(tree, days=4, files=1, start=1_000)
    gone, changed = sorted(tree.glob("dt=2026-01-0[12]/part-00000[02].parquet"))
    kept = gone.read_bytes()
    gone.unlink()
    write(changed, pa.table({"id": list(range(500))}))
    again = lake.adopt(tree, "web.t")
    assert (again.files, again.rows, again.known) == (4, 16, 5)
    assert [path.removeprefix("file:") for path in (*again.vanished, *again.changed)] == [str(gone), str(changed)]
    assert [str(gone) in note for note in again.notes] == [True, False]
    gone.write_bytes(kept)
    assert lake.adopt(tree, "web.t").vanished == ()
    table = table_of(lake)
    table.delete("dt = '2026-01-02'")
    wanted = [*rows.to_pylist(), *more.to_pylist()]
    assert ids(table) == sorted(row["id"] for row in wanted if row["dt"] != dt.date(2026, 1, 2))


def test_files_that_were_compacted_or_deleted_are_not_adopted_again(lake: penstock.Lake, tree: Path) -> None:
    rows = hard_tree(tree)
    before = contents(tree)
    lake.adopt(tree, "web.t", PARTITION_BY, coalesce=["app"])
    table = table_of(lake)
    done = table.compact()
    assert (done.rewritten, done.written, done.folded) == (24, 2, 12)
    assert as_rows(table.arrow()) == as_rows(expected(rows), table.schema.names)
    assert lake.adopt(tree, "web.t").files == 0
    time.sleep(0.002)
    assert table.expire(NOW).snapshots > 0
    assert table.sweep(NOW, force=True).files == 0, "the list of adopted files is needed"
    assert contents(tree) == before
    assert (lake.adopt(tree, "web.t").files, lake.adopt(tree, "web.t").vanished) == (0, ())
    table.refresh().delete("app = 'shop'")
    more = hard_tree(tree, start=1_000)
    assert lake.adopt(tree, "web.t").files == 24
    staying = [row for row in rows if row["app"] != "shop"] + more
    assert as_rows(table.refresh().arrow()) == as_rows(expected(staying), table.schema.names)
    assert table.compact().rewritten > 0
    assert as_rows(table.arrow()) == as_rows(expected(staying), table.schema.names)


def test_maintenance_and_purge_leave_the_tree_as_it_is(lake: penstock.Lake, tree: Path) -> None:
    rows = hard_tree(tree)
    before, plain = contents(tree), as_rows(penstock.hive(tree, PARTITION_BY, "id bigint").arrow())
    for name in ("web.t", "web.u"):
        lake.adopt(tree, name, PARTITION_BY, coalesce=["app"])
    table = table_of(lake)
    table.overwrite(pa.table({"id": [1], "dt": [dt.date(2026, 5, 17)], "app": ["shop"]}))
    time.sleep(0.002)
    assert table.expire(NOW).files > 0
    assert table.sweep(NOW, force=True).files == 0
    assert contents(tree) == before
    table_of(lake, "web.u").compact()
    lake.drop_table("web.t", purge=True)
    lake.drop_table("web.u", purge=True)
    assert not files_below(lake.warehouse)  # type: ignore[arg-type]
    assert contents(tree) == before
    assert as_rows(penstock.hive(tree, PARTITION_BY, "id bigint").arrow()) == plain
    assert len(plain) == len(rows)


def test_tree_inside_of_another_tables_folder_survives_its_sweep(lake: penstock.Lake, tmp_path: Path) -> None:
    other = lake.create_table("web.other", "id bigint")
    tree = Path(local(other.table.metadata.location)) / "imported"
    rows = plain_tree(tree, days=2, files=1)
    lake.adopt(tree, "web.t", "dt date")
    assert other.sweep(NOW, force=True).files == 0
    assert ids(table_of(lake)) == rows["id"].to_pylist()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_of_adopted_files_change_like_others(lake: penstock.Lake, tree: Path, mode: str) -> None:
    rows = hard_tree(tree)
    before = contents(tree)
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    lake.adopt(tree, "web.t", PARTITION_BY, coalesce=["app"], shred={"counts": ["k1"]}, properties=modes)
    table = table_of(lake)
    table.delete("id % 7 = 3 AND dt = DATE'2026-05-17'")
    table.update({"Name": "'new'"}, "app IS NULL")
    wanted = [row for row in rows if row["dt"].day != 17 or row["id"] % 7 != 3]
    wanted = [{**row, "Name": "new"} if row["app"] is None else row for row in wanted]
    assert as_rows(table.arrow()) == as_rows(expected(wanted), table.schema.names)
    table.append(pa.table({"id": [5_000], "dt": [dt.date(2026, 5, 17)], "app": ["shop"]}))
    keyed = table.count("counts['k1'] IS NOT NULL")
    assert lake.adopt(tree, "web.t").files == 0
    table.refresh().compact()
    assert as_rows(table.arrow("id <> 5000")) == as_rows(expected(wanted), table.schema.names)
    assert table.count("counts['k1'] IS NOT NULL") == keyed > 0
    assert contents(tree) == before


def test_rolled_back_files_are_adopted_again(lake: penstock.Lake, tree: Path) -> None:
    rows = plain_tree(tree, days=2, files=1)
    lake.adopt(tree, "web.t", "dt date")
    table = table_of(lake)
    first = table.table.metadata.current_snapshot_id
    more = plain_tree(tree, days=1, files=1, start=1_000)
    lake.adopt(tree, "web.t")
    table.refresh().rollback(first)
    assert ids(table) == rows["id"].to_pylist()
    assert lake.adopt(tree, "web.t").files == 1
    assert ids(table) == [*rows["id"].to_pylist(), *more["id"].to_pylist()]


def test_files_with_more_columns_and_wider_types_fit_the_table(lake: penstock.Lake, tree: Path) -> None:
    write(tree / "1.parquet", pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": pa.scalar(1, pa.int32())}]}))
    lake.adopt(tree, "web.t")
    table = table_of(lake)
    table.rename_column("id", "number")
    table.drop_column("s")
    write(tree / "2.parquet", pa.table({"id": [1 << 40], "s": [{"a": 1}], "New": ["x"]}))
    lake.adopt(tree, "web.t")
    table.refresh()
    assert table.arrow().sort_by("number").to_pylist() == [
        {"number": 1, "New": None},
        {"number": 1 << 40, "New": "x"},
    ]
    assert len(table.plan("number > 5").files) == 1


def test_bounds_of_narrower_files_are_those_of_the_tables_types(lake: penstock.Lake, tree: Path) -> None:
    narrow = {"id": pa.array([-5, -2], pa.int16()), "x": pa.array([0.5, 0.75], pa.float32())}
    write(tree / "1.parquet", pa.table(narrow))
    write(tree / "2.parquet", pa.table({"id": [7, 9], "x": [2.0, 3.0]}))
    lake.adopt(tree, "web.t")
    table = table_of(lake)
    bounds = [each["readable_metrics"] for each in table.table.inspect.files().to_pylist()]
    assert [(each["id"]["lower_bound"], each["id"]["upper_bound"]) for each in bounds] == [(-5, -2), (7, 9)]
    assert [each["x"]["lower_bound"] for each in bounds] == [0.5, 2.0]
    raw = [each["lower_bounds"] for each in table.table.inspect.files().to_pylist()]
    assert {len(bound) for each in raw for _, bound in each} == {8}
    assert [len(table.plan(where).files) for where in ("id < 0", "id > 0", "x < 1")] == [1, 1, 1]


def test_tables_partitioned_in_another_order_adopt_too(lake: penstock.Lake, tree: Path) -> None:
    rows = hard_tree(tree)
    schema = penstock.hive(tree, PARTITION_BY, "id bigint").schema
    lake.create_table("web.t", schema, ["app", "dt"])
    lake.adopt(tree, "web.t", PARTITION_BY)
    table = table_of(lake)
    assert as_rows(table.arrow()) == as_rows(expected(rows), table.schema.names)
    assert len(table.plan("app = 'shop' AND dt = '2026-05-17'").files) == 2
