"""Layouts whose files differ in columns, and whose branches differ in the order of their levels, judged by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.errors import LayoutError
from tests.fixtures.layouts import write_file

FILES: dict[str, dict[str, Any]] = {
    "a=1/b=x/f.parquet": {"n": pa.array([1, 2], pa.int32())},
    "a=1/b=y/f.parquet": {"later": ["p"], "N": pa.array([2**40], pa.int64())},
    "b=x/a=2/f.parquet": {"n": pa.array([4], pa.int64()), "f": pa.array([0.5], pa.float32())},
    "b=z/a=2/f.parquet": {"f": pa.array([1e300], pa.float64()), "later": pa.array([None], pa.string())},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, columns in FILES.items():
        write_file(tmp_path / name, pa.table(columns))
    return tmp_path


def as_text(rows: pa.Table) -> list[str]:
    return sorted(str([row[name] for name in ("n", "later", "f", "a", "b")]) for row in rows.to_pylist())


def of_duckdb(root: Path, where: str) -> pa.Table:
    files = f"read_parquet('{root}/**/*.parquet', union_by_name=true, hive_partitioning=true)"
    return duckdb.connect().sql(f"SELECT n, later, f, a::INT AS a, b FROM {files} WHERE {where}").arrow().read_all()


@pytest.mark.parametrize(
    ("where", "kept", "lists"),
    [
        ("true", 4, 8),
        ("a = 2", 2, 5),
        ("b = 'x'", 2, 5),
        ("a = 1 AND b = 'y'", 1, 3),
        ("a = 2 AND b = 'z' AND f > 1", 1, 3),
        ("n > 2", 4, 8),
        ("later IS NULL", 4, 8),
        ("a = 3", 0, 3),
    ],
)
def test_branches_are_pruned_whatever_the_order_of_their_levels(root: Path, where: str, kept: int, lists: int) -> None:
    table = penstock.hive(root, "a int, b string", union_by_name=True)
    plan = table.plan(where)
    assert (len(plan.files), plan.report.list_calls) == (kept, lists)
    assert as_text(table.arrow(where)) == as_text(of_duckdb(root, where))


def test_columns_stand_in_the_order_of_files_with_the_widest_type(root: Path) -> None:
    table = penstock.hive(root, "a int, b string", union_by_name=True)
    assert [(f.name, f.type) for f in table.file_schema] == [
        ("n", pa.int64()),
        ("later", pa.string()),
        ("f", pa.float64()),
    ]


def test_without_the_option_another_order_of_levels_is_an_error(root: Path) -> None:
    with pytest.raises(LayoutError, match="b=x is a partition of 'b', expected 'a'"):
        penstock.hive(root, "a int, b string").plan()


def test_a_level_that_no_column_has_is_an_error(root: Path) -> None:
    write_file(root / "c=1" / "b=x" / "f.parquet", pa.table({"n": [1]}))
    with pytest.raises(LayoutError, match="c=1 is a partition of 'c'"):
        penstock.hive(root, "a int, b string", "n bigint", union_by_name=True).plan()


def test_types_that_no_reader_unites_are_named_with_both_files(root: Path) -> None:
    write_file(root / "a=1" / "b=x" / "g.parquet", pa.table({"n": ["text"]}))
    with pytest.raises(LayoutError, match=r"column n is string in .*g\.parquet, and int in .*f\.parquet; fix one"):
        penstock.hive(root, "a int, b string", union_by_name=True)


def test_a_layout_is_declared_with_the_option(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    lake = penstock.connect(tmp_path_factory.mktemp("lake"))
    lake.register("web.t", penstock.hive(root, "a int, b string", union_by_name=True))
    assert lake.table("web.t").arrow("a = 2").num_rows == 2
