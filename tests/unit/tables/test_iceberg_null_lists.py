"""NULL, empty lists and NULL entries are three things, in every nesting, before and after a compaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.fixtures.managed_tables import managed_table

STRUCT = pa.struct({"a": pa.int32(), "b": pa.string()})
ONE = {"a": 1, "b": "x"}
CASES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("array<struct<a: int, b: string>>", pa.list_(STRUCT), [None, [], [None], [ONE, None]]),
    ("map<string, struct<a: int, b: string>>", pa.map_(pa.string(), STRUCT), [None, [], [("k", None)], [("k", ONE)]]),
    ("array<array<struct<a: int, b: string>>>", pa.list_(pa.list_(STRUCT)), [None, [], [None], [[]], [[None], [ONE]]]),
    ("struct<l: array<struct<a: int, b: string>>>", pa.struct({"l": pa.list_(STRUCT)}),
     [None, {"l": None}, {"l": []}, {"l": [ONE, None]}]),
    ("array<map<string, struct<a: int, b: string>>>", pa.list_(pa.map_(pa.string(), STRUCT)),
     [None, [], [None], [[], [("k", None)]]]),
    ("array<int>", pa.list_(pa.int32()), [None, [], [None], [1]]),
]  # fmt: skip


@pytest.mark.parametrize(("ddl", "kind", "values"), CASES, ids=[case[0] for case in CASES])
def test_null_lists_are_not_empty_ones(tmp_path: Path, ddl: str, kind: pa.DataType, values: list[Any]) -> None:
    table = managed_table(tmp_path, f"id int, c {ddl}")
    for part in (values, values[::-1]):
        table.append(pa.table({"id": pa.array(range(len(part)), pa.int32()), "c": pa.array(part, kind)}))
    expected = sorted(map(repr, [*values, *values]))
    assert sorted(map(repr, table.arrow().column("c").to_pylist())) == expected
    assert sorted(map(repr, table.arrow("id >= 1").column("c").to_pylist())) == sorted(
        map(repr, [*values[1:], *values[::-1][1:]])
    )
    table.compact()
    assert table.plan().report.files.total == 1
    assert sorted(map(repr, table.arrow().column("c").to_pylist())) == expected
