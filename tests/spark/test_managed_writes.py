"""Managed tables written by Spark: the same rows as were given, where the rule wants them, or nothing at all."""

from __future__ import annotations

import datetime as dt
import io
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import NestedField, StructType, UUIDType
from pyspark.sql import functions as F

import penstock
from penstock.errors import LakeError, SchemaError
from penstock.lake.layout.grouping import partition_arrays, stored
from penstock.lake.layout.table_layout import layout_of
from penstock.lake.maintain import compact as compaction
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import changed_files as writing
from penstock.lake.write.conform import conform
from penstock.progress import Counted
from penstock.spark.session.tasks import running_tasks
from penstock.spark.write.partition_columns import partition_columns
from tests.fixtures.managed_tables import files_below, head_id
from tests.fixtures.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "ts timestamp, app string, id bigint NOT NULL, tags map<string,string>, inner struct<a: int, b: array<string>>"
)
ROWS = 2_000


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Three days, ten small apps, one that has half of the rows, and nulls."""
    penstock.attach(spark)
    return spark.range(0, ROWS, 1, 3).selectExpr(
        "timestamp_micros(1779000000000000 + (id % 3) * 86400000000 + id) AS ts",
        "CASE WHEN id % 2 = 0 THEN 'huge' WHEN id % 97 = 1 THEN NULL ELSE concat('app', id % 20) END AS app",
        "id",
        "CASE WHEN id % 5 = 0 THEN NULL ELSE map('k', cast(id AS string), 'n', NULL) END AS tags",
        "named_struct('a', cast(id AS int), 'b', array(cast(id AS string), NULL)) AS inner",
    )


@pytest.fixture
def lake(tmp_path: Path) -> penstock.lake.lake.Lake:  # type: ignore[name-defined]
    return penstock.connect(tmp_path / "lake")


@pytest.fixture
def table(lake: Any) -> ManagedTable:
    rule = penstock.Coalesce("app", below="4KB")
    made: ManagedTable = lake.create_table("web.events", COLUMNS, ["day(ts)", "app"], coalesce=rule)
    return made


@pytest.fixture
def in_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the smallest file is rewritten in Spark's tasks."""
    monkeypatch.setattr(writing, "LOCALLY", -1)
    monkeypatch.setattr(compaction, "LOCALLY", -1)


def as_set(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def of(df: DataFrame) -> list[str]:
    return as_set(penstock_types(df))


def penstock_types(df: DataFrame) -> pa.Table:
    found: pa.Table = df.toArrow()
    return found


def files_on_disk(table: ManagedTable) -> set[str]:
    root = table.table.metadata.location.removeprefix("file://")
    return {str(path) for path in Path(root).rglob("*.parquet")}


def test_rows_come_back_and_small_partitions_share_one_file_a_day(
    spark: SparkSession, rows: DataFrame, table: ManagedTable
) -> None:
    table.append(rows)
    assert as_set(table.arrow()) == of(rows) == of(table.dataframe(spark))
    files = list(table.plan().files)
    shared = [file for file in files if file.logical is not None]
    assert len(shared) == 3  # one a day
    assert {file.partition["app"].value for file in files if "app" in file.partition} == {"huge"}
    assert len(table.plan("app = 'app7'").files) == len(table.plan("app IS NULL").files) == 3
    assert len(table.plan("app = 'app7' AND ts < '2026-05-18'").files) == 1
    assert not table.plan("app = 'nosuch'").files
    for file in shared:
        read = pq.read_table(file.path.removeprefix("file://"))["app"].to_pylist()
        assert read == sorted(read, key=lambda app: (app is not None, app))
        assert file.logical is not None
        assert file.logical.complete
        assert {(app,) for app in read} == set(file.logical.tuples)


def test_an_empty_dataframe_adds_nothing(rows: DataFrame, table: ManagedTable) -> None:
    table.append(rows.where("false"))
    assert table.version.snapshot is None
    assert not files_on_disk(table)


def test_a_table_without_partitions_is_written_and_overwritten(spark: SparkSession, rows: DataFrame, lake: Any) -> None:
    plain = lake.create_table("web.plain", COLUMNS)
    plain.append(rows)
    plain.overwrite(rows.where("id < 10"))
    assert as_set(plain.arrow()) == of(rows.where("id < 10"))


def test_a_table_is_made_by_the_schema_of_the_rows(rows: DataFrame, lake: Any) -> None:
    made = lake.create_table("web.made", rows.schema, ["bucket(4, id)", "truncate(4, app)"])
    made.append(rows)
    assert as_set(made.arrow()) == of(rows)
    assert len(made.plan("id = 7").files) < len(made.plan().files)
    for where in ("id = 7", "id IN (8, 9, 10, 11)", "app = 'app9'", "app = 'huge'", "app IS NULL"):
        assert as_set(made.arrow(where)) == of(rows.where(where)), where


def test_columns_are_found_by_name_in_any_order_and_case(rows: DataFrame, table: ManagedTable) -> None:
    table.append(rows.select("inner", "ID", "tags", "Ts", "app"))
    assert table.schema.names == ["ts", "app", "id", "tags", "inner"]
    assert table.count() == ROWS


def test_columns_and_nested_fields_that_rows_do_not_have_are_null(
    rows: DataFrame, table: ManagedTable, tmp_path: Path
) -> None:
    few = rows.selectExpr("id", "named_struct('a', inner.a) AS inner")
    table.append(few)
    where = {"table": "web.events", "warehouse": str(tmp_path / "lake")}
    few.write.format("penstock").options(**where).mode("append").save()
    wanted = "CAST(NULL AS timestamp) AS ts", "CAST(NULL AS string) AS app", "id"
    inner = "IF(inner IS NULL, NULL, named_struct('a', inner.a, 'b', CAST(NULL AS array<string>))) AS inner"
    filled = few.selectExpr(*wanted, "CAST(NULL AS map<string,string>) AS tags", inner)
    expected = of(few.sparkSession.createDataFrame(filled.union(filled).toArrow()))
    assert as_set(table.refresh().arrow()) == expected
    assert as_set(table.dataframe(rows.sparkSession).toArrow()) == expected
    table.append(rows.select("id", "app"))
    assert (table.count(), table.count("app IS NOT NULL")) == (3 * ROWS, rows.where("app IS NOT NULL").count())


def test_a_partition_column_in_a_struct_may_be_missing(spark: SparkSession, tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    made = lake.create_table("web.n", "id bigint, s struct<a: int, t: struct<`b c`: string, c: int>>", ["s.t.b c"])
    made.append(spark.sql("SELECT 1L AS id, named_struct('a', 1, 't', named_struct('c', 2)) AS s"))
    made.append(spark.sql("SELECT 2L AS id, named_struct('a', 1) AS s UNION ALL SELECT 3L, NULL"))
    made.append(spark.sql("SELECT 4L AS id"))
    assert made.arrow().sort_by("id").column("s").to_pylist() == [
        {"a": 1, "t": {"b c": None, "c": 2}}, {"a": 1, "t": None}, None, None,
    ]  # fmt: skip
    assert len(made.plan("s.t.`b c` = 'x'").files) == 0


def test_the_schema_of_rows_is_merged(rows: DataFrame, table: ManagedTable) -> None:
    more = rows.selectExpr(
        "id", "named_struct('a', CAST(inner.a AS bigint) + 5000000000, 'z', 1.5D) AS inner", "'x' AS x"
    )
    with pytest.raises(SchemaError, match=r"not in the table: inner\.z, x; inner\.a is a int and was given as bigint"):
        table.append(more)
    table.append(rows)
    table.append(more, merge_schema=True)
    assert str(table.schema.field("inner").type) == "struct<a: int64, b: list<item: string>, z: double>"
    assert (table.count("x = 'x'"), table.count("x IS NULL"), table.count("`inner`.z = 1.5")) == (ROWS, ROWS, ROWS)
    wide, expected = "`inner`.a > 4000000000", rows.where("inner.a IS NOT NULL").count()
    assert (table.count(wide), table.dataframe(rows.sparkSession).where(wide).count()) == (expected, expected)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda df: df.drop("id"), "missing: id bigint; select"),
        (lambda df: df.withColumn("more", df.id), "not in the table: more; append with merge_schema=True"),
        (lambda df: df.withColumn("id", df.app), "id is a bigint and was given as string"),
        (lambda df: df.withColumn("app", df.tags), "app is a string and was given as map<string,string>"),
        (lambda df: df.selectExpr("ts", "app", "nullif(id, 7) AS id", "tags", "inner"), "'id' is required and 1 of"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_written(
    rows: DataFrame, table: ManagedTable, tmp_path: Path, change: Any, says: str
) -> None:
    where = {"table": "web.events", "warehouse": str(tmp_path / "lake")}
    with pytest.raises(SchemaError, match=says):
        table.append(change(rows))
    if "required" not in says:  # a data source sees values only in its tasks
        with pytest.raises(SchemaError, match=says):
            change(rows).write.format("penstock").options(**where).mode("append").save()
    assert not files_on_disk(table)
    assert table.refresh().version.snapshot is None


def test_narrower_types_are_widened(spark: SparkSession, lake: Any) -> None:
    wide = lake.create_table("web.wide", "a bigint, b double, c decimal(20,2), d bigint", ["truncate(10, a)", "d"])
    wide.append(spark.sql("SELECT 7 AS a, float(1.5) AS b, cast(2.5 AS decimal(9,2)) AS c, tinyint(3) AS d"))
    assert wide.arrow().to_pylist() == [{"a": 7, "b": 1.5, "c": Decimal("2.50"), "d": 3}]


def test_a_value_that_a_worker_cannot_write_leaves_nothing(spark: SparkSession, lake: Any) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, StringType, UUIDType

    schema = Schema(NestedField(1, "u", UUIDType()), NestedField(2, "p", StringType()))
    table = lake.create_table("web.ids", schema, ["p"])
    bad = spark.sql(
        "SELECT if(id = 70, 'no uuid', '12345678-1234-1234-1234-123456789abc') AS u, string(id % 4) AS p "
        "FROM range(100)"
    )
    with pytest.raises(SchemaError, match="'u' has a value that does not fit"):
        table.append(bad)
    assert not files_on_disk(table)
    assert table.refresh().version.snapshot is None
    table.append(bad.where("u <> 'no uuid'"))
    assert table.count() == 99


def test_rows_whose_partition_was_not_counted_are_written_all_the_same(
    rows: DataFrame, table: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a source gets other rows between counting and writing."""
    from penstock.spark.write import write_job as spark_write

    counted = spark_write._slots
    few = lambda job, df, session: counted(job, df.where("app IN ('app7', 'huge')"), session)  # noqa: E731
    monkeypatch.setattr(spark_write, "_slots", few)
    table.append(rows)
    assert as_set(table.arrow()) == of(rows)
    assert len(table.plan("app = 'app7' AND ts < '2026-05-18'").files) == 1


def test_costly_rows_are_computed_once(spark: SparkSession, rows: DataFrame, table: ManagedTable) -> None:
    counter = spark.sparkContext.accumulator(0)

    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            counter.add(batch.num_rows)
            yield batch

    others = set(spark.sparkContext._jsc.getPersistentRDDs())
    table.append(rows.mapInArrow(seen, rows.schema))
    assert (counter.value, table.count()) == (ROWS, ROWS)
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= others, "what was kept for two passes is still there"


@pytest.mark.usefixtures("in_spark")
def test_delete_overwrite_and_dynamic_overwrite_in_sparks_tasks(
    spark: SparkSession, rows: DataFrame, table: ManagedTable
) -> None:
    table.append(rows)
    table.delete("app = 'app7' OR id = 8")
    left = rows.where("NOT coalesce(app = 'app7' OR id = 8, false)")
    assert as_set(table.arrow()) == of(left)
    table.overwrite(rows.where("id = 8"), where="(app = 'huge' AND ts < '2026-05-18') OR id = 8")
    left = left.where("NOT coalesce(app = 'huge' AND ts < timestamp'2026-05-18 00:00:00', false)")
    expected = of(left.union(rows.where("id = 8")))
    assert as_set(table.arrow()) == expected == of(table.dataframe(spark))
    table.overwrite(rows.where("app = 'app9' AND id < 100"), dynamic=True)
    days = [row[0] for row in rows.where("app = 'app9' AND id < 100").selectExpr("date(ts)").distinct().collect()]
    kept = table.dataframe(spark).where("app <=> 'app9'")
    assert kept.where(kept.ts.cast("date").isin(days)).count() == rows.where("app = 'app9' AND id < 100").count()
    assert table.count("app = 'app11'") == rows.where("app = 'app11'").count()


@pytest.mark.usefixtures("in_spark")
def test_compaction_in_spark_merges_promotes_and_folds(
    spark: SparkSession, rows: DataFrame, table: ManagedTable
) -> None:
    for part in range(4):
        table.append(rows.where(f"id % 4 = {part}"))
    before = len(table.plan().files)
    done = table.compact()
    assert as_set(table.arrow()) == of(rows) == of(table.dataframe(spark))
    assert len(table.plan().files) == done.files_after < before
    table.set_coalesce(None)
    apart = table.compact()
    assert apart.written + 3 == apart.files_after == len(table.plan().files) == len(table.partitions())
    assert len(table.plan("app = 'app7' AND ts < '2026-05-18'").files) == 1
    table.set_coalesce(penstock.Coalesce("app"))
    together = table.compact()
    assert (together.written, len(table.plan().files)) == (3, 3)
    assert as_set(table.arrow()) == of(rows)


@pytest.mark.slow
def test_every_session_knows_the_data_source(
    spark: SparkSession, rows: DataFrame, table: ManagedTable, tmp_path: Path
) -> None:
    where = {"table": "web.events", "warehouse": str(tmp_path / "lake")}
    for other in (spark.newSession(), spark.newSession(), spark):
        assert penstock.attach(penstock.attach(other)) is other
        given = other.createDataFrame(rows.where("id < 10").toArrow(), rows.schema)
        given.write.format("penstock").options(**where).mode("append").save()
    assert table.refresh().count() == 30


def test_a_dataframe_stays_with_the_version_it_was_made_from(
    spark: SparkSession, rows: DataFrame, table: ManagedTable
) -> None:
    table.append(rows.where("id < 100"))
    early = table.dataframe(spark)
    table.append(rows.where("id >= 100"))
    assert (early.count(), table.dataframe(spark).count()) == (100, ROWS)


def test_the_data_source_appends_and_overwrites(
    spark: SparkSession, rows: DataFrame, table: ManagedTable, tmp_path: Path
) -> None:
    def to(df: DataFrame, mode: str, **options: str) -> None:
        where = {"table": "web.events", "warehouse": str(tmp_path / "lake"), **options}
        df.write.format("penstock").options(**where).mode(mode).save()
        table.refresh()

    to(rows, "append")
    assert as_set(table.arrow()) == of(rows)
    to(rows.where("app = 'app7' AND id < 1000"), "overwrite", where="app = 'app7'")
    left = rows.where("NOT (app <=> 'app7') OR id < 1000")
    assert as_set(table.arrow()) == of(left)
    to(rows.where("app = 'app9' AND id < 100"), "overwrite", dynamic="true")
    assert table.count("app = 'app11'") == rows.where("app = 'app11'").count()
    to(rows.where("id < 5"), "overwrite")
    assert as_set(table.arrow()) == of(rows.where("id < 5"))
    with pytest.raises(LakeError, match=r'write with mode\("overwrite"\)'):
        to(rows, "append", dynamic="true")
    with pytest.raises(LakeError, match=r"no table 'web\.nosuch'"):
        to(rows, "append", table="web.nosuch")
    assert table.count() == 5


def test_times_without_a_zone_are_partitions_of_their_own_in_any_session(spark: SparkSession, lake: Any) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        table = lake.create_table("web.times", "at timestamp_ntz, n int", ["at"], properties=PARTS)
        # On that day the hour from two to three did not exist there.
        hours = [dt.datetime(2026, 3, 8, hour, 30) for hour in range(5)] * 50
        given = pa.table({"at": pa.array(hours, pa.timestamp("us")), "n": pa.array(range(250), pa.int32())})
        table.append(spark.createDataFrame(given, "at timestamp_ntz, n int"))
        assert as_set(table.arrow()) == as_set(given)
        assert {file.partition["at"].value for file in table.plan().files} == set(hours)
        assert len(table.plan("at = timestamp_ntz'2026-03-08 02:30:00'").files) == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_a_large_partition_is_cut_into_files_near_the_target_by_several_tasks(
    spark: SparkSession, rows: DataFrame, lake: Any
) -> None:
    large = lake.create_table("web.large", COLUMNS, ["day(ts)", "app"], coalesce="app", properties=PARTS)
    large.set_coalesce(penstock.Coalesce("app", below="2KB"))
    large.append(rows)
    huge = large.plan("app = 'huge'").files
    assert len(huge) >= 6
    assert all(file.size is not None and file.size < 3 * 4096 for file in huge)
    assert as_set(large.arrow()) == of(rows)


PARTS = {"write.target-file-size-bytes": "4096"}
MOMENTS = [
    None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), dt.datetime(1, 1, 1),
    dt.datetime(1899, 12, 31, 1), dt.datetime(2026, 5, 17, 22, 30), dt.datetime(2024, 2, 29, 3),
    dt.datetime(9999, 12, 31),
]  # fmt: skip
TYPES: list[tuple[str, pa.DataType, list[Any], list[str]]] = [
    ("int", pa.int32(), [None, 0, -1, -7, 34, 2**31 - 1, -(2**31)], ["identity", "bucket[7]", "truncate[10]", "void"]),
    ("bigint", pa.int64(), [None, 0, -1, 34, 2**63 - 1, -(2**63)], ["identity", "bucket[16]", "truncate[10]"]),
    ("string", pa.string(), [None, "", "iceberg", "ü𝄞x", "a" * 40], ["identity", "bucket[5]", "truncate[2]"]),
    ("binary", pa.binary(), [None, b"", b"\x00\xff\x01", b"abc"], ["identity", "bucket[5]", "truncate[2]"]),
    ("decimal(9,2)", pa.decimal128(9, 2), [None, Decimal("14.20"), Decimal("-0.01"), Decimal("0.00")],
     ["identity", "bucket[5]", "truncate[50]"]),
    ("decimal(38,10)", pa.decimal128(38, 10), [None, *(Decimal(f"{sign}{n}e-10") for n in (10**38 - 1, 10**28 + 7, 5)
     for sign in "+-")], ["identity", "bucket[5]", "truncate[3]"]),
    ("decimal(38,38)", pa.decimal128(38, 38), [Decimal(f"{n}e-38") for n in (10**38 - 1, 7, -7)],
     ["identity", "bucket[5]", "truncate[10]"]),
    ("date", pa.date32(), [None if m is None else m.date() for m in MOMENTS],
     ["identity", "bucket[5]", "year", "month", "day"]),
    ("timestamp_ntz", pa.timestamp("us"), MOMENTS, ["identity", "bucket[5]", "year", "month", "day", "hour"]),
    ("timestamp", pa.timestamp("us", "UTC"), [None if m is None else m.replace(tzinfo=dt.UTC) for m in MOMENTS],
     ["identity", "bucket[5]", "year", "month", "day", "hour"]),
    ("boolean", pa.bool_(), [None, True, False], ["identity"]),
    ("double", pa.float64(), [None, 0.0, -0.0, 0.1, float("inf")], ["identity"]),
    ("float", pa.float32(), [None, 0.0, -0.0, 1.5, -float("inf")], ["identity"]),
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_spark_gives_every_row_the_partition_that_arrow_gives_it(spark: SparkSession, lake: Any, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for name, kind, values, transforms in TYPES:
            texts = [_text(transform) for transform in transforms]
            made = lake.create_table(f"t{zone[0]}.{''.join(filter(str.isalnum, name))}", f"n int, v {name}", texts)
            given = pa.table({"n": pa.array(range(len(values)), pa.int32()), "v": pa.array(values, kind)})
            layout = layout_of(made.table.metadata)
            wanted = [stored(a) for a in partition_arrays(conform(given, layout), layout.schema, layout.fine)]
            columns = [c.alias(f"p{i}") for i, c in enumerate(partition_columns(layout.schema, layout.fine))]
            df = spark.createDataFrame(given, f"n int, v {name}").select("n", *columns)
            found = df.toArrow().sort_by("n").drop_columns(["n"])
            actual = [stored(column.combine_chunks()) for column in found.columns]
            if pa.types.is_floating(kind):  # Spark has these as text, which tells the two zeros apart
                actual = [[None if text is None else float(text) for text in texts] for texts in actual]
            assert repr(actual) == repr(wanted), name
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def _text(transform: str) -> str:
    name, _, width = transform.rstrip("]").partition("[")
    return "v" if name == "identity" else f"{name}({width}, v)" if width else f"{name}(v)"


def test_tasks_are_counted_on_a_terminal_while_they_run(
    spark: SparkSession, lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three tasks waits until the display has told that one is done."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def second_waits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() == 4:
                wait_until((tmp_path / "told").exists)
            yield batch

    context, terminal = spark.sparkContext, Terminal()
    told: list[Counted | None] = []

    def look() -> None:
        wait_until(lambda: "1 of 3 tasks" in terminal.getvalue())
        told.extend(running_tasks(context, tag) for tag in ("mine", "of another"))
        (tmp_path / "told").touch()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stderr", terminal)
    table = lake.create_table("web.counted", "id bigint")
    watcher = Thread(target=look)
    context.addJobTag("mine")
    try:
        watcher.start()
        table.append(spark.range(0, 12, 1, 3).mapInArrow(second_waits, "id bigint"))
        watcher.join()
        assert set(context.getJobTags()) == {"mine"}
    finally:
        context.removeJobTag("mine")
    assert told == [Counted(1, 3, "task"), None]
    assert "1 of 3 tasks" in terminal.getvalue()
    assert "writing 1 file" in terminal.getvalue()
    assert table.count() == 12


def test_rows_that_do_not_match_what_they_replace_are_refused(
    rows: DataFrame, table: ManagedTable, lake: Any, tmp_path: Path
) -> None:
    table.append(rows)
    before, head = files_below(tmp_path), head_id(table)
    with pytest.raises(LakeError, match="of the rows do not match app = 'app7'") as raised:
        table.overwrite(rows.where("app IN ('app7', 'app9')"), where="app = 'app7'")
    assert "\n" not in str(raised.value)
    writer = rows.where("app IN ('app7', 'app9')").write.format("penstock").mode("overwrite")
    with pytest.raises(Exception, match="of the rows do not match"):
        writer.options(warehouse=str(lake.warehouse), table=table.name, where="app = 'app7'").save()
    assert files_below(tmp_path) == before
    assert head_id(table.refresh()) == head


def test_thousands_of_tiny_partitions_are_pruned_to_each_of_them(spark: SparkSession, lake: Any) -> None:
    rule = penstock.Coalesce("app", record_bytes="32KB")
    table = lake.create_table("web.tiny", "id bigint, app string", ["app"], coalesce=rule)
    table.append(spark.range(6_000).selectExpr("id", "concat('app-', id) AS app"))
    files = table.plan().files
    assert len(files) == 4, "6,000 apps of some 22 bytes"
    assert all(file.logical is not None and file.logical.complete for file in files)
    assert len(table.plan("app = 'app-1234'").files) == 1
    assert table.partitions().num_rows == 6_000
    assert table.dataframe(spark).where("app = 'app-1234'").count() == 1


def test_spark_puts_uuids_into_the_buckets_of_their_bytes(spark: SparkSession, lake: Any) -> None:
    columns = [NestedField(1, "u", UUIDType()), NestedField(2, "s", StructType(NestedField(3, "v", UUIDType())))]
    table = lake.create_table("web.uuids", Schema(*columns), ["bucket(8, u)"])
    texts = [str(UUID(int=i * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)) for i in range(40)]
    table.append(spark.createDataFrame([(text, {"v": text}) for text in texts], "u string, s struct<v: string>"))
    bucket = BucketTransform(8).transform(UUIDType())
    wanted = {text: bucket(UUID(text)) for text in texts}
    found = {}
    for task in table.plan().files:
        (value,) = task.partition.values()
        found |= {u.as_py(): value.value for u in pq.read_table(task.path.removeprefix("file://"))["u"]}
    assert {str(u if isinstance(u, UUID) else UUID(bytes=u)): number for u, number in found.items()} == wanted
    rows = table.dataframe(spark).where(f"u = '{texts[7]}'").collect()
    assert [(row.u, row.s.v) for row in rows] == [(texts[7], texts[7])]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_spark_keeps_the_two_zeros_of_a_partition_apart(spark: SparkSession, lake: Any, kind: str) -> None:
    table = lake.create_table("web.zeros", f"id int, x {kind}", ["x"])
    values = [0.0, -0.0, None, float("nan"), 0.1, 1e30, float("-inf"), -0.0]
    table.append(spark.createDataFrame(list(enumerate(values)), f"id int, x {kind}"))
    wanted = pa.array(values, pa.float32() if kind == "float" else pa.float64()).to_pylist()
    assert len(table.plan().files) == 7
    assert repr(table.arrow().sort_by("id").column("x").to_pylist()) == repr(wanted)
    assert repr([row.x for row in table.dataframe(spark).orderBy("id").collect()]) == repr(wanted)
    assert sorted(table.arrow("x = 0.0").column("id").to_pylist()) == [0, 1, 7]


def test_shared_files_keep_the_two_zeros_apart(spark: SparkSession, lake: Any) -> None:
    table = lake.create_table("web.shared_zeros", "id int, app string, x double", ["app", "x"], coalesce=["app"])
    zeros = [0.0, -0.0] * 3
    rows = pa.table({"id": pa.array(range(6), pa.int32()), "app": ["a", "a", "b", "b", None, None], "x": zeros})
    table.append(rows)
    table.append(spark.createDataFrame(rows).withColumn("id", F.col("id") + 6))
    for _ in range(2):
        assert repr(table.arrow().sort_by("id").column("x").to_pylist()) == repr(zeros * 2)
        assert repr([row.x for row in table.dataframe(spark).orderBy("id").collect()]) == repr(zeros * 2)
        table.compact()
    assert len(table.plan().files) == 2
    assert table.compact().rewritten == 0
