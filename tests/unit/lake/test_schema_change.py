"""Columns added, renamed, dropped, widened, moved and commented, in one commit each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import SchemaError
from penstock.lake.schema_change import SchemaChange

DDL = "ts timestamp, app string, n int, place struct<city: string, zip: int>, headers map<string,string>"


@pytest.fixture
def table(tmp_path: Path) -> Any:
    lake = penstock.connect(tmp_path / "lake")
    rules: Any = {"coalesce": ["app"], "shred": {"headers": ["k"]}}
    table = lake.create_table("web.events", DDL, ["day(ts)", "app"], **rules)
    table.append(rows(table, [("a", 1), ("b", 2)]))
    return table


def rows(table: Any, values: list[tuple[str, int]]) -> pa.Table:
    documents = [{"app": app, "n": n, "place": {"city": app, "zip": n}, "headers": [("k", app)]} for app, n in values]
    return pa.Table.from_pylist(documents, table.schema)


def test_rows_that_exist_have_null_in_a_new_column(table: Any) -> None:
    with SchemaChange(table) as schema:
        schema.add(("extra",), pa.float64(), comment="more")
        schema.move(("extra",), "app")
    assert table.schema.names == ["ts", "app", "extra", "n", "place", "headers"]
    assert table.arrow("extra IS NULL").num_rows == 2
    assert table.comments() == {"extra": "more"}


def test_nested_fields_are_columns_too(table: Any) -> None:
    with SchemaChange(table) as schema:
        schema.add(("place", "street"), pa.string())
        schema.rename(("place", "zip"), "code")
        schema.drop(("place", "city"))
    assert [field.name for field in table.schema.field("place").type] == ["code", "street"]
    assert table.arrow("place.code = 2").column("app").to_pylist() == ["b"]


def test_rules_and_pruning_follow_a_renamed_column(table: Any) -> None:
    with SchemaChange(table) as schema:
        schema.rename(("app",), "application")
        schema.rename(("headers",), "labels")
    assert table.coalesce.columns == ("application",)
    assert table.arrow("application = 'a' AND labels['k'] = 'a'").num_rows == 1
    table.append(table.arrow().slice(0, 1))
    table.compact()
    assert table.count() == 3
    assert table.plan("application = 'nope'").report.files.kept == 0


def test_widened_columns_keep_their_values(table: Any) -> None:
    with SchemaChange(table) as schema:
        schema.widen(("n",), pa.int64())
    assert table.schema.field("n").type == pa.int64()
    assert sorted(table.arrow(columns=["n"]).column("n").to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda schema: schema.drop(("app",)), "web.events is partitioned by app"),
        (lambda schema: schema.drop(("ts",)), "web.events is partitioned by ts"),
        (lambda schema: schema.drop(("headers",)), "keys of headers have columns of their own"),
        (lambda schema: schema.drop(("nope",)), "web.events has no column 'nope'"),
        (lambda schema: schema.rename(("nop",), "x"), "web.events has no column 'nop'"),
        (lambda schema: schema.widen(("n",), pa.string()), "web.events: "),
        (lambda schema: schema.add(("n",), pa.int32()), "web.events: "),
        (lambda schema: schema.add(("m",), pa.int32(), nullable=False), "column m is NOT NULL"),
        (lambda schema: schema.set_nullable(("n",), nullable=False), "n cannot become NOT NULL"),
        (lambda schema: schema.move(("n",), "nope"), "web.events: "),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(table: Any, change: Any, message: str) -> None:
    before = table.schema

    def several() -> None:
        with SchemaChange(table) as schema:
            schema.add(("first",), pa.int32())
            change(schema)

    with pytest.raises(SchemaError, match=message) as raised:
        several()
    assert "\n" not in str(raised.value)
    assert table.refresh().schema == before


def test_a_column_may_be_missing_when_it_is_dropped_if_it_exists(table: Any) -> None:
    with SchemaChange(table) as schema:
        schema.drop(("nope",), missing_ok=True)
        schema.drop(("n",))
    assert "n" not in table.schema.names


def test_another_snapshot_is_read_with_the_schema_that_it_had(table: Any) -> None:
    before = table.version.snapshot_id
    with SchemaChange(table) as schema:
        schema.drop(("n",))
    table.append(table.arrow())
    assert "n" in table.at(before).schema.names
    assert sorted(table.at(before).arrow(columns=["n"]).column("n").to_pylist()) == [1, 2]


def test_columns_are_added_to_a_table_of_version_1_whose_default_spec_names_a_dropped_column(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table: Any = lake.create_table("web.old", "id bigint, app string", ["app"], properties={"format-version": "1"})
    table.append(pa.table({"id": pa.array([1], pa.int64()), "app": ["x"]}))
    with table.table.update_spec() as spec:
        spec.remove_field("app")
    table.refresh()
    with table.table.update_schema(allow_incompatible_changes=True) as dropped:
        dropped.delete_column("app")
    table.refresh()
    with SchemaChange(table) as schema:
        schema.add(("n",), pa.int64())
    assert table.arrow().to_pylist() == [{"id": 1, "n": None}]
