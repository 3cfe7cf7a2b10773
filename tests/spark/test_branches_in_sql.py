"""Tags and branches in SQL: procedures, names such as `web.t.branch_audit`, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.lake.managed_table import ManagedTable
from tests.spark.sql_session import Sql, message_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CATALOG = "branches"


@pytest.fixture
def table(sql: Sql, lake: penstock.Lake, name: str) -> ManagedTable:
    name = f"web.{name}"
    sql(f"CREATE TABLE {name} (id bigint, app string) PARTITIONED BY (app)")
    sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return lake.writable_table(name)


def ids(table: Any) -> list[int]:
    return sorted(table.refresh().arrow()["id"].to_pylist())


def by_pyiceberg(table: ManagedTable, ref: str) -> list[int]:
    newest = table.table.catalog.load_table(table.table.name())
    return sorted(newest.scan().use_ref(ref).to_arrow()["id"].to_pylist())


def call(table: ManagedTable, name: str, *arguments: str) -> str:
    values = ", ".join((f"'{table.name}'", *arguments))
    return f"CALL {CATALOG}.system.{name}({values})"


def test_write_audit_publish_in_sql(sql: Sql, table: ManagedTable) -> None:
    first = table.refresh().version.snapshot_id
    assert sql(call(table, "create_branch", "'audit'")) == [("audit", first)]
    branch = f"{table.name}.branch_audit"
    sql(f"INSERT INTO {branch} VALUES (3, 'a'), (4, 'c')")
    sql(f"DELETE FROM {branch} WHERE id = 1")
    sql(f"DELETE FROM {branch} WHERE id IN (SELECT 4)")
    assert sql(f"SELECT id FROM {branch} ORDER BY id") == [(2,), (3,)]
    assert sql(f"SELECT id FROM {table.name} VERSION AS OF 'audit' ORDER BY id") == [(2,), (3,)]
    assert sql(f"SELECT count(*) FROM {table.name}") == [(2,)]
    assert by_pyiceberg(table, "audit") == [2, 3]
    sql(f"INSERT OVERWRITE {branch} SELECT * FROM {branch} WHERE id = 3 UNION ALL SELECT 5, 'd'")
    assert by_pyiceberg(table, "audit") == [3, 5]
    assert by_pyiceberg(table, "main") == ids(table) == [1, 2]
    ((name, before, after),) = sql(call(table, "fast_forward", "'main'", "'audit'"))
    assert (name, before, after) == ("main", first, table.refresh().version.snapshot_id)
    assert sql(f"SELECT id FROM {table.name} ORDER BY id") == [(3,), (5,)]
    assert sql(call(table, "drop_branch", "'audit'")) == [("audit",)]
    assert "has no branch 'audit'" in message_of(sql, f"SELECT * FROM {branch}")


def test_a_branch_at_the_snapshot_of_the_table_is_another_target(sql: Sql, table: ManagedTable) -> None:
    """Both are the same snapshot when Spark loads them."""
    sql(call(table, "create_branch", "'audit'"))
    branch = f"{table.name}.branch_audit"
    sql(f"INSERT INTO {table.name} SELECT id + 10, app FROM {branch}")
    assert by_pyiceberg(table, "main") == [1, 2, 11, 12]
    assert by_pyiceberg(table, "audit") == [1, 2]
    sql(f"TRUNCATE TABLE {branch}")
    assert by_pyiceberg(table, "main") == [1, 2, 11, 12]
    assert sql(f"SELECT count(*) FROM {branch}") == [(0,)]
    joined = f"SELECT count(*) FROM {table.name} a LEFT JOIN {branch} b ON a.id = b.id WHERE b.id IS NULL"
    assert sql(joined) == [(4,)]


def test_dataframes_write_to_a_branch(session: SparkSession, sql: Sql, table: ManagedTable) -> None:
    sql(call(table, "create_branch", "'audit'"))
    branch = f"{table.name}.branch_audit"
    session.createDataFrame([(7, "z")], "id bigint, app string").writeTo(branch).append()
    assert session.catalog.tableExists(f"{CATALOG}.{branch}")
    assert by_pyiceberg(table, "audit") == [1, 2, 7]
    assert by_pyiceberg(table, "main") == [1, 2]


def test_tags_keep_names_of_snapshots(sql: Sql, table: ManagedTable) -> None:
    first = table.refresh().version.snapshot_id
    assert sql(call(table, "create_tag", "'eod'")) == [("eod", first)]
    sql(f"INSERT INTO {table.name} VALUES (3, 'a')")
    second = table.refresh().version.snapshot_id
    assert sql(call(table, "create_tag", "name => 'now'", f"snapshot => '{second}'")) == [("now", second)]
    assert sql(f"SELECT count(*) FROM {table.name}.tag_eod") == [(2,)]
    assert sql(f"SELECT count(*) FROM {table.name} VERSION AS OF 'eod'") == [(2,)]
    assert "cannot be written" in message_of(sql, f"INSERT INTO {table.name}.tag_eod VALUES (4, 'a')")
    assert "cannot be written" in message_of(sql, f"DELETE FROM {table.name}.tag_eod WHERE id = 1")
    names = sql(f"SELECT name, type FROM {table.name}.refs ORDER BY name")
    assert names == [("eod", "TAG"), ("main", "BRANCH"), ("now", "TAG")]
    assert sql(call(table, "drop_tag", "'eod'")) == [("eod",)]


def test_a_rollback_is_to_an_id_a_tag_or_a_time(sql: Sql, table: ManagedTable) -> None:
    first = table.refresh().version.snapshot_id
    sql(call(table, "create_tag", "'eod'"))
    moment = table.history()["made_current_at"][0].as_py().isoformat()
    for to in (str(first), f"'{first}'", "'eod'", f"'{moment}'"):
        sql(f"INSERT INTO {table.name} VALUES (3, 'a')")
        second = table.refresh().version.snapshot_id
        assert sql(call(table, "rollback", to)) == [(second, first)]
        assert by_pyiceberg(table, "main") == [1, 2]


def test_what_does_not_exist_is_one_line(sql: Sql, table: ManagedTable) -> None:
    assert "has no branch 'nix'" in message_of(sql, f"INSERT INTO {table.name}.branch_nix VALUES (3, 'a')")
    assert "has no tag 'nix'" in message_of(sql, f"SELECT * FROM {table.name}.tag_nix")
    assert "has no tag 'main'" in message_of(sql, f"SELECT * FROM {table.name}.tag_main")
    assert "has no branch or tag 'nix'" in message_of(sql, call(table, "fast_forward", "'main'", "'nix'"))
    assert "has no tag 'nix'" in message_of(sql, call(table, "drop_tag", "'nix'"))
    assert "invalid tag name" in message_of(sql, call(table, "create_tag", "'2026-05-17'"))
    assert "invalid branch name" in message_of(sql, call(table, "create_branch", "NULL"))
    assert "rollback has no snapshot" in message_of(sql, call(table, "rollback", "NULL"))
    assert ids(table) == [1, 2]


def test_a_table_of_such_a_name_is_the_table(sql: Sql, table: ManagedTable, lake: penstock.Lake) -> None:
    sql(f"CREATE NAMESPACE {table.name}x")
    sql(f"CREATE TABLE {table.name}x.branch_audit (n int)")
    sql(f"INSERT INTO {table.name}x.branch_audit VALUES (7)")
    assert sql(f"SELECT n FROM {table.name}x.branch_audit") == [(7,)]


def test_a_stream_is_not_written_to_a_branch(
    session: SparkSession, sql: Sql, table: ManagedTable, tmp_path: Path
) -> None:
    sql(call(table, "create_branch", "'audit'"))
    rows = session.readStream.format("rate").load().selectExpr("value AS id", "'a' AS app")
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(Exception, match="a stream does not write to the branch audit"):
        writer.toTable(f"{CATALOG}.{table.name}.branch_audit").awaitTermination()
