"""Tables where there is no JVM at hand: by Spark Connect, or an error that says what needs another session."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import LakeError, PenstockError
from tests.fixtures.iceberg_deletes import data_files, delete_positions
from tests.fixtures.iceberg_tables import create
from tests.spark.hive_layouts import make
from tests.spark.iceberg_layouts import has_connect, opened
from tests.spark.test_hive_sessions import run_python

pytestmark = pytest.mark.spark
OF_HIVE = ["app = 'US/CA'", "dt IS NULL AND id > 1", "TRUE", "app = 'none'", "dt = '2026-05-16' OR app IS NULL"]
OF_ICEBERG = ["b = 'x' AND id > 4", "a = 'p' AND c = 'm'", "TRUE", "b = 'none'"]
CONNECT = """
import json, os, sys
import pyarrow as pa
from pyspark.sql import SparkSession
import penstock
from penstock.errors import PenstockError
os.environ["SPARK_TESTING"] = "1"  # the server takes any free port
spark = SparkSession.builder.remote("local").config("spark.ui.enabled", "false").getOrCreate()
hive = penstock.hive(sys.argv[1], "dt date, app string")
iceberg = penstock.connect(sys.argv[2]).table("web.t")
found = {"hive": {}, "iceberg": {}}
for text in json.loads(sys.argv[3]):
    df = hive.dataframe(spark, where=text)
    ids = sorted(row.id for row in df.collect())
    found["hive"][text] = [ids, len(df.inputFiles()) if ids else 0]
try:
    hive.dataframe(spark)
except PenstockError as error:
    found["error"] = str(error)
for text in json.loads(sys.argv[4]):
    df = iceberg.dataframe(spark, where=text)
    found["iceberg"][text] = [sorted(row.id for row in df.collect()), df.columns]
managed = penstock.connect(sys.argv[2]).create_table("web.m", "id bigint, app string", ["app"], coalesce="app")
new = penstock.attach(spark).range(40).selectExpr("id", "string(id % 4) AS app")
new.write.format("penstock").option("warehouse", sys.argv[2]).option("table", "web.m").mode("append").save()
managed.append(new)
reader = spark.read.format("penstock").option("warehouse", sys.argv[2]).option("table", "web.m")
found["read"] = reader.option("where", "app = '3'").load().count()
try:
    penstock.attach(spark, sys.argv[2])
except PenstockError as error:
    found["attach"] = str(error)
found["written"] = [managed.count(), managed.count("app = '3'"), len(managed.plan("app = '7'").files)]
shredded = penstock.connect(sys.argv[2]).create_table(
    "web.s", "id bigint, m map<string,string>, s struct<n:map<string,int>>", shred={"m": ["a", "it's"], "s.n": ["x"]}
)
maps = [None, [], [("a", None), ("z", "2")], [("a", "1"), ("it's", "b")]]
rows = [{"id": i, "m": m, "s": None if i == 3 else {"n": [("x", i)]}} for i, m in enumerate(maps)]
shredded.append(pa.Table.from_pylist(rows, schema=shredded.schema))
df = shredded.dataframe(spark, where="m['a'] = '1' OR id < 3").orderBy("id")
found["shredded"] = [[row.m, row.s and row.s.n] for row in df.collect()]
floats = penstock.hive(sys.argv[5], "p int")
plain = penstock.connect(sys.argv[2]).table("web.floats")
found["nan"] = []
for text in ("d > 5", "NOT (s.x <= 5)", "d < 2"):
    for table in (floats, plain):
        found["nan"].append(sorted(row.id for row in table.dataframe(spark, where=text).collect()))
print(json.dumps(found))
spark.stop()
"""


def rows() -> pa.Table:
    return pa.table({"id": pa.array(range(20)), "a": ["x", "y"] * 10, "b": ["p", "q"] * 10, "c": ["m", "n"] * 10})


def numbers() -> pa.Table:
    values = [1.0, float("nan"), None]
    return pa.table({"id": pa.array(range(3)), "d": values, "s": [{"x": value} for value in values]})


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one server answers for both kinds of tables; in the Iceberg table two columns have swapped their names."""
    if not has_connect():
        pytest.skip("pyspark[connect] is not installed")
    hive, iceberg = tmp_path_factory.mktemp("hive"), tmp_path_factory.mktemp("iceberg")
    make(hive, "dt date, app string", [[d, a] for d in ("2026-05-16", None) for a in ("US/CA", "x y", None)])
    table = create(iceberg, rows().schema, ["c"])
    table.append(rows())
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    floats = tmp_path_factory.mktemp("floats")
    (floats / "p=1").mkdir()
    pq.write_table(numbers(), floats / "p=1" / "rows.parquet")
    create(iceberg, numbers().schema, name="floats").append(numbers())
    questions = json.dumps(OF_HIVE), json.dumps(OF_ICEBERG)
    out = run_python(CONNECT, str(hive), str(iceberg), *questions, str(floats), timeout=400)
    return json.loads(out.splitlines()[-1])


@pytest.mark.slow
def test_queries_of_a_hive_layout_through_spark_connect(answers: Any) -> None:
    assert "where=" in answers["error"]
    found = answers["hive"]
    assert {text: (len(ids), files) for text, (ids, files) in found.items()} == {
        "app = 'US/CA'": (6, 2),
        "dt IS NULL AND id > 1": (9, 3),
        "TRUE": (18, 6),
        "app = 'none'": (0, 0),
        "dt = '2026-05-16' OR app IS NULL": (12, 4),
    }
    assert found["app = 'US/CA'"][0] == [0, 1, 2, 9, 10, 11]


@pytest.mark.slow
def test_no_row_with_nan_is_lost_to_statistics_on_the_server(answers: Any) -> None:
    assert answers["nan"] == [[1], [1], [1], [1], [0], [0]]


@pytest.mark.slow
def test_a_managed_table_is_written_through_spark_connect(answers: Any) -> None:
    assert answers["written"] == [80, 20, 0]
    assert answers["read"] == 20


@pytest.mark.slow
def test_there_is_no_catalog_on_spark_connect(answers: Any) -> None:
    assert answers["attach"] == "Spark Connect has no JVM here to add a catalog to; use a classic session"


@pytest.mark.slow
def test_shredded_maps_are_whole_through_spark_connect(answers: Any) -> None:
    assert answers["shredded"] == [
        [None, {"x": 0}],
        [{}, {"x": 1}],
        [{"a": None, "z": "2"}, {"x": 2}],
        [{"a": "1", "it's": "b"}, None],
    ]


@pytest.mark.slow
def test_swapped_columns_of_an_iceberg_table_are_read_by_id_on_the_server(answers: Any) -> None:
    found = answers["iceberg"]
    assert {columns == ["id", "b", "a", "c"] for _, columns in found.values()} == {True}
    assert {text: ids for text, (ids, _) in found.items()} == {
        "b = 'x' AND id > 4": [6, 8, 10, 12, 14, 16, 18],
        "a = 'p' AND c = 'm'": list(range(0, 20, 2)),
        "TRUE": list(range(20)),
        "b = 'none'": [],
    }


def test_connect_needs_the_filter_and_says_so(tmp_path: Path) -> None:
    table = make(tmp_path, "p string", [["a"], ["b"]]).table
    session = SimpleNamespace()  # a session of Spark Connect has no `_jsparkSession`
    with pytest.raises(PenstockError, match="Spark Connect") as raised:
        table.dataframe(session)
    assert "where=" in str(raised.value)


def test_what_connect_cannot_be_given_is_said(tmp_path: Path) -> None:
    session = SimpleNamespace()  # a session of Spark Connect has no `_jsparkSession`
    table = create(tmp_path, rows().schema, ["c"])
    table.append(rows())
    with pytest.raises(PenstockError, match="the filter is needed here"):
        opened(tmp_path).dataframe(session)
    delete_positions(table, {data_files(table)[0].file_path: [0]})
    with pytest.raises(LakeError, match="has deleted rows, which Spark Connect cannot be given; use a classic"):
        opened(tmp_path).dataframe(session, where="TRUE")
