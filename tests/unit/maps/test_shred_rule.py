"""Rules for hot keys: as people write them, as properties keep them, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Shred
from penstock.errors import LakeError
from penstock.maps.name_lists import read_names, write_names
from penstock.maps.shred_rule import (
    COLUMNS,
    DUPLICATES,
    NOTE,
    PREFIX,
    as_rules,
    from_properties,
    is_property,
    parse_rules,
    to_properties,
)
from tests.fixtures.shredding import ODD_KEYS

texts = st.one_of(st.sampled_from(ODD_KEYS), st.text(max_size=6))
keys = st.lists(texts, min_size=1, max_size=5, unique=True)
modes = st.sampled_from(["move", "mirror"])
rules = st.one_of(
    st.builds(lambda own, mode: Shred(*own, mode=mode), keys, modes),
    st.builds(lambda mode, most: Shred(auto=True, mode=mode, most=most), modes, st.integers(1, 99)),
)


class TestNames:
    @given(st.lists(texts, max_size=5))
    def test_names_come_back_as_they_were_written(self, names: list[str]) -> None:
        assert read_names(write_names(names)) == names

    @pytest.mark.parametrize("text", ["[", '["a"', "[1]", '[["a"]]', "[null]", '["a",]'])
    def test_a_damaged_list_is_an_error(self, text: str) -> None:
        with pytest.raises(LakeError, match="no JSON array of texts"):
            read_names(text)

    @pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
    def test_nothing_is_no_name(self, text: str) -> None:
        assert read_names(text) == []


class TestProperties:
    @given(st.dictionaries(texts.filter(bool), rules, max_size=3))
    def test_rules_come_back_from_properties(self, wanted: dict[str, Shred]) -> None:
        assert from_properties(to_properties(wanted)) == wanted

    def test_the_properties_are_those_that_are_documented(self) -> None:
        found = to_properties(as_rules({"headers": ["b", "a"], "s.m": Shred(auto=True, most=3, mode="mirror")}))
        note = found.pop(NOTE)
        assert found == {
            "parquet.map.shredding.columns": "headers,s.m",
            "parquet.map.shredding.headers.keys": "b,a",
            "parquet.map.shredding.headers.mode": "move",
            "parquet.map.shredding.s.m.keys": "auto",
            "parquet.map.shredding.s.m.mode": "mirror",
            "parquet.map.shredding.s.m.most": "3",
        }
        assert "headers" in note
        assert "s.m" not in note  # a mirrored map is complete

    def test_a_mirrored_map_needs_no_note(self) -> None:
        assert NOTE not in to_properties({"m": Shred("a", mode="mirror")})

    def test_a_key_that_is_called_auto_is_a_key(self) -> None:
        found = from_properties(to_properties(as_rules({"m": ["auto"]})))
        assert found == {"m": Shred("auto")}
        assert not found["m"].auto

    def test_no_rules_are_no_properties(self) -> None:
        assert to_properties({}) == {}
        assert from_properties({}) == {}
        assert from_properties({"owner": "me", DUPLICATES: "last-wins"}) == {}

    @pytest.mark.parametrize(
        ("properties", "said"),
        [
            ({}, "keys is missing"),
            ({"keys": " "}, "keys is missing"),
            ({"keys": "a,a"}, "the keys of 'm': the key 'a' is given twice"),
            ({"keys": "[1]"}, "the keys of 'm': .* no JSON array"),
            ({"keys": "[]"}, "the keys of 'm': .* names its hot keys"),
            ({"keys": "a", "mode": "copy"}, "there is no mode 'copy'"),
            ({"keys": "auto", "mode": "copy"}, "there is no mode 'copy'"),
            ({"keys": "auto", "most": "0"}, "most is 0"),
            ({"keys": "auto", "most": "many"}, "m.most is 'many'"),
            ({"keys": "auto", "most": "-1"}, "m.most is '-1'"),
            ({"keys": "auto", "most": "²"}, "m.most is '²'"),
        ],
    )
    def test_a_damaged_property_is_an_error_that_names_it(self, properties: dict[str, str], said: str) -> None:
        given = {COLUMNS: "m", **{f"{PREFIX}m.{name}": text for name, text in properties.items()}}
        with pytest.raises(LakeError, match=said) as caught:
            from_properties(given)
        assert len(str(caught.value).splitlines()) == 1

    def test_spaces_and_capitals_of_a_mode_do_not_matter(self) -> None:
        given = {COLUMNS: " m ", f"{PREFIX}m.keys": " a , b ", f"{PREFIX}m.mode": " Mirror "}
        assert from_properties(given) == {"m": Shred("a", "b", mode="mirror")}

    def test_only_properties_of_rules_belong_to_rules(self) -> None:
        assert is_property(COLUMNS)
        assert is_property(NOTE)
        assert not is_property("write.parquet.compression-codec")
        assert not is_property("penstock.map.shredding.sidecars")


class TestAsked:
    def test_every_form(self) -> None:
        asked: dict[str, Any] = {"m": ["a", "b"], "n": "auto", "o": "a,b", "p": Shred("x"), "q": ("",), "r": iter("yz")}
        assert as_rules(asked) == {
            "m": Shred("a", "b"),
            "n": Shred(auto=True),
            "o": Shred("a,b"),
            "p": Shred("x"),
            "q": Shred(""),
            "r": Shred("y", "z"),
        }
        assert as_rules(None) == as_rules({}) == {}

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"m": []}, "no key of 'm'"),
            ({"m": None}, "no key of 'm'"),
            ({"m": 5}, "the keys of 'm' are 5"),
            ({"m": [1]}, "1 is no key"),
            ({"m": [None]}, "None is no key"),
            ({"m": b"ab"}, "97 is no key"),
            ({"m": ["a", "a"]}, "'a' is given twice"),
            ({"m": ["a"], "M": ["b"]}, "'M' is given twice"),
            ({5: ["a"]}, "5 is no map column"),
            ({"": ["a"]}, "'' is no map column"),
            ("m", "shred is 'm'"),
            (["m"], r"shred is \['m'\]"),
        ],
    )
    def test_what_cannot_be_is_one_clear_error(self, asked: Any, said: str) -> None:
        with pytest.raises(LakeError, match=said) as caught:
            as_rules(asked)
        assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.parametrize(
        ("arguments", "options", "said"),
        [
            ((), {}, "names its hot keys"),
            (("a",), {"auto": True}, "names its hot keys"),
            (("a",), {"mode": "copy"}, "no mode 'copy'"),
            (("a",), {"mode": None}, "no mode None"),
            ((), {"auto": True, "most": 0}, "most is 0"),
            ((), {"auto": True, "most": True}, "most is True"),
            ((), {"auto": True, "most": 1.5}, "most is 1.5"),
        ],
    )
    def test_a_rule_that_cannot_be_is_an_error(self, arguments: Any, options: Any, said: str) -> None:
        with pytest.raises(LakeError, match=said):
            Shred(*arguments, **options)

    def test_rules_travel_between_processes(self) -> None:
        rule = Shred("a", "b", mode="mirror")
        assert pickle.loads(pickle.dumps(rule)) == rule
        assert hash(rule) == hash(Shred("a", "b", mode="mirror"))


class TestCommandLine:
    def test_texts_are_rules(self) -> None:
        found = parse_rules(["headers=a,b", "p=auto", 'q=["a,b"]', "s.m = x=y"])
        assert found == {"headers": Shred("a", "b"), "p": Shred(auto=True), "q": Shred("a,b"), "s.m": Shred("x=y")}

    @pytest.mark.parametrize("texts", [["headers"], ["=a"], ["headers="], ["h=a", "h=b"], ["h=a,a"], ["h=["]])
    def test_a_text_that_names_nothing_is_an_error(self, texts: list[str]) -> None:
        with pytest.raises(LakeError):
            parse_rules(texts)
