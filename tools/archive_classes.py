"""Keep the classes of Spark that the tests use in an archive of the JVM, so that Spark starts in less CPU time.

    python tools/archive_classes.py         in this Python's environment

A small lake is made and asked, and the JVM writes down the classes that it has loaded. Where that fails, a line says so
and nothing is kept: the archive saves time and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fixtures.jvm_options import ARCHIVE, OPTIONS
from tests.fixtures.spark_settings import INTERPRETED

_PATIENCE = 300


def main(arguments: list[str]) -> int:
    """Run the queries in a process of their own, whose JVM writes the archive at its end."""
    if arguments == ["inside"]:
        run_queries()
        return 0
    ARCHIVE.unlink(missing_ok=True)
    options = f"{OPTIONS} -XX:ArchiveClassesAtExit={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"
    command, environment = [sys.executable, __file__, "inside"], {**os.environ, "SPARK_SUBMIT_OPTS": options}
    with tempfile.TemporaryDirectory(prefix="penstock-classes-") as folder:
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=_PATIENCE)
            why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if done.returncode else []
        except subprocess.TimeoutExpired:
            why = [f"it took more than {_PATIENCE} seconds"]
    if why or not ARCHIVE.exists():
        ARCHIVE.unlink(missing_ok=True)
        print(
            f"no archive of Spark's classes: {' '.join(why) or 'the JVM wrote none'}; Spark starts without", flush=True
        )
    return 0


def run_queries() -> None:
    """What most tests do: tables by SQL and DataFrames, in several formats, read, joined and changed."""
    import penstock

    spark = penstock.session("classes", "local[1]", lake="lake", **INTERPRETED)
    spark.sql("CREATE NAMESPACE lake.web")
    spark.sql(
        "CREATE TABLE lake.web.t (id bigint, app string, ts timestamp, m map<string,string>) PARTITIONED BY (app)"
    )
    spark.sql("INSERT INTO lake.web.t SELECT id, string(id % 3), timestamp_seconds(id), map('k', 'v') FROM range(30)")
    spark.sql("SELECT app, count(*) FROM lake.web.t WHERE id > 3 GROUP BY app ORDER BY app").collect()
    spark.sql("SELECT * FROM lake.web.t a JOIN lake.web.t b USING (id) WHERE a.app = '1'").toArrow()
    spark.sql("DELETE FROM lake.web.t WHERE id IN (SELECT max(id) FROM lake.web.t)")
    spark.sql("UPDATE lake.web.t SET app = 'x' WHERE id = 1")
    for name in ("parquet", "orc", "json", "csv"):
        rows = spark.range(20).selectExpr("id", "id % 2 AS p", "date_add(DATE'2026-01-01', int(id)) AS d")
        rows.write.partitionBy("p").format(name).save(f"layout/{name}")
        layout = penstock.hive(f"layout/{name}", "p int", "id bigint, d date", format=name)
        layout.dataframe(spark).where("p = 1").collect()
    spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
