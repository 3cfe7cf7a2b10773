"""Keys that are chosen: by how many rows have them and by their bytes, and not another one without need."""

from __future__ import annotations

import datetime as dt
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.maps.key_scores import KeyUse, choose, key_uses
from tests.fixtures.shredding import MAP, maps_array


def uses(**rows: int) -> list[KeyUse]:
    return [KeyUse(key, count, count) for key, count in rows.items()]


class TestUses:
    def test_rows_and_bytes_of_each_key(self) -> None:
        found = key_uses(maps_array([{"ab": "xyz", "c": None}, None, {}, {"ab": "", "c": "1"}]))
        assert found == [KeyUse("ab", 2, 7), KeyUse("c", 2, 3)]

    def test_bytes_are_not_letters(self) -> None:
        assert key_uses(maps_array([{"é": "日本"}])) == [KeyUse("é", 1, 8)]

    def test_no_maps_have_no_keys(self) -> None:
        cases: list[list[Any]] = [[], [None], [{}]]
        for maps in cases:
            assert key_uses(maps_array(maps)) == []

    def test_a_part_of_maps(self) -> None:
        assert [use.key for use in key_uses(maps_array([{"a": "1"}, {"b": "2"}, {"c": "3"}]).slice(1, 1))] == ["b"]

    @pytest.mark.parametrize(
        ("kind", "value", "size"),
        [
            (pa.int32(), 1, 4), (pa.int64(), 1, 8), (pa.bool_(), True, 1), (pa.float64(), 1.5, 8),
            (pa.decimal128(9, 2), 1, 16), (pa.date32(), dt.date(2026, 1, 1), 4), (pa.binary(4), b"1234", 4),
            (pa.binary(), b"123", 3), (pa.large_binary(), b"123", 3), (pa.large_string(), "123", 3),
            (pa.string_view(), "123", 3), (pa.binary_view(), b"123", 3), (pa.null(), None, 0),
            (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 8), (pa.uuid(), UUID(int=1).bytes, 16),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("keys", [pa.string(), pa.large_string(), pa.string_view()])
    def test_values_of_every_type(self, kind: pa.DataType, value: Any, size: int, keys: pa.DataType) -> None:
        items = pa.array([value], pa.binary(16) if kind == pa.uuid() else kind)
        items = pa.ExtensionArray.from_storage(kind, items) if kind == pa.uuid() else items
        maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a"], keys), items)
        assert key_uses(maps) == [KeyUse("a", 1, size + 1)]

    def test_keys_of_a_dictionary(self) -> None:
        whole = maps_array([{"a": "1", "b": "22"}, {"a": "3"}])
        maps = pa.MapArray.from_arrays(whole.offsets, whole.keys.dictionary_encode(), whole.items)
        assert key_uses(maps) == [KeyUse("a", 2, 4), KeyUse("b", 1, 3)]


class TestChoice:
    def test_a_key_that_few_rows_have_is_not_chosen(self) -> None:
        assert choose(uses(often=5, seldom=4), 100, 16) == ["often"]

    def test_the_heaviest_come_first_and_their_order_is_fixed(self) -> None:
        assert choose(uses(z=90, a=80, m=70), 100, 2) == ["a", "z"]

    def test_keys_stay_until_hardly_any_row_has_them(self) -> None:
        assert choose(uses(b=90, a=3), 100, 16, ["a"]) == ["a", "b"]
        assert choose(uses(b=90, a=2), 100, 16, ["a"]) == ["b"]
        assert choose(uses(b=90), 100, 16, ["a"]) == ["b"]

    def test_those_before_have_the_first_places(self) -> None:
        assert choose(uses(b=90, c=80, a=10), 100, 1, ["a"]) == ["a"]
        assert choose(uses(b=90, c=80, a=10), 100, 2, ["a"]) == ["a", "b"]

    def test_fewer_places_than_before(self) -> None:
        assert choose(uses(a=90, b=90, c=90), 100, 2, ["c", "b", "a"]) == ["c", "b"]

    @given(
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 100), max_size=8),
        st.integers(1, 6),
        st.lists(st.sampled_from("abcdefgh"), unique=True),
    )
    def test_a_choice_is_bounded_distinct_and_stable(self, rows: dict[str, int], most: int, before: list[str]) -> None:
        ordered = sorted(uses(**rows), key=lambda use: (-use.bytes, use.key))
        found = choose(ordered, 100, most, before)
        assert len(found) == len(set(found)) <= most
        assert set(found) <= set(rows)
        assert choose(ordered, 100, most, found) == found


def test_maps_without_a_type_of_values_have_keys() -> None:
    assert key_uses(maps_array([{"a": None}], MAP)) == [KeyUse("a", 1, 1)]
