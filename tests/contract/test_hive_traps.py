"""Every trap of a Hive layout, on a disk and on S3: what was listed, what was kept, and what came back."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LayoutError, PenstockWarning
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import NULL, write_file
from tests.fixtures.layouts import LAYOUTS
from tests.s3.server import S3Server

N = "n bigint"
Open = Callable[..., HiveTable]


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def base(place: str, request: pytest.FixtureRequest) -> Path:
    """A directory to write to before it is opened."""
    if place == "disk":
        return Path(request.getfixturevalue("tmp_path"))
    return Path(request.getfixturevalue("s3").new_bucket())


@pytest.fixture
def open_at(place: str, request: pytest.FixtureRequest) -> Open:
    """Opens a root of the place."""

    def opened(root: Path, partition_by: Any, schema: Any = N, **options: Any) -> HiveTable:
        if place == "disk":
            return penstock.hive(root, partition_by, schema, **options)
        server: S3Server = request.getfixturevalue("s3")
        return penstock.hive(server.url(root), partition_by, schema, storage=server.properties, **options)

    return opened


@pytest.fixture
def trap(place: str, base: Path, open_at: Open) -> Callable[[str], HiveTable]:
    """Builds a layout by its name and opens it."""

    def built(name: str) -> HiveTable:
        layout = LAYOUTS[name]
        if layout.only_on_disk and place != "disk":
            pytest.skip("the name exists on a local disk only: the S3 server of the tests changes it")
        return open_at(layout.build(base), layout.partition_by)

    return built


def numbers_of(table: HiveTable, paths: list[str]) -> list[int]:
    """Which files of the layout these are, by the row that each has."""
    return sorted(table.data_files.read(path, pa.schema({"n": pa.int64()}), {"n"})[0]["n"][0].as_py() for path in paths)


@pytest.mark.parametrize(
    ("name", "where", "lists", "numbers"),
    [
        ("empty_text", "year = ''", 2, [1]),
        ("empty_text", "year IS NULL", 1, []),
        ("escaped_slash", "r = 'US/CA'", 3, [1, 3]),
        ("escaped_slash", "r = 'US%2FCA'", 2, [2]),
        ("escaped_space", "r = 'a b'", 3, [1, 2]),
        ("escaped_space", "r = 'a+b'", 2, [3]),
        ("escaped_space", "r = 'a%20b'", 2, [4]),
        ("escaped_utf8", "r = 'ü'", 3, [1, 2]),
        ("equals_in_the_value", "a = 'b=c'", 3, [1, 3]),
        ("escaped_key", "`a b` = '1'", 2, [1]),
        ("words_that_are_no_null", "k IS NULL", 2, [4]),
        ("words_that_are_no_null", "k = 'null'", 2, [1]),
        ("words_that_are_no_null", "k = '\\\\N'", 2, [2]),
        ("words_that_are_no_null", "k IS NOT NULL", 5, [1, 2, 3, 5]),
        ("null", "k IS NULL", 2, [1]),
        ("null", "k = 1", 2, [2]),
        ("null", "k <> 5", 2, [2]),
        ("case_of_keys", "dt IN ('1', '2')", 3, [1, 2]),
        ("case_of_keys", None, 4, [1, 2, 3]),
        ("underscore_column", "_year = '2'", 2, [3]),
        ("underscore_column", None, 3, [1, 3]),
        ("hidden", None, 2, [1]),
        ("any_file_name", "dt = '1'", 2, [1, 2, 3, 4, 5, 6, 7]),
        ("empty_files", None, 3, [1]),
        ("empty_files", "dt = '2'", 2, []),
        ("empty_files", "dt = '3'", 1, []),
        ("file_named_like_a_partition", "dt = '1'", 2, [1]),
        ("undeclared_level", "dt = '1'", 2, [1]),
        ("missing_level", "dt = '1'", 3, [1]),
        ("neighbour", None, 2, [1]),
        ("leading_zero", "month = 1", 3, [1, 2]),
        ("leading_zero", "month > 1", 2, [3]),
        ("two_spellings_of_a_year", "year = 2024", 3, [1, 2]),
        ("scales", "k = 1.5", 4, [1, 2, 3]),
        ("scales", "k IN (2, -1.50)", 3, [4, 5]),
        ("untypable_below", "d = 2", 3, [2]),
        ("untypable_below", "d = 2 AND k = 1", 3, [2]),
    ],
)
def test_a_name_stands_for_its_value_and_is_opened_as_it_was_found(
    trap: Callable[[str], HiveTable], name: str, where: str | None, lists: int, numbers: list[int]
) -> None:
    table = trap(name)
    plan = table.plan(where)
    assert plan.report.list_calls == lists
    assert numbers_of(table, plan.files.paths.to_pylist()) == numbers
    assert sorted(table.arrow(where)["n"].to_pylist()) == numbers
    found = {path.removeprefix(f"{table.root_url}/") for path in plan.files.paths.to_pylist()}
    assert found == {LAYOUTS[name].files[i - 1].split("/", 1)[1] for i in numbers}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bad_escape", r"'r=%ZZ' in \S+/t: a % that is no escape; rename it"),
        ("cut_escape", r"'r=100%' in \S+/t: a % that is no escape; rename it"),
        ("bad_escape_in_the_key", r"'%ZZr=1' in \S+/t: a % that is no escape"),
        ("dot", r"'r=\.' in \S+/t holds '\.'"),
        ("dots", r"'r=\.\.' in \S+/t holds '\.\.'"),
        ("escaped_dots", r"'r=%2E%2E' in \S+/t holds '\.\.'"),
        ("escaped_nul", r"'r=a%00b' in \S+/t holds 'a\\x00b'"),
        ("escaped_newline", r"'r=a%0Ab' in \S+/t holds 'a\\nb'"),
        ("escaped_delete", r"'r=%7F' in \S+/t holds '\\x7f'"),
        ("control_character", r"'r=a\\x01b' in \S+/t holds"),
        ("escaped_octets", r"'r=%FF' in \S+/t is not UTF-8"),
        ("octets", r"'r=\\udcff' in \S+/t is not UTF-8"),
        ("octets_in_a_file", r"'\\udcff\.parquet' in \S+/t/r=ok is not UTF-8"),
        ("wrong_key", r"/t/month=1 is a partition of 'month', expected 'year'; declare"),
        ("mixed_keys", r"/t/month=2 is a partition of 'month', expected 'year'; declare"),
        ("null_on_not_null", r"/t/dt=__HIVE_DEFAULT_PARTITION__ stands for NULL, but dt is declared NOT NULL"),
        ("plain_directory", r"/t/plain is not a partition directory of 'dt'; move it"),
        ("directory_without_a_key", r"/t/=v is not a partition directory of 'dt'; move it"),
        ("file_beside_the_partitions", r"/t/a\.parquet is a file beside the partition directories of 'dt'; move it"),
        ("file_named_like_a_partition", r"/t/dt=2 is a file beside the partition directories of 'dt'; move it"),
        ("file_at_a_middle_level", r"/t/dt=1/000000_0 is a file beside the partition directories of 'hour'; move it"),
        ("directory_below_a_partition", r"/t/dt=1/deep is a directory inside a partition of 'dt', expected files"),
        ("undeclared_level", r"/t/dt=2/hour=1 is a partition of 'hour' below the last column 'dt'; add hour to"),
        ("missing_level", r"/t/dt=2/a\.parquet is a file beside the partition directories of 'hour'; move it"),
        ("other_order_of_levels", r"/t/b=3 is a partition of 'b', expected 'a'; declare"),
        ("same_key_twice", r"/t/x=1/x=2 is a partition of 'x', expected 'y'; declare"),
    ],
)
def test_a_name_that_cannot_be_read_is_an_error_that_names_the_directory(
    trap: Callable[[str], HiveTable], name: str, message: str
) -> None:
    table = trap(name)
    for ask in (table.plan, table.arrow, table.partitions):
        with pytest.raises(LayoutError) as caught:
            ask()
        assert re.search(message, str(caught.value)), str(caught.value)
        assert str(caught.value).isprintable()


def test_a_file_that_is_not_parquet_is_planned_without_opening_it_and_named_when_it_is_read(
    trap: Callable[[str], HiveTable],
) -> None:
    table = trap("other_files")
    assert (table.plan().report.list_calls, len(table.plan().files)) == (3, 3)
    with pytest.raises(LayoutError, match=r"/t/dt=1/notes\.md is not a Parquet file .*; remove or replace it"):
        table.arrow()
    assert table.arrow("dt = '2'")["n"].to_pylist() == [2]


def test_the_schema_comes_from_a_data_file_of_any_name(base: Path, open_at: Open) -> None:
    LAYOUTS["empty_files"].build(base)
    assert open_at(LAYOUTS["any_file_name"].build(base), "dt string", None).schema.names == ["n", "dt"]


def test_a_first_file_that_is_not_parquet_is_named_when_the_schema_is_looked_for(base: Path, open_at: Open) -> None:
    (base / "t" / "dt=0").mkdir(parents=True)
    (base / "t" / "dt=0" / "notes.md").write_bytes(b"not Parquet")
    with pytest.raises(LayoutError, match=r"/t/dt=0/notes\.md is not a Parquet file"):
        open_at(base / "t", "dt string", None)


@pytest.mark.parametrize("where", ["dt = 5", None])
def test_a_declared_type_that_no_directory_fits_is_a_note_of_the_plan(
    base: Path, open_at: Open, where: str | None
) -> None:
    for day in ("2026-01-01", "2026-01-02", NULL):
        write_file(base / "t" / f"dt={day}" / "a.parquet")
    table = open_at(base / "t", "dt int")
    with pytest.warns(
        PenstockWarning, match="/t: no directory of dt can be read as int, for example 'dt=2026-01-0.'; dec"
    ):
        plan = table.plan(where)
    assert (len(plan.files), plan.report.list_calls) == ((2, 3) if where else (3, 4))
    assert [note in plan.explain() for note in plan.report.notes] == [True]
    with pytest.warns(PenstockWarning), pytest.raises(LayoutError, match="cannot be read as int"):
        table.arrow(where)


@pytest.mark.parametrize(
    ("name", "where", "kept"),
    [
        ("tinyint_999", "k = 1", [1, 2]),
        ("tinyint_999", "k = 999", [2]),
        ("tinyint_999", "k = 5", [2]),
        ("tinyint_999", "k > 500", [2]),
        ("tinyint_999", "k IN (1, 999)", [1, 2]),
        ("tinyint_999", "k = 999 AND n = 1", [2]),
        ("tinyint_999", "k < 500", [1, 2]),
        ("tinyint_999", "k IS NULL", [2]),
        ("tinyint_999", "n = 1", [1, 2]),
        ("tinyint_999", None, [1, 2]),
        ("int_abc", "k = 1", [1, 2]),
        ("int_abc", "NOT (k = 1)", [2]),
        ("int_abc", "k = 1 AND n = 1", [1, 2]),
        ("int_abc", "k % 2 = 0", [2]),
        ("int_empty", "k = 1", [1, 2]),
        ("int_fraction", "k = 1", [1, 2]),
        ("date_month_13", "k >= '2026-06-01'", [2]),
        ("boolean_maybe", "NOT k", [2]),
        ("decimal_too_wide", "k = 1.5", [1, 2]),
        ("timestamp_hour_25", "k < '2026-01-01'", [2]),
        ("untypable_below", "k = 1", [1, 2]),
    ],
)
def test_a_directory_that_cannot_be_typed_is_kept_and_reading_it_is_an_error(
    trap: Callable[[str], HiveTable], name: str, where: str | None, kept: list[int]
) -> None:
    table = trap(name)
    plan = table.plan(where)
    assert numbers_of(table, plan.files.paths.to_pylist()) == kept
    assert plan.report.list_calls == len(kept) + (3 if name == "untypable_below" else 1)
    directory = next(LAYOUTS[name].files[i - 1] for i in kept if i == (1 if name == "untypable_below" else 2))
    for read in (table.arrow, table.partitions):
        with pytest.raises(LayoutError) as caught:
            read(where)
        assert re.search(r"^partition column 'k' in \S+", str(caught.value))
        assert directory in str(caught.value)
        assert str(caught.value).endswith("declare it as string, or fix the directory")


def test_a_predicate_that_is_never_true_needs_nothing_that_cannot_be_typed(trap: Callable[[str], HiveTable]) -> None:
    table = trap("int_abc")
    assert table.arrow("FALSE").num_rows == 0
    assert table.plan("FALSE").report.list_calls == 1


def test_declaring_the_untypable_column_as_string_is_the_way_out(base: Path, open_at: Open) -> None:
    table = open_at(LAYOUTS["int_abc"].build(base), "k string")
    assert sorted(table.arrow()["k"].to_pylist()) == ["1", "abc"]
    assert table.arrow("k = 'abc'")["n"].to_pylist() == [2]


def test_an_empty_directory_is_a_partition_without_files(tmp_path: Path) -> None:
    layout = LAYOUTS["empty_directory"]
    table = penstock.hive(layout.build(tmp_path), layout.partition_by, N)
    assert (table.plan().report.list_calls, len(table.plan().files)) == (3, 1)
    assert table.arrow("dt = '2'").num_rows == 0


def test_the_value_in_the_path_wins_over_a_column_of_the_file(base: Path, open_at: Open) -> None:
    rows = pa.table({"n": pa.array([1], pa.int64()), "K": ["from the file"]})
    root = write_file(base / "t" / "k=7" / "a.parquet", rows).parent.parent
    for schema in (None, "n bigint, k string"):
        table = open_at(root, "k int", schema)
        assert table.schema.names == ["n", "k"]
        assert table.arrow("k = 7").to_pylist() == [{"n": 1, "k": 7}]
        assert (table.plan("k = 7").report.list_calls, table.plan("k <> 7").report.list_calls) == (2, 1)


@pytest.mark.parametrize("ending", ["/", "//", " ", "/ ", ""])
def test_slashes_and_spaces_at_the_end_of_the_root_change_nothing(
    place: str, base: Path, request: pytest.FixtureRequest, ending: str
) -> None:
    root = LAYOUTS["leading_zero"].build(base)
    where, options = f" {root}{ending}", {}
    if place == "s3":
        server = request.getfixturevalue("s3")
        where, options = f" {server.url(root)}{ending}", {"storage": server.properties}
    table = penstock.hive(where, "month int", **options)
    assert not table.storage.path.endswith(("/", " "))
    plan = table.plan("month = 12")
    assert plan.files.paths.to_pylist() == [f"{table.root_url}/month=12/a.parquet"]
    assert plan.report.list_calls == 2


def test_a_file_url_may_be_quoted(tmp_path: Path) -> None:
    root = LAYOUTS["null"].build(tmp_path / "a b")
    table = penstock.hive(f"file://{tmp_path}/a%20b/t", "k int")
    assert table.storage.path == str(root)
    assert table.arrow("k = 1")["n"].to_pylist() == [2]


def test_auto_says_what_one_branch_shows_and_guesses_only_what_loses_nothing(base: Path, open_at: Open) -> None:
    write_file(base / "t" / "dt=2026-05-17" / "hour=7" / "zip=00501" / "app=x" / "a.parquet")
    way = 'as one branch shows; to be sure, declare it: partition_by="dt date, hour bigint, zip string, app string"$'
    with pytest.warns(PenstockWarning, match=way):
        table = open_at(base / "t", "auto", None)
    assert table.arrow("hour = 7 AND zip = '00501'").num_rows == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.plan("hour = 8").report.list_calls == 2


@pytest.mark.parametrize("second", ["x=2", "X=2"])
def test_auto_refuses_the_same_key_at_two_levels(base: Path, open_at: Open, second: str) -> None:
    write_file(base / "t" / "x=1" / second / "a.parquet")
    with pytest.raises(
        LayoutError, match=f"/t/x=1/{second} is a partition of '{second[0]}' inside another one; rename"
    ):
        open_at(base / "t", "auto", None)


@pytest.mark.parametrize("declared", ["auto", "", []])
def test_a_directory_of_files_is_a_table_without_partition_columns(base: Path, open_at: Open, declared: Any) -> None:
    write_file(base / "t" / "a.parquet", pa.table({"n": pa.array([1, 2], pa.int64())}))
    write_file(base / "t" / "b.parquet", pa.table({"n": pa.array([3], pa.int64())}))
    write_file(base / "u" / "k=1" / "c.parquet")
    table = open_at(base / "t", declared, None)
    assert table.arrow("n > 1").sort_by("n").to_pylist() == [{"n": 2}, {"n": 3}]
    assert table.schema.names == ["n"]
    plan = table.plan("_metadata.file_path LIKE '%/b.parquet'")
    assert (len(plan.files), plan.report.list_calls) == (1, 1)
    with pytest.raises(LayoutError, match="k=1 is a directory in a layout without partition columns"):
        open_at(base / "u", "", "n bigint").plan()


@pytest.mark.parametrize("declared", ["a string", "a string, b string, c string"])
def test_too_few_or_too_many_declared_columns_are_an_error(base: Path, open_at: Open, declared: str) -> None:
    write_file(base / "t" / "a=1" / "b=2" / "x.parquet")
    deep = "1 directory" if declared == "a string" else "3 directories"
    with pytest.raises(LayoutError, match=rf"has no data file {deep} below it; give the schema"):
        open_at(base / "t", declared, None)


def test_filters_on_the_path_prune_files_before_they_are_opened(base: Path, open_at: Open) -> None:
    for name in ("a b", "c", "d"):
        write_file(base / "t" / "k=ü" / f"{name}.parquet")
    table = open_at(base / "t", "k string")
    assert len(table.plan("_metadata.file_path LIKE '%/k=ü/a%20b.parquet'").files) == 1
    assert len(table.plan("_metadata.file_name IN ('c.parquet', 'd.parquet')").files) == 2
    assert len(table.plan("_metadata.file_size > 100000").files) == 0
    assert len(table.plan(path="%/c.parquet").files) == 1
    assert len(table.plan("k = 'x'", path="%/c.parquet").files) == 0
    assert table.arrow("_metadata.file_name = 'c.parquet' OR n = 2").num_rows == 1
    with pytest.raises(penstock.PenstockError, match="needs _metadata together with the rows"):
        table.arrow("concat(_metadata.file_name, cast(n AS string)) = 'x'")
