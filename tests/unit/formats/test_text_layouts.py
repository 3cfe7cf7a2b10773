"""Layouts of text: what is declared, seen and kept, without Spark."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

import penstock
from penstock.errors import LayoutError, PenstockWarning, SchemaError
from tests.fixtures.commands import json_of, run


def write(root: Path, content: str, name: str = "part-0.csv") -> Path:
    for day in (1, 2):
        path = root / f"day={day}" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return root


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.ndjson.gz", "a.txt"])
def test_the_format_is_seen_from_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    content = {"c": "1\n", "j": '{"_c0":"1"}\n', "n": '{"_c0":"1"}\n', "t": "1\n"}[name.removeprefix("a.")[0]]
    root = write(tmp_path, content, name)
    table = penstock.hive(root, "day int", "_c0 string")
    plan = table.plan("day = 2")
    assert (len(plan.files), plan.report.list_calls) == (1, 2)
    assert table.arrow("day = 2").to_pylist() == [{"_c0": "1", "day": 2}]


def test_a_declared_layout_keeps_its_format_and_its_options(tmp_path: Path) -> None:
    root = write(tmp_path / "t", "id;v\n1;a\n", "part-0")
    table = penstock.hive(root, "day int", format="CSV", options={"header": True, "Sep": ";"})
    lake = penstock.connect(tmp_path / "lake")
    lake.register("raw.t", table)
    again = penstock.connect(tmp_path / "lake").table("raw.t")
    assert again.arrow("day = 1").to_pylist() == [{"id": "1", "v": "a", "day": 1}]
    assert (again.file_format, again.options) == (table.file_format, (("header", "true"), ("sep", ";")))
    assert pickle.loads(pickle.dumps(again)).file_format is table.file_format


def test_columns_of_json_are_those_of_the_first_file_with_a_warning(tmp_path: Path) -> None:
    root = write(tmp_path, '{"b":1,"a":[{"x":1.5}]}\n', "a.json")
    with pytest.warns(PenstockWarning, match="as one file shows them; to be sure, declare them: schema="):
        table = penstock.hive(root, "day int")
    assert str(table.file_schema.field("a").type.value_type) == "struct<x: double>"
    assert table.schema.names == ["a", "b", "day"]


def test_a_header_that_names_a_partition_column_needs_a_declared_schema(tmp_path: Path) -> None:
    root = write(tmp_path, "id,Day\n1,7\n")
    with pytest.raises(
        LayoutError, match="files have a column 'Day', and directories, too; declare the schema with ano"
    ):
        penstock.hive(root, "day int", options={"header": True})
    table = penstock.hive(root, "day int", "id int, own_day int", options={"header": True})
    assert table.arrow("day = 1").to_pylist() == [{"id": 1, "own_day": 7, "day": 1}]


def test_what_a_format_has_not_is_refused_when_a_layout_is_opened(tmp_path: Path) -> None:
    root = write(tmp_path, "x\n", "a.txt")
    with pytest.raises(SchemaError, match="a file of text has one column"):
        penstock.hive(root, "day int", "a string, b string", format="text")
    with pytest.raises(SchemaError, match="a file of text has one column"):
        penstock.hive(root, "day int", "a string, b string").arrow()
    with pytest.raises(LayoutError, match="CSV files have no option 'headers'; did you mean 'header'"):
        penstock.hive(root, "day int", "a string", format="csv", options={"headers": True})
    with pytest.raises(LayoutError, match="Text files have no option 'header'"):
        penstock.hive(root, "day int", options={"header": True})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.gz", b"x", r"a\.csv\.gz: its compression is damaged"),
        ("a.csv.lz4", b"x", r"a\.csv\.lz4: text that is compressed as \.lz4 is not read"),
        ("a.csv", b"a\n\xff", r"a\.csv: line 2 is not UTF-8; write it as UTF-8"),
        ("a.avro", b"x", r"a\.avro is not an Avro file"),
        ("a.orc", b"ORC and no more", r"a\.orc is not an ORC file"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LayoutError, match=message):
        penstock.hive(tmp_path, "", "a string").arrow()


def test_commands_take_the_format_and_the_options_of_a_path(tmp_path: Path) -> None:
    root = write(tmp_path / "t", "id;v\n1;a\n", "part-0")
    files = [
        "--partition-by",
        "day int",
        "--format",
        "csv",
        "--option",
        "sep=;",
        "--option",
        "header=true",
        "--schema",
        "id int, v string",
    ]
    done = run(tmp_path, "stream", str(root), "--once", "--json", "--where", "id = 1 AND day = 2", *files)
    assert done.stdout == '{"id": 1, "v": "a", "day": 2}\n'
    assert json_of(tmp_path, "explain", str(root), "--where", "day = 1", *files)["files"]
    for words in (["--option", "sep"], ["--option", "=x"]):
        assert "invalid --option" in run(tmp_path, "explain", str(root), *words).stderr
    assert "--format is given with the table web.t" in run(tmp_path, "explain", "web.t", "--format", "csv").stderr
