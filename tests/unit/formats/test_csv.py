"""CSV without Spark: which reader takes a file, and what is refused. Spark judges the rows, in tests/spark."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.formats import csv_records
from penstock.formats.csv_file import CSV, CsvFile
from penstock.formats.file_format import Reading, UnreadableError
from penstock.formats.format_options import read_options

ABC = pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.int32())])


def read(content: str | bytes, columns: pa.Schema | None = ABC, **options: Any) -> list[tuple[Any, ...]]:
    reading = Reading(read_options(CSV, options), columns=columns)
    file = CsvFile(io.BytesIO(content if isinstance(content, bytes) else content.encode()), reading)
    return [tuple(row.values()) for row in file.read(file.schema.names).to_pylist()]


def test_rows_of_one_length_are_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "_rows", lambda *_: pytest.fail("row by row"))
    assert read('x,"y, z",1\n,"",2\n') == [("x", "y, z", 1), (None, None, 2)]
    assert read("x,y,1,more\n") == [("x", "y", 1)]
    assert read("x\n") == [("x", None, None)]


def test_rows_of_other_lengths_are_filled_or_cut() -> None:
    assert read('x\n"y",,3,4\n') == [("x", None, None), ("y", None, 3)]


def test_a_record_that_is_longer_than_a_block_is_read_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "_BLOCK", 16)
    assert read(f"{'x' * 100},y,1\nz,w,2\n") == [("x" * 100, "y", 1), ("z", "w", 2)]


CELLS = st.text(st.sampled_from([*list("ab,;\"\\ \t'|"), "é"]), max_size=4)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5), st.booleans())
def test_both_readers_have_the_same_values(rows: list[list[str]], doubles: bool) -> None:
    escape = '"' if doubles else "\\"
    quoted = [[f'"{_escaped(cell, escape)}"' for cell in row] for row in rows]
    width = max(map(len, rows))
    even = "".join(",".join(row + ["q"] * (width - len(row))) + "\n" for row in quoted)
    uneven = "".join(",".join(row) + "\n" for row in quoted) + ",".join(["q"] * (width + 1)) + "\n"
    columns = pa.schema([(f"c{i}", pa.string()) for i in range(width)])
    cells = [[cell or None for cell in row] for row in rows]
    assert read(even, columns, escape=escape) == [tuple(row + ["q"] * (width - len(row))) for row in cells]
    assert read(uneven, columns, escape=escape)[:-1] == [tuple(row + [None] * (width - len(row))) for row in cells]


def _escaped(cell: str, escape: str) -> str:
    return cell.replace('"', '""') if escape == '"' else cell.replace("\\", "\\\\").replace('"', '\\"')


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('a,b,1\n"x\n', {}, "in line 2 can be read in several ways"),
        ("a", {"encoding": "latin1"}, "only Spark follows the option encoding='latin1' of CSV files"),
        ("a", {"mode": "FAILFAST"}, "only Spark follows the option mode='FAILFAST'"),
        ("a", {"header": "yes"}, "the option header is 'yes'"),
        ("a", {"sep": ""}, "the separator '' is not read"),
        ("a", {"quote": "''"}, "the option quote is \"''\""),
        ("a", {"sep": "||", "ignoreLeadingWhiteSpace": True}, "a separator has several characters"),
        ("a\x00", {"multiLine": True}, "it has a NUL"),
        ('#a\n"b"', {"multiLine": True, "comment": "#"}, "comments among values of several lines"),
    ],
)
def test_what_only_spark_reads_is_refused_by_one_line(content: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableError, match=message.replace("(", r"\(")) as raised:
        read(content, **options)
    assert raised.value.hint
    assert "\n" not in raised.value.message


def test_columns_that_nobody_declares_are_texts_of_the_header() -> None:
    reading = Reading(read_options(CSV, {"header": True}))
    assert CsvFile(io.BytesIO(b"a,A,,b\n1,2\n"), reading).schema.names == ["a0", "A1", "_c2", "b"]
    with pytest.raises(UnreadableError, match="it has no line to tell the columns"):
        _ = CsvFile(io.BytesIO(b"\n"), reading).schema


def test_a_column_that_only_spark_fills_and_nested_ones_are_refused() -> None:
    with pytest.raises(UnreadableError, match="only Spark fills the column _corrupt_record"):
        read("a", pa.schema([("_Corrupt_Record", pa.string())]))
    with pytest.raises(SchemaError, match="column a is array<int>, and CSV has single values"):
        CSV.check_columns(pa.schema([("a", pa.list_(pa.int32()))]))
