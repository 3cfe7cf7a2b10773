"""Joins prune at run time and are chosen by the pruned size; a plan that is used again never brings another's rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.hive_layouts import ROWS, Layout, answer, compare, make, read_by

pytestmark = [pytest.mark.spark, pytest.mark.compiled]
DAYS = [f"2026-05-{day:02}" for day in range(1, 11)]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Thirty files: ten days, three apps."""
    return make(
        tmp_path_factory.mktemp("joins"), "dt date, app string", [[d, a] for d in DAYS for a in ("a", "b", None)]
    )


@pytest.fixture
def dim(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Days with a quarter, as files, so that Spark knows their size."""
    rows = spark.createDataFrame([(day, i % 5) for i, day in enumerate(DAYS)], "day string, k int")
    rows.selectExpr("CAST(day AS DATE) day", "k").write.parquet(str(tmp_path / "dim"))
    return spark.read.parquet(str(tmp_path / "dim"))


@contextmanager
def conf(spark: SparkSession, **settings: str) -> Iterator[None]:
    old = {key: spark.conf.get(key.replace("__", "."), None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key.replace("__", "."), value)
    try:
        yield
    finally:
        for key, before in old.items():
            name = key.replace("__", ".")
            spark.conf.unset(name) if before is None else spark.conf.set(name, before)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_join_with_a_filtered_dimension_prunes_at_run_time(
    spark: SparkSession, layout: Layout, dim: DataFrame, adaptive: str
) -> None:
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        found = compare(spark, layout, lambda df: df.join(dim.where("k = 1"), df.dt == dim.day).select("id", "dt", "k"))
        assert sorted(found.read.files)[-1] == 6  # two days of three files; the other scan is the dimension's
        assert found.read.static_files == (30,)
        assert found.calls == 1
        both = compare(
            spark, layout, lambda df: df.where("app = 'a'").join(dim.where("k = 1"), df.dt == dim.day).select("id", "k")
        )
        assert (max(both.read.files), both.read.static_files) == (2, (10,))
        semi = compare(
            spark, layout, lambda df: df.join(dim.where("k = 1"), df.dt == dim.day, "left_semi").select("id")
        )
        assert max(semi.read.files) == 6


def test_join_of_two_penstock_tables_prunes_one_by_the_other(
    spark: SparkSession, layout: Layout, tmp_path: Path
) -> None:
    small = make(tmp_path, "k int", [["1"], ["2"]])
    other = small.ours(spark).select(
        F.col("id").alias("oid"), "k", F.expr("date_add(DATE'2026-05-01', k)").alias("day")
    )
    query = layout.ours(spark).join(other.where("k = 1 AND oid = 0"), F.col("dt") == F.col("day")).select("id", "oid")
    assert query.count() == 9
    query.collect()
    assert sorted(read_by(query).files) == [1, 3]


def test_broadcast_is_chosen_by_the_size_that_is_left(spark: SparkSession, layout: Layout) -> None:
    one_file = max(path.stat().st_size for path in layout.root.rglob("*.parquet"))
    settings = {"spark__sql__autoBroadcastJoinThreshold": str(3 * one_file), "spark__sql__adaptive__enabled": "false"}
    with conf(spark, **settings):
        left = layout.ours(spark).select("id", "tag")
        pruned = layout.ours(spark).where("dt = '2026-05-01' AND app = 'a'").select(F.col("id").alias("i"), "x")
        whole = layout.ours(spark).select(F.col("id").alias("i"), "x")
        query = left.join(pruned, F.col("id") == F.col("i"))
        assert len(query.collect()) == ROWS
        assert (read_by(query).broadcasts, read_by(query).sort_merges) == (1, 0)
        query = left.join(whole, F.col("id") == F.col("i"))
        assert len(query.collect()) == layout.files * ROWS
        assert (read_by(query).broadcasts, read_by(query).sort_merges) == (0, 1)


def test_two_filters_on_one_dataframe_stay_apart(spark: SparkSession, layout: Layout) -> None:
    df = layout.ours(spark)
    one, two = df.where("app = 'a'"), df.where("app = 'b'")
    assert answer(one.union(two).select("app").distinct()) == [str(["'a'"]), str(["'b'"])]
    assert one.join(two, "dt").count() == 10 * ROWS * ROWS
    assert one.alias("l").join(two.alias("r"), F.col("l.id") == F.col("r.id")).count() == 0
    assert one.alias("l").join(one.alias("r"), F.col("l.id") == F.col("r.id")).count() == 10 * ROWS
    assert one.intersect(two.select(one.columns)).count() == 0 if "m" not in one.columns else True
    counted = one.groupBy("dt").count().join(two.groupBy("dt").count().withColumnRenamed("count", "c2"), "dt")
    assert {(row["count"], row.c2) for row in counted.collect()} == {(ROWS, ROWS)}


def test_text_that_looks_like_another_filter_stays_apart(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p string", [["a"], ["b"], ["a, b"], ["5"]])
    df = layout.ours(spark)
    queries = ["p IN ('a', 'b')", "p IN ('a, b')", "p = '5'", "p = '5' OR p = 'a'", "p = 'a'"]
    parts = [df.where(text).groupBy("p").count() for text in queries]
    union = parts[0].union(parts[1]).union(parts[2]).union(parts[3]).union(parts[4])
    assert sorted(row.p for row in union.collect()) == sorted(["a", "b", "a, b", "5", "5", "a", "a"])


def test_exchange_is_reused_for_equal_filters_and_never_for_others(spark: SparkSession, layout: Layout) -> None:
    def counts(text: str) -> DataFrame:
        return layout.ours(spark).where(text).groupBy("app").count()

    same = counts("dt = '2026-05-01'").union(counts("dt = '2026-05-01'"))
    assert len(same.collect()) == 6
    assert read_by(same).reused == 1
    other = counts("dt = '2026-05-01'").union(counts("dt = '2026-05-02'"))
    assert len(other.collect()) == 6
    assert (read_by(other).reused, read_by(other).files) == (0, (3, 3))
    swapped = counts("dt = '2026-05-01' AND app = 'a'").union(counts("app = 'a' AND dt = '2026-05-01'"))
    assert len(swapped.collect()) == 2
    assert read_by(swapped).reused == 1


def test_cached_table_answers_every_filter(spark: SparkSession, layout: Layout) -> None:
    df = layout.ours(spark).cache()
    try:
        assert df.where("app = 'a'").count() == 10 * ROWS
        assert df.count() == layout.files * ROWS
        assert layout.ours(spark).where("app IS NULL").count() == 10 * ROWS  # an equal table: the cache answers
        part = layout.ours(spark).where("app = 'b'").cache()
        assert part.count() == 10 * ROWS
        assert layout.ours(spark).where("app = 'b' AND dt = '2026-05-01'").count() == ROWS
        part.unpersist(blocking=True)
    finally:
        df.unpersist(blocking=True)
    filtered = layout.ours(spark).where("app = 'b'").cache()
    try:
        assert filtered.count() == 10 * ROWS
        assert layout.ours(spark).where("app = 'a'").count() == 10 * ROWS
        assert layout.ours(spark).count() == layout.files * ROWS
        assert answer(filtered.where("dt = '2026-05-01'").select("app").distinct()) == [str(["'b'"])]
    finally:
        filtered.unpersist(blocking=True)


def test_checkpoint_keeps_its_rows(spark: SparkSession, layout: Layout) -> None:
    kept = layout.ours(spark).where("app = 'a'").localCheckpoint()
    assert (kept.count(), kept.where("dt = '2026-05-01'").count()) == (10 * ROWS, ROWS)
    assert layout.ours(spark).where("app = 'b'").count() == 10 * ROWS


def test_executed_dataframe_takes_more_filters(spark: SparkSession, layout: Layout) -> None:
    df = layout.ours(spark).where("app = 'a'")
    assert len(df.collect()) == 10 * ROWS
    for day in DAYS[:3]:
        assert df.where(f"dt = '{day}'").count() == ROWS
    assert len(df.collect()) == 10 * ROWS


def test_saved_results_hold_the_rows(spark: SparkSession, layout: Layout, tmp_path: Path) -> None:
    layout.ours(spark).where("app = 'a'").write.partitionBy("dt").parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 10 * ROWS


def test_eight_threads_ask_at_once(spark: SparkSession, layout: Layout) -> None:
    df = layout.ours(spark)

    def ask(i: int) -> tuple[int, int]:
        day = DAYS[i % 10]
        rows = df.where(f"dt = '{day}'").groupBy("dt", "app").count().collect()
        assert {str(row.dt) for row in rows} == {day}
        fresh = layout.ours(spark).where(f"dt = '{day}' AND app = 'b'").count()
        return sum(row["count"] for row in rows), fresh

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(32))) == {(3 * ROWS, ROWS)}


def test_stream_joined_with_the_table(spark: SparkSession, layout: Layout, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    spark.range(20).write.mode("append").parquet(str(tmp_path / "in"))
    found: list[int] = []

    def keep(batch: DataFrame, _: int) -> None:
        found.extend(row.id for row in batch.collect())

    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    joined = stream.join(layout.ours(spark).where("app = 'a' AND dt = '2026-05-01'").select("id"), "id")
    query = joined.writeStream.foreachBatch(keep).trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert sorted(found) == [0, 1, 2]
