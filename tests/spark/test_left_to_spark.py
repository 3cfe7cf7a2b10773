"""What Penstock does not know is kept and checked by Spark wherever Spark reads, and refused only where nobody could.

The table has two files; plain Spark reads the same rows from a file without statistics. A part that is known still
prunes beside one that is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import EvaluationError
from tests.fixtures.variants import variants
from tests.spark.hive_layouts import read_by

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "n": pa.array([1, 2], pa.int32()),
        "x": [1.0, 20.5],
        "s": ["ab", "Çd"],
        "t": pa.array([0, 10**15], pa.timestamp("us", "UTC")),
    }
)
# Each is true for the second row only, and needs Spark; with the name that an error must say.
TEXTS = {
    "s RLIKE '^[^a]'": "rlike()",
    "ln(x) > 1": "ln()",
    "log(2, x) > 1": "log()",
    "round(x, 0) = 21": "round()",
    "overlay(s PLACING 'x' FROM 1 FOR 1) = 'xd'": "overlay()",
    "timestampadd(HOUR, 1, t) > TIMESTAMP '2000-01-01 00:00:00'": "TIMESTAMPADD(HOUR, 1, t)",
    "datediff(DAY, TIMESTAMP '1970-01-01 00:00:00', t) > 9": "DATEDIFF(DAY, ",
    "array_contains(array(2, 3), n)": "array()",
    "date_format(t, 'yyyy') = '2001'": "date_format()",
    "t - TIMESTAMP '1970-01-01 00:00:00' > INTERVAL '1 02:03' DAY TO MINUTE": "INTERVAL",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    lake = penstock.connect(tmp_path_factory.mktemp("lake"))
    table = lake.create_table("web.t", "n int, x double, s string, t timestamp")
    for i in range(2):
        table.append(ROWS.slice(i, 1))
    return lake


@pytest.mark.parametrize("text", variants(TEXTS, every_run=3))
def test_spark_checks_what_is_not_known(spark: SparkSession, utc: None, lake: Any, tmp_path: Path, text: str) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet", write_statistics=False)
    table = lake.table("web.t")
    for where, files in ((text, 2), (f"{text} AND n = 2", 1), (f"n = 1 AND {text}", 1)):
        plain = [row.n for row in spark.read.parquet(str(tmp_path)).where(where).collect()]
        assert plain == ([] if "n = 1" in where else [2])
        queries = {
            "dataframe": table.dataframe(spark, where=where),
            "where": table.dataframe(spark).where(where),
            "sql": lake.sql(f"SELECT * FROM web.t WHERE {where}", spark),
        }
        assert {name: [row.n for row in query.collect()] for name, query in queries.items()} == dict.fromkeys(
            queries, plain
        )
        assert {name: read_by(query).total for name, query in queries.items()} == dict.fromkeys(queries, files)
        assert len(table.plan(where).files) == files


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_leaves_to_spark_what_is_not_known(
    spark: SparkSession, utc: None, lake: Any, tmp_path: Path, text: str
) -> None:
    seen: list[int] = []
    rows = lake.table("web.t").stream(spark, where=text, columns=["n"])
    out = rows.writeStream.foreachBatch(lambda batch, _: seen.extend(row.n for row in batch.collect()))
    out.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert seen == [2]


@pytest.mark.parametrize(("text", "name"), TEXTS.items())
def test_without_spark_the_error_names_the_function_and_says_to_use_spark(lake: Any, text: str, name: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        lake.table("web.t").arrow(text)
    message = str(caught.value)
    assert name in message
    assert message.endswith("read with Spark: table.dataframe(spark, where=…)")
    assert "\n" not in message
