"""One Spark for all tests of this folder: a single core, ANSI mode, no web interface.

It interprets expressions: code for so few rows takes longer to compile than to run. Modules that are marked `compiled`,
the fuzzer and `make test-slow` have it compiled, as users do.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from tests.fixtures.spark_settings import COMPILED, INTERPRETED, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.sql_session import Sql

_names = itertools.count(1)
collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session for the whole run; tests set its time zone themselves."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    evaluated = COMPILED if os.environ.get("PENSTOCK_TESTS_COMPILED") else INTERPRETED
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config(map=dict(evaluated))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def _active_session() -> None:
    """Texts of plans and literals follow the active session: the shared one, not one that another file has made."""
    from pyspark.sql import SparkSession

    shared = SparkSession._instantiatedSession
    if shared is not None and shared._sc._jsc is not None:
        jvm: Any = shared._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(shared._jsparkSession)


@pytest.fixture(scope="module", autouse=True)
def _compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Generated code for the modules that are marked."""
    if request.node.get_closest_marker("compiled") is None:
        yield
        return
    with settings(request.getfixturevalue("spark"), COMPILED):
        yield


@pytest.fixture
def utc(spark: SparkSession) -> None:
    """The session's zone, whatever a test before has left."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")


# A lake of its own for a module of SQL tests, which calls its catalog `CATALOG`


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    """An empty lake."""
    return penstock.connect(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def session(spark: SparkSession, lake: penstock.Lake, request: pytest.FixtureRequest) -> SparkSession:
    """A session whose current catalog is the lake, under the module's name for it, `CATALOG`."""
    catalog = request.module.CATALOG
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "UTC")
    penstock.attach(other, lake, catalog)
    other.sql(f"USE {catalog}")
    other.sql("CREATE NAMESPACE web")
    other.sql(f"USE {catalog}.web")
    return other


@pytest.fixture
def sql(session: SparkSession) -> Sql:
    """Execute a statement; its rows."""
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t{next(_names)}"


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 files, one for each day and app; rows are (id, dt, app)."""
    place = tmp_path_factory.mktemp("layout")
    for day, app in itertools.product(range(1, 5), "abcd"):
        folder = place / f"dt=2026-01-{day:02}" / f"app={app}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([day * 10 + "abcd".index(app)], pa.int64())}), folder / "f.parquet")
    return place
