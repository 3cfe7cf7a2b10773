"""JSON without Spark: Arrow's reader and the one of lines have the same rows. Spark judges them in tests/spark."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats import json_file
from penstock.formats.file_format import Reading, UnreadableError
from penstock.formats.json_file import JsonFile

SCHEMA = pa.schema(
    [
        ("a", pa.string()),
        ("b", pa.int32()),
        ("c", pa.float64()),
        ("l", pa.list_(pa.int64())),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("o", pa.bool_()),
        ("d", pa.date32()),
    ]
)
LINES = [
    '{"a":"x","b":1,"c":1.5,"l":[1,2],"s":{"x":1,"y":"q"},"o":true,"d":"2020-01-01"}',
    '{"a":null,"b":2,"zz":{"q":[1,{"k":"}{"}]}}',
    '{"a":"x","a":"y"}',
    '{"s":null,"l":null,"d":"x"}',
    '{"s":{},"l":[]}',
    '{"b":-1,"c":1e5}',
    '{"a":"\\u00e9","o":false}',
    '{"l":[null,1],"s":{"x":null,"x":2}}',
]
CHARACTERS = "{}[]\",:0123456789.eE-+ntfu\\ \n\tx'l"


def read(content: bytes, schema: pa.Schema = SCHEMA) -> Any:
    try:
        table = JsonFile(io.BytesIO(content), Reading(columns=schema)).read(schema.names)
        days = [f.with_type(pa.int32()) if f.type == pa.date32() else f for f in schema]  # of any year
        return table.cast(pa.schema(days)).to_pylist()
    except UnreadableError as error:
        return error.message


def damaged(random: Random) -> bytes:
    text = "\n".join(random.choice(LINES) for _ in range(random.randint(1, 4)))
    for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
        place, how = random.randrange(len(text) + 1), random.random()
        more = random.choice(CHARACTERS) if how < 0.8 else ""
        text = text[:place] + more + text[place + (how < 0.5 or how >= 0.8) :]
    return text.encode()


def test_both_readers_have_the_same_rows_of_damaged_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [damaged(Random(seed)) for seed in range(1500)]
    with_arrow = [read(content) for content in contents]
    monkeypatch.setattr(JsonFile, "_by_arrow", lambda *_: None)
    for content, rows in zip(contents, with_arrow, strict=True):
        by_line = read(content)
        assert rows == by_line, content


def test_lines_whose_values_have_their_types_are_read_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "structs", lambda *_: pytest.fail("line by line"))
    rows = read("\n".join(LINES[i] for i in (0, 3, 4, 5, 6)).encode())
    assert [row["b"] for row in rows] == [1, None, None, -1, None]


@pytest.mark.parametrize(
    "line", ["null", "5", "[1]", '"x"', '{"c":NaN}', '{"c":-0}', '{"a":1} {"a":2}', "{} x", '{"c":-Infinity}']
)
def test_what_arrow_reads_otherwise_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    def arrow(*_: Any) -> None:
        pytest.fail("by Arrow")

    monkeypatch.setattr(json_file.pajson, "read_json", arrow)
    assert len(read(f"{LINES[0]}\n{line}\n".encode())) == 2


def test_an_object_in_two_lines_is_two_rows() -> None:
    assert [row["o"] for row in read(b'{"o":true}\n{"s":\n{"x":1}}\n{"o":false}\n')] == [True, None, None, False]


def test_a_type_that_json_has_not_is_refused() -> None:
    assert read(b'{"a":1}', pa.schema([("a", pa.duration("us"))])) == "JSON has no values of type duration[us]"
