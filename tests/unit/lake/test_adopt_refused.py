"""Trees, files and tables that adopting refuses, in one line, with nothing changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

import penstock
from penstock.errors import LakeError, PenstockError
from tests.fixtures.adopted_trees import (
    contents,
    table_of,
    write,
)


def _ints(path: Path) -> None:
    write(path / "dt=1" / "a.parquet", pa.table({"v": [1]}))


def _conflict(path: Path) -> None:
    _ints(path)
    write(path / "dt=2" / "b.parquet", pa.table({"v": ["x"]}))


def _nested_conflict(path: Path) -> None:
    write(path / "dt=1" / "a.parquet", pa.table({"s": [{"a": 1}]}))
    write(path / "dt=2" / "b.parquet", pa.table({"s": [{"a": "x"}]}))


def _one_more(name: str, **columns: Any) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _ints(path)
        write(path / name, pa.table({"v": [1], **columns}))

    return make


def _broken(path: Path) -> None:
    _ints(path)
    (path / "dt=2").mkdir()
    (path / "dt=2" / "b.parquet").write_bytes(b"PAR1 and no more")


def _orc(path: Path) -> None:
    (path / "dt=1").mkdir(parents=True)
    orc.write_table(pa.table({"v": [1]}), path / "dt=1" / "a.orc")


def _with_ids(path: Path) -> None:
    field = pa.field("v", pa.int64(), metadata={"PARQUET:field_id": "4"})
    write(path / "dt=1" / "a.parquet", pa.table([[1]], schema=pa.schema([field])))


def _with_sidecars(path: Path) -> None:
    _ints(path)
    rows = pa.table({"v": [1], "m": pa.array([[]], pa.map_(pa.string(), pa.string())), "__map_shred_m_0": ["x"]})
    pairs = {"penstock.map.shredding.version": "1", "penstock.map.shredding.m.keys": '["k"]'}
    write(path / "dt=2" / "b.parquet", rows.replace_schema_metadata(pairs))


def _old_times_inside(path: Path) -> None:
    rows = pa.table({"s": [{"t": dt.datetime(2026, 1, 1)}]})
    write(path / "dt=1" / "a.parquet", rows, use_deprecated_int96_timestamps=True)


def _twice(path: Path) -> None:
    write(path / "dt=1" / "a.parquet", pa.table({"v": [1], "V": [2]}))


REFUSED = {
    "type": (_conflict, r"dt=2/b.parquet: column v is string, and file://.*dt=1/a.parquet has bigint"),
    "nested type": (_nested_conflict, r"dt=2/b.parquet: column s.a is string, and .*a.parquet has bigint"),
    "directory": (_one_more("dt=x/b.parquet"), "partition column 'dt' in .*dt=x.* cannot be read as int"),
    "hash": (_one_more("dt=2/b#c.parquet"), "b#c.parquet' has '#' in its path"),
    "question": (_one_more("dt=2/b?c.parquet"), r"b\?c.parquet' has '\?' in its path"),
    "line break": (_one_more("dt=2/b\nc.parquet"), r"has '\\n' in its path"),
    "damaged": (_broken, "b.parquet is not a Parquet file"),
    "format": (_orc, "is ORC, and only Parquet can be adopted"),
    "field ids": (_with_ids, "a.parquet has field ids"),
    "sidecars": (_with_sidecars, "b.parquet has keys of maps in columns of their own"),
    "nanoseconds": (_one_more("dt=2/b.parquet", t=pa.array([1], pa.timestamp("ns"))), r"column t is timestamp\[ns\]"),
    "zone": (_one_more("dt=2/b.parquet", t=pa.array([1], pa.timestamp("us", "Asia/Tokyo"))), "column t is .*Tokyo"),
    "unsigned": (_one_more("dt=2/b.parquet", t=pa.array([1], pa.uint32())), "column t is uint32, which tables do not"),
    "nothing": (_one_more("dt=2/b.parquet", t=pa.nulls(1)), "column t has no type: all of its values are NULL"),
    "INT96 inside": (_old_times_inside, "column s has INT96 inside of it"),
    "case": (_twice, "'v' and 'V' differ only in case"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_adopted_is_one_line_and_changes_nothing(name: str, lake: penstock.Lake, tree: Path) -> None:
    make, message = REFUSED[name]
    make(tree)
    before = contents(tree)
    with pytest.raises(PenstockError, match=message) as caught:
        lake.adopt(tree, "web.t", "dt int")
    assert "\n" not in str(caught.value)
    assert contents(tree) == before
    assert lake.tables() == []


def test_file_that_does_not_fit_the_table_is_one_line_and_changes_nothing(lake: penstock.Lake, tree: Path) -> None:
    _ints(tree)
    lake.adopt(tree, "web.t", "dt int")
    write(tree / "dt=1" / "b.parquet", pa.table({"v": [1], "more": [2]}))
    write(tree / "dt=1" / "c.parquet", pa.table({"v": ["x"]}))
    before, version = contents(tree), table_of(lake).table.metadata_location
    with pytest.raises(PenstockError, match=r"c.parquet: column v is string, and the table web.t has bigint"):
        lake.adopt(tree, "web.t")
    assert (contents(tree), table_of(lake).table.metadata_location) == (before, version)


def test_tables_that_do_not_fit_the_tree_are_refused(lake: penstock.Lake, tree: Path) -> None:
    _ints(tree)
    lake.create_table("web.t", "v bigint, dt int", ["bucket(4, v)"])
    lake.create_table("web.u", "v bigint, dt int", ["dt"], coalesce=["dt"])
    lake.register("web.raw", penstock.hive(tree, "dt int"))
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("web.t", {"partition_by": "dt int"}, r"partitioned by bucket\(4, v\), and the tree by dt"),
        ("web.u", {"partition_by": "dt string"}, "declared with dt as string, and the table has int"),
        ("web.u", {"coalesce": penstock.Coalesce("dt", below="1MB")}, "web.u has the rule"),
        ("web.raw", {}, "web.raw is a declared layout"),
        ("nowhere", {}, "invalid table name 'nowhere'"),
    ]
    for name, options, message in asked:
        with pytest.raises(PenstockError, match=message):
            lake.adopt(tree, name, **options)
    assert [table_of(lake, name).count() for name in ("web.t", "web.u")] == [0, 0]
    assert lake.adopt(tree, "web.u").rows == 1


@pytest.mark.parametrize("place", ["tree", "tree/below", "."])
def test_table_whose_folder_and_the_tree_lie_in_each_other_is_refused(
    lake: penstock.Lake, tree: Path, tmp_path: Path, place: str
) -> None:
    _ints(tree)
    before = contents(tree)
    with pytest.raises(LakeError, match="lie in each other; give the table another place"):
        lake.adopt(tree, "web.t", "dt int", location=f"file://{tmp_path / place}")
    assert contents(tree) == before
    assert lake.tables() == []
    assert lake.adopt(tree, "web.t", "dt int").files == 1


def test_tree_without_rows_makes_no_table(lake: penstock.Lake, tree: Path) -> None:
    write(tree / "a.parquet", pa.table({"v": pa.array([], pa.int64())}))
    with pytest.raises(PenstockError, match=r"no file in .* has a row and a column"):
        lake.adopt(tree, "web.t", [])
    assert lake.tables() == []
