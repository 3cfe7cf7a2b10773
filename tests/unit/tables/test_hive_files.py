"""Files that are not what the table expects: one clear error that names the file, or what Spark would read."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import ForbiddenError, LayoutError, PenstockError, PenstockWarning, SchemaError, StorageError
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_file


def beside(root: Path, rows: pa.Table, schema: object = "n bigint", **options: object) -> HiveTable:
    """A good file in `k=1`, and one with the given rows in `k=2`."""
    write_file(root / "k=1" / "a.parquet")
    write_file(root / "k=2" / "b.parquet", rows, **options)
    return penstock.hive(root, "k int", schema)


@pytest.mark.parametrize("content", [b"PAR1", b"not Parquet at all", b"PAR1" + b"x" * 100 + b"PAR1"])
def test_a_file_that_is_no_parquet_plans_and_is_an_error_when_read(tmp_path: Path, content: bytes) -> None:
    write_file(tmp_path / "k=1" / "a.parquet")
    (tmp_path / "k=2").mkdir()
    (tmp_path / "k=2" / "b.parquet").write_bytes(content)
    table = penstock.hive(tmp_path, "k int")
    assert len(table.plan().files) == 2
    with pytest.raises(PenstockError, match=r"k=2/b\.parquet"):
        table.arrow()
    assert table.arrow("k = 1").num_rows == 1, "it is not opened when the predicate excludes it"


def test_the_error_for_no_parquet_says_so_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "a.parquet").write_bytes(b"not Parquet at all")
    with pytest.raises(LayoutError, match=r"k=1/a\.parquet is not a Parquet file \(.*\); remove or replace it"):
        penstock.hive(tmp_path, "k int")


def test_a_file_that_was_cut_or_damaged_is_an_error_that_names_it(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array(range(10_000), pa.int64())})
    table = beside(tmp_path, rows)
    path = tmp_path / "k=2" / "b.parquet"
    whole = path.read_bytes()
    damaged = whole[:100] + bytes(reversed(whole[100:2000])) + whole[2000:]
    for content in (whole[: len(whole) // 2], damaged):
        path.write_bytes(content)
        with pytest.raises(PenstockError, match=r"k=2/b\.parquet"):
            table.arrow()


@pytest.mark.parametrize(
    ("column", "found", "expected"),
    [
        (pa.array(["five"]), "string", "bigint"),
        (pa.array(["5"]), "string", "bigint"),
        (pa.array([5.0]), "double", "bigint"),
        (pa.array([True]), "boolean", "bigint"),
        (pa.array([dt.date(2024, 1, 1)]), "date", "bigint"),
        (pa.array([[5]]), "array<bigint>", "bigint"),
        (pa.array([5], pa.int64()), "bigint", "int"),
        (pa.array([5], pa.int64()), "bigint", "string"),
        (pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us", "UTC")), "timestamp", "timestamp_ntz"),
    ],
)
def test_a_column_of_another_type_is_an_error_that_names_both_types(
    tmp_path: Path, column: pa.Array, found: str, expected: str
) -> None:
    table = beside(tmp_path, pa.table({"n": column}), f"n {expected}")
    message = rf"k=2/b\.parquet: column n is {found}, the table has {expected}; fix the file"
    with pytest.raises(LayoutError) as caught:
        table.arrow("k = 2")
    assert message.replace("\\", "") in str(caught.value)
    assert len(table.plan().files) == 2


@pytest.mark.parametrize(
    ("column", "expected", "value"),
    [
        (pa.array([5], pa.int32()), "bigint", 5),
        (pa.array([5], pa.uint8()), "int", 5),
        (pa.array([0.5], pa.float32()), "double", 0.5),
        (pa.array([5], pa.int32()), "double", 5.0),
        (pa.array([None], pa.null()), "bigint", None),
        (pa.array(["x"]).dictionary_encode(), "string", "x"),
        (pa.array(["x"], pa.large_string()), "string", "x"),
        (pa.array([b"x"]), "string", "x"),
        (pa.array([1_000], pa.timestamp("ns")), "timestamp", dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)),
    ],
)
def test_a_type_that_spark_reads_as_the_other_is_read(
    tmp_path: Path, column: pa.Array, expected: str, value: object
) -> None:
    table = beside(tmp_path, pa.table({"n": column}), f"n {expected}")
    assert table.arrow("k = 2")["n"].to_pylist() == [value]


def test_a_column_that_a_file_lacks_is_null_and_one_it_has_too_many_is_left_out(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"other": ["x"], "N": pa.array([7], pa.int64())}), "n bigint, extra string")
    assert sorted(table.arrow()["n"].to_pylist()) == [1, 7], "names are compared without case"
    assert table.arrow()["extra"].to_pylist() == [None, None]
    assert table.arrow("extra IS NULL").num_rows == 2


def test_the_old_timestamps_of_spark_are_moments(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12)
    rows = pa.table({"t": pa.array([moment], pa.timestamp("us"))})
    write_file(tmp_path / "k=1" / "a.parquet", rows, use_deprecated_int96_timestamps=True)
    table = penstock.hive(tmp_path, "k int", timezone="America/New_York")
    assert table.schema.field("t").type == pa.timestamp("us", "UTC")
    assert table.arrow("t = TIMESTAMP '2024-02-29 07:00:00'")["t"].to_pylist() == [moment.replace(tzinfo=dt.UTC)]


def test_a_timestamp_directory_is_in_the_zone_of_the_session(tmp_path: Path) -> None:
    write_file(tmp_path / "t=2024-02-29 07%3A00%3A00" / "a.parquet")
    at_noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    there = penstock.hive(tmp_path, "t timestamp", timezone="America/New_York")
    assert there.arrow("t = TIMESTAMP '2024-02-29 12:00:00Z'")["t"].to_pylist() == [at_noon]
    assert len(penstock.hive(tmp_path, "t timestamp").plan("t = TIMESTAMP '2024-02-29 07:00:00Z'").files) == 1
    local = penstock.hive(tmp_path, "t timestamp_ntz", timezone="America/New_York")
    assert len(local.plan("t = TIMESTAMP_NTZ '2024-02-29 07:00:00'").files) == 1


def test_a_file_that_disappears_after_it_was_listed_is_an_error_unless_it_is_excluded(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"n": pa.array([2], pa.int64())}))
    kept = penstock.hive(tmp_path, "k int", cache_seconds=60)
    assert len(kept.plan().files) == 2
    (tmp_path / "k=2" / "b.parquet").unlink()
    with pytest.raises(StorageError, match=r"k=2/b\.parquet has disappeared; plan again"):
        kept.arrow()
    assert kept.arrow("k = 1").num_rows == 1
    assert table.arrow().num_rows == 1, "a new plan does not know it"


def test_a_directory_that_disappears_after_it_was_listed_is_an_error_unless_it_is_excluded(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"n": pa.array([2], pa.int64())}))
    kept = penstock.hive(tmp_path, "k int", "n bigint", cache_seconds=60)
    kept.plan("k = 1")
    (tmp_path / "k=2" / "b.parquet").unlink()
    (tmp_path / "k=2").rmdir()
    with pytest.raises(StorageError, match=r"k=2 has disappeared; plan again"):
        kept.plan("k = 2")
    assert kept.arrow("k = 1").num_rows == 1
    assert len(table.plan().files) == 1


def test_a_link_to_a_directory_is_a_directory(tmp_path: Path) -> None:
    write_file(tmp_path / "elsewhere" / "a.parquet")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "k=1").symlink_to(tmp_path / "elsewhere")
    assert penstock.hive(tmp_path / "t", "k int").arrow("k = 1").num_rows == 1


def test_a_missing_root_and_a_root_that_is_a_file_are_told_apart(tmp_path: Path) -> None:
    file = write_file(tmp_path / "a.parquet")
    for schema in (None, "n bigint"):
        with pytest.raises(StorageError, match=f"{tmp_path}/nowhere does not exist; check the path"):
            penstock.hive(tmp_path / "nowhere", "k int", schema).plan()
        with pytest.raises(StorageError, match=f"{file} is not a directory; give the root of the table"):
            penstock.hive(file, "k int", schema).plan()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_may_not_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"n": pa.array([2], pa.int64())}))
    (tmp_path / "k=2").chmod(0)
    try:
        with pytest.raises(StorageError, match=r"cannot read .*k=2.*check permissions"):
            table.plan()
        assert table.arrow("k = 1").num_rows == 1
    finally:
        (tmp_path / "k=2").chmod(0o755)


def test_an_unknown_column_to_select_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    table = beside(tmp_path, pa.table({"n": pa.array([2], pa.int64())}))
    with pytest.raises(SchemaError, match="no column 'nope'; there are: n, k"):
        table.arrow(columns=["n", "nope"])
    assert table.arrow("k = 2", columns=["K"]).to_pylist() == [{"k": 2}]


@pytest.mark.parametrize(
    "declared", ["k", "k nonsense", "k int, K string", "k array<int>", "k struct<a:int>", ["k int", "k"]]
)
def test_a_bad_declaration_is_one_clear_error_or_a_string(tmp_path: Path, declared: object) -> None:
    write_file(tmp_path / "k=1" / "a.parquet")
    if declared == "k":
        assert penstock.hive(tmp_path, declared).arrow("k = '1'").num_rows == 1
        return
    with pytest.raises(SchemaError):
        penstock.hive(tmp_path, declared)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ("s3://", "s3: no bucket; write s3://bucket/path"),
        ("s3:/lake/t", "s3: no bucket"),
        ("s3a:///t", "s3a: no bucket"),
        ("s3a://AKIAKEY:top-Secret@lake/t", "credentials in a s3a:// URL are not read; give s3.access-key-id"),
        ("gs://lake/t", "unknown kind of storage in gs://…; local paths"),
        ("file://host/t", "names a host; an absolute path has three slashes"),
        ("", "the path is empty"),
        ("  ", "the path is empty"),
    ],
)
def test_a_bad_root_is_one_clear_error(root: str, message: str) -> None:
    with pytest.raises(StorageError) as caught:
        penstock.hive(root, "k int", "n bigint", storage={})
    assert message in str(caught.value)
    assert "top-Secret" not in repr(caught.value) + str(caught.value)


def test_an_unknown_catalog_is_one_clear_error() -> None:
    with pytest.raises(StorageError, match="no catalog 'nowhere' is configured; name a catalog"):
        penstock.hive("s3://lake/t", "k int", "n bigint", storage="nowhere")


def test_an_untypable_directory_below_another_level_is_not_silently_left_out(tmp_path: Path) -> None:
    for name in ("1", "999"):
        folder = tmp_path / "d=1" / f"k={name}"
        folder.mkdir(parents=True)
        write_one(folder)
    table = penstock.hive(tmp_path, "d int, k tinyint")
    with pytest.raises(LayoutError, match="k=999"):
        table.arrow("k = 999")
    assert table.arrow("k = 1 AND d = 2").num_rows == 0


@pytest.mark.parametrize(
    ("where", "lists"),
    [
        ("-k = 1", 4),
        ("abs(k) = 1", 5),
        ("CAST(-k AS string) = '1'", 4),
        ("date_add(DATE '2026-01-01', -k) = DATE '2026-01-02'", 4),
        ("-k IS NULL AND d = 1", 2),
        ("-k IN (1, 2) AND d = 2", 3),
    ],
)
def test_functions_of_a_deeper_level_prune_when_it_is_reached(tmp_path: Path, where: str, lists: int) -> None:
    for name in ("d=1/k=1", "d=1/k=-3", "d=2/k=-1", "d=2/k=5"):
        (tmp_path / name).mkdir(parents=True)
        write_one(tmp_path / name)
    plan = penstock.hive(tmp_path, "d int, k int", "x bigint").plan(where)
    assert plan.report.list_calls == lists


def test_partition_columns_called_files_and_bytes_keep_their_values(tmp_path: Path) -> None:
    folder = tmp_path / "bytes=7" / "files=8"
    folder.mkdir(parents=True)
    write_one(folder)
    found = penstock.hive(tmp_path, "bytes int, files int").partitions()
    assert [column.to_pylist()[0] for column in found.columns[:3]] == [7, 8, 1]


def write_one(folder: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), folder / "f.parquet")


def test_directories_that_may_not_be_read_are_left_out_when_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in (1, 2, 3):
        write_file(tmp_path / f"k={k}" / "a.parquet", pa.table({"n": pa.array([k], pa.int64())}))
    listed = os.listdir

    def refused(path: str) -> list[str]:
        if path.endswith("k=2"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(ForbiddenError, match=r"cannot read file://.*k=2: "):
        penstock.hive(tmp_path, "k int", "n bigint").plan()
    table = penstock.hive(tmp_path, "k int", "n bigint", on_forbidden="skip", cache_seconds=60)
    for _ in range(2):
        with pytest.warns(PenstockWarning, match=r"1 directory left out, which may not be read: /.*/k=2"):
            assert table.arrow()["n"].to_pylist() == [1, 3]
    assert table.arrow("k = 3")["n"].to_pylist() == [3]  # no warning: it was not asked
    with pytest.raises(LayoutError, match="on_forbidden is 'ignore'; write 'error' or 'skip'"):
        penstock.hive(tmp_path, "k int", "n bigint", on_forbidden="ignore")
