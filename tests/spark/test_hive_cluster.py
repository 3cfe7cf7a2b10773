"""The same queries where executors are processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark.hive_layouts import make
from tests.spark.test_hive_sessions import run_python

pytestmark = pytest.mark.spark
QUERIES = [
    "TRUE",
    "dt = '2026-05-16'",
    "app = 'US/CA' AND id > 3",
    "app IS NULL",
    "dt IS NULL OR app = 'x y'",
    "app LIKE 'x%' AND m['k'] IS NOT NULL",
    "n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
    "year(dt) = 2026 AND n = 0",
    "_metadata.file_path LIKE '%app=x%20y%'",
    "st.a > 2 OR n < 0",
]
# All queries are one union: what a job costs on such a cluster is mostly sending it there.
COMPARE = """
import json, os, sys
sys.path.insert(0, os.getcwd())
from functools import reduce
from pathlib import Path
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.hive_layouts import Layout, answer, compare
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.executor.memory", "512m")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.getcwd()).config("spark.cores.max", "2")
builder = builder.config("spark.executor.extraJavaOptions", os.environ.get("SPARK_SUBMIT_OPTS", ""))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
layout = Layout(Path(sys.argv[1]), "dt date, app string, n int")
texts = json.loads(sys.argv[2])
def queries(df):
    return reduce(DataFrame.unionAll, [df.where(text).withColumn("q", F.lit(i)) for i, text in enumerate(texts)])
rows = compare(spark, layout, queries)
grouped = compare(spark, layout, lambda df: queries(df).groupBy("q", "app").agg(F.count("*"), F.sum("id")))
counts = {row.q: row["count"] for row in queries(layout.ours(spark)).groupBy("q").count().collect()}
dim = spark.createDataFrame([("x y", 1), ("none", 2)], "a string, k int").where("k = 1")
join = compare(spark, layout, lambda df: df.join(F.broadcast(dim), df.app == dim.a).select("id", "k"))
upper = F.udf(lambda app: app == "x y", "boolean", useArrow=False)
function = compare(spark, layout, lambda df: df.where(upper("app")).select("id"))
found = {"files": sorted(rows.read.files), "rows": [counts.get(i, 0) for i in range(len(texts))]}
found |= {"calls": [rows.calls, grouped.calls], "join": [max(join.read.files), join.rows], "function": function.rows}
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.slow
def test_queries_on_a_cluster_of_processes(tmp_path: Path) -> None:
    values = [[d, a, n] for d in ("2026-05-16", None) for a in ("US/CA", "x y", "ü", None) for n in ("0", "-1")]
    make(tmp_path / "table", "dt date, app string, n int", values)
    out = run_python(COMPARE, str(tmp_path / "table"), json.dumps(QUERIES), timeout=400)
    assert json.loads(out.splitlines()[-1]) == {
        "files": sorted([16, 8, 4, 4, 10, 4, 0, 4, 4, 16]),
        "rows": [48, 24, 8, 12, 30, 4, 0, 12, 12, 30],
        "calls": [len(QUERIES)] * 2,
        "join": [4, 12],
        "function": 12,
    }
