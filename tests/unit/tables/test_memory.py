"""Tables in memory, partitioned by values that Python's calendar and machine integers do not hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock import MemoryTable


@pytest.mark.parametrize("field", ["year(d)", "month(d)", "day(d)", "year(ts)", "hour(ts)"])
def test_dates_beyond_pythons_years_have_partitions(field: str) -> None:
    days = pa.array([0, 4_000_000, -800_000, None], pa.int32()).cast(pa.date32())
    times = pa.array([0, 10**18, -(10**17), None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"d": days, "ts": times, "n": range(4)})
    table = MemoryTable.from_rows(rows, [field])
    assert len(table.files) == 4
    column = field.split("(")[1][:-1]
    assert table.arrow(f"{column} > DATE '1970-01-01'", columns=["n"])["n"].to_pylist() == [1]
    assert len(table.plan(f"{column} > DATE '1970-01-03'").files) == 1


def test_the_smallest_integer_is_truncated_as_in_java() -> None:
    rows = pa.table({"n": pa.array([-(2**63), 5], pa.int64())})
    table = MemoryTable.from_rows(rows, ["truncate(10, n)"])
    assert table.arrow("n < 0")["n"].to_pylist() == [-(2**63)]
