"""Casts at the limits: nothing raises, slices and empty arrays give what whole ones give, directions hold.

What Spark itself answers is asked in `tests/spark/test_casts_against_spark.py`.
"""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.functions.number_functions import above
from penstock.expr.kernels.cast import cast, cast_law, castable
from penstock.expr.kernels.vector import Vector
from penstock.expr.kernels.zone_rules import rules_of
from penstock.expr.kernels.zones import from_local, is_fixed, start_of_day, to_local
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, type_name
from tests.spark.hard_values import HARD, ZONES

PAIRS = [(a, b) for a in HARD for b in HARD if castable(a, b)]
SECOND = 1_000_000


def failed(vector: Vector) -> list[bool]:
    return [False] * len(vector.values) if vector.failed is None else list(vector.failed)


def same(left: Vector, right: Vector) -> bool:
    return failed(left) == failed(right) and left.values.to_string() == right.values.to_string()


@pytest.mark.parametrize("zone", ["UTC", "-18:00", "America/St_Johns"])
@pytest.mark.parametrize(("source", "to"), PAIRS, ids=lambda t: type_name(t))
def test_slices_and_empty_arrays_are_cast_like_whole_ones(source: pa.DataType, to: pa.DataType, zone: str) -> None:
    values = HARD[source]
    whole = cast(values, to, zone)
    for start, stop in ((0, 0), (0, 1), (1, 3), (len(values) - 1, len(values)), (2, len(values))):
        part = cast(values[start:stop], to, zone)
        expected = Vector(whole.values[start:stop], None if whole.failed is None else whole.failed[start:stop])
        assert part.values.type == to
        assert same(part, expected)
    nothing = cast(pa.nulls(3, source), to, zone)
    assert nothing.failed is None
    assert nothing.values.null_count == 3


@pytest.mark.parametrize("to", list(HARD), ids=type_name)
def test_untyped_nulls_become_nulls_of_any_type(to: pa.DataType) -> None:
    assert cast(pa.nulls(2), to, "UTC").values.equals(pa.nulls(2, to))


def test_null_rows_never_fail_and_failed_rows_show_no_value() -> None:
    for source, to in PAIRS:
        found = cast(HARD[source], to, "America/New_York")
        if found.failed is not None:
            assert not (found.failed & ~np.asarray(HARD[source].is_valid())).any()
            assert found.values.filter(pa.array(found.failed)).null_count == found.failed.sum()


def test_unknown_cast_is_refused_with_both_types_named() -> None:
    assert not castable(pa.int32(), pa.date32())
    with pytest.raises(ValueError, match="cannot cast int to date"):
        cast(pa.array([1], pa.int32()), pa.date32(), "UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "utc", "+19:00", "+2:60", "posix/UTC"])
def test_unknown_zone_is_named(zone: str) -> None:
    with pytest.raises(ValueError, match="unknown time zone"):
        to_local(np.array([0]), zone)


def test_instants_before_1970_fail_without_the_package_that_has_javas_zones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(package: str) -> None:
        raise ModuleNotFoundError(package)

    if not any(Path(folder, "Europe", "Stockholm").is_file() for folder in zoneinfo.TZPATH):
        pytest.skip("the system has no zone files")
    monkeypatch.setattr("importlib.resources.files", missing)
    rules_of.cache_clear()
    try:
        found = cast(pa.array([-1, 1], pa.int64()).view(TIMESTAMP), pa.date32(), "Europe/Stockholm")
        assert failed(found) == [True, False]
    finally:
        rules_of.cache_clear()


def test_arrow_rounds_this_decimal_wrong_and_we_do_not() -> None:
    text = pa.array(["9223372036854775807.9"])
    value = cast(text, pa.decimal128(38, 18), "UTC").values
    assert cast(value, pa.int64(), "UTC").values.to_pylist() == [2**63 - 1]


def test_a_long_decimal_becomes_a_short_integer_by_way_of_a_double() -> None:
    texts = pa.array(["0.999999999999999999", "2147483646.999999999999999999", "2147483647.999999999999999999"])
    long = cast(texts, pa.decimal128(38, 18), "UTC").values
    as_int = cast(long, pa.int32(), "UTC")
    assert as_int.values.to_pylist()[:2] == [1, 2**31 - 1]
    assert failed(as_int) == [False, False, True]
    assert cast(long, pa.int64(), "UTC").values.to_pylist() == [0, 2**31 - 2, 2**31 - 1]
    short = cast(texts[:1], pa.decimal128(18, 18), "UTC").values
    assert cast(short, pa.int32(), "UTC").values.to_pylist() == [0]


def test_local_time_in_a_gap_moves_forward_and_in_an_overlap_is_the_earlier() -> None:
    gap = 1_710_037_800 * SECOND  # 2024-03-10 02:30 in New York
    assert to_local(from_local(np.array([gap]), "America/New_York"), "America/New_York")[0] == gap + 3600 * SECOND
    overlap = 1_730_597_400 * SECOND  # 2024-11-03 01:30
    assert from_local(np.array([overlap]), "America/New_York")[0] == overlap + 4 * 3600 * SECOND


def test_day_that_begins_in_a_gap_begins_at_its_end() -> None:
    midnight = np.array([-18_539 * 86_400 * SECOND])  # 1919-03-31 in Toronto: 23:30 became 00:30
    assert to_local(start_of_day(midnight, "America/Toronto"), "America/Toronto")[0] - midnight[0] == 1800 * SECOND


@given(st.integers(-(2**62), 2**62), st.sampled_from([zone for zone in ZONES if not is_fixed(zone)]))
def test_way_to_local_time_and_back_differs_only_in_an_overlap(micros: int, zone: str) -> None:
    local = to_local(np.array([micros]), zone)
    back = int(from_local(local, zone)[0])
    assert back == micros or (back < micros and to_local(np.array([back]), zone)[0] == local[0])


@pytest.mark.parametrize("zone", ["UTC", "+05:45"])
@pytest.mark.parametrize(("source", "to"), PAIRS, ids=lambda t: type_name(t))
def test_law_of_a_cast_is_true_where_no_clock_changes(source: pa.DataType, to: pa.DataType, zone: str) -> None:
    if cast_law(source, to) is None:
        return
    result = cast(HARD[source], to, zone)
    rows = [i for i, bad in enumerate(failed(result)) if not bad and HARD[source][i].is_valid]
    places = np.array([(i, j) for i in rows for j in rows], np.int64).reshape(-1, 2)
    lower, upper = (pa.array(places[:, side]) for side in (0, 1))
    rises = above(HARD[source].take(upper), HARD[source].take(lower))
    assert not (rises & above(result.values.take(lower), result.values.take(upper))).any()


def test_casts_through_a_zone_have_a_law_of_the_clock_and_casts_that_reorder_have_none() -> None:
    assert all(law is not None and law.clock for law in map(cast_law, [TIMESTAMP] * 2, [pa.date32(), TIMESTAMP_NTZ]))
    assert cast_law(pa.string(), pa.int32()) is cast_law(pa.int32(), pa.bool_()) is None
