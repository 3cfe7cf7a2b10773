"""Partition fields that are added, dropped and replaced: which files a query opens, what a compaction does."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import ConflictError, LakeError, SchemaError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.duckdb_reader import connect_duckdb
from tests.fixtures.managed_tables import head_id, local, managed_table, reopened

DDL = "ts timestamp, app string, id bigint"
DAY = "ts >= '2026-05-02T00:00:00+00:00' AND ts < '2026-05-03T00:00:00+00:00'"
VERSIONS = ["1", "2"]


def rows(first: int) -> pa.Table:
    """Twelve rows: four days, and three apps on each."""
    days = [dt.datetime(2026, 5, 1 + i % 4, 12, tzinfo=dt.UTC) for i in range(12)]
    return pa.table({"ts": days, "app": [f"a{i % 3}" for i in range(12)], "id": range(first, first + 12)})


def made(root: Path, partition_by: list[str], version: str = "2", **options: Any) -> ManagedTable:
    table = managed_table(root, DDL, partition_by, properties={"format-version": version}, **options)
    table.append(rows(0))
    return table


def files(table: ManagedTable, where: str | None = None) -> int:
    return len(table.plan(where).files)


def judged(table: ManagedTable) -> None:
    """PyIceberg and DuckDB read the rows that Penstock reads; PyIceberg never plans fewer files."""
    theirs = table.table.catalog.load_table(table.name)
    duck = connect_duckdb()
    metadata = local(theirs.metadata_location)
    for where in ("id >= 0", "app = 'a1'", DAY):
        expected = sorted(table.arrow(where).column("id").to_pylist())
        query = f"SELECT id FROM iceberg_scan('{metadata}') WHERE {where} ORDER BY id"
        assert [row[0] for row in duck.sql(query).fetchall()] == expected
        scan = theirs.scan(row_filter=where)
        assert sorted(scan.to_arrow().column("id").to_pylist()) == expected
        assert files(table, where) <= len({task.file.file_path for task in scan.plan_files()})


@pytest.mark.parametrize("version", VERSIONS)
def test_each_file_is_pruned_by_the_spec_that_it_was_written_by(tmp_path: Path, version: str) -> None:
    table = made(tmp_path, ["app"], version)
    assert (files(table), files(table, "app = 'a1'"), files(table, DAY)) == (3, 1, 3)
    table.add_partition_field("day(ts)")
    assert table.partitioned_by == ["app", "day(ts)"]
    assert files(table) == 3, "files that exist stay as they are"
    table.append(rows(12))
    # Of the old spec one of 3 and all 3, of the new one four of 12 and three of 12.
    assert (files(table), files(table, "app = 'a1'"), files(table, DAY)) == (3 + 12, 1 + 4, 3 + 3)
    judged(table)
    table.drop_partition_field("app")
    assert table.partitioned_by == ["day(ts)"]
    table.append(rows(24))
    # A day of the newest spec has all apps; the bounds of app do not tell them apart.
    assert (files(table), files(table, "app = 'a1'"), files(table, DAY)) == (3 + 12 + 4, 1 + 4 + 4, 3 + 3 + 1)
    judged(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_brings_the_files_of_older_specs_to_the_new_one(tmp_path: Path, version: str) -> None:
    table = made(tmp_path, ["app"], version)
    table.replace_partition_field("app", "day(ts)")
    table.append(rows(12))
    assert files(table) == 3 + 4
    done = table.compact()
    assert (done.files_before, done.files_after, done.rewritten, done.written) == (7, 4, 7, 4)
    assert {task.spec_id for task in table.plan().files} == {table.table.metadata.default_spec_id}
    assert (files(table), files(table, DAY), table.count()) == (4, 1, 24)
    judged(table)
    assert table.compact().rewritten == 0


def test_compaction_of_a_part_leaves_the_other_files_of_older_specs(tmp_path: Path) -> None:
    table = made(tmp_path, ["app"])
    table.add_partition_field("day(ts)")
    done = table.compact("app = 'a1'")
    assert (done.rewritten, done.written, files(table)) == (1, 4, 2 + 4)
    judged(table)


def test_a_table_without_partitions_gets_some_and_loses_them_again(tmp_path: Path) -> None:
    table = made(tmp_path, [])
    table.add_partition_field("bucket(4, id)")
    table.add_partition_field("truncate(1, app)")
    assert table.partitioned_by == ["bucket(4, id)", "truncate(1, app)"]
    table.append(rows(12))
    assert files(table) == 1 + 4
    judged(table)
    for field in list(table.partitioned_by):
        table.drop_partition_field(field)
    assert table.table.metadata.default_spec_id == 0, "the spec that it began with"
    assert table.compact().files_after == 1
    judged(table)


def test_a_field_that_comes_back_has_the_id_and_the_name_that_it_had(tmp_path: Path) -> None:
    table = made(tmp_path, ["day(ts)", "app"])
    before = table.table.metadata.spec()
    table.drop_partition_field("ts_day")
    table.add_partition_field("days(ts)")
    fields = table.table.metadata.spec().fields
    assert [(field.field_id, field.name) for field in fields] == [(1001, "app"), (1000, "ts_day")]
    table.replace_partition_field("app", "month(ts)")
    table.replace_partition_field("month(ts)", "app")
    with table.change_schema() as change:
        change.drop_partition_field("app")
        change.drop_partition_field("ts_day")
        change.add_partition_field("day(ts)")
        change.add_partition_field("app")
    assert table.table.metadata.spec() == before, "and the same spec is the same one"
    assert table.compact().rewritten == 0


def test_names_of_fields_are_never_those_of_other_fields_or_columns(tmp_path: Path) -> None:
    table = managed_table(tmp_path, "id bigint, ts timestamp, ts_day string", ["bucket(4, id)"])
    table.replace_partition_field("bucket(4, id)", "bucket(8, id)")
    table.add_partition_field("day(ts)")
    names = [field.name for spec in table.table.metadata.partition_specs for field in spec.fields]
    assert set(names) == {"id_bucket", "id_bucket_8", "ts_day_2"}
    table.append(pa.table({"id": [1], "ts": [dt.datetime(2026, 5, 2, tzinfo=dt.UTC)], "ts_day": ["x"]}))
    assert table.count("ts_day = 'x'") == 1


class TestColumnsOfOlderSpecs:
    def test_a_column_is_dropped_when_no_snapshot_has_a_file_that_is_partitioned_by_it(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["app"])
        table.replace_partition_field("app", "day(ts)")
        table.compact()
        with pytest.raises(SchemaError, match="files of that time need it"):
            table.drop_column("app")  # an older snapshot has them
        table.expire("0 seconds")
        with pytest.raises(SchemaError, match="files of that time need it"):
            table.drop_column("app")  # the compaction's own snapshot still lists them as removed
        table.append(rows(12))
        table.expire("0 seconds")
        with table.change_schema() as change:
            change.drop_column("app")
            change.add_column("app", "int")
            change.add_partition_field("app")
        metadata = table.table.metadata
        assert sorted(metadata.specs()) == [1, 2]
        assert table.partitioned_by == ["day(ts)", "app"]
        table.append(pa.table({"app": pa.array([5], pa.int32()), "id": [99]}))
        assert (files(table, "app = 5"), table.arrow("app = 5").column("id").to_pylist()) == (4 + 4 + 1, [99])
        theirs = table.table.catalog.load_table(table.name)
        assert theirs.scan().to_arrow().num_rows == 25
        query = f"SELECT count(app), count(*) FROM iceberg_scan('{local(theirs.metadata_location)}')"
        assert connect_duckdb().sql(query).fetchall() == [(1, 25)]

    def test_a_writer_of_a_spec_that_is_removed_meanwhile_writes_nothing(self, tmp_path: Path) -> None:
        from penstock.lake.write.writes import add_files, prepare, produce

        table = managed_table(tmp_path, DDL, ["app"])
        written = produce(prepare(table), rows(0))
        other = reopened(tmp_path)
        with other.change_schema() as change:
            change.drop_partition_field("app")
            change.drop_column("app")
        with pytest.raises(ConflictError, match=r"the partitioning of web\.t changed while rows were written"):
            add_files(table, written, {})
        assert other.refresh().count() == 0
        assert not list(tmp_path.rglob("*.parquet"))

    def test_a_spec_that_a_writer_begins_to_use_meanwhile_stays(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, DDL, ["app"])
        table.drop_partition_field("app")
        other = reopened(tmp_path)
        other.add_partition_field("app")
        other.append(rows(0))
        other.drop_partition_field("app")
        with pytest.raises(SchemaError, match="files of that time need it"):
            table.drop_column("app")
        change = table.change_schema()
        with pytest.raises(SchemaError, match="files of that time need it"):
            change.drop_column("app")


def test_several_changes_are_one_spec(tmp_path: Path) -> None:
    table = made(tmp_path, ["app"])
    with table.change_schema() as change:
        change.add_column("region", "string")
        change.add_partition_field("region")
        change.drop_partition_field("app")
        change.add_partition_field("day(ts)")
    metadata = table.table.metadata
    assert (len(metadata.partition_specs), len(metadata.schemas)) == (2, 2)
    assert table.partitioned_by == ["region", "day(ts)"]
    table.append(rows(12))
    assert files(table, "region IS NULL") == 3 + 4
    assert files(table, "region = 'eu'") == 3, "nothing is recorded of a column that was added later"
    judged(table)


class TestCoalescing:
    def test_a_field_beside_the_shared_column_is_added_and_shared_files_follow_at_compaction(
        self, tmp_path: Path
    ) -> None:
        table = made(tmp_path, ["app"], coalesce=["app"])
        assert (files(table), files(table, "app = 'a1'")) == (1, 1)
        table.add_partition_field("day(ts)")
        table.append(rows(12))
        assert (files(table), files(table, DAY), files(table, f"app = 'a1' AND {DAY}")) == (1 + 4, 2, 2)
        assert files(table, "app = 'nope'") == 0
        judged(table)
        done = table.compact()
        assert (done.files_after, files(table, DAY), files(table, "app = 'nope'")) == (4, 1, 0)
        assert all(task.logical is not None for task in table.plan().files)
        judged(table)

    def test_a_shared_column_cannot_be_dropped_or_replaced(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["day(ts)", "app"], coalesce=["app"])
        for change in (
            lambda: table.drop_partition_field("app"),
            lambda: table.replace_partition_field("app", "bucket(4, app)"),
        ):
            with pytest.raises(LakeError, match="partitions of app share files; remove the rule first"):
                change()
        assert table.partitioned_by == ["day(ts)", "app"]

    def test_without_its_rule_it_can_and_shared_files_are_files_of_the_new_spec(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["day(ts)", "app"], coalesce=["app"])
        shared = {task.path for task in table.plan().files}
        table.set_coalesce(None)
        table.drop_partition_field("app")
        assert table.table.metadata.default_spec_id == 1, "the one of shared files"
        assert (table.compact().rewritten, {task.path for task in table.plan().files}) == (0, shared)
        assert files(table, "app = 'nope'") == 0, "what was recorded of them still counts"
        judged(table)

    def test_a_rule_after_the_field_came_back_records_what_older_files_hold(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["day(ts)"])
        table.add_partition_field("app")
        table.set_coalesce(["app"])
        table.append(rows(12))
        assert (files(table), files(table, "app = 'a1'")) == (8, 8)
        table.compact()
        assert (files(table), files(table, "app = 'a1'"), files(table, "app = 'a11'")) == (4, 4, 0)
        assert {len(task.logical.tuples) for task in table.plan().files} == {3}
        judged(table)


class TestWritersOfOlderSpecs:
    def test_overwriting_partitions_finds_the_rows_in_files_of_every_spec(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["app"])
        table.add_partition_field("day(ts)")
        table.append(rows(12))
        new = rows(100).slice(0, 1)  # a0 on the first day
        table.overwrite(new, dynamic=True)
        assert table.count() == 24 - 2 + 1
        assert table.arrow("app = 'a0' AND ts < '2026-05-02'").column("id").to_pylist() == [100]
        judged(table)

    def test_deletes_rewrite_files_of_older_specs(self, tmp_path: Path) -> None:
        table = made(tmp_path, ["app"])
        table.replace_partition_field("app", "day(ts)")
        table.append(rows(12))
        table.delete("id % 2 = 0")
        assert table.count() == 12
        judged(table)

    def test_a_writer_that_began_before_the_change_commits_files_of_the_spec_of_then(self, tmp_path: Path) -> None:
        from penstock.lake.write.writes import add_files, prepare, produce

        table = made(tmp_path, ["app"])
        written = produce(prepare(table), rows(12))
        other = reopened(tmp_path)
        other.replace_partition_field("app", "day(ts)")
        add_files(table, written, {})
        other.refresh()
        assert (files(other), files(other, "app = 'a1'"), other.count()) == (6, 2, 24)
        judged(other)

    def test_two_changes_at_once_are_both_made(self, tmp_path: Path) -> None:
        table, other = made(tmp_path, ["app"]), reopened(tmp_path)
        with table.change_schema() as change:
            change.add_partition_field("day(ts)")
            change.add_column("x", "int")
            other.add_partition_field("bucket(4, id)")
            other.add_column("y", "int")
        assert table.partitioned_by == ["app", "bucket(4, id)", "day(ts)"]
        assert table.schema.names == ["ts", "app", "id", "y", "x"]
        assert len({spec.spec_id for spec in table.table.metadata.partition_specs}) == 3

    def test_a_change_that_another_writer_has_made_meanwhile_is_one_line(self, tmp_path: Path) -> None:
        table, other = made(tmp_path, ["app"]), reopened(tmp_path)
        with pytest.raises(SchemaError, match=r"the table is partitioned by day\(ts\) already"):  # noqa: PT012, SIM117
            with table.change_schema() as change:
                change.add_partition_field("day(ts)")
                other.add_partition_field("day(ts)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.add_partition_field("app"), "the table is partitioned by app already"),
        (lambda table: table.add_partition_field("days(TS)"), r"the table is partitioned by days\(TS\) already"),
        (lambda table: table.add_partition_field("nope"), "no column 'nope'"),
        (lambda table: table.add_partition_field("day(app)"), "app is a string, which has no day"),
        (lambda table: table.add_partition_field("week(ts)"), "there is no transform 'week'"),
        (lambda table: table.add_partition_field(""), "no column ''|is no partition field"),
        (lambda table: table.add_partition_field("day(ts"), "no column|is no partition field"),
        (lambda table: table.drop_partition_field("id"), "the table is not partitioned by 'id'; "),
        (lambda table: table.drop_partition_field("month(ts)"), r"the table is not partitioned by 'month\(ts\)'"),
        (lambda table: table.replace_partition_field("day(ts)", "day(ts)"), None),
        (lambda table: table.replace_partition_field("app", "day(ts)"), r"partitioned by day\(ts\) already"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(tmp_path: Path, change: Any, message: str | None) -> None:
    table = made(tmp_path, ["day(ts)", "app"])
    before, head = table.table.metadata.partition_specs, head_id(table)
    if message is None:
        change(table)
    else:
        with pytest.raises(SchemaError, match=message) as raised:
            change(table)
        assert "\n" not in str(raised.value)
    assert table.refresh().table.metadata.partition_specs == before
    assert head_id(table) == head


def test_a_version_of_the_past_cannot_be_changed(tmp_path: Path) -> None:
    table = made(tmp_path, ["app"])
    with pytest.raises(LakeError, match="cannot be written"):
        table.at(head_id(table)).add_partition_field("day(ts)")  # type: ignore[attr-defined]


def test_partitions_are_listed_by_the_fields_of_now(tmp_path: Path) -> None:
    table = made(tmp_path, ["app"])
    table.replace_partition_field("app", "month(ts)")
    table.append(rows(12))
    listed = table.partitions().to_pylist()
    assert sum(row["rows"] for row in listed) == 24
    assert penstock.connect(tmp_path).table("web.t").partitioned_by == ["month(ts)"]  # type: ignore[union-attr]
