"""The cases of Iceberg tables that lost other systems rows: each with its rows, and the files read for them."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, NestedField, StringType
from pyiceberg.utils.config import Config

import penstock
from penstock.errors import LakeError, PenstockError, StorageError
from penstock.predicate.bind import Context, bind_text
from penstock.predicate.evaluate import filter_table
from tests.fixtures.iceberg_tables import append_by_hand, catalog_at, create, repartition, write_iceberg

UTC = dt.UTC


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def opened(root: Path, **options: Any) -> Any:
    return penstock.connect(root, **options).table("web.t")


def ids(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


def check(table: Any, where: str, expected: list[int], files: int | None = None) -> None:
    """Rows and, where it is told, exactly so many files; the negation and the null test have all other rows."""
    assert ids(table.arrow(where)) == expected, where
    rest = [ids(table.arrow(text)) for text in (f"NOT ({where})", f"({where}) IS NULL")]
    assert sorted([*expected, *rest[0], *rest[1]]) == ids(table.arrow()), where
    if files is not None:
        assert len(table.plan(where).files) == files, where


class TestSpecs:
    def test_one_tuple_under_two_specs_is_two_partitions(self, tmp_path: Path) -> None:
        rows = pa.table({"id": [1, 2], "n": pa.array([5, 21], pa.int32())})
        table = write_iceberg(tmp_path, rows.slice(0, 1), ["n"])
        repartition(table, ["truncate[5](n)"])
        append_by_hand(table, pa.table({"id": [3, 4], "n": pa.array([5, 9], pa.int32())}))
        found = opened(tmp_path)
        tuples = {(task.spec_id, *(v.value for v in task.partition.values())) for task in found.plan().files}
        assert len({spec for spec, *_ in tuples}) == 2
        assert {value for _, value in tuples} == {5}
        check(found, "n = 5", [1, 3], 2)
        check(found, "n = 9", [4], 1)
        check(found, "n > 5", [4], 1)

    def test_identity_added_and_removed_and_added_again(self, tmp_path: Path) -> None:
        table = create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string()}))
        for number, fields in enumerate([[], ["app"], [], ["app"]]):
            repartition(table, fields)
            append_by_hand(table, pa.table({"id": [2 * number, 2 * number + 1], "app": ["a", "b"]}))
        found = opened(tmp_path)
        check(found, "app = 'a'", [0, 2, 4, 6], 4)  # two of one app each, two of both
        check(found, "app = 'c'", [], 0)
        assert sorted(task.verdict.name for task in found.plan("app = 'a'").files) == ["KEEP"] * 2 + ["KEEP_WHOLE"] * 2

    def test_a_field_removed_from_a_table_of_version_one_is_void_and_says_nothing(self, tmp_path: Path) -> None:
        rows = pa.table({"id": [1, 2], "app": ["a", "b"]})
        table = write_iceberg(tmp_path, rows, ["app"], version=1)
        repartition(table, [])
        append_by_hand(table, pa.table({"id": [3, 4], "app": ["a", "b"]}))
        assert str(table.spec().fields[0].transform) == "void"
        check(opened(tmp_path), "app = 'a'", [1, 3], 2)

    def test_the_source_of_a_field_was_dropped_and_its_name_used_again(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "app": ["a", "b"]}), ["truncate[9](app)"])
        repartition(table, [])
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.delete_column("app")
        with table.update_schema() as update:
            update.add_column("app", StringType())
        append_by_hand(table, pa.table({"id": [3, 4], "app": ["a", None]}))
        found = opened(tmp_path)
        check(found, "app = 'a'", [3], 3)  # nothing is known of the new app in the two old files
        check(found, "app IS NULL", [1, 2, 4])
        assert {row["app"] for row in found.arrow("id < 3").to_pylist()} == {None}

    def test_one_source_feeds_two_fields(self, tmp_path: Path) -> None:
        rows = pa.table({"id": list(range(40)), "n": pa.array(range(40), pa.int32())})
        write_iceberg(tmp_path, rows, ["truncate[10](n)", "bucket[2](n)"])
        found = opened(tmp_path)
        assert len(found.plan().files) == 8
        check(found, "n = 17", [17], 1)
        check(found, "n IN (17, 25)", [17, 25])
        assert len(found.plan("n IN (17, 25)").files) <= 4
        check(found, "n >= 30", list(range(30, 40)), 2)

    def test_an_unknown_transform_keeps(self, tmp_path: Path) -> None:
        rows = pa.table({"id": [1, 2], "app": ["a", "b"]})
        table = write_iceberg(tmp_path, rows, ["truncate[1](app)"])
        path = Path(table.metadata_location.removeprefix("file://"))
        text = path.read_text().replace("truncate[1]", "zorder[1]")
        other = path.with_name("v9.metadata.json")
        other.write_text(text)
        found = penstock.iceberg(other)
        assert ids(found.arrow("app = 'a'")) == [1]
        assert all("zorder" not in str(task.reason) for task in found.plan("app = 'a'").files)

    def test_a_summary_that_lies_by_omission_keeps(self, tmp_path: Path) -> None:
        from penstock.prune.containers import Containers
        from penstock.prune.judge import Pruner
        from penstock.tables.iceberg.manifest_list import summary_facts
        from penstock.tables.iceberg.version import resolve

        class Summary:
            contains_null, contains_nan, lower_bound, upper_bound = False, None, None, None

        class Manifest:
            partitions = (Summary(),)

        table = write_iceberg(tmp_path, pa.table({"id": [1], "app": ["a"]}), ["app"])
        version = resolve(table.metadata, None, "t")
        facts = summary_facts([Manifest()], version.specs[table.spec().spec_id])
        for where, kept in {"app = 'a'": 1, "app IS NULL": 0, "app IS NOT NULL": 1}.items():
            judgement = Pruner(bind_text(where, version.columns.arrow)).judge(Containers(1, facts))
            assert len(judgement.kept) == kept, where


class TestTime:
    MOMENTS = (
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(2026, 5, 16, 23, 30, tzinfo=UTC),
        dt.datetime(2026, 5, 17, 0, 0, tzinfo=UTC),
        dt.datetime(2026, 5, 17, 3, 59, 59, tzinfo=UTC),
        dt.datetime(2026, 5, 17, 4, 0, tzinfo=UTC),
        dt.datetime(2026, 6, 1, tzinfo=UTC),
        None,
    )

    @pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
    @pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
    def test_transforms_are_in_utc_whatever_the_session_zone_is(
        self, tmp_path: Path, transform: str, zone: str
    ) -> None:
        rows = pa.table(
            {"id": list(range(len(self.MOMENTS))), "ts": pa.array(self.MOMENTS, pa.timestamp("us", tz="UTC"))}
        )
        write_iceberg(tmp_path, rows, [f"{transform}(ts)"])
        found = opened(tmp_path, timezone=zone)
        for where in (
            "ts < '1970-01-01'",
            "ts >= '2026-05-17'",
            "ts = '2026-05-17 00:00:00'",
            "month(ts) = 5",
            "year(ts) < 1970",
            "date(ts) = '2026-05-17'",
            "cast(ts AS date) > DATE '2026-05-16' AND ts < '2026-05-17 04:00:00'",
            "date_trunc('month', ts) = '2026-05-01'",
            "hour(ts) = 0",
            "ts IS NULL",
        ):
            expected = ids(filter_table(bind_text(where, rows.schema, Context(zone)), rows, zone))
            check(found, where, expected)

    def test_a_task_tells_the_range_of_source_values_that_its_partition_implies(self, tmp_path: Path) -> None:
        rows = pa.table({"id": [1], "ts": pa.array([self.MOMENTS[3]], pa.timestamp("us", tz="UTC"))})
        write_iceberg(tmp_path, rows, ["day(ts)"])
        (task,) = opened(tmp_path).plan("ts >= '2026-05-17'").files
        (value,) = task.partition.values()
        assert (value.source, value.transform, value.value) == ("ts", "day", dt.date(2026, 5, 17))
        assert (value.lower, value.upper) == (self.MOMENTS[3], dt.datetime(2026, 5, 18, tzinfo=UTC))
        assert task.verdict.name == "KEEP_WHOLE"


class TestValues:
    def test_null_nan_infinite_and_zero_partitions(self, tmp_path: Path) -> None:
        values = [None, float("nan"), math.inf, -math.inf, -0.0, 0.0, 1.5]
        rows = pa.table({"id": list(range(7)), "x": pa.array(values, pa.float64(), from_pandas=False)})
        write_iceberg(tmp_path, rows, ["x"])
        found = opened(tmp_path)
        check(found, "x > 1", [1, 2, 6], 3)
        check(found, "x = 0", [4, 5])
        check(found, "x IS NULL", [0], 1)
        check(found, "x = cast('NaN' AS double)", [1], 1)
        check(found, "x < 0", [3], 1)

    def test_empty_text_and_text_like_a_null_partition(self, tmp_path: Path) -> None:
        values = ["", "null", "__HIVE_DEFAULT_PARTITION__", None, "a/b=c d#e", "ü"]
        write_iceberg(tmp_path, pa.table({"id": list(range(6)), "s": values}), ["s"])
        found = opened(tmp_path)
        for i, value in enumerate(values):
            check(found, "s IS NULL" if value is None else f"s = '{value}'", [i], 1)

    def test_bounds_of_text_that_were_cut_short_keep(self, tmp_path: Path) -> None:
        long = "x" * 40
        rows = pa.table({"id": [1, 2], "s": [long + "a", long + "b"]})
        write_iceberg(tmp_path, rows, [])
        check(opened(tmp_path), f"s = '{long}b'", [2], 1)
        check(opened(tmp_path), f"s > '{long}'", [1, 2], 1)
        check(opened(tmp_path), "s = 'y'", [], 0)

    def test_highest_characters_have_no_upper_bound(self, tmp_path: Path) -> None:
        text = "\U0010ffff" * 30
        write_iceberg(tmp_path, pa.table({"id": [1], "s": [text]}), [])
        check(opened(tmp_path), f"s = '{text}'", [1], 1)


class TestSchemas:
    def test_renamed_columns_are_found_by_their_ids(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "a": ["x", "y"], "b": ["y", "x"]}), ["truncate[9](a)"])
        with table.update_schema() as update:
            update.rename_column("a", "swap")
        with table.update_schema() as update:
            update.rename_column("b", "a")
        with table.update_schema() as update:
            update.rename_column("swap", "b")
        append_by_hand(table, pa.table({"id": [3], "b": ["x"], "a": ["z"]}))
        found = opened(tmp_path)
        check(found, "b = 'x'", [1, 3], 2)
        check(found, "a = 'x'", [2], 1)
        assert found.arrow("id = 3").select(["a", "b"]).to_pylist() == [{"a": "z", "b": "x"}]

    def test_widened_types_prune_and_read_with_old_bounds_and_partitions(self, tmp_path: Path) -> None:
        schema = Schema(
            NestedField(1, "id", LongType()),
            NestedField(2, "n", IntegerType()),
            NestedField(3, "x", DoubleType()),
            NestedField(4, "p", DecimalType(5, 2)),
        )
        table = create(tmp_path, schema, ["n", "p"])
        old = {"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "x": [1.0, 2.0]}
        append_by_hand(table, pa.table({**old, "p": pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(5, 2))}))
        with table.update_schema() as update:
            update.update_column("n", field_type=LongType())
            update.update_column("p", field_type=DecimalType(12, 2))
        new = {"id": [3, 4], "n": pa.array([2, 2**40], pa.int64()), "x": [3.0, 4.0]}
        values = pa.array([Decimal("2.50"), Decimal("1234567890.50")], pa.decimal128(12, 2))
        append_by_hand(table, pa.table({**new, "p": values}))
        found = opened(tmp_path)
        check(found, "n = 2", [2, 3], 2)
        check(found, f"n = {2**40}", [4], 1)
        check(found, "p = 2.50", [2, 3], 2)
        check(found, "p > 1000000", [4], 1)

    def test_a_column_that_old_files_lack_is_null_in_them(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2]}), [])
        with table.update_schema() as update:
            update.add_column("extra", StringType())
        append_by_hand(table, pa.table({"id": [3, 4], "extra": ["a", None]}))
        found = opened(tmp_path)
        check(found, "extra IS NULL", [1, 2, 4])
        check(found, "extra = 'a'", [3])
        assert found.arrow(columns=["extra"]).num_rows == 4
        assert found.count("extra IS NULL") == 3

    def test_names_with_capitals_spaces_and_dots(self, tmp_path: Path) -> None:
        rows = pa.table({"id": [1, 2], "App": ["a", "b"], "the day": ["x", "y"], "a.b": [1, 2]})
        write_iceberg(tmp_path, rows, ["App", "the day"])
        found = opened(tmp_path)
        check(found, "app = 'a'", [1], 1)
        check(found, "`the day` = 'y'", [2], 1)
        check(found, "`a.b` = 2", [2])

    def test_fields_of_structs_prune_by_what_is_known_of_them(self, tmp_path: Path) -> None:
        kind = pa.struct({"x": pa.int32(), "y": pa.string()})
        table = create(tmp_path, pa.schema({"id": pa.int64(), "s": kind}))
        for i, value in enumerate([{"x": 1, "y": "a"}, {"x": 5, "y": "b"}, None]):
            append_by_hand(table, pa.table({"id": [i], "s": pa.array([value], kind)}))
        found = opened(tmp_path)
        check(found, "s.x = 5", [1], 2)  # PyIceberg writes no bounds of nested fields, but counts
        check(found, "s.y < 'b'", [0])
        check(found, "s IS NULL", [2])

    def test_values_that_are_only_in_metadata_come_from_there(self, tmp_path: Path) -> None:
        """As in tables migrated from Hive: the files do not have the partition column."""
        table = create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string(), "d": pa.date32()}), ["app", "d"])
        path = f"{table.location()}/data/app=a/part.parquet"
        Path(path.removeprefix("file://")).parent.mkdir(parents=True)
        typed = pa.schema([pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})])
        pq.write_table(pa.table({"id": [1, 2]}, schema=typed), path.removeprefix("file://"))
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record("a", 20590),
            record_count=2,
            file_size_in_bytes=Path(path.removeprefix("file://")).stat().st_size,
            spec_id=table.spec().spec_id,
        )
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
            update.append_data_file(file)
        append_by_hand(table, pa.table({"id": [3], "app": ["b"], "d": pa.array([20590], pa.int32()).view(pa.date32())}))
        found = opened(tmp_path)
        check(found, "app = 'a'", [1, 2], 1)
        check(found, "app > 'a'", [3], 1)
        day = dt.date(2026, 5, 17)
        assert found.arrow("id = 1").to_pylist() == [{"id": 1, "app": "a", "d": day}]
        assert isinstance(table.schema().find_field("d").field_type, DateType)


class TestVersions:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Table:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "app": ["a", "b"]}), [])
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
        repartition(table, ["app"])
        with table.update_schema() as update:
            update.rename_column("app", "name")
        append_by_hand(table, pa.table({"id": [3, 4], "name": ["a", "c"]}))
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "later").commit()
        with table.update_schema() as update:
            update.add_column("extra", StringType())
        append_by_hand(table, pa.table({"id": [5], "name": ["a"], "extra": ["e"]}))
        return table

    def test_ids_times_tags_and_branches_name_versions(self, table: Table, tmp_path: Path) -> None:
        found = opened(tmp_path)
        first, second, third = (s.snapshot_id for s in table.metadata.snapshots)
        assert [ids(found.at(i).arrow()) for i in (first, second, third)] == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
        assert ids(found.arrow("app = 'a'", snapshot="first")) == [1], "with the schema of that time"
        assert ids(found.arrow("name = 'a'", snapshot="later")) == [1, 3], "a branch has the table's own schema"
        assert found.at("later").schema.names == ["id", "name", "extra"]
        assert found.at(second).schema.names == ["id", "name"]
        assert found.count("name = 'a'", snapshot=second) == 2
        moments = [s.timestamp_ms for s in table.metadata.snapshots]
        for moment, expected in zip(moments, [2, 4, 5], strict=True):
            at = dt.datetime.fromtimestamp(moment / 1000, UTC)
            last = max(i for i, m in enumerate(moments) if m <= moment)
            assert found.count(snapshot=at) == [2, 4, 5][last] >= expected
        assert found.count(snapshot="2999-01-01") == 5
        assert len(found.plan("app = 'a'", snapshot=first).files) == 1

    @pytest.mark.parametrize("asked", [17, "nosuch", "1999-01-01", dt.datetime(1999, 1, 1), True, 1.5])
    def test_what_is_not_there_is_one_clear_error(self, table: Table, tmp_path: Path, asked: Any) -> None:
        with pytest.raises(LakeError) as caught:
            opened(tmp_path).at(asked).plan()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) > 20

    def test_a_table_stays_what_it_was_until_it_is_refreshed(self, table: Table, tmp_path: Path) -> None:
        before = opened(tmp_path)
        append_by_hand(table, pa.table({"id": [6], "name": ["z"], "extra": ["e"]}))
        assert before.count() == 5
        assert before.refresh().count() == 6

    def test_a_table_without_snapshots_has_no_rows(self, tmp_path: Path) -> None:
        create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string()}), ["app"])
        found = opened(tmp_path)
        assert (len(found.plan("app = 'a'").files), found.arrow().num_rows, found.count()) == (0, 0, 0)
        assert found.partitions().num_rows == 0

    def test_a_metadata_file_opens_without_a_catalog(self, table: Table, tmp_path: Path) -> None:
        for place in (table.metadata_location, table.metadata_location.removeprefix("file://")):
            assert ids(penstock.iceberg(place).arrow("name = 'a'")) == [1, 3, 5]


class TestLimits:
    @pytest.fixture
    def found(self, tmp_path: Path) -> Any:
        table = create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string()}), ["app"])
        for i in range(6):
            append_by_hand(
                table, pa.table({"id": [10 * i + j for j in range(10)], "app": ["a" if i % 2 else "b"] * 10})
            )
        return opened(tmp_path)

    @pytest.mark.parametrize(("where", "limit", "files"), [
        (None, 1, 1), (None, 10, 1), (None, 11, 2), (None, 60, 6), (None, 61, 6), (None, 0, 0),
        ("app = 'a'", 5, 1), ("app = 'a'", 11, 2), ("app = 'a'", 1000, 3), ("id >= 0", 15, 2), ("id % 2 = 0", 1, 6),
    ])  # fmt: skip
    def test_a_limit_needs_only_as_many_files_as_have_enough_rows(
        self, found: Any, where: str | None, limit: int, files: int
    ) -> None:
        plan = found.plan(where, limit=limit)
        assert len(plan.files) == files
        level = plan.report.files
        assert level.total == 6 == level.kept + sum(level.skipped.values())
        assert found.arrow(where, limit=limit).num_rows == min(limit, found.count(where))

    def test_counts_come_from_metadata_where_files_match_whole(
        self, found: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from penstock.tables.iceberg.read import Reader

        read: list[str] = []
        original = Reader.file
        monkeypatch.setattr(
            Reader, "file", lambda self, task, names: (read.append(task.path), original(self, task, names))[1]
        )
        assert (found.count(), found.count("app = 'a'"), found.count("app = 'nosuch'")) == (60, 30, 0)
        assert not read
        assert found.count("id < 15") == 15
        assert len(read) == 1, "one file matches in part"

    def test_extremes_read_only_the_files_that_can_have_them(self, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from penstock.tables.iceberg.read import Reader

        read: list[str] = []
        original = Reader.file
        monkeypatch.setattr(
            Reader, "file", lambda self, task, names: (read.append(task.path), original(self, task, names))[1]
        )
        assert (found.minimum("id"), found.maximum("id")) == (0, 59)
        assert len(read) == 2
        assert (found.minimum("id", "app = 'a'"), found.maximum("id", "app = 'b'")) == (10, 49)
        assert len(read) == 4
        assert found.maximum("id", "id % 7 = 0 AND id < 50") == 49
        assert (found.maximum("id", "app = 'nosuch'"), found.maximum("app")) == (None, "b")
        with pytest.raises(PenstockError):
            found.maximum("nosuch")

    def test_nan_is_the_largest_and_nulls_are_none(self, tmp_path: Path) -> None:
        table = create(tmp_path, pa.schema({"id": pa.int64(), "x": pa.float64()}))
        for i, values in enumerate([[1.0, 9.0], [float("nan"), -5.0], [None, None], [3.0, None]]):
            append_by_hand(table, pa.table({"id": [i, i], "x": pa.array(values, pa.float64(), from_pandas=False)}))
        found = opened(tmp_path)
        assert math.isnan(found.maximum("x"))
        assert (found.minimum("x"), found.maximum("x", "id <> 1"), found.minimum("x", "id = 2")) == (-5.0, 9.0, None)


class TestBadInput:
    def test_no_such_table_and_namespace_name_what_there_is(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        for name in ("web.nosuch", "nosuch.t", "nosuch.deep.t"):
            with pytest.raises(LakeError, match=r"no table .* there are: web\.t"):
                penstock.connect(tmp_path).table(name)
        with pytest.raises(LakeError, match="is no name of a table"):
            penstock.connect(tmp_path).table("t")

    def test_a_lake_that_is_only_looked_at_is_not_made(self, tmp_path: Path) -> None:
        lake = penstock.connect(tmp_path / "nowhere")
        assert lake.tables() == []
        with pytest.raises(LakeError, match="no table"):
            lake.table("web.t")
        assert not (tmp_path / "nowhere").exists()

    def test_a_catalog_that_cannot_be_reached_is_one_line_without_its_secret(self) -> None:
        properties = {"type": "rest", "uri": "http://127.0.0.1:9", "token": "very-secret-token"}
        with pytest.raises(LakeError) as caught:
            penstock.connect(catalog=properties).table("web.t")
        assert "cannot be opened" in str(caught.value)
        assert "very-secret-token" not in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("damage", ["missing", "cut", "empty", "text"])
    @pytest.mark.parametrize("what", ["manifest list", "manifest", "data file"])
    def test_a_damaged_file_is_one_clear_error_and_never_fewer_rows(
        self, tmp_path: Path, what: str, damage: str
    ) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "app": ["a", "b"]}), ["app"])
        snapshot = table.current_snapshot()
        place = {
            "manifest list": snapshot.manifest_list,
            "manifest": snapshot.manifests(table.io)[0].manifest_path,
            "data file": next(iter(table.scan().plan_files())).file.file_path,
        }[what]
        path = Path(place.removeprefix("file://"))
        content = path.read_bytes()
        path.unlink()
        if damage != "missing":
            path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"hello"}[damage])
        for ask in (lambda t: t.arrow(), lambda t: t.arrow("app >= 'a'")):
            with pytest.raises(PenstockError) as caught:
                ask(opened(tmp_path))
            assert path.name in str(caught.value)
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value, LakeError | StorageError)

    def test_metadata_that_is_missing_damaged_or_too_new(self, tmp_path: Path) -> None:
        table = write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        path = Path(table.metadata_location.removeprefix("file://"))
        with pytest.raises(LakeError, match="does not exist"):
            penstock.iceberg(tmp_path / "nosuch.metadata.json")
        for name, text in {
            "cut": path.read_text()[:100],
            "new": json.dumps({**json.loads(path.read_text()), "format-version": 9}),
        }.items():
            other = path.with_name(f"{name}.metadata.json")
            other.write_text(text)
            with pytest.raises(LakeError) as caught:
                penstock.iceberg(other)
            assert other.name in str(caught.value)

    def test_a_column_that_is_not_there(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        for ask in (lambda t: t.plan("nosuch = 1"), lambda t: t.arrow(columns=["nosuch"]), lambda t: t.plan(limit=-1)):
            with pytest.raises(PenstockError):
                ask(opened(tmp_path))

    def test_a_table_in_avro_is_refused_not_left_out(self, tmp_path: Path) -> None:
        table = create(tmp_path, pa.schema({"id": pa.int64()}))
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{table.location()}/data/a.avro",
            file_format=FileFormat.AVRO,
            partition=Record(),
            record_count=2,
            file_size_in_bytes=10,
            spec_id=0,
        )
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
            update.append_data_file(file)
        with pytest.raises(LakeError, match=r"a\.avro is a file in AVRO"):
            opened(tmp_path).plan()


class TestNames:
    def test_a_catalog_by_object_by_properties_and_by_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
        for name, value in properties.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__PENSTOCK__{name.upper()}", value)
        monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())  # which is read once, when it is imported
        for source in (catalog_at(tmp_path), properties, "penstock"):
            lake = penstock.connect(catalog=source)
            assert lake.tables() == ["web.t"]
            assert lake.table("web.t").count() == 1
            with pytest.raises(LakeError, match="need a warehouse"):
                lake.register("web.u", None)

    def test_iceberg_and_declared_tables_live_side_by_side(self, tmp_path: Path) -> None:
        write_iceberg(tmp_path, pa.table({"id": [1]}), [])
        folder = tmp_path / "hive" / "k=1"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [7]}), folder / "a.parquet")
        lake = penstock.connect(tmp_path)
        layout = penstock.hive(tmp_path / "hive", "k int")
        lake.register("web.h", layout)
        assert lake.tables() == ["web.h", "web.t"]
        assert (ids(lake.table("web.h").arrow()), ids(lake.table("web.t").arrow())) == ([7], [1])
        with pytest.raises(LakeError, match=r"web\.t is an Iceberg table"):
            lake.register("web.t", layout)
        shutil.rmtree(tmp_path / "hive")
