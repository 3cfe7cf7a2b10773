"""Functions at the limits: nothing raises, slices give what whole arrays give, and laws tell the truth.

What Spark itself answers is asked in `tests/spark/test_functions_against_spark.py`.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.functions.function import RISING, Constants, Law
from penstock.expr.functions.function_registry import CATALYST, FUNCTIONS, find
from penstock.expr.functions.number_functions import above
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.vector import Vector, union
from penstock.expr.types import TIMESTAMP, is_decimal, is_float, is_timestamp
from tests.spark.hard_values import HARD

ZONE = "America/St_Johns"
CONSTANTS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["month", "week", "hour", "a", ""],
    pa.int32(): [1, 0, 2, -3, 2**31 - 1],
    pa.int64(): [1, -2, 0, 2**62],
    pa.float64(): [0.5, -2.0, 0.0, -0.0, 1e300, math.inf, -math.inf, math.nan],
    pa.decimal128(10, 2): [Decimal("1.50"), Decimal("-0.10"), Decimal(0)],
    pa.date32(): [0, -1, 2**31 - 1],
}


def constant(value: Any, t: pa.DataType, count: int) -> pa.Array:
    if t == pa.date32():
        return pa.array([value] * count, pa.int32()).view(t)
    return pa.array([value] * count, t)


def call(name: str, arrays: list[pa.Array], constants: Constants, zone: str = "UTC") -> Vector | None:
    """The kernel over cast arguments; None when the signature does not take them."""
    signature = FUNCTIONS[name].signature([values.type for values in arrays], constants)
    if signature is None:
        return None
    vectors = [cast(values, t, zone) for values, t in zip(arrays, signature.arguments, strict=True)]
    return computed(name, vectors, signature.result, zone)


def computed(name: str, vectors: list[Vector], result: pa.DataType, zone: str) -> Vector:
    if FUNCTIONS[name].chooses:
        return FUNCTIONS[name].kernel(vectors, zone)
    found = FUNCTIONS[name].kernel([each.values for each in vectors], zone)
    # How many places are kept is in the second argument: without a row there is none to look at.
    rounds = name in ("round", "bround", "ceil", "ceiling", "floor")
    assert found.values.type == result or (rounds and len(vectors[0].values) == 0)
    return Vector(found.values, union(found.failed, *(each.failed for each in vectors)))


@cache
def calls() -> list[tuple[list[pa.Array], list[tuple[object] | None]]]:
    """Arguments of every shape: one column, and a column with a constant before or behind it."""
    shapes: list[tuple[list[pa.Array], list[tuple[object] | None]]] = []
    for column in HARD.values():
        shapes.append(([column], [None]))
        for t, value in ((t, value) for t, values in CONSTANTS.items() for value in values):
            other = constant(value, t, len(column))
            shapes.append(([column, other], [None, (value,)]))
            shapes.append(([other, column], [(value,), None]))
            if t == pa.int32():
                shapes.append(([column, other, other], [None, (value,), (value,)]))
            if t == pa.int64() and abs(value) < 100:
                unit = constant("DAY", pa.string(), len(column))
                shapes.append(([column, other, unit], [None, (value,), ("DAY",)]))
    return shapes


@cache
def cast_argument(shape: int, place: int, t: pa.DataType) -> Vector:
    """An argument in the type that a function takes it in, cast once for all functions."""
    return cast(calls()[shape][0][place], t, ZONE)


def sliced(vector: Vector, start: int, stop: int) -> Vector:
    return Vector(vector.values[start:stop], None if vector.failed is None else vector.failed[start:stop])


def failed(vector: Vector) -> list[bool]:
    return [False] * len(vector.values) if vector.failed is None else list(vector.failed)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_slices_and_empty_arrays_are_computed_like_whole_ones(name: str) -> None:
    taken = 0
    for shape, (arrays, constants) in enumerate(calls()):
        long = len(arrays) > 1 and pa.types.is_integer(arrays[1].type) and pc.max(arrays[1]).as_py() > 10_000
        if long and name in ("lpad", "rpad"):
            continue  # `evaluate` asks first how long the text would be
        signature = FUNCTIONS[name].signature([values.type for values in arrays], constants)
        if signature is None:
            continue
        taken += 1
        vectors = [cast_argument(shape, place, t) for place, t in enumerate(signature.arguments)]
        whole = computed(name, vectors, signature.result, ZONE)
        for start, stop in ((0, 0), (1, 2), (3, len(arrays[0]))):
            part = computed(name, [sliced(each, start, stop) for each in vectors], signature.result, ZONE)
            assert failed(part) == failed(whole)[start:stop]
            assert part.values.to_string() == whole.values[start:stop].to_string()
        varying = [pa.nulls(2, v.type) if c is None else v[:2] for v, c in zip(arrays, constants, strict=True)]
        nothing = call(name, varying, constants)
        assert nothing is not None
        if FUNCTIONS[name].null_in_null_out and cast_constants(name, arrays, constants) is not None:
            assert nothing.values.null_count == 2
            assert nothing.failed is None
    assert taken or name in {
        "size",
        "cardinality",
        "map_contains_key",
        "element_at",
        "try_element_at",
        "if",
        "case",
        "split_part",
        "make_timestamp",
    }


def cast_constants(name: str, arrays: list[pa.Array], constants: Constants) -> list[tuple[object] | None] | None:
    """The constants as the binder gives them: cast to the signature's types; None when one fails."""
    signature = FUNCTIONS[name].signature([values.type for values in arrays], constants)
    if signature is None or len(arrays[0]) == 0:
        return None
    found: list[tuple[object] | None] = []
    for given_constant, values, t in zip(constants, arrays, signature.arguments, strict=True):
        if given_constant is None:
            found.append(None)
            continue
        vector = cast(values[:1], t, "UTC")
        if vector.failed is not None:
            return None
        physical = vector.values.view(pa.int64() if is_timestamp(t) else pa.int32()) if _is_time(t) else vector.values
        found.append((physical[0].as_py(),))
    return found


def _is_time(t: pa.DataType) -> bool:
    return is_timestamp(t) or t == pa.date32()


def assert_monotone(name: str, column: pa.Array, result: Vector, law: Law) -> None:
    nan = pc.is_nan(column).fill_null(False).to_pylist() if is_float(column.type) else [False] * len(column)
    rows = [i for i, bad in enumerate(failed(result)) if not bad and column[i].is_valid and not nan[i]]
    places = np.array(list(itertools.product(rows, rows)), np.int64).reshape(-1, 2)
    low, high = (pa.array(places[:, side]) for side in (0, 1))
    rises = above(column.take(high), column.take(low))
    first, second = (low, high) if law.direction > 0 else (high, low)
    wrong = rises & above(result.values.take(first), result.values.take(second))
    assert not wrong.any(), (
        name,
        column.take(low)[int(wrong.argmax())],
        column.take(high)[int(wrong.argmax())],
    )
    assert result.values.take(pa.array(rows, pa.int64())).null_count == 0


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_law_is_true_over_hard_values(name: str) -> None:
    for arrays, constants in calls():
        known = cast_constants(name, arrays, constants)
        if known is None or constants.count(None) != 1:
            continue
        argument = constants.index(None)
        column = arrays[argument]
        signature = FUNCTIONS[name].signature([values.type for values in arrays], constants)
        assert signature is not None
        if column.type != signature.arguments[argument]:
            continue  # the cast has a law of its own
        law = FUNCTIONS[name].law(argument, known)
        if law is not None and not law.slack:
            result = call(name, arrays, constants)
            assert result is not None
            assert_monotone(name, column, result, law)


DECLARED: list[tuple[str, Constants, int, int | None]] = [
    ("+", (None, (1,)), 0, 1),
    ("-", (None, (1,)), 0, 1),
    ("-", ((1,), None), 1, -1),
    ("-", ((1.0,), None), 1, -1),
    ("*", (None, (-2,)), 0, -1),
    ("*", (None, (0,)), 0, None),
    ("/", (None, (2.0,)), 0, 1),
    ("negative", (None,), 0, -1),
    ("year", (None,), 0, 1),
    ("date_trunc", (("month",), None), 1, 1),
    ("date_trunc", (("decade",), None), 1, None),
    ("trunc", (None, ("year",)), 0, 1),
    ("substring", (None, (1,), (3,)), 0, 1),
    ("substring", (None, (2,), (3,)), 0, None),
    ("left", (None, (3,)), 0, 1),
    ("datediff", (None, (1,)), 0, 1),
    ("datediff", ((1,), None), 1, -1),
    ("abs", (None,), 0, None),
    ("month", (None,), 0, None),
    ("+", (None, (math.inf,)), 0, None),
    ("add_interval", (None, (1,), ("MONTH",)), 0, 1),
]


@pytest.mark.parametrize(("name", "constants", "argument", "direction"), DECLARED)
def test_law_is_declared_where_pruning_needs_it(
    name: str, constants: Constants, argument: int, direction: int | None
) -> None:
    law = FUNCTIONS[name].law(argument, constants)
    assert (None if law is None else law.direction) == direction


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=12),
    st.sampled_from(["year", "last_day", "to_date", "add_months", "date_sub", "trunc"]),
)
def test_law_is_true_over_random_dates(days: list[int], name: str) -> None:
    column = pa.array(days, pa.int32()).view(pa.date32())
    second: dict[str, Any] = {
        "add_months": (pa.int32(), 1),
        "date_sub": (pa.int32(), 9),
        "trunc": (pa.string(), "week"),
    }
    arrays, constants = [column], [None]
    if name in second:
        t, value = second[name]
        arrays, constants = [column, constant(value, t, len(days))], [None, (value,)]
    result = call(name, arrays, constants)
    law = FUNCTIONS[name].law(0, constants)
    assert result is not None
    assert law is not None
    assert_monotone(name, column, result, law)


@given(st.lists(st.text(max_size=6), min_size=2, max_size=10), st.integers(-2, 5))
def test_prefix_keeps_the_order_of_bytes(texts: list[str], length: int) -> None:
    column = pa.array(texts)
    result = call("left", [column, constant(length, pa.int32(), len(texts))], [None, (length,)])
    assert result is not None
    assert_monotone("left", column, result, RISING)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=20))
def test_integers_fail_exactly_where_the_result_does_not_fit(pairs: list[tuple[int, int]]) -> None:
    arrays = [pa.array([pair[side] for pair in pairs], pa.int64()) for side in (0, 1)]
    exact = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
    for name, compute in exact.items():
        found = call(name, arrays, [None, None])
        assert found is not None
        for i, (a, b) in enumerate(pairs):
            fits = -(2**63) <= compute(a, b) < 2**63
            assert bool(failed(found)[i]) is not fits
            assert not fits or found.values[i].as_py() == compute(a, b)


def test_a_choice_does_not_fail_for_what_it_does_not_take() -> None:
    bad = Vector(pa.array([None, 2, None], pa.int64()), np.array([True, False, True]))
    flags = Vector(pa.array([False, True, None]))
    zero = Vector(pa.array([0, 0, 0], pa.int64()))
    assert FUNCTIONS["if"].kernel([flags, bad, zero], "UTC").failed is None
    assert FUNCTIONS["if"].kernel([flags, zero, bad], "UTC").values[1].as_py() == 0
    doubtful = FUNCTIONS["coalesce"].kernel([bad, zero], "UTC").failed
    assert doubtful is not None
    assert list(doubtful) == [True, False, True]
    assert FUNCTIONS["coalesce"].kernel([zero, bad], "UTC").failed is None


def test_map_with_a_key_twice_fails_and_slices_find_their_entries() -> None:
    t = pa.map_(pa.string(), pa.int64())
    maps = pa.array([[("x", 9)], [("a", 1), ("b", 2)], None, [("a", 3), ("a", 4)], []], t)[1:]
    keys = pa.array(["a"] * 4)
    found = call("element_at", [maps, keys], [None, ("a",)])
    assert found is not None
    assert found.values.to_pylist()[:2] == [1, None]
    assert failed(found) == [False, False, True, False]
    present = call("map_contains_key", [maps, keys], [None, ("a",)])
    assert present is not None
    assert present.values.to_pylist() == [True, None, True, False]
    sizes = call("size", [maps], [None])
    assert sizes is not None
    assert sizes.values.to_pylist() == [2, None, 2, 0]


def test_functions_are_found_in_any_case_by_alias_and_by_the_class_of_spark() -> None:
    assert find("Date_Trunc") is FUNCTIONS["date_trunc"] is CATALYST["TruncTimestamp"]
    assert find("ucase") is FUNCTIONS["upper"]
    assert find("regexp_like") is None
    assert all(FUNCTIONS[name].signature([TIMESTAMP], [None]) is not None for name in ("year", "hour", "to_date"))


def test_signatures_of_decimals_follow_spark() -> None:
    plus = FUNCTIONS["+"].signature([pa.decimal128(38, 10), pa.decimal128(38, 2)], [None, None])
    assert plus is not None
    assert is_decimal(plus.result)
    assert (plus.result.precision, plus.result.scale) == (38, 6)
    quotient = FUNCTIONS["/"].signature([pa.decimal128(10, 2), pa.int32()], [None, None])
    assert quotient is not None
    assert quotient.result == pa.decimal128(21, 13)
    # `2L` has one digit and `CAST(2 AS bigint)` twenty, and both are the same constant here.
    assert FUNCTIONS["/"].signature([pa.decimal128(10, 2), pa.int64()], [None, (2,)]) is None
    divided = FUNCTIONS["/"].signature([pa.int32(), pa.int32()], [None, None])
    assert divided is not None
    assert is_float(divided.result)
