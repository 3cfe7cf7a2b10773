"""Private names of PySpark that the native scan needs; docs/private-apis.md lists them."""

from __future__ import annotations

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource

from penstock.spark.session.session import register


def test_the_session_in_the_jvm_is_reached_from_python(spark: SparkSession) -> None:
    frame = spark.range(3)
    assert spark._jsparkSession.sessionState().newHadoopConf() is not None
    assert spark._jvm.java.lang.Math.abs(-1) == 1  # type: ignore[union-attr]
    assert spark._sc is spark.sparkContext  # type: ignore[attr-defined]
    assert spark.sparkContext._jsc.sc().statusTracker() is not None  # type: ignore[attr-defined]
    assert spark.sparkContext._gateway is SparkContext._gateway
    assert "Range" in frame._jdf.queryExecution().optimizedPlan().toString()  # type: ignore[attr-defined]
    assert F.col("id")._jc.toString() == "id"  # type: ignore[attr-defined]


def test_the_process_is_started_and_its_home_found_by_the_same_functions() -> None:
    assert callable(SparkContext._ensure_initialized)
    assert _find_spark_home()


def test_data_sources_are_registered_where_spark_keeps_them(spark: SparkSession) -> None:
    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "Kept_By_Spark"

        def schema(self) -> str:
            return "id int"

    register(spark, Source)
    assert spark.read.format("kept_by_spark").load().columns == ["id"]
    assert spark.newSession().range(1).count() == 1
