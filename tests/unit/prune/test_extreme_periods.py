"""Periods at the ends of 64 bits of microseconds, and far from 1970: exact, and pruned without a lost row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import DateType

from penstock import MemoryTable
from penstock.expr.bind import bind_text
from penstock.expr.types import TIMESTAMP
from penstock.prune.containers import Containers
from penstock.prune.facts import Derived, Exact
from penstock.prune.judge import Pruner
from penstock.prune.transforms import transform_of
from penstock.prune.verdict import Verdict

DAY = 86_400_000_000
SKIP, KEEP_WHOLE = Verdict.SKIP, Verdict.KEEP_WHOLE
LEAST, MOST = -(2**63), 2**63 - 1
MOMENTS = [LEAST, LEAST + 1, -94_608_000_000_000_002, -2, -1, 0, 1, 94_608_000_000_000_002, MOST - 1, MOST]


@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_no_row_is_skipped_at_the_ends_of_time(transform: str) -> None:
    for moment in MOMENTS:
        rows = pa.table({"ts": pa.array([moment], pa.int64()).cast(TIMESTAMP), "id": [1]})
        table = MemoryTable.from_rows(rows, [f"{transform}(ts)"])
        for other in MOMENTS:
            for operator, matches in (("<", moment < other), ("=", moment == other), (">", moment > other)):
                files = table.plan(f"ts {operator} timestamp_micros({other}L)").files
                assert len(files) == matches, (moment, operator, other)


@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_ranges_of_periods_hold_their_moments(transform: str) -> None:
    entry = transform_of(transform)
    array = pa.array(MOMENTS, pa.int64()).view(TIMESTAMP)
    from pyiceberg.types import TimestamptzType

    for moment, value in zip(MOMENTS, entry.on_array(array, TimestamptzType()).to_pylist(), strict=True):
        interval = entry.source_range(TIMESTAMP, value)
        if interval is not None:  # hours that may have wrapped around say nothing
            assert interval[0] <= moment < interval[1]


def test_years_months_and_days_far_from_1970() -> None:
    from pyiceberg.types import TimestampType

    moments = pa.array([LEAST, -62_135_596_800_000_001, None, MOST], pa.int64()).view(pa.timestamp("us"))
    kind = TimestampType()
    assert transform_of("year").on_array(moments, kind).to_pylist() == [-292_278, -1_970, None, 292_277]
    assert transform_of("day").on_array(moments, kind).to_pylist() == [LEAST // DAY, -719_163, None, MOST // DAY]
    days = pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32())
    assert transform_of("day").on_array(days, DateType()).to_pylist() == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize("transform", ["year", "month", "day"])
def test_a_range_to_the_last_day_of_the_calendar_holds_whole_partitions(transform: str) -> None:
    where = "d BETWEEN DATE '1969-12-01' AND '9999-12-31'"
    predicate = bind_text(where, pa.schema({"d": pa.date32()}))
    term = Derived(bind_text("d IS NULL", pa.schema({"d": pa.date32()})).children[0], transform)
    days = pa.array([20_000, 2_932_896, 2_932_897, None], pa.int32()).view(pa.date32())  # 2024, 9999-12-31, 10000
    partitions = Exact(term, transform_of(transform).on_array(days, DateType()))
    judgement = Pruner(predicate, "UTC").judge(Containers(4, (partitions,)))
    assert [judgement.verdict(i) for i in range(4)] == [KEEP_WHOLE, KEEP_WHOLE, SKIP, SKIP]
