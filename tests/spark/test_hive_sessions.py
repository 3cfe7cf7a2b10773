"""Sessions, errors and what a query leaves behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.errors import LayoutError, LimitError, MissingError, PenstockError, StorageError
from tests.fixtures.hive_writer import write_hive
from tests.s3.server import running
from tests.spark.hive_layouts import ROWS, Layout, answer, counted_calls, make, read_by, rows

pytestmark = pytest.mark.spark


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Six files."""
    return make(
        tmp_path / "table", "dt date, app string", [[d, a] for d in ("2026-05-16", "2026-05-17") for a in "abc"]
    )


# These grow with every query in plain Spark as well, to 1,024 threads that end after a minute of rest.
SPARKS_POOLS = ("shuffle-exchange", "ResultQueryStageExecution", "block-manager-", "broadcast-exchange", "subquery")


def rules(spark: SparkSession) -> int:
    """How many times the rule is in a session's optimizer."""
    session: Any = spark._jsparkSession
    found = session.extensions().buildPreCBORules(session)
    return sum(found.apply(i).getClass().getName() == "io.penstock.PlanEarly" for i in range(found.size()))


def test_attach_is_idempotent_and_sessions_share_it(spark: SparkSession, layout: Layout) -> None:
    for _ in range(3):
        assert penstock.attach(spark) is spark
    other = spark.newSession()
    assert layout.ours(other).where("app = 'a'").count() == 2 * ROWS
    penstock.attach(other)
    assert (rules(spark), rules(other)) == (1, 1)
    query = layout.ours(other).where("app = 'a'")
    query.collect()
    assert read_by(query).files == (2,)
    layout.ours(other).createOrReplaceTempView("of_other")
    assert other.sql("SELECT count(*) c FROM of_other WHERE app = 'b'").first().c == 2 * ROWS  # type: ignore[union-attr]


def test_explain_shows_penstock_and_the_counts(
    spark: SparkSession, layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    # How long a text may be is asked of the session that was used last, which may be another test's.
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    query = layout.ours(spark).where("dt = '2026-05-16' AND app = 'a'")
    for mode in ("simple", "extended", "formatted", "cost"):
        query.explain(mode=mode)
        shown = capsys.readouterr().out
        assert "Penstock" in shown
        assert "1 of 1 files" in shown or "1 of 6 files" in shown, shown


UNTYPABLE: list[Callable[[DataFrame, Path], Any]] = [
    lambda df, _: df.count(),
    lambda df, _: df.collect(),
    lambda df, _: df.show(),
    lambda df, _: df.first(),
    lambda df, _: df.isEmpty(),
    lambda df, _: df.toArrow(),
    lambda df, _: list(df.toLocalIterator()),
    lambda df, _: df.groupBy("app").count().collect(),
    lambda df, _: df.join(df.select("id"), "id").count(),
    lambda df, _: df.foreach(print),
    lambda df, _: df.rdd.count(),
    lambda df, _: df.cache().count(),
    lambda df, _: df.sparkSession.sql("SELECT app, count(*) FROM broken GROUP BY app ORDER BY 1").collect(),
    lambda df, _: df.sparkSession.sql("SELECT * FROM broken WHERE id IN (SELECT max(id) FROM broken)").collect(),
    lambda df, path: df.write.parquet(str(path / "out")),
    lambda df, path: df.groupBy("app").count().write.json(str(path / "out")),
]


@pytest.mark.parametrize("action", UNTYPABLE)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_directory_that_cannot_be_typed_is_penstocks_error_whatever_the_action(
    spark: SparkSession, layout: Layout, tmp_path: Path, action: Callable[[DataFrame, Path], Any], adaptive: str
) -> None:
    layout.add_in(layout.root / "dt=2026-13-01" / "app=a")
    df = layout.ours(spark)
    df.createOrReplaceTempView("broken")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        with pytest.raises(LayoutError, match="2026-13-01") as raised:
            action(df, tmp_path)
        assert raised.value.hint is not None
        assert "java" not in str(raised.value)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        df.unpersist()
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_directory_that_cannot_be_typed_is_no_matter_to_a_query_that_excludes_it(
    spark: SparkSession, layout: Layout
) -> None:
    layout.add_in(layout.root / "dt=2026-13-01" / "app=z")
    assert layout.ours(spark).where("app = 'a'").count() == 2 * ROWS


def test_limit_is_no_matter_to_a_filter_that_comes_late(spark: SparkSession, tmp_path: Path) -> None:
    layout = make(tmp_path, "p int", [[str(i)] for i in range(8)])
    table = penstock.hive(tmp_path, "p int", layout.table.file_schema, max_partitions=5)
    with pytest.raises(LimitError, match="8 partitions"):
        table.dataframe(spark).count()
    assert table.dataframe(spark).where("p < 3").count() == 3 * ROWS
    assert layout.ours(spark).count() == 8 * ROWS  # the same table with other limits


def test_errors_of_the_storage_and_of_spark_keep_their_types(
    spark: SparkSession, layout: Layout, tmp_path: Path
) -> None:
    from pyspark.errors import AnalysisException

    df = layout.ours(spark)
    with pytest.raises(AnalysisException):
        df.where("nonsense = 1")
    layout.root.rename(tmp_path / "away")
    with pytest.raises(StorageError, match="does not exist"):
        df.count()


def test_failed_query_works_when_the_cause_is_gone(spark: SparkSession, layout: Layout) -> None:
    bad = layout.add_in(layout.root / "dt=2026-13-01" / "app=a")
    df = layout.ours(spark)
    with pytest.raises(LayoutError):
        df.count()
    bad.unlink()
    assert df.count() == 6 * ROWS


def test_writing_into_the_table_fails_and_changes_nothing(spark: SparkSession, layout: Layout) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    before = sorted((path, path.stat().st_mtime_ns) for path in layout.root.rglob("*"))
    df = layout.ours(spark)
    df.createOrReplaceTempView("target")
    attempts: list[Callable[[], Any]] = [
        lambda: spark.sql("INSERT INTO target SELECT * FROM target"),
        lambda: spark.sql("INSERT OVERWRITE target SELECT * FROM target WHERE app = 'a'"),
        lambda: df.write.insertInto("target"),
        lambda: df.write.mode("overwrite").insertInto("target"),
        lambda: df.writeTo("target").append(),
        lambda: spark.sql("DELETE FROM target WHERE app = 'a'"),
        lambda: spark.sql("UPDATE target SET x = 1"),
        lambda: spark.sql("TRUNCATE TABLE target"),
    ]
    for attempt in attempts:
        with pytest.raises((PySparkException, Py4JJavaError)):
            attempt()
    assert sorted((path, path.stat().st_mtime_ns) for path in layout.root.rglob("*")) == before
    assert df.count() == 6 * ROWS


def test_new_files_are_seen_by_a_new_query_and_not_by_one_that_has_been_planned(
    spark: SparkSession, layout: Layout
) -> None:
    df = layout.ours(spark)
    planned = df.where("app = 'a'")
    assert (df.count(), len(planned.collect())) == (6 * ROWS, 2 * ROWS)
    layout.add("2026-05-18", "a")
    assert df.count() == 7 * ROWS  # a count is a new query
    assert df.where("app = 'a'").count() == 3 * ROWS
    assert len(planned.collect()) == 2 * ROWS  # Spark keeps the plan of a DataFrame that has been collected
    assert len(planned.select("*").collect()) == 3 * ROWS


def test_file_that_vanished_after_planning_is_an_error_that_names_it(spark: SparkSession, layout: Layout) -> None:
    planned = layout.ours(spark).where("app = 'a'")
    assert len(planned.collect()) == 2 * ROWS
    next(layout.root.rglob("app=a/*.parquet")).unlink()
    with pytest.raises(MissingError, match=r"app=a/.*\.parquet does not exist"):
        planned.collect()
    assert layout.ours(spark).where("app = 'a'").count() == ROWS


def test_file_that_is_no_parquet_is_a_clear_error(spark: SparkSession, layout: Layout) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    (layout.root / "dt=2026-05-16" / "app=a" / "broken.parquet").write_bytes(b"this is no parquet file at all")
    with pytest.raises(LayoutError, match=r"broken\.parquet is not a Parquet file"):  # it has a map: footers are read
        layout.ours(spark).where("app = 'a'").collect()
    plain = replace(layout.table, shredded=False)
    with pytest.raises((PySparkException, Py4JJavaError), match=r"broken\.parquet"):
        plain.dataframe(spark).where("app = 'a'").collect()
    assert layout.ours(spark).where("app = 'b'").count() == 2 * ROWS


def test_files_with_fewer_and_more_columns_are_read_by_name(spark: SparkSession, layout: Layout) -> None:
    import pyarrow.parquet as pq

    table = rows(99)
    folder = layout.root / "dt=2026-05-16" / "app=a"
    pq.write_table(
        table.drop_columns(["m", "x"]).append_column("new", pa.array(["n"] * ROWS)), folder / "other.parquet"
    )
    found = layout.ours(spark).where("app = 'a' AND dt = '2026-05-16'")
    assert answer(found.select("id", "x", "m")) == answer(
        layout.plain(spark).where("app = 'a' AND dt = '2026-05-16'").select("id", "x", "m")
    )


@pytest.mark.parametrize("queries", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_shuffled_queries_leave_threads_and_sockets_where_they_were(
    spark: SparkSession, layout: Layout, queries: int
) -> None:
    df = layout.ours(spark)

    def run(times: int) -> None:
        for i in range(times):
            app = "abc"[i % 3]
            assert len(df.where(f"app = '{app}'").groupBy("dt").count().collect()) == 2

    def census() -> tuple[int, int, int]:
        threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()  # type: ignore[union-attr]
        names = [thread.getName() for thread in threads]
        links = (os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_link(name))
        sockets = sum(link.startswith("socket:") for link in links)
        return sum(not name.startswith(SPARKS_POOLS) for name in names), threading.active_count(), sockets

    run(10)
    before = census()
    run(queries)
    after = census()
    grown = tuple(b - a for a, b in zip(before, after, strict=True))
    assert all(number <= 3 for number in grown), f"threads of the JVM and of Python, sockets: {before} -> {after}"


def _is_link(name: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{name}")


def test_same_error_twice_is_two_clean_errors(spark: SparkSession, layout: Layout) -> None:
    layout.add_in(layout.root / "dt=nonsense" / "app=a")
    for _ in range(2):
        with pytest.raises(PenstockError) as raised:
            layout.ours(spark).count()
        assert raised.value.__cause__ is None


def test_planning_happens_when_a_query_runs_and_not_before(spark: SparkSession, layout: Layout) -> None:
    with counted_calls() as calls:
        df = layout.ours(spark).where("app = 'a'").select("id")
        df.createOrReplaceTempView("lazy")
        spark.sql("SELECT * FROM lazy WHERE id > 3")
        assert calls == []
        df.collect()
        df.collect()
        assert len(calls) == 1


def test_s3_without_hadoop_aws_is_one_line_that_says_what_to_do(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server = running(request.config, tmp_path_factory.mktemp("s3"))
    url = server.url(write_hive(server.new_bucket() / "t", pa.table({"n": [1, 2], "app": ["a", "b"]}), ["app"]))
    for scheme in ("s3", "s3a"):
        table = penstock.hive(url.replace("s3://", f"{scheme}://"), "app string", "n bigint", storage=server.properties)
        with pytest.raises(PenstockError, match="hadoop-aws is not on its class path") as raised:
            table.dataframe(spark).collect()
        assert re.search(r"spark\.jars\.packages=org\.apache\.hadoop:hadoop-aws:3\.\d+\.\d+$", str(raised.value))
        assert "Exception" not in str(raised.value)


def run_python(code: str, *arguments: str, timeout: int = 240, **environment: str) -> str:
    """A process of its own, with this Python; its output, once it has succeeded."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_spark_stopped_and_started_again_in_one_process(layout: Layout) -> None:
    out = run_python(
        """
        import sys, penstock
        for i in range(2):
            spark = penstock.session(master="local[1]", **{"spark.sql.shuffle.partitions": "1"})
            table = penstock.hive(sys.argv[1], "dt date, app string")
            df = table.dataframe(spark)
            query = df.where("app = 'a'").groupBy("dt").count()
            print(sorted(row["count"] for row in query.collect()), "Penstock" in query._jdf.queryExecution().toString())
            spark.stop()
        """,
        str(layout.root),
    )
    assert out.splitlines() == ["[3, 3] True"] * 2
