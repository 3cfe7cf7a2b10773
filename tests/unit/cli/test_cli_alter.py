"""The command that changes columns and partition fields: one commit, in the order given; bad input changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import managed_table, reopened


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made = managed_table(tmp_path, "ts timestamp, app string, n int, place struct<zip: int>", ["app"])
    made.append(pa.table({"app": ["a", "b"], "n": pa.array([1, 2], pa.int32())}))
    return made


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["alter", "web.t", *words, "--warehouse", str(root)])


def test_changes_are_one_commit_in_the_order_in_which_they_are_given(table: ManagedTable, tmp_path: Path) -> None:
    done = run(
        tmp_path, "--rename", "n=m", "--add", "n decimal(10,2)", "--widen", "m bigint", "--add", "`a b`.c int",
    )  # fmt: skip
    assert (done.exit_code, done.stderr) == (2, "Error: web.t has no column 'a b'; there are: ts, app, m, place, n\n")
    done = run(
        tmp_path, "--rename", "n=m", "--add", "n decimal(10,2)", "--widen", "m bigint", "--add", "place.city string",
        "--move", "place.city FIRST", "--add", "`a b` array<int>", "--drop", "n", "--move", "m after ts",
        "--comment", "m=how many, = or not", "--add-partition", "day(ts)", "--drop-partition", "app",
        "--replace-partition", "ts_day=month(ts)",
    )  # fmt: skip
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "columns         ts timestamp, m bigint, app string, place struct<city:string,zip:int>, a b array<int>\n"
        "partitioned by  month(ts)\n"
    )
    metadata = reopened(tmp_path).table.metadata
    assert (len(metadata.metadata_log), len(metadata.schemas), len(metadata.partition_specs)) == (2, 2, 2)
    assert reopened(tmp_path).comments() == {"m": "how many, = or not"}
    assert sorted(reopened(tmp_path).arrow().column("m").to_pylist()) == [1, 2]


def test_for_machines_and_when_there_is_nothing_to_do(table: ManagedTable, tmp_path: Path) -> None:
    done = run(tmp_path, "--drop-partition", "app", "--comment", "n=x", "--json")
    told = json.loads(done.stdout)
    assert (told["table"], told["changed"], told["partitioned_by"]) == ("web.t", True, [])
    assert told["columns"][2] == {"name": "n", "type": "int", "nullable": True, "comment": "x"}
    location = reopened(tmp_path).table.metadata_location
    assert run(tmp_path, "--comment", "n=x", "--widen", "n int").stdout == "web.t is so already\n"
    assert json.loads(run(tmp_path, "--comment", "n=x", "--json").stdout)["changed"] is False
    assert reopened(tmp_path).table.metadata_location == location


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to change: give --add"),
        (["--add", "x"], "--add 'x' cannot be read; write a column and its type"),
        (["--add", "x bigin"], "unknown type 'bigin'; did you mean bigint?"),
        (["--add", "x int NOT NULL"], "column x is NOT NULL"),
        (["--add", "APP int"], "web.t has a column 'APP' already"),
        (["--rename", "app"], "--rename 'app' cannot be read; write app=application"),
        (["--rename", "app="], "a column needs a name"),
        (["--rename", "=app"], "--rename '=app' cannot be read"),
        (["--drop", "nope"], "web.t has no column 'nope'; there are: ts, app, n, place"),
        (["--drop", "app"], "web.t is partitioned by app"),
        (["--widen", "n smallint"], ""),
        (["--widen", "app bigint"], "app is string and cannot become bigint; int becomes bigint"),
        (["--move", "n behind app"], "--move 'n behind app' cannot be read; write 'zip first' or 'zip after city'"),
        (["--comment", "n"], "--comment 'n' cannot be read"),
        (["--add-partition", "week(ts)"], "there is no transform 'week'"),
        (["--add-partition", "app"], "the table is partitioned by app already"),
        (["--drop-partition", "ts"], "the table is not partitioned by 'ts'"),
        (["--replace-partition", "app"], "--replace-partition 'app' cannot be read; write 'month(ts)=day(ts)'"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    table: ManagedTable, tmp_path: Path, words: list[str], message: str
) -> None:
    done = run(tmp_path, *(["--add", "first int", "--add-partition", "day(ts)"] if words and message else []), *words)
    if not message:  # a smaller type of integers is an int in Iceberg
        assert done.stdout == "web.t is so already\n"
        return
    assert done.exit_code == 2
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Error")]) == 1
    assert reopened(tmp_path).table.metadata_location == table.table.metadata_location
