"""`penstock ingest` with Spark: Parquet, CSV, JSON and Hive layouts become the same table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from tests.fixtures.managed_tables import bag
from tests.fixtures.variants import variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HIVE = ("hive", "hive without endings")
ROWS = [{"id": i, "app": f"app{i % 3}"} for i in range(12)]


def write(kind: str, root: Path) -> Path:
    rows = pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pq.write_table(rows, root / "rows.parquet")
        return root / "rows.parquet"
    if kind == "csv":
        pa.csv.write_csv(rows, root / "rows.csv")
    elif kind == "flat folder":
        pq.write_table(rows.slice(0, 5), root / "000000_0")
        pq.write_table(rows.slice(5), root / "b.parquet")
    elif kind == "json":
        (root / "rows.json").write_text("\n".join(map(json.dumps, ROWS)))
    else:
        for app in ("app0", "app1", "app2"):
            (root / f"app={app}").mkdir()
            part = pa.Table.from_pylist([row for row in ROWS if row["app"] == app]).select(["id"])
            pq.write_table(part, root / f"app={app}" / ("000000_0" if kind == HIVE[1] else "part-0.parquet"))
    return root


def ingest(warehouse: Path, source: Path, *more: str) -> Any:
    words = ["ingest", str(source), "web.t", "--warehouse", str(warehouse), *more, "--json"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "kind", variants(["csv", "flat folder", "hive", "parquet", "json", "hive without endings"], every_run=3)
)
def test_every_kind_of_source(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (tmp_path / "source").mkdir()
    source = write(kind, tmp_path / "source")
    more = ["--source-partition-by", "app string"] if kind in HIVE else []
    done = ingest(tmp_path / "lake", source, "--partition-by", "app", "--coalesce", "app", *more)
    assert (done["made"], done["rows"], done["files"]) == (True, 12, 1)
    table = penstock.connect(tmp_path / "lake").table("web.t")
    typed = [{"id": int(row["id"]), "app": row["app"]} for row in table.arrow(columns=["id", "app"]).to_pylist()]
    assert bag(typed) == bag(ROWS)
    assert sorted(table.partitions()["app"].to_pylist()) == ["app0", "app1", "app2"]
    if kind == "hive":
        again = ingest(tmp_path / "lake", source, "--mode", "overwrite", *more)
        assert (again["made"], again["rows"], penstock.connect(tmp_path / "lake").table("web.t").count()) == (
            False,
            12,
            12,
        )


def test_hot_keys_of_maps(spark: SparkSession, tmp_path: Path) -> None:
    maps = pa.array([[("a,b", "1"), ("c", "x")], None, [("c", "y")]] * 5, pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"id": range(15), "h": maps, "g": maps}), tmp_path / "rows.parquet")
    done = ingest(tmp_path / "lake", tmp_path / "rows.parquet", "--shred", 'h=["a,b"]', "--shred", "g=auto")
    assert (done["made"], done["rows"]) == (True, 15)
    table = penstock.connect(tmp_path / "lake").table("web.t")
    assert [(s.key, s.name) for s in table.version.sidecars] == [
        ("a,b", "__map_shred_h_0"),
        ("a,b", "__map_shred_g_0"),
        ("c", "__map_shred_g_1"),
    ]
    assert table.arrow("h['a,b'] = '1'").num_rows == table.arrow("g['c'] = 'x'").num_rows == 5
    words = ["ingest", str(tmp_path / "rows.parquet"), "web.t", "--warehouse", str(tmp_path / "lake")]
    for more, said in (("h=c", "has other hot keys"), ("h", "names no keys"), ("h=", "names no keys")):
        failed = CliRunner().invoke(main, [*words, "--shred", more])
        assert failed.exit_code == 2
        assert said in failed.output
    assert penstock.connect(tmp_path / "lake").table("web.t").count() == 15
