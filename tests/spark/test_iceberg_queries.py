"""Filters, joins and views over Iceberg tables in Spark: the rows of `table.arrow()`, from the files that match."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import penstock
from penstock.errors import LakeError, PenstockError, StorageError
from tests.fixtures.iceberg_deletes import rewritten
from tests.fixtures.iceberg_tables import create, repartition
from tests.fixtures.variants import variants
from tests.spark.hive_layouts import answer, counted_calls, make, read_by
from tests.spark.iceberg_layouts import ask, opened, same_as_pyiceberg

pytestmark = [pytest.mark.spark, pytest.mark.compiled, pytest.mark.usefixtures("utc")]
N = 240


def rows_of(start: int, count: int) -> pa.Table:
    """Rows whose values follow from their number."""
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "app": [("shop", "blog", None, "x y")[i % 4] for i in ids],
            "n": pa.array([None if i % 11 == 0 else i % 7 for i in ids], pa.int32()),
            "d": pa.array([date(2026, 5, 1 + i % 5) for i in ids]),
            "ts": pa.array([datetime(2026, 5, 1 + i % 5, i % 24) for i in ids], pa.timestamp("us")),
            "tz": pa.array([datetime(2026, 5, 1 + i % 5, i % 24) for i in ids], pa.timestamp("us", tz="UTC")),
            "st": [None if i % 13 == 0 else {"a": i, "b": f"u{i % 3}"} for i in ids],
            "m": pa.array([[("k", f"v{i % 3}")] if i % 2 else [] for i in ids], pa.map_(pa.string(), pa.string())),
            "arr": [[i, i + 1] for i in ids],
        }
    )


ROWS = rows_of(0, N)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One spec, an identity and a transform: twenty files."""
    root = tmp_path_factory.mktemp("plain")
    create(root, ROWS.schema, ["app", "day(ts)"]).append(ROWS)
    return root


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four specs in turn: none, (app), (app, d), (n): identities come and go."""
    root = tmp_path_factory.mktemp("evolved")
    table = create(root, ROWS.schema)
    for i, fields in enumerate(([], ["app"], ["app", "d", "bucket[2](id)"], ["n"])):
        repartition(table, fields)
        table.append(ROWS.slice(i * 60, 60))
    return root


WHERE = [
    "app IS NULL AND n > 3",
    "n IS NULL OR app = 'blog'",
    "NOT (n > 2)",
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 200)",
    "d = '2026-05-03' AND app = 'shop'",
    "tz < '2026-05-02 00:00:00'",
    "cast(ts AS date) = '2026-05-02' AND app LIKE 'sh%'",
    "st.b = 'u1' AND st.a > 200",
    "st IS NULL",
    "m['k'] = 'v1' AND app = 'blog'",
    "app = 'none'",
    "coalesce(app, 'none') = 'none' AND id < 30",
    "app = 'shop'",
    "app <> 'shop'",
    "app <=> NULL",
    "n = 3",
    "n IS NULL",
    "id BETWEEN 3 AND 9",
    "id IN (1, 70, 130, 200)",
    "ts >= '2026-05-04 10:00:00'",
    "date_trunc('DAY', tz) = '2026-05-02' OR n = 1",
    "st.a < 20",
]


@pytest.mark.parametrize("where", variants(WHERE, every_run=12))
def test_a_filter_reads_the_files_of_the_plan_and_no_other(
    spark: SparkSession, plain: Path, evolved: Path, where: str
) -> None:
    exact = " OR " not in where
    one = ask(spark, opened(plain), where, ROWS, exact=exact)
    assert one.calls <= 1
    several = ask(spark, opened(evolved), where, ROWS, exact=exact)
    assert several.calls <= 4
    assert several.ids == one.ids


def test_exact_counts_of_files(spark: SparkSession, plain: Path, evolved: Path) -> None:
    assert ask(spark, opened(plain), "app = 'shop' AND ts < '2026-05-02'").files == 1
    assert ask(spark, opened(plain), "app = 'shop'").files == 5
    assert ask(spark, opened(plain), "TRUE").files == 20
    assert ask(spark, opened(evolved), "n = 3 AND id >= 180").files == 1
    query = opened(plain).dataframe(spark).where("app = 'shop' AND ts < '2026-05-02'")
    assert len(query.inputFiles()) == 1


def test_all_rows_are_those_of_pyiceberg(spark: SparkSession, plain: Path, evolved: Path) -> None:
    same_as_pyiceberg(spark, opened(plain))
    same_as_pyiceberg(spark, opened(evolved))


@pytest.fixture
def dim(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Apps with a key, as files, so that Spark knows their size."""
    rows = spark.createDataFrame([("shop", 1, 3), ("blog", 2, 4), ("none", 3, 5)], "a string, k int, num int")
    rows.write.parquet(str(tmp_path / "dim"))
    return spark.read.parquet(str(tmp_path / "dim"))


def test_join_prunes_at_run_time(spark: SparkSession, plain: Path, dim: DataFrame) -> None:
    df = opened(plain).dataframe(spark)
    query = df.join(dim.where("k = 1"), F.col("app") == F.col("a")).select("id", "k")
    assert sorted(row.id for row in query.collect()) == list(range(0, N, 4))
    assert (max(read_by(query).files), read_by(query).static_files) == (5, (15,))  # a join drops nulls before


def test_join_prunes_every_branch_that_has_the_column(spark: SparkSession, evolved: Path, dim: DataFrame) -> None:
    table = opened(evolved)
    query = table.dataframe(spark).join(dim.where("k = 1"), F.col("app") == F.col("a")).select("id", "k")
    assert sorted(row.id for row in query.collect()) == list(range(0, N, 4))
    read = read_by(query)
    with_app = [f for f in table.plan("app IS NOT NULL").files if "app" in f.partition]
    wanted = [f for f in table.plan("app = 'shop'").files if "app" in f.partition]
    without = [f for f in table.plan("app IS NOT NULL").files if "app" not in f.partition]
    assert (len(read.static_files), sum(read.static_files)) == (2, len(with_app))
    assert read.total == len(wanted) + len(without) + 1  # the last one is the dimension's
    assert len(wanted) < len(with_app)


def test_views_subqueries_windows_and_aggregates(spark: SparkSession, evolved: Path, plain: Path) -> None:
    for root in (plain, evolved):
        opened(root).dataframe(spark).createOrReplaceTempView("ours")
        rows = ROWS.select(["id", "app", "n"]).to_pylist()
        spark.createDataFrame(rows, "id bigint, app string, n int").createOrReplaceTempView("judge")
        for text in (
            "SELECT app, count(*), max(id) FROM {} GROUP BY app",
            "SELECT id FROM {} WHERE app IN (SELECT app FROM {} WHERE id = 4)",
            "SELECT max(id) FROM {} WHERE id < (SELECT max(id) FROM {} WHERE app = 'blog')",
            "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY app ORDER BY id) r FROM {}) WHERE r < 3",
            "SELECT a.id FROM {} a JOIN {} b ON a.id = b.id + 1 WHERE a.app = 'blog' AND b.app = 'shop'",
            "SELECT id FROM {} WHERE app = 'shop' UNION ALL SELECT id FROM {} WHERE app = 'blog'",
            "SELECT id FROM {} WHERE app = 'shop' ORDER BY id LIMIT 5",
        ):
            assert answer(spark.sql(text.replace("{}", "ours"))) == answer(spark.sql(text.replace("{}", "judge"))), text


def test_two_filters_on_one_dataframe_stay_apart(spark: SparkSession, evolved: Path) -> None:
    df = opened(evolved).dataframe(spark)
    one, two = df.where("app = 'shop'"), df.where("app = 'blog'")
    assert sorted(row.app for row in one.union(two).select("app").distinct().collect()) == ["blog", "shop"]
    assert one.alias("l").join(two.alias("r"), F.col("l.id") == F.col("r.id")).count() == 0
    assert one.alias("l").join(one.alias("r"), F.col("l.id") == F.col("r.id")).count() == N // 4


def test_exchange_is_reused_and_cache_answers_an_equal_table(spark: SparkSession, plain: Path, evolved: Path) -> None:
    for root, scans in ((plain, 1), (evolved, 4)):

        def counts(text: str, root: Path = root) -> DataFrame:
            found: DataFrame = opened(root).dataframe(spark).where(text).groupBy("app").count()
            return found

        same = counts("id < 100").union(counts("id < 100"))
        assert len(same.collect()) == 8
        assert (read_by(same).reused, read_by(same).scans) == (1, scans)
        other = counts("id < 100").union(counts("id < 101"))
        other.collect()
        assert read_by(other).reused == 0
        cached = opened(root).dataframe(spark).cache()
        try:
            assert cached.count() == N
            with counted_calls() as calls:
                assert opened(root).dataframe(spark).where("app = 'shop'").count() == N // 4
            assert calls == []
        finally:
            cached.unpersist(blocking=True)


def test_explain_shows_penstock_and_the_counts(
    spark: SparkSession, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = opened(plain).dataframe(spark).where("app = 'shop'")
    for mode in ("simple", "extended", "formatted", "cost"):
        query.explain(mode=mode)
        shown = capsys.readouterr().out
        assert "Penstock" in shown
        assert "5 of 20 files" in shown, shown


def test_broadcast_is_chosen_by_the_size_that_is_left(spark: SparkSession, plain: Path) -> None:
    table = opened(plain)
    sizes = [f.size or 0 for f in table.plan().files]
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(3 * max(sizes)))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        small = table.dataframe(spark).where("app = 'shop' AND ts < '2026-05-02'").select(F.col("id").alias("i"))
        query = table.dataframe(spark).select("id").join(small, F.col("id") == F.col("i"))
        assert query.count() == 12
        query.collect()
        assert (read_by(query).broadcasts, read_by(query).sort_merges) == (1, 0)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_file_metadata_is_there_and_prunes(spark: SparkSession, plain: Path, evolved: Path) -> None:
    old = spark.version.startswith("4.0")  # there, _metadata cannot be asked for above a Union, and an alias keeps ids
    for root in (plain,) if old else (plain, evolved):
        table = opened(root)
        df = table.dataframe(spark)
        query = df.where("_metadata.file_path LIKE '%app=shop%'")
        wanted = [f for f in table.plan().files if "app=shop" in f.path]
        assert query.count() == sum(f.rows or 0 for f in wanted)
        query.collect()
        assert read_by(query).total == len(wanted)
        names = {row.file_name for row in df.select("_metadata.file_name").distinct().collect()}
        assert names == {f.path.rsplit("/", 1)[1] for f in table.plan().files}
        assert df.columns == ROWS.column_names
        assert old or not any(f.metadata for f in df.schema.fields)
        with pytest.raises(LakeError, match="does not know when a file was changed"):
            df.where("_metadata.file_modification_time > '2020-01-01'").count()


def test_scan_that_asks_for_no_metadata_reads_none(spark: SparkSession, evolved: Path) -> None:
    query = opened(evolved).dataframe(spark).select("id")
    assert "row_index" not in query._jdf.queryExecution().toString().split("== Physical Plan ==")[1]


def test_time_travel_reads_the_rows_and_the_schema_of_then(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, ROWS.schema, ["app"])
    table.append(ROWS.slice(0, 40))
    first = table.current_snapshot()
    assert first is not None
    with table.update_schema() as update:
        update.rename_column("n", "number")
        update.delete_column("st")
    repartition(table, ["number"])
    table.append(ROWS.slice(40, 40).rename_columns([{"n": "number"}.get(c, c) for c in ROWS.column_names]).drop(["st"]))
    now = opened(tmp_path)
    then = now.at(first.snapshot_id)
    assert ask(spark, then, "n = 3 AND st.a > 5", ROWS.slice(0, 40)).files > 0
    assert then.dataframe(spark).columns == ROWS.column_names
    assert ask(spark, now, "number = 3").ids == [i for i in range(80) if i % 7 == 3 and i % 11]
    both = now.dataframe(spark).select("id").exceptAll(then.dataframe(spark).select("id"))
    assert sorted(row.id for row in both.collect()) == list(range(40, 80))


def test_sql_mixes_iceberg_and_hive(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path, ROWS.schema, ["app"]).append(ROWS)
    lake = penstock.connect(tmp_path)
    layout = make(tmp_path / "hive", "k string", [["shop"], ["blog"], ["none"]])
    lake.register("web.apps", layout.table)
    text = "SELECT t.app, count(*) c FROM web.t JOIN web.apps ON apps.k = t.app WHERE t.id < 100 GROUP BY t.app"
    query = lake.sql(text, spark)
    assert {(row.app, row.c) for row in query.collect()} == {("shop", 75), ("blog", 75)}
    assert lake.sql("SELECT count(*) c FROM web.t WHERE app = 'shop'", spark).first().c == N // 4


def test_empty_table_has_its_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path, ROWS.schema, ["app"])
    df = opened(tmp_path).dataframe(spark)
    assert (df.columns, df.count(), df.where("app = 'shop'").collect()) == (ROWS.column_names, 0, [])


def test_errors_of_planning_arrive_as_themselves(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, ROWS.schema, ["app"])
    table.append(ROWS.slice(0, 10))
    df = opened(tmp_path).dataframe(spark)
    for path in (tmp_path / "web" / "t" / "metadata").glob("*-m0.avro"):
        path.unlink()
    with pytest.raises((StorageError, LakeError), match="does not exist"):
        df.count()


def test_field_ids_that_were_turned_off_are_an_error(spark: SparkSession, plain: Path) -> None:
    df = opened(plain).dataframe(spark)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "false")
    try:
        with pytest.raises(PenstockError, match="was turned off"):
            df.count()
    finally:
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    assert df.count() == N


def test_row_based_reader_gives_the_same_rows(spark: SparkSession, plain: Path, evolved: Path) -> None:
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        for root in (plain, evolved):
            ask(spark, opened(root), "app = 'shop' AND n > 2", ROWS)
            ask(spark, opened(root), "TRUE", ROWS)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_files_whose_path_has_no_scheme(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, ROWS.schema, ["app"])
    table.append(ROWS.slice(0, 40))
    rewritten(table, lambda path: path.removeprefix("file://"))
    found = opened(tmp_path)
    assert all(f.path.startswith("/") for f in found.plan().files)
    assert len(ask(spark, found, "app = 'shop'").ids) == 10
    query = found.dataframe(spark).where("_metadata.file_path LIKE 'file:%' AND app = 'shop'")
    assert query.count() == 10
