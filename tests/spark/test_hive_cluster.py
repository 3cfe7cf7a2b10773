"""The same queries where executors are processes of their own, and where there is no JVM at hand: Spark Connect."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.errors import PenstockError
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
COMPARE = """
import json, os, sys
sys.path.insert(0, os.getcwd())
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.hive_layouts import Layout, answer, compare
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.executor.memory", "512m")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.getcwd()).config("spark.cores.max", "2")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
layout = Layout(Path(sys.argv[1]), "dt date, app string, n int")
found = []
for text in json.loads(sys.argv[2]):
    rows = compare(spark, layout, lambda df: df.where(text))
    grouped = compare(spark, layout, lambda df: df.where(text).groupBy("app").agg(F.count("*"), F.sum("id")))
    found.append([rows.read.total, rows.rows, grouped.calls])
dim = spark.createDataFrame([("x y", 1), ("none", 2)], "a string, k int").where("k = 1")
join = compare(spark, layout, lambda df: df.join(F.broadcast(dim), df.app == dim.a).select("id", "k"))
upper = F.udf(lambda app: app == "x y", "boolean", useArrow=False)
function = compare(spark, layout, lambda df: df.where(upper("app")).select("id"))
print(json.dumps({"queries": found, "join": [max(join.read.files), join.rows], "function": function.rows}))
spark.stop()
"""


def test_queries_on_a_cluster_of_processes(tmp_path: Path) -> None:
    values = [[d, a, n] for d in ("2026-05-16", None) for a in ("US/CA", "x y", "ü", None) for n in ("0", "-1")]
    make(tmp_path / "table", "dt date, app string, n int", values)
    out = run_python(COMPARE, str(tmp_path / "table"), json.dumps(QUERIES), timeout=400)
    found = json.loads(out.splitlines()[-1])
    assert found == {
        "queries": [
            [16, 48, 1], [8, 24, 1], [4, 8, 1], [4, 12, 1], [10, 30, 1],
            [4, 4, 1], [0, 0, 1], [4, 12, 1], [4, 12, 1], [16, 30, 1],
        ],
        "join": [4, 12],
        "function": 12,
    }  # fmt: skip


def test_connect_needs_the_filter_and_says_so(tmp_path: Path) -> None:
    table = make(tmp_path, "p string", [["a"], ["b"]]).table
    session = SimpleNamespace()  # a session of Spark Connect has no `_jsparkSession`
    with pytest.raises(PenstockError, match="Spark Connect") as raised:
        table.dataframe(session)
    assert "where=" in str(raised.value)
    import penstock

    with pytest.raises(PenstockError, match="Spark Connect"):
        penstock.attach(session)


CONNECT = """
import json, os, sys
from pyspark.sql import SparkSession
import penstock
from penstock.errors import LayoutError, PenstockError
os.environ["SPARK_TESTING"] = "1"  # the server takes any free port
spark = SparkSession.builder.remote("local").config("spark.ui.enabled", "false").getOrCreate()
table = penstock.hive(sys.argv[1], "dt date, app string")
found = {}
for text in ["app = 'US/CA'", "dt IS NULL AND id > 1", "TRUE", "app = 'none'", "dt = '2026-05-16' OR app IS NULL"]:
    df = table.dataframe(spark, where=text)
    found[text] = [df.count(), len(df.inputFiles()) if df.count() else 0, sorted(row.id for row in df.collect())]
try:
    table.dataframe(spark)
except PenstockError as error:
    found["error"] = str(error)
print(json.dumps(found))
spark.stop()
"""
NEEDED = ("grpc", "grpc_status", "google.protobuf", "google.rpc", "pandas", "zstandard")


def _has_connect() -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in NEEDED)
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not _has_connect(), reason="pyspark[connect] is not installed")
def test_queries_through_spark_connect(tmp_path: Path) -> None:
    values = [[d, a] for d in ("2026-05-16", None) for a in ("US/CA", "x y", None)]
    make(tmp_path / "table", "dt date, app string", values)
    found = json.loads(run_python(CONNECT, str(tmp_path / "table"), timeout=400).splitlines()[-1])
    assert "where=" in found.pop("error")
    assert {text: counts[:2] for text, counts in found.items()} == {
        "app = 'US/CA'": [6, 2],
        "dt IS NULL AND id > 1": [9, 3],
        "TRUE": [18, 6],
        "app = 'none'": [0, 0],
        "dt = '2026-05-16' OR app IS NULL": [12, 4],
    }
    assert found["app = 'US/CA'"][2] == [0, 1, 2, 9, 10, 11]
