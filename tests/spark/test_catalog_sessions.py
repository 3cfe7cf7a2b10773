"""A lake as a catalog in every session: new ones, other threads, streams, two lakes, JDBC clients."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError, PenstockError
from penstock.spark.catalog.thrift_server import start_thrift_server
from penstock.spark.session.java_classes import java_class
from penstock.spark.session.session import gateway_of
from tests.fixtures.variants import variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
APPS = [f"app-{i}" for i in range(10)]
ONE = "SELECT count(*) FROM first.web.events WHERE app = 'app-3'"


def events(place: Path, rows: int) -> Any:
    """A lake with a table of ten partitions, each in a file of its own."""
    lake = penstock.connect(place)
    table = lake.create_table("web.events", "app string, n bigint", ["app"])
    table.append(pa.table({"app": [APPS[i % 10] for i in range(rows)], "n": pa.array(range(rows), pa.int64())}))
    return lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return events(tmp_path_factory.mktemp("first"), 100)


@pytest.fixture(scope="module")
def attached(spark: SparkSession, lake: Any) -> SparkSession:
    return penstock.attach(spark, lake, "first")


def files_read(rows: Any) -> set[str]:
    """What the scans of a query say they read, as `EXPLAIN` shows it."""
    rows.collect()
    return set(re.findall(r"penstock:/(\d+ of \d+ files)", rows._jdf.queryExecution().executedPlan().toString()))


def test_new_and_cloned_sessions_and_threads_know_the_lake(attached: SparkSession) -> None:
    assert attached.sql(ONE).first()[0] == 10
    assert attached.newSession().sql(ONE).first()[0] == 10
    assert attached._jsparkSession.cloneSession().sql(ONE).first().get(0) == 10
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: attached.newSession().sql(ONE).first()[0]).result() == 10


@pytest.mark.parametrize("threads", variants([20, 100], every_run=1))
def test_many_threads_ask_at_once(attached: SparkSession, threads: int) -> None:
    def ask(i: int) -> tuple[int, set[str]]:
        rows = attached.sql(f"SELECT count(*) FROM first.web.events WHERE app = 'app-{i % 10}' AND n >= {i // 10}")
        return rows.first()[0], files_read(rows)

    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(ask, range(threads)))
    assert answers == [(10 if i // 10 <= i % 10 else 9, {"1 of 10 files"}) for i in range(threads)]


def test_two_lakes_with_the_same_tables_are_two_catalogs(attached: SparkSession, tmp_path: Path) -> None:
    penstock.attach(attached, events(tmp_path / "second", 30), "second")
    both = "SELECT (SELECT count(*) FROM first.web.events), (SELECT count(*) FROM second.web.events)"
    assert tuple(attached.sql(both).first()) == (100, 30)
    joined = "SELECT count(*) FROM first.web.events a JOIN second.web.events b ON a.n = b.n WHERE a.app = 'app-1'"
    assert attached.sql(joined).first()[0] == 3


def test_a_name_means_one_lake_for_the_whole_application(attached: SparkSession, lake: Any, tmp_path: Path) -> None:
    other = penstock.connect(tmp_path / "other")
    with pytest.raises(LakeError, match=r"another catalog 'first' in this Spark application; attach the lake under"):
        penstock.attach(attached, other, "first")
    penstock.attach(attached, penstock.connect(lake.warehouse), "first")  # the same lake again
    with pytest.raises(LakeError, match=r"another catalog 'spark_catalog'|invalid catalog name"):
        penstock.attach(attached, other, "not a name")


def test_a_catalog_can_be_described_by_text(attached: SparkSession, lake: Any) -> None:
    attached.conf.set("spark.sql.catalog.by_text", "io.penstock.LakeCatalog")
    attached.conf.set("spark.sql.catalog.by_text.warehouse", str(lake.warehouse))
    assert attached.sql("SELECT count(*) FROM by_text.web.events").first()[0] == 100
    attached.conf.set("spark.sql.catalog.nowhere", "io.penstock.LakeCatalog")
    with pytest.raises(PenstockError, match=r"nothing says where the lake of catalog 'nowhere' is"):
        attached.sql("SELECT * FROM nowhere.web.events")
    attached.conf.set("spark.sql.catalog.wrong", "io.penstock.LakeCatalog")
    attached.conf.set("spark.sql.catalog.wrong.warehose", "x")
    with pytest.raises(PenstockError, match=r"spark\.sql\.catalog\.wrong\.warehose is no option"):
        attached.sql("SELECT * FROM wrong.web.events")


def test_lake_sql_leaves_the_current_catalog_as_it_was(attached: SparkSession, lake: Any) -> None:
    before = attached.catalog.currentCatalog(), attached.catalog.currentDatabase()
    assert lake.sql("SELECT count(*) FROM web.events", attached).first()[0] == 100
    with pytest.raises(LakeError, match=r"no table 'web.nope'.*there are: web.events"):
        lake.sql("SELECT count(*) FROM web.nope", attached)
    assert (attached.catalog.currentCatalog(), attached.catalog.currentDatabase()) == before


def test_a_query_reads_one_version_and_a_dataframe_keeps_its_own(attached: SparkSession, tmp_path: Path) -> None:
    lake = events(tmp_path / "versions", 10)
    penstock.attach(attached, lake, "versions")
    rows = attached.table("versions.web.events")
    lake.table("web.events").append(pa.table({"app": ["new"], "n": pa.array([99], pa.int64())}))
    assert rows.count() == 10
    assert attached.table("versions.web.events").count() == 11
    both = "SELECT (SELECT count(*) FROM versions.web.events), count(*) FROM versions.web.events"
    assert tuple(attached.sql(both).first()) == (11, 11)


def test_equal_scans_share_their_exchange(attached: SparkSession) -> None:
    counts = "SELECT app, count(*) AS c FROM first.web.events GROUP BY app"
    rows = attached.sql(f"SELECT a.app FROM ({counts}) a JOIN ({counts}) b ON a.app = b.app AND a.c = b.c")
    assert len(rows.collect()) == 10
    assert "ReusedExchange" in rows._jdf.queryExecution().executedPlan().toString()


def test_a_cached_table_is_found_and_follows_writes(attached: SparkSession, tmp_path: Path) -> None:
    penstock.attach(attached, events(tmp_path / "cached", 10), "cached")
    attached.sql("CACHE TABLE cached.web.events")
    rows = attached.sql("SELECT count(*) FROM cached.web.events")
    assert "InMemoryRelation" in rows._jdf.queryExecution().executedPlan().toString()
    attached.sql("INSERT INTO cached.web.events VALUES ('new', 1)")
    assert attached.sql("SELECT count(*) FROM cached.web.events").first()[0] == 11
    attached.sql("UNCACHE TABLE cached.web.events")


@pytest.mark.slow
def test_a_stream_and_a_query_share_a_session(attached: SparkSession, tmp_path: Path) -> None:
    penstock.attach(attached, events(tmp_path / "streams", 20), "streams")
    rows = attached.readStream.option("where", "app = 'app-1'").table("streams.web.events")
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query = writer.toTable("streams.web.copy")
    assert attached.sql("SELECT count(*) FROM streams.web.events").first()[0] == 20
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert [tuple(row) for row in attached.sql("SELECT DISTINCT app FROM streams.web.copy").collect()] == [("app-1",)]
    assert attached.sql("SELECT count(*) FROM streams.web.copy").first()[0] == 2


def test_a_plain_format_reads_the_same_rows(attached: SparkSession, lake: Any) -> None:
    reader = attached.read.format("penstock").option("warehouse", str(lake.warehouse)).option("table", "web.events")
    assert reader.load().count() == 100
    assert reader.option("where", "app = 'app-3'").load().count() == 10


def test_versions_that_no_plan_has_are_forgotten(attached: SparkSession) -> None:
    import gc
    import time

    from penstock.spark.catalog.open_tables import handles

    for _ in range(20):
        attached.sql(ONE).collect()
    jvm: Any = attached._jvm
    end = time.monotonic() + 60
    while len(handles) > 10 and time.monotonic() < end:
        gc.collect()
        jvm.System.gc()
        time.sleep(0.1)
    assert len(handles) <= 10


def test_two_clients_ask_over_jdbc_with_pruning(attached: SparkSession) -> None:
    hive = pytest.importorskip("pyhive.hive")
    attached.catalog.setCurrentCatalog("first")
    server = start_thrift_server(attached)
    attached.catalog.setCurrentCatalog("spark_catalog")
    answers: list[Any] = []

    def ask() -> None:
        connection = hive.connect("127.0.0.1", server.port, username="someone")
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM web.events WHERE app = 'app-3'")
        answers.append(cursor.fetchall())
        cursor.execute("EXPLAIN SELECT * FROM web.events WHERE app = 'app-3'")
        answers.append("1 of 10 files" in cursor.fetchall()[0][0])
        cursor.execute("SHOW TABLES IN web")
        answers.append([row[1] for row in cursor.fetchall()])
        cursor.close()
        connection.close()

    try:
        clients = [threading.Thread(target=ask) for _ in range(2)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(120)
    finally:
        server.stop()
        for name in ("spark.sql.defaultCatalog", "hive.server2.thrift.port"):
            attached.conf.unset(name)
    assert sorted(map(str, answers)) == sorted(map(str, [[(10,)], True, ["events"]] * 2))
    loader = java_class(gateway_of(attached), "Deleted").getClassLoader()
    assert loader.getResource("io/penstock/Deleted.class") is None  # Hive closed the loader: its classes stay
