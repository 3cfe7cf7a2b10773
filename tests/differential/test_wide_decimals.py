"""Decimals of up to 38 digits, everywhere a value is read, compared, stored or shown.

Python's `Decimal` rounds to 28 digits whenever it computes. The judge here is Python's integers: a decimal is its
unscaled number, and nothing else is compared.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import SchemaError
from penstock.expr.bind import bind_text
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.decimals import from_unscaled, to_unscaled
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.parse import parse
from penstock.lake.managed_table import ManagedTable
from penstock.prune.ordered_keys import key_of, keys_to_array, value_of
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.managed_tables import managed_table, reopened
from tests.fixtures.variants import variants

SCALE = 10
TYPE = pa.decimal128(38, SCALE)
TOP = 10**38 - 1
# Neighbours that 28 digits cannot tell apart, on both sides of zero, and small ones.
UNSCALED = sorted(
    {sign * n for n in (TOP, TOP - 1, TOP - 7, 10**37 + 1, 10**37, 10**28 + 1, 10**28) for sign in (1, -1)}
    | {-5 * 10**9, -1, 0, 1, 15 * 10**9}
)
TESTS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def text(unscaled: int) -> str:
    """All digits, without Decimal."""
    whole, fraction = divmod(abs(unscaled), 10**SCALE)
    return f"{'-' if unscaled < 0 else ''}{whole}.{fraction:0{SCALE}}"


def rows() -> pa.Table:
    values = pa.array([Decimal(text(n)) for n in UNSCALED], TYPE)
    return pa.table({"id": pa.array(range(len(UNSCALED)), pa.int64()), "d": values})


def questions() -> Iterator[tuple[str, set[int]]]:
    """Predicates with the ids of the rows for which they are true."""
    for n in UNSCALED:
        for op, holds in TESTS.items():
            yield f"d {op} {text(n)}", {i for i, m in enumerate(UNSCALED) if holds(m, n)}
    few = UNSCALED[::3]
    yield f"d IN ({', '.join(map(text, few))})", {i for i, m in enumerate(UNSCALED) if m in few}
    many = UNSCALED[1:]
    yield f"d NOT IN ({', '.join(map(text, many))})", {0}
    yield f"d BETWEEN {text(1 - TOP)} AND {text(-1)}", {i for i, m in enumerate(UNSCALED) if 1 - TOP <= m <= -1}
    yield f"d = CAST('{text(TOP)}' AS decimal(38,{SCALE}))", {len(UNSCALED) - 1}


def ids(table: HiveTable | ManagedTable, where: str) -> set[int]:
    return set(table.arrow(where, columns=["id"]).column("id").to_pylist())


@pytest.mark.parametrize("scale", [0, 1, 10, 37, 38])
def test_every_value_has_a_key_of_its_own_and_the_key_gives_it_back(scale: int) -> None:
    t = pa.decimal128(38, scale)
    random = Random(scale)
    keys = [TOP, -TOP, TOP - 1, 0, 1, -1, *(random.randint(-TOP, TOP) for _ in range(200))]
    values = [value_of(key, t) for key in keys]
    assert [key_of(value, t) for value in values] == keys
    assert [int(f"{v:f}".replace(".", "")) for v in values] == keys
    assert pa.array(values, t).cast(pa.decimal256(76, scale)).to_pylist() == values
    narrow = pa.decimal128(18, min(scale, 18))
    small = [10**18 - 1, -(10**18) + 1, 7]
    assert [key_of(v, narrow) for v in keys_to_array(pa.array(small).to_numpy(), narrow).to_pylist()] == small


def test_digits_beyond_the_scale_are_refused_and_not_rounded() -> None:
    assert to_unscaled(from_unscaled(-TOP, 38), 38) == -TOP
    with pytest.raises(ValueError, match="more than 1 digits"):
        to_unscaled(Decimal("0.25"), 1)


@pytest.mark.parametrize("n", [n for n in UNSCALED if n < 0])
def test_a_negative_number_in_a_text_keeps_all_its_digits(n: int) -> None:
    literal = parse(f"d = {text(n)}").children[1]
    assert f"{literal.value:f}" == text(n)  # type: ignore[attr-defined]
    assert str(parse(str(parse(f"d = {text(n)}")))) == f"d = {text(n)}"


@pytest.mark.parametrize("n", UNSCALED)
def test_casts_from_text_and_back_keep_all_digits(n: int) -> None:
    vector = cast(pa.array([text(n)]), TYPE, "UTC")
    assert vector.failed is None
    assert cast(vector.values, pa.string(), "UTC").values.to_pylist() == [text(n)]
    wider = cast(pa.array([text(n) + "5"]), TYPE, "UTC")
    beyond = abs(n) == TOP  # it rounds up to 39 digits
    assert (wider.failed is not None) == beyond
    if not beyond:
        up = n + (1 if n >= 0 else -1)
        assert cast(wider.values, pa.string(), "UTC").values.to_pylist() == [text(up)]


def test_rows_are_filtered_by_all_digits() -> None:
    table = rows()
    for where, expected in questions():
        mask = filter_mask(bind_text(where, table.schema), table)
        assert {i for i, true in enumerate(mask.to_pylist()) if true} == expected, where


def checked(table: HiveTable | ManagedTable, exact: bool) -> None:
    for where, expected in questions():
        assert ids(table, where) == expected, where
        files = len(table.plan(where).files)
        assert files == len(expected) if exact else files >= len(expected), where


def test_directories_are_pruned_by_all_digits(tmp_path: Path) -> None:
    write_hive(tmp_path, rows(), ["d"])
    table = penstock.hive(tmp_path, f"d decimal(38,{SCALE})")
    checked(table, exact=True)
    assert sorted(table.partitions().column("d").to_pylist()) == rows().column("d").to_pylist()


@pytest.mark.parametrize("partition_by", variants([[], ["d"], ["truncate(1, d)"]], every_run=1))
def test_one_file_a_value_is_pruned_by_all_digits(tmp_path: Path, partition_by: list[str]) -> None:
    table = managed_table(tmp_path, f"id bigint, d decimal(38,{SCALE})", partition_by)
    if partition_by:
        table.append(rows())
    else:
        for i in range(len(UNSCALED)):  # bounds alone
            table.append(rows().slice(i, 1))
    checked(reopened(tmp_path), exact=True)
    assert table.refresh().minimum("d") == Decimal(text(-TOP))
    assert table.refresh().maximum("d") == Decimal(text(TOP))


@pytest.mark.parametrize("partition_by", variants(["truncate(1000, d)", "bucket(64, d)"], every_run=1))
def test_coarser_transforms_lose_no_row(tmp_path: Path, partition_by: str) -> None:
    table = managed_table(tmp_path, f"id bigint, d decimal(38,{SCALE})", [partition_by])
    first = 3 if partition_by.startswith("truncate") else 0  # the least values truncate to 39 digits
    table.append(rows().slice(first))
    table = reopened(tmp_path)
    for where, expected in questions():
        assert ids(table, where) == {i for i in expected if i >= first}, where
    for n in UNSCALED[first:]:
        assert len(table.plan(f"d = {text(n)}").files) == 1


def test_a_value_that_truncates_to_more_digits_than_its_type_has_is_refused(tmp_path: Path) -> None:
    table = managed_table(tmp_path, f"id bigint, d decimal(38,{SCALE})", ["truncate(1000, d)"])
    with pytest.raises(SchemaError, match=r"truncate\[1000\] of a value near the lower end of decimal\(38, 10\)"):
        table.append(rows())
    assert table.count() == 0


def test_logical_values_of_shared_files_keep_all_digits(tmp_path: Path) -> None:
    table = managed_table(tmp_path, f"id bigint, d decimal(38,{SCALE})", ["d"], coalesce=["d"])
    table.append(rows())
    table = reopened(tmp_path)
    assert len(table.plan().files) == 1
    for where, expected in questions():
        assert ids(table, where) == expected, where
    for n in UNSCALED:
        assert len(table.plan(f"d = {text(n)}").files) == 1
        assert n == TOP or not table.plan(f"d > {text(n)} AND d < {text(n + 1)}").files
    assert not table.plan(f"d = {text(TOP - 3)}").files
    assert set(table.partitions().column("d").to_pylist()) == set(rows().column("d").to_pylist())


@pytest.mark.parametrize("n", variants([TOP - 1, 1 - TOP, 10**28 + 1, -5 * 10**9], every_run=1))
@pytest.mark.parametrize("op", TESTS)
def test_delete_removes_the_matching_rows_and_no_other(tmp_path: Path, op: str, n: int) -> None:
    schema = f"id bigint, d decimal(38,{SCALE})"
    for layout, partition_by in (("identity", ["d"]), ("none", []), ("bucket", ["bucket(4, d)"])):
        table = managed_table(tmp_path / layout, schema, partition_by)
        table.append(rows())
        table.delete(f"d {op} {text(n)}")
        staying = {i for i, m in enumerate(UNSCALED) if not TESTS[op](m, n)}
        assert set(reopened(tmp_path / layout).arrow().column("id").to_pylist()) == staying


def test_bounds_in_footers_of_files_are_compared_by_all_digits(tmp_path: Path) -> None:
    """A file of two neighbours is kept for what lies between them in 28 digits, and not for what does not."""
    (tmp_path / "k=1").mkdir(parents=True)
    pair: list[Any] = [Decimal(text(TOP - 7)), Decimal(text(TOP - 1))]
    pq.write_table(pa.table({"d": pa.array(pair, TYPE)}), tmp_path / "k=1" / "a.parquet")
    table = penstock.hive(tmp_path, "k int")
    assert table.arrow(f"d = {text(TOP - 1)}").num_rows == 1
    assert table.arrow(f"d >= {text(TOP)}").num_rows == 0
    assert table.arrow(f"d > {text(-TOP)} AND d > -0.5").num_rows == 2


def test_a_minus_before_parentheses_is_a_function_which_spark_rounds_to_34_digits(tmp_path: Path) -> None:
    """Spark: `-(1234567890123456789012345678901234.5)` is -1234567890123456789012345678901234.0; nothing is proven."""
    write_hive(tmp_path, rows(), ["d"])
    table = penstock.hive(tmp_path, f"d decimal(38,{SCALE})")
    assert len(table.plan(f"d = -({text(TOP)})").files) == len(UNSCALED)
    assert len(table.plan("d = -(0.5)").files) == 1
