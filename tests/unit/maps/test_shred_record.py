"""How far sidecars are trusted: what a manifest entry says, and what is assumed where it says nothing."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, StringType

from penstock.formats.manifest_record import FIELD_IDS, SidecarRecord, encode_logical, read_sidecar_record, read_tuples
from penstock.maps.shredded_file import State, state_of, states_of, weaker
from penstock.maps.sidecar_columns import Sidecar

MOVED = Sidecar(11, "__map_shred_m_0", 2, "a", "move")
COPIED = Sidecar(12, "__map_shred_m_1", 2, "a", "mirror")


@given(st.frozensets(st.integers(0, 2**31)), st.frozensets(st.integers(0, 2**31)))
def test_a_record_comes_back(value: frozenset[int], exact: frozenset[int]) -> None:
    record = SidecarRecord(value, exact & value)
    assert read_sidecar_record(record.text()) == record


@pytest.mark.parametrize(
    "text",
    [None, "", "{", "[]", "1", "null", "{}", '{"value": [1]}', '{"exact": [1]}', '{"value": 1, "exact": []}',
     '{"value": ["1"], "exact": []}', '{"value": [true], "exact": []}', '{"value": [1.0], "exact": []}',
     '{"value": null, "exact": []}', '{"value": "12", "exact": []}', '{"value": [[1]], "exact": []}',
     '{"value": [{}], "exact": []}'],
)  # fmt: skip
def test_what_cannot_be_read_says_nothing(text: str | None) -> None:
    assert read_sidecar_record(text) is None
    assert states_of(text, [MOVED, COPIED]) == (State.MAYBE, State.ABSENT)


def test_exact_is_only_what_has_values_too() -> None:
    assert read_sidecar_record('{"value": [], "exact": [11]}') == SidecarRecord(frozenset(), frozenset())


def test_more_is_not_minded() -> None:
    assert read_sidecar_record('{"value": [11], "exact": [], "later": 1}') == SidecarRecord(
        frozenset({11}), frozenset()
    )


@pytest.mark.parametrize("sidecar", [MOVED, COPIED])
def test_states(sidecar: Sidecar) -> None:
    one = frozenset({sidecar.id})
    assert state_of(SidecarRecord(one, one), sidecar) == State.EXACT
    assert state_of(SidecarRecord(one, frozenset()), sidecar) == State.VALUE
    assert state_of(SidecarRecord(frozenset(), frozenset()), sidecar) == State.ABSENT


@given(st.lists(st.sampled_from(list(State)), min_size=4, max_size=4))
def test_the_weaker_of_two_holds_for_both(states: list[State]) -> None:
    one, other = tuple(states[:2]), tuple(states[2:])
    found = weaker(one, other, [MOVED, COPIED])
    for state, a, b, sidecar in zip(found, one, other, [MOVED, COPIED], strict=True):
        if a == b:
            assert state == a
        elif min(a, b) >= State.VALUE:
            assert state == State.VALUE
        else:  # of a moved key both are looked at; a copy that is not everywhere is not used
            assert state == (State.MAYBE if sidecar is MOVED else State.ABSENT)
    assert weaker(other, one, [MOVED, COPIED]) == found


def test_a_record_of_a_newer_version_says_nothing() -> None:
    assert read_sidecar_record('{"version": 1, "value": [11], "exact": []}') == SidecarRecord(
        frozenset({11}), frozenset()
    )
    assert read_sidecar_record('{"version": 2, "value": [11], "exact": []}') is None
    assert read_tuples('{"version": 1, "complete": true, "columns": [2], "tuples": [["a"]]}') is not None
    assert read_tuples('{"version": 2, "complete": true, "columns": [2], "tuples": [["a"]]}') is None


def test_the_fields_and_texts_in_manifests_stay_what_they_were() -> None:
    """Tables that were written before must stay readable: names, ids and texts are part of the format."""
    assert FIELD_IDS == {"logical_partition_values": 100_001, "map_shredding": 100_002}
    text = '{"complete": true, "columns": [2, 7], "tuples": [["é", "2026-05-17"], [null, null]], "rows": [20, 3]}'
    tuples = [["é", dt.date(2026, 5, 17)], [None, None]]
    assert encode_logical([2, 7], [StringType(), DateType()], tuples, rows=[20, 3]) == text
    assert read_tuples(text) == ((2, 7), [["é", "2026-05-17"], [None, None]], [20, 3])
    assert SidecarRecord(frozenset({12, 11}), frozenset({12})).text() == '{"value": [11, 12], "exact": [12]}'
