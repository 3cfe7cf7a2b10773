"""What footers say of sidecars: read as they were written, and a clear error for everything that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Shred
from penstock.errors import LakeError
from penstock.maps.sidecar_footer import Shredded, read_footer, to_footer
from tests.fixtures.shredding import MAP, ODD_KEYS, footers, maps_array, shredded_table

NAMES = ["id", "headers", "__map_shred_headers_0", "__map_shred_headers_1"]
GOOD = {
    "penstock.map.shredding.version": "1",
    "penstock.map.shredding.headers.keys": '["a", "b"]',
    "penstock.map.shredding.headers.mode": "move",
}


def read(pairs: dict[str, str], names: list[str] | None = None) -> tuple[Shredded, ...]:
    return read_footer({k.encode(): v.encode() for k, v in pairs.items()}, names or NAMES, "f.parquet")


class TestFooter:
    def test_it_is_read_as_it_was_written(self) -> None:
        sidecars = {"a": "__map_shred_headers_0", "b": "__map_shred_headers_1"}
        assert to_footer([("headers", "move", sidecars)]) == GOOD
        assert read(GOOD) == (Shredded("headers", "move", tuple(sidecars.items())),)

    @given(
        st.lists(st.one_of(st.sampled_from(ODD_KEYS), st.text(max_size=5)), min_size=1, max_size=5, unique=True),
        st.lists(st.integers(0, 30), min_size=5, max_size=5, unique=True),
        st.sampled_from(["headers", "s.m", "x_1", "my col"]),
        st.sampled_from(["headers", "s_m", "x_1", "other"]),
        st.sampled_from(["move", "mirror"]),
    )
    def test_any_keys_numbers_and_names(
        self, keys: list[str], numbers: list[int], column: str, stem: str, mode: str
    ) -> None:
        sidecars = {key: f"__map_shred_{stem}_{number}" for key, number in zip(keys, numbers, strict=False)}
        names = [column.partition(".")[0], *sidecars.values()]
        (found,) = read(to_footer([(column, mode, sidecars)]), names)
        assert (found.column, found.mode, dict(found.sidecars)) == (column, mode, sidecars)

    def test_sidecars_that_are_called_after_an_older_name_are_listed(self) -> None:
        sidecars = {"a": "__map_shred_old_0", "b": "__map_shred_headers_0"}
        pairs = to_footer([("headers", "move", sidecars)])
        assert json.loads(pairs["penstock.map.shredding.headers.columns"]) == list(sidecars.values())
        assert dict(read(pairs, ["headers", *sidecars.values()])[0].sidecars) == sidecars

    def test_a_file_without_such_pairs_holds_plain_maps(self) -> None:
        assert read_footer(None, ["id", "headers"], "f") == ()
        assert read_footer({b"ARROW:schema": b"\xff"}, ["id", "headers"], "f") == ()

    def test_numbers_that_are_not_used(self) -> None:
        keys = '[null, "b"]'
        (found,) = read({**GOOD, "penstock.map.shredding.headers.keys": keys}, ["headers", "__map_shred_headers_1"])
        assert found.sidecars == (("b", "__map_shred_headers_1"),)

    @pytest.mark.parametrize("keys", ['["a", "b"]', "a, b"])
    def test_the_names_of_another_writer_mean_the_same(self, keys: str) -> None:
        names = ["headers", "__paimon_map_shred_headers_0", "__paimon_map_shred_headers_1"]
        (found,) = read({"paimon.map.shredding.headers.keys": keys}, names)
        assert found == Shredded("headers", "move", (("a", names[1]), ("b", names[2])))

    def test_two_maps(self) -> None:
        columns = [("m", "move", {"a": "__map_shred_m_0"}), ("s.m", "mirror", {"a": "__map_shred_s_m_0"})]
        found = read(to_footer(columns), ["m", "s", "__map_shred_m_0", "__map_shred_s_m_0"])
        assert [(each.column, each.mode) for each in found] == [("m", "move"), ("s.m", "mirror")]


class TestDamaged:
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"version": "2"}, "only 1 is known"),
            ({"version": ""}, "only 1 is known"),
            ({"headers.keys": '["a", "b"'}, "no JSON array of texts"),
            ({"headers.keys": '["a", 1]'}, "no JSON array of texts"),
            ({"headers.keys": '["a", "a"]'}, "one twice"),
            ({"headers.keys": '["a"]'}, "does not say which key the column __map_shred_headers_1 holds"),
            ({"headers.keys": '[null, "b"]'}, "does not say which key the column __map_shred_headers_0 holds"),
            ({"headers.keys": "[]"}, "does not say which key"),
            ({"headers.keys": '["a", "b", "c"]'}, "sidecar __map_shred_headers_2 of headers is missing"),
            ({"headers.mode": "copy"}, "the mode of headers is 'copy'"),
            ({"headers.order": "x"}, "headers.order is not known"),
            ({"other.keys": '["a"]'}, "names the map other"),
            ({"other.mode": "move"}, "the keys of other are missing"),
            ({"headers.columns": '["__map_shred_headers_0"]'}, "2 keys and 1 columns"),
            ({"headers.columns": "[1, 2]"}, "no JSON array of texts"),
            ({"headers.columns": '["x", "y"]'}, "sidecar x of headers is missing"),
            ({"other.columns": '["x"]'}, "the keys of other are missing"),
        ],
    )
    def test_it_is_an_error_that_names_the_file(self, changes: dict[str, str], said: str) -> None:
        with pytest.raises(LakeError, match=said) as caught:
            read({**GOOD, **{f"penstock.map.shredding.{name}": text for name, text in changes.items()}})
        assert str(caught.value).startswith("f.parquet: ")
        assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.parametrize("name", ["__map_shred_headers_0", "__paimon_map_shred_headers_7"])
    def test_a_sidecar_without_a_footer_is_an_error(self, name: str) -> None:
        with pytest.raises(LakeError, match=f"does not say which key the column {name} holds"):
            read_footer(None, ["headers", name], "f")

    def test_a_column_of_no_map_may_be_called_so(self) -> None:
        assert read_footer(None, ["id", "__map_shred_headers_0"], "f") == ()
        assert read_footer(None, ["headers", "__map_shred_headers_x"], "f") == ()

    def test_what_is_no_text_is_an_error(self) -> None:
        with pytest.raises(LakeError, match="no text"):
            read_footer({b"penstock.map.shredding.headers.keys": b"\xff\xfe"}, NAMES, "f")


class TestFilesOfTables:
    @pytest.mark.parametrize("mode", ["move", "mirror"])
    def test_every_file_says_what_its_sidecars_are(self, tmp_path: Path, mode: str) -> None:
        schema = pa.schema([("id", pa.int64()), ("my col", MAP), ("s", pa.struct([("m", MAP)]))])
        table = shredded_table(tmp_path, {"My Col": Shred(*ODD_KEYS, mode=mode), "s.m": Shred("a", mode=mode)}, schema)
        structs = pa.array([{"m": [("a", "1")]}, None], schema.field("s").type)
        table.append(pa.table({"id": [1, 2], "my col": maps_array([{",": "1"}, None]), "s": structs}))
        ((pairs, names, path),) = footers(table)
        found = {each.column: each for each in read_footer(pairs, names, path)}
        assert [key for key, _ in found["my_x20col"].sidecars] == ODD_KEYS
        assert [key for key, _ in found["s.m"].sidecars] == ["a"]
        assert {each.mode for each in found.values()} == {mode}
        assert all(name in names for each in found.values() for _, name in each.sidecars)

    def test_a_file_without_sidecars_says_nothing(self, tmp_path: Path) -> None:
        table = shredded_table(tmp_path, None)
        table.append(pa.table({"id": [1], "headers": maps_array([{"a": "1"}])}))
        assert [read_footer(*each) for each in footers(table)] == [()]
