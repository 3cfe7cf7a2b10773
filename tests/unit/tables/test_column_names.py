"""Columns that differ only in case are refused by name; a column that files lack is NULL, whatever was declared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import SchemaError
from tests.fixtures.iceberg_tables import create

TOP = pa.table({"a": [1, 2], "A": [10, 20]})
NESTED = pa.table({"s": [{"x": 1, "X": 7}]})
IN_LIST = pa.table({"l": [[{"x": 1, "X": 7}]]})
ONE = pa.table({"a": [1, 2]})


def hive(root: Path, *files: pa.Table, **options: Any) -> Any:
    (root / "p=1").mkdir()
    for i, rows in enumerate(files):
        pq.write_table(rows, root / "p=1" / f"{i}.parquet")
    return penstock.hive(str(root), "p int", **options)


@pytest.mark.parametrize(("rows", "names"), [(TOP, "'a' and 'A'"), (NESTED, "'x' and 'X'"), (IN_LIST, "'x' and 'X'")])
class TestRefused:
    def test_in_a_hive_layout(self, tmp_path: Path, rows: pa.Table, names: str) -> None:
        with pytest.raises(SchemaError, match=f"{names} differ only in case"):
            hive(tmp_path, rows)

    def test_in_an_iceberg_table(self, tmp_path: Path, rows: pa.Table, names: str) -> None:
        create(tmp_path, rows.schema).append(rows)
        table = penstock.connect(tmp_path).table("web.t")
        reads: list[Callable[[], Any]] = [table.arrow, table.plan, lambda: table.schema]
        for read in reads:
            with pytest.raises(SchemaError, match=f"{names} differ only in case"):
                read()


def test_a_later_file_of_a_layout_with_such_columns_is_named(tmp_path: Path) -> None:
    table = hive(tmp_path, ONE, TOP)
    with pytest.raises(SchemaError, match=r"1\.parquet: columns 'a' and 'A' differ only in case"):
        table.arrow()


def test_columns_that_files_lack_are_null_whatever_the_schema_says(tmp_path: Path) -> None:
    table = hive(tmp_path, ONE, schema="a bigint NOT NULL, v bigint NOT NULL")
    assert [field.nullable for field in table.schema] == [True, True, True]
    found = table.arrow("v IS NULL")
    assert found.to_pylist() == [{"a": 1, "v": None, "p": 1}, {"a": 2, "v": None, "p": 1}]
    found.validate(full=True)
    assert found.schema.field("v").nullable
