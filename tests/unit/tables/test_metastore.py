"""Tables of a metastore: what it is asked, which locations are listed, and which tables are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError, LayoutError, LimitError, PenstockWarning, StorageError
from penstock.tables.hive.walk import Limits
from penstock.tables.metastore.metastore import Stored
from penstock.tables.metastore.metastore_table import MetastoreTable, open_stored
from penstock.tables.metastore.places import as_url
from tests.fixtures.hive_writer import write_file, write_hive
from tests.fixtures.memory_metastore import MemoryMetastore, in_places, opened

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "app": ["a", "a", "b", "b", "c", None],
        "n": pa.array([1, 2, 1, 2, 1, 1], pa.int32()),
    }
)
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
ORC = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


@pytest.fixture
def metastore(tmp_path: Path) -> MemoryMetastore:
    return in_places(tmp_path / "t", ROWS, ["app", "n"])


def ids(table: MetastoreTable, where: str | None = None) -> list[int]:
    return sorted(table.arrow(where)["id"].to_pylist())


def counts(table: MetastoreTable, where: str) -> tuple[int, int, int, int]:
    """Partitions kept and there are, files opened, List calls."""
    report = table.plan(where).report
    level = report.level("partitions")
    assert level.total == level.kept + sum(level.skipped.values())
    return level.kept, level.total, report.files.kept, report.list_calls


# What the metastore is asked


@pytest.mark.parametrize(
    ("where", "asked", "kept"),
    [
        ("app = 'a'", ["app = ['a']"], 2),
        ("app IN ('a', 'b') AND n = 2", ["app IN ['a', 'b']", "n = [2]"], 2),
        ("n > 1", ["n > [1]"], 2),
        ("n BETWEEN 2 AND 5", ["n >= [2]", "n <= [5]"], 2),
        ("app > 'a'", [], 3),
        ("app LIKE 'a%'", [], 2),
        ("app IS NULL", [], 1),
        ("app = 'a' OR n = 2", [], 3),
        ("upper(app) = 'A' AND n = 1", ["n = [1]"], 1),
        ("n <> 1", [], 2),
        ("app <=> 'a'", [], 2),
        ("app IN ('a', NULL)", [], 2),
        ("app = 'a' OR app = 'c'", ["app IN ['a', 'c']"], 3),
        ("n > 1.5", [], 2),
        ("id = 3", [], 6),
        ("n + 1 = 2", [], 4),
        (f"app IN ({', '.join(repr(f'x{i}') for i in range(201))})", [], 0),
    ],
)
def test_the_metastore_is_asked_for_what_it_can_check_without_losing_a_partition(
    metastore: MemoryMetastore, where: str, asked: list[str], kept: int
) -> None:
    table = opened(metastore)
    plan = table.plan(where)
    assert [sorted(question) for question in metastore.asked] == [sorted(asked)]
    assert plan.report.level("partitions").kept == kept == plan.report.list_calls
    assert counts(table, where) == (kept, 6, kept, kept)


def test_a_report_says_what_the_metastore_skipped_and_what_was_skipped_here(metastore: MemoryMetastore) -> None:
    report = opened(metastore).plan("n = 1 AND app LIKE 'b%'").report
    assert report.level("partitions").skipped == {"metastore: n = 1": 2, "partition: app LIKE 'b%'": 3}
    assert "partitions  1 of 6 kept" in report.explain()


def test_a_metastore_that_cannot_make_a_test_lists_all_and_the_report_says_why(metastore: MemoryMetastore) -> None:
    metastore.problem = "filtering is supported on text alone"
    table = opened(metastore)
    assert counts(table, "n = 2") == (2, 6, 2, 2)
    assert "the metastore lists all partitions: filtering is supported on text alone" in table.plan("n = 2").explain()
    assert ids(table, "n = 2") == [1, 3]


# Where partitions lie


def test_a_layout_at_the_tables_location_would_have_fewer_rows(metastore: MemoryMetastore, tmp_path: Path) -> None:
    write_file(tmp_path / "elsewhere/x.parquet", pa.table({"id": pa.array([9], pa.int64())}))
    metastore.partitioned.append((("a", "9"), f"file:{tmp_path}/elsewhere"))
    assert ids(opened(metastore), "app = 'a'") == [0, 1, 9]
    assert counts(opened(metastore), "n = 9") == (1, 7, 1, 1)


def test_files_below_a_location_are_those_of_a_partition_that_lies_there_or_of_none(
    metastore: MemoryMetastore, tmp_path: Path
) -> None:
    outer = Path(metastore.partitioned[0][1].removeprefix("file:"))
    write_file(outer / "inner/x.parquet", pa.table({"id": pa.array([9], pa.int64())}))
    write_file(outer / "lost/x.parquet", pa.table({"id": pa.array([8], pa.int64())}))
    metastore.partitioned.append((("z", "1"), f"file:{outer}/inner"))
    table = opened(metastore)
    assert ids(table, "n = 1 AND app IN ('a', 'z')") == [0, 9]
    assert ids(table) == [0, 1, 2, 3, 4, 5, 9]
    assert "2 directories inside of locations not read, as in Spark" in table.plan("app = 'a'").explain()


def test_a_location_without_a_directory_has_no_rows_and_is_said(metastore: MemoryMetastore, tmp_path: Path) -> None:
    metastore.partitioned.append((("gone", "1"), f"file:{tmp_path}/gone"))
    table = opened(metastore)
    with pytest.warns(PenstockWarning, match=rf"dw\.t: 1 location without a directory.*{tmp_path}/gone"):
        assert ids(table) == [0, 1, 2, 3, 4, 5]
    assert ids(table, "app = 'a'") == [0, 1]


def test_two_partitions_at_one_place_have_its_rows_each(metastore: MemoryMetastore) -> None:
    metastore.partitioned.append((("twin", "1"), metastore.partitioned[0][1]))
    table = opened(metastore)
    assert table.arrow("id = 0", ["id", "app"]).sort_by("app").to_pylist() == [
        {"id": 0, "app": "a"},
        {"id": 0, "app": "twin"},
    ]


def test_a_storage_that_is_not_known_is_an_error_where_it_is_needed(metastore: MemoryMetastore) -> None:
    metastore.partitioned.append((("far", "1"), "hdfs://name:8020/far"))
    table = opened(metastore)
    assert ids(table, "app = 'a'") == [0, 1]
    with pytest.raises(StorageError, match=r"unknown kind of storage in hdfs://"):
        table.arrow()


def test_a_file_in_the_place_of_a_location_is_an_error(metastore: MemoryMetastore, tmp_path: Path) -> None:
    metastore.partitioned.append((("file", "1"), f"file:{write_file(tmp_path / 'x.parquet')}"))
    with pytest.raises(StorageError, match=r"x\.parquet is not a directory"):
        opened(metastore).plan("app = 'file'")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("file:/w/t", "file:///w/t"),
        ("file:///w/t/", "file:///w/t"),
        ("/w/t", "file:///w/t"),
        ("s3a://lake/a%2Fb", "s3a://lake/a%2Fb"),
    ],
)
def test_a_location_becomes_a_url(location: str, url: str) -> None:
    assert as_url(location) == url


# Values, limits, and tables without partitions in the metastore


def test_a_value_that_cannot_be_typed_is_kept_and_an_error_when_it_is_read(metastore: MemoryMetastore) -> None:
    metastore.partitioned.append((("bad", "one"), metastore.partitioned[0][1]))
    metastore.problem = "it cannot cast"
    table = opened(metastore)
    assert ids(table, "app = 'a'") == [0, 1]
    with pytest.raises(LayoutError, match=r"partition column 'n' .* cannot be read as int"):
        table.arrow("n = 1")


def test_too_many_partitions_are_an_error_before_they_are_listed(metastore: MemoryMetastore) -> None:
    table = open_stored(metastore, "dw.t", limits=Limits(5, 5))
    assert ids(table, "n = 1") == [0, 2, 4, 5]
    with pytest.raises(LimitError, match="6 partitions match"):
        table.plan()


def test_a_table_without_partitions_is_its_location(tmp_path: Path) -> None:
    table = opened(in_places(tmp_path, ROWS, []))
    assert ids(table, "n = 2") == [1, 3]
    (tmp_path / "sub").mkdir()
    assert ids(table) == [0, 1, 2, 3, 4, 5]
    (tmp_path / "k=1").mkdir()
    with pytest.raises(LayoutError, match="k=1 is a directory in a layout without partition columns"):
        table.plan()


def test_partitions_that_only_directories_tell_are_walked(tmp_path: Path) -> None:
    metastore = in_places(tmp_path / "unused", ROWS, ["app", "n"])
    root = write_hive(tmp_path / "t", ROWS, ["app", "n"])
    table = opened(metastore, location=f"file:{root}", has_partitions=False)
    assert ids(table, "app = 'a' AND n = 2") == [1]
    assert table.plan("app = 'a' AND n = 2").report.list_calls == 3
    assert metastore.asked == []


# What is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"provider": "delta"}, "dw.t is a table of the data source 'delta'; read it with Delta Lake, or use spark"),
        ({"provider": "iceberg"}, "dw.t is a table of the data source 'iceberg'; open it with penstock.connect"),
        ({"provider": "jdbc"}, "dw.t is a table of the data source 'jdbc'; a database has no files to prune"),
        ({"provider": "lance"}, "dw.t is a table of the data source 'lance'; known formats are parquet, orc"),
        ({"provider": "hive", "properties": {"table_type": "ICEBERG"}}, "dw.t is a table of iceberg; open it with"),
        ({"provider": "hive", "stored": Stored(TEXT)}, "dw.t is stored by Hive's LazySimpleSerDe, which is not"),
        ({"provider": "hive"}, "dw.t is stored by Hive's own handler, which is not supported"),
        (
            {"provider": "hive", "stored": Stored(ORC), "properties": {"transactional": "true"}},
            "dw.t is a transactional table of Hive; read it with Hive",
        ),
        ({"stored": Stored("", (("recursiveFileLookup", "true"),))}, "dw.t has the option recursiveFileLookup"),
        ({"stored": Stored("", (("pathglobfilter", "*.x"),))}, "dw.t has the option pathglobfilter"),
    ],
)
def test_a_table_that_is_read_in_another_way_is_refused_by_one_line(
    metastore: MemoryMetastore, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LakeError) as caught:
        opened(metastore, **changes)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1


def test_options_of_writers_do_not_matter(metastore: MemoryMetastore) -> None:
    options = (("compression", "zstd"), ("parquet.block.size", "1000"), ("path", "/x"), ("serialization.format", "1"))
    assert ids(opened(metastore, stored=Stored("", options))) == [0, 1, 2, 3, 4, 5]


def test_a_partition_of_another_format_is_refused_where_it_is_needed(metastore: MemoryMetastore) -> None:
    metastore.kinds = [Stored(PARQUET), Stored(ORC), Stored(TEXT)]
    table = opened(metastore, provider="hive", stored=Stored(PARQUET))
    assert ids(table, "app = 'c'") == [4]
    with pytest.raises(LakeError, match=r"partition app=a/n=2 of dw\.t is stored as orc, which the table is not"):
        table.arrow("app = 'a'")
    with pytest.raises(LakeError, match=r"partition app=b/n=1 of dw\.t is stored as .*LazySimpleSerDe"):
        table.arrow("app = 'b'")


def test_a_data_source_reads_all_partitions_alike(metastore: MemoryMetastore) -> None:
    metastore.kinds = [Stored(ORC), Stored(TEXT)]
    assert ids(opened(metastore)) == [0, 1, 2, 3, 4, 5]


def test_it_is_not_declared_in_a_lake_as_if_it_lay_at_one_place(metastore: MemoryMetastore, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"dw\.t is declared in the metastore already; for SQL attach them all"):
        penstock.connect(tmp_path / "lake").register("dw.t", opened(metastore))
