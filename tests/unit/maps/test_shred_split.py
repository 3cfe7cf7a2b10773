"""Maps that are split and put together again: every state of a key, arrays of any layout, and other writers' files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.maps.map_entries import entries_of, field_at, first_known, lookup, merge, split, with_field
from tests.fixtures.shredding import MAP, ODD_KEYS, STATES, dicts, maps_array

key_texts = st.sampled_from(["a", "b", "c", "d", "", "a,b", "é"])
values = st.one_of(st.none(), st.sampled_from(["", "1", "x" * 40, "日本"]))
some_maps = st.lists(st.one_of(st.none(), st.dictionaries(key_texts, values, max_size=5)), max_size=8)
some_keys = st.lists(key_texts, unique=True, max_size=5)


def sidecar_value(each: dict[str, Any] | None, key: str) -> Any:
    return None if each is None else each.get(key)


class TestSplit:
    @given(some_maps, some_keys, st.booleans(), st.integers(0, 3), st.integers(0, 3))
    def test_split_and_merged_maps_are_the_same(
        self, maps: list[Any], keys: list[str], mirror: bool, before: int, behind: int
    ) -> None:
        array = maps_array([{"a": "x"}] * before + maps + [{"b": None}] * behind).slice(before, len(maps))
        done = split(array, keys, mirror=mirror)
        assert [column.to_pylist() for column in done.values] == [[sidecar_value(m, k) for m in maps] for k in keys]
        assert list(done.explicit_nulls) == [sum(m is not None and k in m and m[k] is None for m in maps) for k in keys]
        assert done.null_maps == sum(m is None for m in maps)
        if mirror:
            assert dicts(done.residual) == maps
        else:
            moved = [m and {k: v for k, v in m.items() if k not in keys or v is None} for m in maps]
            assert dicts(done.residual) == moved
            for trusted in (False, True):
                merged = merge(done.residual, keys, done.values, trusted=trusted)
                merged.validate(full=True)
                assert dicts(merged) == maps
        done.residual.validate(full=True)

    def test_the_states_of_a_key_stay_different(self) -> None:
        done = split(maps_array(STATES), ["a", "b"])
        assert dicts(merge(done.residual, ["a", "b"], done.values)) == STATES

    def test_odd_keys(self) -> None:
        maps = [{key: str(i)} for i, key in enumerate(ODD_KEYS)] + [dict.fromkeys(ODD_KEYS, "v")]
        done = split(maps_array(maps), ODD_KEYS)
        assert dicts(done.residual) == [{}] * len(maps)
        assert dicts(merge(done.residual, ODD_KEYS, done.values)) == maps

    def test_more_keys_than_small_numbers_can_count(self) -> None:
        keys = [str(i) for i in range(40_000)]
        done = split(maps_array([{"39999": "x", "0": "y"}]), keys)
        assert (done.values[39_999].to_pylist(), done.values[0].to_pylist()) == (["x"], ["y"])
        assert dicts(done.residual) == [{}]

    def test_no_rows_and_no_entries(self) -> None:
        cases: list[list[Any]] = [[], [None], [{}], [None, {}]]
        for maps in cases:
            done = split(maps_array(maps), ["a"])
            assert dicts(merge(done.residual, ["a"], done.values)) == maps

    def test_what_lies_below_a_null_map_is_not_seen(self) -> None:
        whole = maps_array([{"a": "1"}, {"a": "2", "c": "3"}, {"a": "4"}])
        entries = pa.StructArray.from_arrays([whole.keys, whole.items], fields=[MAP.key_field, MAP.item_field])
        validity = pa.array([True, False, True]).buffers()[1]
        hidden = pa.Array.from_buffers(MAP, 3, [validity, whole.buffers()[1]], 1, children=[entries])
        assert len(entries_of(hidden).keys) == 2
        done = split(hidden, ["a"])
        assert done.values[0].to_pylist() == ["1", None, "4"]
        assert dicts(done.residual) == [{}, None, {}]
        assert dicts(merge(done.residual, ["a"], done.values)) == [{"a": "1"}, None, {"a": "4"}]
        assert lookup(hidden, "c").to_pylist() == [None, None, None]

    @pytest.mark.parametrize("kind", [pa.large_string(), pa.string()])
    def test_field_ids_and_the_type_are_kept(self, kind: pa.DataType) -> None:
        value = pa.field("value", kind, metadata={"PARQUET:field_id": "7"})
        wanted = pa.map_(pa.field("key", kind, False, {"PARQUET:field_id": "6"}), value)
        array = maps_array(STATES).cast(wanted)
        done = split(array, ["a"])
        assert done.residual.type.equals(wanted, check_metadata=True)
        assert merge(done.residual, ["a"], done.values).type.equals(wanted, check_metadata=True)


class TestDuplicates:
    TWICE = pa.array([[("c", "0")], [("a", "1"), ("c", "2"), ("a", "3")], [("a", "4")]], MAP)
    LAST_IS_NULL = pa.array([[("a", "1"), ("a", None)]], MAP)

    def test_a_hot_key_twice_in_a_row_is_refused(self) -> None:
        with pytest.raises(SchemaError, match="a row has the key 'a' of a shredded map twice"):
            split(self.TWICE, ["b", "a"])

    def test_the_last_one_wins_when_asked_for(self) -> None:
        done = split(self.TWICE, ["a"], last_wins=True)
        assert done.values[0].to_pylist() == [None, "3", "4"]
        assert done.residual.to_pylist() == [[("c", "0")], [("c", "2")], []]

    def test_the_last_one_wins_also_without_a_value(self) -> None:
        done = split(self.LAST_IS_NULL, ["a"], last_wins=True)
        assert done.values[0].to_pylist() == [None]
        assert done.explicit_nulls == (1,)
        assert done.residual.to_pylist() == [[("a", None)]]

    def test_the_same_key_in_two_rows_is_not_twice(self) -> None:
        assert split(maps_array([{"a": "1"}, {"a": "1"}]), ["a"]).values[0].to_pylist() == ["1", "1"]

    def test_a_key_that_is_not_hot_may_be_there_twice(self) -> None:
        assert split(self.TWICE, ["c"]).residual.to_pylist()[1] == [("a", "1"), ("a", "3")]

    def test_a_lookup_is_of_the_last(self) -> None:
        assert lookup(self.TWICE, "a").to_pylist() == [None, "3", "4"]
        assert lookup(self.TWICE.slice(1), "a").to_pylist() == ["3", "4"]


class TestOtherWriters:
    def test_the_sidecar_comes_before_the_map(self) -> None:
        residual = maps_array([{"a": "old", "c": "3"}, {"a": None}, {"a": "map"}, None, None])
        sidecar = pa.array(["new", "new", None, "new", None])
        merged = merge(residual, ["a"], [sidecar])
        merged.validate(full=True)
        assert dicts(merged) == [{"a": "new", "c": "3"}, {"a": "new"}, {"a": "map"}, {"a": "new"}, None]
        assert [len(each or []) for each in merged.to_pylist()] == [2, 1, 1, 1, 0]  # no key is there twice
        assert first_known(sidecar, lookup(residual, "a")).to_pylist() == ["new", "new", "map", "new", None]

    @given(some_maps, some_keys.filter(bool), st.data())
    def test_a_merge_is_the_sidecar_or_else_the_map(self, maps: list[Any], keys: list[str], data: Any) -> None:
        filled = [data.draw(st.lists(values, min_size=len(maps), max_size=len(maps))) for _ in keys]
        merged = merge(maps_array(maps), keys, [pa.array(each, pa.string()) for each in filled])
        expected = []
        for i, each in enumerate(maps):
            own = {k: column[i] for k, column in zip(keys, filled, strict=True) if column[i] is not None}
            expected.append(None if each is None and not own else {**(each or {}), **own})
        assert dicts(merged) == expected
        for key, column in zip(keys, filled, strict=True):
            one = first_known(pa.array(column, pa.string()), lookup(maps_array(maps), key))
            assert one.to_pylist() == [None if m is None else m.get(key) for m in expected]

    def test_a_narrower_sidecar_is_widened(self) -> None:
        residual = maps_array([{"c": 2**40}, {}], pa.map_(pa.string(), pa.int64()))
        merged = merge(residual, ["a"], [pa.array([1, None], pa.int32())])
        assert dicts(merged) == [{"c": 2**40, "a": 1}, {}]


class TestNested:
    KIND = pa.struct([pa.field("n", pa.int64()), pa.field("m", MAP)])

    def test_a_map_in_a_struct_is_replaced_and_null_structs_stay(self) -> None:
        array = pa.array([{"n": 1, "m": [("a", "1")]}, None, {"n": None, "m": None}], self.KIND)
        done = split(field_at(array, ["m"]), ["a"])
        assert done.null_maps == 2
        rest = with_field(array, ["m"], done.residual)
        assert rest.to_pylist() == [{"n": 1, "m": []}, None, {"n": None, "m": None}]
        whole = with_field(rest, ["m"], merge(field_at(rest, ["m"]), ["a"], done.values))
        assert whole.to_pylist() == array.to_pylist()

    def test_a_part_of_structs(self) -> None:
        array = pa.array([{"n": i, "m": [("a", str(i))]} for i in range(5)], self.KIND).slice(2, 2)
        done = split(field_at(array, ["m"]), ["a"])
        assert done.values[0].to_pylist() == ["2", "3"]
        assert with_field(array, ["m"], done.residual).to_pylist() == [{"n": 2, "m": []}, {"n": 3, "m": []}]

    def test_structs_in_structs(self) -> None:
        array = pa.array([{"s": {"n": 1, "m": [("a", "1")]}}, {"s": None}, None], pa.struct([("s", self.KIND)]))
        rest = with_field(array, ["s", "m"], split(field_at(array, ["s", "m"]), ["a"]).residual)
        assert rest.to_pylist() == [{"s": {"n": 1, "m": []}}, {"s": None}, None]

    def test_what_lies_below_a_null_struct_stays_there(self) -> None:
        fields = [pa.field("n", pa.int64(), False), pa.field("m", MAP)]
        parts = [pa.array([1, 2]), maps_array([{"a": "1"}, None])]
        array = pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array([False, True]))
        assert with_field(array, ["m"], parts[1]).field(0).null_count == 0


@pytest.mark.slow
@settings(max_examples=5_000)
@given(some_maps, some_keys, st.integers(1, 2**32))
def test_many_maps_keep_their_entries(maps: list[Any], keys: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    many = [maps[i] for i in rng.integers(0, len(maps), 200)] if maps else []
    done = split(maps_array(many), keys)
    assert dicts(merge(done.residual, keys, done.values, trusted=True)) == many
