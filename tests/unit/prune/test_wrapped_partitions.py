"""Partition values that left their type and came in again at its other end, in one manifest with ordinary ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.fixtures.managed_tables import managed_table

MANY_HOURS = 2**31 * 3_600 * 10**6 + 10**9  # microseconds whose hour does not fit into 32 bits
CASES = {
    "int": ("int", "truncate(10, v)", [31, -(2**31)], "CAST(v AS double) <= 1"),
    "bigint": ("bigint", "truncate(1000, v)", [31, 1 - 2**63], "CAST(v AS double) <= 1"),
    "late hours": ("timestamp", "hour(v)", [0, MANY_HOURS], "unix_seconds(v) > 86400"),
    "early hours": ("timestamp", "hour(v)", [0, -MANY_HOURS], "unix_seconds(v) < -86400"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_value_behind_the_end_of_its_type_is_found_through_a_function(tmp_path: Path, case: str) -> None:
    kind, by, values, where = CASES[case]
    table = managed_table(tmp_path, f"id int, v {kind}", [by])
    column = pa.array(values, pa.int64()).cast(table.schema.field("v").type)
    table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "v": column}))
    assert table.plan().report.level("manifests").total == 1
    assert table.arrow(where, ["id"])["id"].to_pylist() == [2]
    assert len(table.plan(where).files) == 1
    assert table.arrow(f"NOT ({where})", ["id"])["id"].to_pylist() == [1]
