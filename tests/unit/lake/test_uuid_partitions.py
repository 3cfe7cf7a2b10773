"""Tables that are partitioned by a uuid: its values are bytes in manifests, records and files alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, UUIDType

import penstock

IDS = [str(uuid5(UUID(int=0), str(i))) for i in range(6)]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "n", LongType()), NestedField(3, "u", UUIDType()))
    return penstock.connect(tmp_path).create_table("web.t", schema, ["u", "n"], coalesce=["u", "n"])


def test_files_are_compacted_after_the_rule_is_gone(table: Any) -> None:
    rows = [
        pa.table({"id": [i, i + 1], "n": [i % 2] * 2, "u": [IDS[i], None if i % 2 else IDS[i + 1]]}) for i in range(5)
    ]
    for part in rows[:3]:
        table.append(part)
    table.set_coalesce(None)
    for part in rows[3:]:
        table.append(part)
    table.compact()
    expected = pa.concat_tables(rows).to_pylist()
    assert sorted(table.arrow().to_pylist(), key=str) == sorted(expected, key=str)
    for u in IDS:
        assert sorted(table.arrow(f"u = '{u}'")["id"].to_pylist()) == sorted(r["id"] for r in expected if r["u"] == u)
