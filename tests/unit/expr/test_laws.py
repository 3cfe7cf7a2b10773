"""Ranges carried through functions hold every value of the function, in every zone, and pruning by them loses no row.

The reference is the function evaluated on the rows themselves. What Spark answers for them is asked in `tests/spark`
and `tests/fuzz`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.bind import Context, bind_text
from penstock.expr.functions.laws import carry, is_sharp, lawful_path
from penstock.expr.kernels.cast import castable
from penstock.expr.kernels.evaluate import evaluate
from penstock.expr.kernels.zones import clock_spread
from penstock.expr.schema import as_schema
from penstock.expr.tree import Cast, Column, Expr
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds
from penstock.prune.judge import Pruner
from penstock.prune.ordered_keys import array_keys, has_int64_keys, key_limits, keys_to_array
from penstock.prune.verdict import Verdict

HOUR, DAY = 3_600_000_000, 86_400_000_000
ZONES = ["UTC", "+05:45", "America/New_York", "Pacific/Apia", "America/St_Johns", "Asia/Manila", "Australia/Lord_Howe"]
TEXTS = [
    "ts - INTERVAL 7 DAYS", "ts + INTERVAL 36 HOURS", "ts + INTERVAL 1 MONTH", "ts - INTERVAL 1 YEAR",
    "nz + INTERVAL 1 MONTH", "nz - INTERVAL 1 DAY", "cast(ts AS date)", "cast(ts AS timestamp_ntz)",
    "cast(nz AS timestamp)", "cast(nz AS date)", "cast(d AS timestamp)", "year(ts)", "date_trunc('DAY', ts)",
    "date_trunc('HOUR', ts)", "date_trunc('MONTH', ts)", "last_day(ts)", "add_months(d, 1)", "trunc(d, 'WEEK')",
    "datediff(ts, DATE '2026-01-01')", "date_sub(ts, 3)", "unix_seconds(ts)", "cast(ts AS bigint)",
    "date_trunc('WEEK', ts - INTERVAL 1 MONTH)", "year(cast(d AS timestamp) + INTERVAL 5 HOURS)",
]  # fmt: skip
SCHEMA = as_schema("ts timestamp, nz timestamp_ntz, d date")


def expression(text: str, zone: str, schema: pa.Schema = SCHEMA) -> Expr:
    bound = bind_text(f"{text} IS NULL", schema, Context(timezone=zone))
    return bound.children[0]


def assert_range_holds_all(expr: Expr, keys: list[int], zone: str) -> None:
    """The range of the smallest and the largest value holds the function of every one between."""
    path = lawful_path(expr)
    assert path is not None
    term: Any = expr
    while term.children:
        term = next(child for child in term.children if not hasattr(child, "value"))
    values = keys_to_array(np.array(sorted(keys), np.int64), term.type)
    low, high = carry(path, values[:1], values[-1:], zone)
    result = evaluate(expr, {term: values}, len(values), zone)
    rows = [i for i in range(len(values)) if result.failed is None or not result.failed[i]]
    if low.null_count or not rows:
        return
    kept = array_keys(result.values.take(pa.array(rows)))
    least, most = array_keys(low)[0], array_keys(high)[0]
    assert least <= kept.min(), (expr, zone, values[rows[int(kept.argmin())]])
    assert kept.max() <= most, (expr, zone, values[rows[int(kept.argmax())]])


# Around the clock changes of New York (spring, autumn), the day that Apia left out, and the one that Manila had twice.
CHANGES = [1_772_953_200, 1_793_512_800, 1_325_239_200, -3_944_621_033, 1_143_000_000]


@pytest.mark.parametrize("zone", ZONES)
@given(
    st.sampled_from(TEXTS), st.sampled_from(CHANGES), st.lists(st.integers(-60 * 48, 60 * 48), min_size=2, max_size=9)
)
def test_range_holds_the_function_of_all_values_around_clock_changes(
    zone: str, text: str, change: int, minutes: list[int]
) -> None:
    expr = expression(text, zone)
    micros = [change * 1_000_000 + minute * 60_000_000 for minute in minutes]
    keys = [each // DAY for each in micros] if "(d" in text or "d " in text[:2] else micros
    assert_range_holds_all(expr, keys, zone)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia", "Asia/Manila"])
@given(st.sampled_from(TEXTS), st.lists(st.integers(-(2**58), 2**58), min_size=2, max_size=6))
def test_range_holds_the_function_of_all_values_anywhere(zone: str, text: str, micros: list[int]) -> None:
    expr = expression(text, zone)
    assert_range_holds_all(expr, [each // DAY for each in micros] if "(d" in text else micros, zone)


NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
NUMBERS += [pa.decimal128(9, 2), pa.decimal128(18, 6)]


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.data())
def test_range_holds_the_cast_of_all_numbers(source: pa.DataType, to: pa.DataType, data: st.DataObject) -> None:
    if source == to or not castable(source, to) or lawful_path(Cast(Column(("x",), source), to)) is None:
        return
    least, most = key_limits(source) or (0, 0)
    keys = data.draw(st.lists(st.integers(max(least, -(2**40)), min(most - 1, 2**40)), min_size=2, max_size=8))
    assert_range_holds_all(Cast(Column(("x",), source), to), keys, "UTC")


@given(
    st.sampled_from(["x + 3", "3 - x", "x * -2", "x * 0.5D", "-x", "x / 3", "floor(x)", "ceil(x)", "sign(x)"]),
    st.sampled_from(["int", "bigint", "double", "float", "decimal(9,2)"]),
    st.lists(st.integers(-(10**8), 10**8), min_size=2, max_size=6),
)
def test_range_holds_the_function_of_all_numbers(text: str, type_: str, keys: list[int]) -> None:
    expr = expression(text, "UTC", as_schema(f"x {type_}"))
    if expr.type is not None and has_int64_keys(expr.type):
        assert_range_holds_all(expr, keys, "UTC")


def verdict(where: str, ddl: str, lower: Any, upper: Any, zone: str = "UTC", nan: int | None = 0) -> Verdict:
    """The verdict on one file whose only column has these bounds."""
    schema = as_schema(ddl)
    t = schema.field(0).type
    ends = [pa.array([end], t) for end in (lower, upper)]
    bounds = Bounds(
        Column((schema.names[0],), t), *ends, null_count=pa.array([0]), nan_count=pa.array([nan], pa.int64())
    )
    pruner = Pruner(bind_text(where, schema, Context(timezone=zone)), zone)
    return pruner.judge(Containers(1, [bounds])).verdict(0)


def instant(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type]


def test_interval_in_a_zone_with_clock_changes_keeps_what_matches() -> None:
    june = instant(2026, 6, 1), instant(2026, 6, 30)
    for comparison, expected in ((">=", Verdict.KEEP_WHOLE), ("<", Verdict.SKIP)):
        where = f"ts - INTERVAL 7 DAYS {comparison} '2026-05-01'"
        assert verdict(where, "ts timestamp", *june, zone="America/New_York") == expected


def test_month_added_to_a_timestamp_is_not_taken_for_monotonic() -> None:
    ends = instant(2026, 1, 30, 10), instant(2026, 1, 31, 9)
    assert verdict("ts + INTERVAL 1 MONTH < '2026-02-28 09:30:00'", "ts timestamp", *ends) == Verdict.KEEP
    assert verdict("ts + INTERVAL 1 MONTH >= '2026-02-28 09:30:00'", "ts timestamp", *ends) == Verdict.KEEP
    assert verdict("ts + INTERVAL 1 MONTH >= '2026-03-02 00:00:00'", "ts timestamp", *ends) == Verdict.SKIP


@given(st.decimals(-(10**6), 10**6, places=4), st.sampled_from(["=", "<", ">", "<=", ">="]))
def test_cast_of_a_decimal_to_float_never_skips_its_own_value(value: Decimal, comparison: str) -> None:
    single = np.float32(float(value))
    where = f"CAST(x AS float) {comparison} CAST({float(single)!r}D AS float)"
    matches = comparison in ("=", "<=", ">=")
    wrong = Verdict.SKIP if matches else Verdict.KEEP_WHOLE
    assert verdict(where, "x decimal(12,4)", value, value) != wrong


def test_wrapped_sum_beyond_an_end_makes_both_ends_unknown() -> None:
    assert verdict("x + 1 < 0", "x int", 5, 2**31 - 1) == Verdict.KEEP
    assert verdict("x + 1 < 0", "x int", 5, 2**31 - 2) == Verdict.SKIP


def test_cast_that_never_fails_keeps_the_end_that_is_known() -> None:
    assert verdict("x > 1.5D", "x float", None, 1.0) == Verdict.SKIP
    assert verdict("x < 1.5D", "x float", None, 1.0) == Verdict.KEEP
    assert verdict("x + 1 > 5", "x int", None, 1) == Verdict.KEEP


def test_nan_of_the_column_counts_in_functions_of_it() -> None:
    assert verdict("x + 1 > 100", "x double", 1.0, 2.0, nan=None) == Verdict.KEEP
    assert verdict("x + 1 > 100", "x double", 1.0, 2.0, nan=0) == Verdict.SKIP
    assert verdict("1 - x > 100", "x double", 1.0, 2.0, nan=1) == Verdict.KEEP
    assert verdict("x + 1 < 100", "x double", 1.0, 2.0, nan=1) == Verdict.KEEP


def test_single_value_beside_a_clock_change_is_still_exact() -> None:
    before = instant(2026, 11, 1, 5, 30)  # 01:30, half an hour before the clocks of New York go back
    where = "CAST(ts AS date) = '2026-11-01'"
    assert not is_sharp(lawful_path(expression("cast(ts AS date)", "America/New_York")) or (), "America/New_York")
    assert verdict(where, "ts timestamp", before, before, zone="America/New_York") == Verdict.KEEP_WHOLE


def test_removal_without_reading_does_not_rely_on_laws() -> None:
    schema = as_schema("ts timestamp")
    t = schema.field(0).type
    ends = [pa.array([end], t) for end in (instant(2026, 6, 1), instant(2026, 6, 2))]
    containers = Containers(1, [Bounds(Column(("ts",), t), *ends, null_count=pa.array([0]))])
    for where, by_laws, without in (
        ("year(ts) = 2026", Verdict.KEEP_WHOLE, Verdict.KEEP),
        ("year(ts) = 2025", Verdict.SKIP, Verdict.SKIP),
        ("ts >= '2026-01-01'", Verdict.KEEP_WHOLE, Verdict.KEEP_WHOLE),
    ):
        bound = bind_text(where, schema)
        assert Pruner(bound).judge(containers).verdict(0) == by_laws
        assert Pruner(bound, whole_by_laws=False).judge(containers).verdict(0) == without


def test_clock_spread_is_the_difference_of_offsets() -> None:
    assert clock_spread("UTC") == clock_spread("+05:45") == 0
    assert clock_spread("America/New_York") == HOUR
    assert clock_spread("Pacific/Apia") > DAY
