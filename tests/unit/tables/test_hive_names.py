"""Names read together as columns mean what each means alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.errors import LayoutError
from penstock.tables.hive.directory_names import DEFAULT_PARTITION, parse_name, plain_texts
from tests.unit.tables.test_hive_files import beside

PIECES = st.sampled_from(["k", "K", "=", "a", "ü", "%", "%2F", "2F", ".", "..", "_", "\x01", "\x7f", "😀", "0", "-"])
NAMES = st.one_of(
    st.lists(PIECES, max_size=5).map("".join),
    st.lists(PIECES, max_size=4).map(lambda parts: "k=" + "".join(parts)),
    st.just(f"k={DEFAULT_PARTITION}"),
)


@given(st.lists(NAMES, max_size=8))
def test_a_plain_name_says_the_same_in_a_column_as_alone(names: list[str]) -> None:
    texts, plain = plain_texts(names, "k")
    for name, text, is_plain in zip(names, texts.to_pylist(), plain, strict=True):
        if is_plain:
            assert parse_name(name, "/t") == ("k", text)


@given(st.lists(st.integers(0, 10**6), max_size=20))
def test_names_of_the_common_form_are_all_plain(days: list[int]) -> None:
    texts, plain = plain_texts([f"day={day}" for day in days], "day")
    assert plain.all()
    assert texts.to_pylist() == [str(day) for day in days]


def test_a_name_that_is_no_utf8_leaves_all_to_be_looked_at_alone() -> None:
    _, plain = plain_texts(["k=1", "k=\udcff"], "k")
    assert not plain.any()


def test_an_empty_file_named_like_a_partition_is_not_counted_as_a_directory(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"n": pa.array([2], pa.int64())}))
    (tmp_path / "k=3").touch()
    plan = table.plan()
    assert [level.total for level in plan.report.levels if level.kind == "directories"] == [2]
    assert len(table.plan("k = 3").files) == 0


def test_odd_and_plain_names_of_one_level_are_judged_together(tmp_path: Path) -> None:
    for name in ("k=b", "K=a", "k=a%2Fb", "k=ü", f"k={DEFAULT_PARTITION}", "k="):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.parquet").write_bytes(b"PAR1")
    table = penstock.hive(tmp_path, "k string", "n bigint")

    def found(where: str | None) -> list[object]:
        return [task.partition["k"].value for task in table.plan(where).files]

    assert found(None) == ["a", "", None, "a/b", "b", "ü"]
    assert found("k LIKE 'a%'") == ["a", "a/b"]
    assert found("k IS NULL") == [None]
    assert found("k = 'ü' OR k = ''") == ["", "ü"]


def test_a_wrong_key_among_plain_names_is_named(tmp_path: Path) -> None:
    for name in ("k=1", "k=2", "day=3"):
        (tmp_path / name).mkdir()
    with pytest.raises(LayoutError, match=r"day=3 is a partition of 'day', expected 'k'"):
        penstock.hive(tmp_path, "k int", "n bigint").plan()
