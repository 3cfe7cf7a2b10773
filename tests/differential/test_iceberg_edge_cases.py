"""The cases of Iceberg tables that lost other systems rows: each with its rows, and the files read for them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, NestedField, StringType

import penstock
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import filter_table
from tests.differential.iceberg_checks import check, ids, opened
from tests.fixtures.iceberg_tables import append_by_hand, create, repartition, write_iceberg

UTC = dt.UTC


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
        from penstock.tables.iceberg.manifest.manifest_list import summary_facts
        from penstock.tables.iceberg.metadata.version import resolve

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
    @pytest.mark.parametrize(
        "zone", ["America/New_York", *(pytest.param(zone, marks=pytest.mark.slow) for zone in ("UTC", "Asia/Kolkata"))]
    )
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
