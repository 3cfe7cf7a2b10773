"""Filters from wherever a query may have them: the rows of plain Spark, from the files that match, asked for once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from tests.spark.hive_layouts import ROWS, Layout, answer, compare, counted_calls, make, read_by

pytestmark = [pytest.mark.spark, pytest.mark.compiled]
slow = pytest.mark.slow
DAYS = ["2026-05-15", "2026-05-16", "2026-05-17", None]
APPS = ["shop", "x y", "US/CA", "5", None]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Twenty files, for four days and five apps."""
    return make(tmp_path_factory.mktemp("queries"), "dt date, app string", [[d, a] for d in DAYS for a in APPS])


@pytest.fixture(autouse=True)
def _utc(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def sql(text: str) -> Callable[[DataFrame], DataFrame]:
    """A query over the view `t`."""

    def run(df: DataFrame) -> DataFrame:
        df.createOrReplaceTempView("t")
        return df.sparkSession.sql(text)

    return run


def where(text: str) -> Callable[[DataFrame], DataFrame]:
    """A filter; `_metadata` is not to be had through a view, in plain Spark either."""
    return lambda df: df.where(text)


def chain(df: DataFrame) -> DataFrame:
    """Views on views, with renamed columns and the filter on top."""
    df.createOrReplaceTempView("t")
    df.sparkSession.sql("CREATE OR REPLACE TEMP VIEW v1 AS SELECT dt AS day, upper(app) AS u, id FROM t")
    df.sparkSession.sql("CREATE OR REPLACE TEMP VIEW v2 AS SELECT day AS d2, u, id FROM v1 WHERE u <> '5'")
    return df.sparkSession.sql("SELECT * FROM v2 WHERE D2 = '2026-05-16' AND U = 'SHOP'")


is_shop = F.udf(lambda app: app == "shop", BooleanType(), useArrow=False)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        (sql("SELECT * FROM t WHERE dt = '2026-05-16' AND app = 'shop'"), 1),
        (sql("SELECT count(*), max(x), app FROM t WHERE DT = '2026-05-16' GROUP BY app"), 5),
        pytest.param(sql("SELECT * FROM (SELECT * FROM t WHERE app = 'shop') WHERE dt > '2026-05-15'"), 2, marks=slow),
        pytest.param(sql("WITH c AS (SELECT * FROM t) SELECT id FROM c WHERE app = 'x y'"), 4, marks=slow),
        (sql("SELECT * FROM t WHERE (app = 'shop' AND id = 0) OR (app = '5' AND id > 9)"), 8),
        (sql("SELECT * FROM t WHERE app = 'shop' OR id = 3"), 20),
        pytest.param(sql("SELECT * FROM t WHERE app = 'shop' AND st.a = 0"), 4, marks=slow),
        (sql("SELECT * FROM t WHERE app = 'shop' AND m['k'] = 'v0'"), 4),
        pytest.param(sql("SELECT * FROM t WHERE app = 'shop' AND element_at(m, 'k') IS NULL"), 4, marks=slow),
        pytest.param(sql("SELECT * FROM t WHERE app = 'shop' AND map_contains_key(m, 'k')"), 4, marks=slow),
        (sql("SELECT * FROM t WHERE app = 'shop' AND arr = array(1, 2) AND arr[0] = 1"), 4),
        (where("_metadata.file_path LIKE '%app=shop%'"), 4),
        (where("_metadata.file_path LIKE '%app=shop%' AND dt IS NULL"), 1),
        pytest.param(where("_metadata.file_size < 10"), 0, marks=slow),
        (where("_metadata.file_modification_time < TIMESTAMP'2001-01-01'"), 0),
        pytest.param(where("_metadata.file_modification_time > TIMESTAMP'2001-01-01' AND app = '5'"), 4, marks=slow),
        pytest.param(where("_metadata.file_name = 'nothing.parquet'"), 0, marks=slow),
        (lambda df: df.select("id", "_metadata").where("_metadata.file_path LIKE '%US%252FCA%' AND dt IS NULL"), 1),
        pytest.param(sql("SELECT * FROM t WHERE app = 'shop' AND id > (SELECT 1)"), 4, marks=slow),
        (sql("SELECT * FROM t WHERE rand() < 2 AND app = 'shop'"), 4),
        (sql("SELECT * FROM t WHERE false"), None),
        pytest.param(sql("SELECT * FROM t WHERE app = NULL"), None, marks=slow),
        pytest.param(sql("SELECT DISTINCT app FROM t WHERE dt IS NULL"), 5, marks=slow),
        (sql("SELECT * FROM t WHERE dt = '2026-05-16' UNION ALL SELECT * FROM t WHERE app = 'shop'"), 9),
        pytest.param(
            sql("SELECT app, count(*) FROM t WHERE dt IS NOT NULL GROUP BY app HAVING app = 'shop'"),
            3,
            marks=slow,
        ),
        pytest.param(
            sql("SELECT id, row_number() OVER (PARTITION BY app ORDER BY id) n FROM t WHERE app = '5'"),
            4,
            marks=slow,
        ),
        (sql("SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY app ORDER BY id) n FROM t) WHERE app = '5'"), 4),
        pytest.param(
            sql("SELECT dt, e FROM t LATERAL VIEW explode(arr) AS e WHERE app = '5' AND e = 1"),
            4,
            marks=slow,
        ),
        (sql("SELECT app, CASE WHEN app = 'shop' THEN 1 END c FROM t WHERE dt = current_date() - 100000"), 0),
        (chain, 1),
        pytest.param(lambda df: df.filter(F.col("app").isin("shop", "5")), 8, marks=slow),
        pytest.param(lambda df: df.filter(F.col("app").isin([f"a{i}" for i in range(49)] + ["5"])), 4, marks=slow),
        (lambda df: df.filter(~F.col("app").isin([f"a{i}" for i in range(999)] + ["5"])), 12),
        pytest.param(lambda df: df.filter(F.col("app").startswith("s") & F.col("dt").isNull()), 1, marks=slow),
        pytest.param(lambda df: df.filter(is_shop("app")), 20, marks=slow),
        (lambda df: df.filter(is_shop("app") & (F.col("dt") == "2026-05-16")), 5),
        (lambda df: df.withColumn("y", F.year("dt")).where("y = 2026 AND app = '5'").drop("y"), 3),
        pytest.param(lambda df: df.withColumnRenamed("app", "x2").where("x2 = '5'"), 4, marks=slow),
        pytest.param(lambda df: df.select("id").where("app = '5'"), 4, marks=slow),
        (lambda df: df.repartition(2, "app").where("app = '5'"), 4),
        pytest.param(lambda df: df.sample(1.0, seed=1).where("app = '5'"), None, marks=slow),
        pytest.param(
            lambda df: df.where("app = '5'").groupBy().agg(F.count("*"), F.countDistinct("dt")),
            4,
            marks=slow,
        ),
        (lambda df: df.orderBy("id").limit(4).where("app = '5'"), None),
    ],
)
def test_query_reads_the_files_that_match(
    spark: SparkSession, layout: Layout, query: Callable[[DataFrame], DataFrame], files: int | None
) -> None:
    found = compare(spark, layout, query)
    assert files is None or found.read.total == files
    assert found.calls <= max(found.read.scans, 1)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("SELECT * FROM t WHERE app IN (SELECT a FROM dim WHERE k = 1)", None),
        pytest.param("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM dim WHERE a = app AND k = 1)", None, marks=slow),
        ("SELECT * FROM t WHERE app NOT IN (SELECT a FROM dim WHERE k = 1)", None),
        pytest.param("SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM dim WHERE a = app)", None, marks=slow),
        ("SELECT * FROM t WHERE app = (SELECT max(a) FROM dim)", 4),
        pytest.param("SELECT * FROM t WHERE app > (SELECT max(a) FROM dim WHERE k = 7)", 0, marks=slow),
        ("SELECT id, k FROM t JOIN dim ON a = app WHERE k = 1", None),
        pytest.param("SELECT id, k FROM t JOIN dim ON a = app AND dt = '2026-05-16'", None, marks=slow),
        ("SELECT id, k FROM t LEFT JOIN dim ON a = app WHERE dt = '2026-05-16'", 5),
        ("SELECT id, k FROM dim LEFT JOIN t ON a = app AND dt = '2026-05-16'", 4),
        ("SELECT id, k FROM t FULL JOIN dim ON a = app WHERE dt = '2026-05-16'", None),
        ("SELECT t.id, u.id FROM t JOIN t u ON t.id = u.id WHERE t.app = 'shop' AND u.dt = '2026-05-16'", 9),
        pytest.param(
            "SELECT (SELECT sum(id) FROM t WHERE app = 'shop'), (SELECT sum(id) FROM t WHERE app = '5')", 8, marks=slow
        ),
        ("SELECT (SELECT sum(id) FROM t WHERE app = '5'), (SELECT max(id) FROM t WHERE app = '5')", None),
        (
            "WITH c AS (SELECT *, rand(1) < 2 r FROM t) SELECT a.id FROM c a JOIN c b ON a.id = b.id"
            " WHERE a.app = 'shop' AND b.dt = '2026-05-16'",
            None,
        ),
        ("SELECT * FROM t WHERE app = 'shop' AND id IN (SELECT id FROM t WHERE dt = '2026-05-16')", 9),
        pytest.param("SELECT app, (SELECT max(a) FROM dim WHERE a = t.app) m FROM t WHERE dt IS NULL", 5, marks=slow),
        pytest.param(
            "SELECT * FROM t WHERE dt = '2026-05-16' EXCEPT SELECT * FROM t WHERE dt = '2026-05-17'", None, marks=slow
        ),
        ("SELECT app FROM t WHERE dt = '2026-05-16' INTERSECT SELECT app FROM t WHERE dt = '2026-05-17'", 10),
    ],
)
def test_filter_of_a_subquery_or_join_reads_the_files_that_match(
    spark: SparkSession, layout: Layout, text: str, files: int | None
) -> None:
    # Spark 4.0 does not prune by a table of constants; that joins prune at run time is shown with files elsewhere.
    dim = "VALUES ('shop', 1), ('5', 2), ('none', 3) AS dim(a, k)"
    spark.sql(f"SELECT * FROM {dim}").createOrReplaceTempView("dim")
    plain = layout.plain(spark)
    if "arr" in plain.columns and ("EXCEPT" in text or "INTERSECT" in text):
        text = text.replace("SELECT *", "SELECT id, dt, app")  # maps cannot be compared
    found = compare(spark, layout, sql(text))
    assert files is None or found.read.total == files
    assert found.calls <= max(found.read.scans, 1) + 1


def test_same_view_with_other_literals_gives_other_rows(spark: SparkSession, layout: Layout) -> None:
    layout.ours(spark).createOrReplaceTempView("again")
    for app in ["shop", "5", "shop", "x y", "US/CA", "none"]:
        found = spark.sql(f"SELECT DISTINCT app FROM again WHERE app = '{app}'")
        assert [row.app for row in found.collect()] == ([app] if app != "none" else [])
        assert read_by(found).total == (4 if app != "none" else 0)
        named = spark.sql("SELECT DISTINCT app FROM again WHERE app = :app", args={"app": app})
        assert [row.app for row in named.collect()] == ([app] if app != "none" else [])


def test_column_of_the_file_that_is_also_a_partition_is_the_paths(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import penstock

    for app in ("a", "b"):
        (tmp_path / f"app={app}").mkdir()
        pq.write_table(pa.table({"id": [1, 2], "app": [7, 8]}), tmp_path / f"app={app}" / "f.parquet")
    df = penstock.hive(tmp_path, "app string").dataframe(spark)
    assert sorted(map(tuple, df.where("app = 'a'").collect())) == [(1, "a"), (2, "a")]


def test_partition_called_like_a_field_of_metadata_is_not_taken_for_it(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "file_name string, file_size int", [["a", "1"], ["part%200.parquet", "2"], [None, None]])
    for text, files in {
        "_metadata.file_name = 'part%200.parquet'": 3,
        "file_name = 'part%200.parquet'": 1,
        "_metadata.file_size > 2": 3,
        "file_size > 1": 1,
        "_metadata.file_size > 2 AND file_size = 1": 1,
    }.items():
        found = compare(spark, layout, lambda df, text=text: df.where(text))  # type: ignore[misc]
        assert (text, found.read.total) == (text, files)


def test_condition_of_many_arms_made_by_the_dataframe_api(spark: SparkSession, layout: Layout) -> None:
    condition = F.col("app") == "5"
    for i in range(120):
        condition = condition | (F.col("app") == f"none{i}")
    assert compare(spark, layout, lambda df: df.where(condition)).read.total == 4


def test_legacy_arithmetic_and_casts_lose_no_row(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p int, s string", [["2147483647", "abc"], ["1", "5"], ["-2147483648", "6"], [None, None]])
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for text in ["p + 1 < 0", "-p < 0", "abs(p) < 0", "CAST(s AS INT) IS NULL", "s = 5", "NOT (s > 5)", "s <> 5"]:
            compare(spark, layout, lambda df, text=text: df.where(text))  # type: ignore[misc]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_filter_that_spark_rewrites_for_the_scan_is_asked_again(spark: SparkSession, layout: Layout) -> None:
    found = compare(spark, layout, where("app = 'shop' AND st = named_struct('a', 0, 'b', 'u')"))
    assert (found.read.total, found.rows) == (4, 1)
    rows = compare(spark, layout, where("_metadata.row_index = 1 AND app = '5'"))
    assert (rows.read.total, rows.rows) == (4, 4)
    assert found.calls in (1, 2)  # Spark 4.3 takes an equality of structs apart after it has been planned


def test_case_sensitive_session(spark: SparkSession, layout: Layout) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert compare(spark, layout, lambda df: df.where("app = '5' AND dt IS NULL")).read.total == 1
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_one_question_for_each_scan(spark: SparkSession, layout: Layout) -> None:
    query = layout.ours(spark).where("app = '5' AND id > 3").groupBy("dt").count()
    with counted_calls() as calls:
        query.collect()
    assert len(calls) == 1
    with counted_calls() as calls:
        assert layout.ours(spark).where("(app = '5' AND id > 3) OR (app = 'shop' AND id < 1)").count() > 0
    assert len(calls) == 1


def test_counts_of_all_rows_and_of_none(spark: SparkSession, layout: Layout) -> None:
    df = layout.ours(spark)
    assert df.count() == layout.files * ROWS
    assert df.where("app = 'none'").count() == 0
    assert df.where("app = 'none'").isEmpty()
    assert answer(df.where("app IS NULL").select("app").distinct()) == [str(["None"])]
