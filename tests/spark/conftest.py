"""One Spark for all tests of this folder: a single core, ANSI mode, no web interface."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session for the whole run; tests set its time zone themselves."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
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


@pytest.fixture
def utc(spark: SparkSession) -> None:
    """The session's zone, whatever a test before has left."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
