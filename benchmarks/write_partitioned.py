"""How fast are partitioned rows written, against Spark's own writer and Iceberg's?

    make bench ONLY=write_partitioned

Three million rows of eight columns, a map among them, partitioned by 30 days and 20 apps of even sizes: no partition
is small, nothing is shared. Penstock's `table.append(df)`, Spark's `write.partitionBy` with the shuffle that gives one
file a partition, and Iceberg's Spark runtime, which runs on the newest Spark that it supports, in a process of its own;
its ratio is against Spark's writer in that same process. The best of each counts; what was written is counted.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from tests.interop.iceberg_judge import IcebergJudge
from tools.fetch_jars import Unavailable, fetch_iceberg_judge

ROWS, ROUNDS = 3_000_000, 3
COLUMNS = (
    "dt date, app string, id bigint, user_id bigint, amount int, price double, session string, tags map<string,string>"
)
SELECT = (
    "date_add(DATE '2026-05-01', int(id % 30)) AS dt", "concat('app-', int(id / 30) % 20) AS app", "id",
    "pmod(xxhash64(id), 1000000) AS user_id", "int(pmod(xxhash64(id, 1), 10000)) AS amount",
    "pmod(xxhash64(id, 2), 4096) / 64.0D AS price", "hex(pmod(xxhash64(id, 3), 5000)) AS session",
    "map('k', string(id % 100), 'm', string(id % 7)) AS tags",
)  # fmt: skip


def race(writers: dict[str, Callable[[int], int]]) -> dict[str, float]:
    """The best time of each, taking turns; each says how many rows it wrote."""
    best = dict.fromkeys(writers, float("inf"))
    for number in range(ROUNDS):
        for name, write in writers.items():
            start = time.perf_counter()
            count = write(number)
            best[name] = min(best[name], time.perf_counter() - start)
            assert count == ROWS, f"{name}: {count:,} rows"
    return best


def by_spark(spark: Any, source: str, root: str) -> Callable[[int], int]:
    """Spark's own writer; how many rows are there is read from the footers."""

    def write(number: int) -> int:
        place = f"{root}/{number}"
        spark.read.parquet(source).repartition("dt", "app").write.partitionBy("dt", "app").option(
            "compression", "zstd"
        ).parquet(place)
        return rows_below(place)

    return write


def rows_below(place: str) -> int:
    """The rows of all files below a folder, by their footers."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in Path(place).rglob("*.parquet"))


def judged(spark: Any, source: str, home: str) -> dict[str, float]:
    """The same race in the process of Iceberg's runtime."""
    settings = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    for name, value in {**settings, "spark.sql.adaptive.enabled": "true"}.items():
        spark.conf.set(name, value)  # as any user has them
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.web")

    def by_iceberg(number: int) -> int:
        columns = COLUMNS.replace("map<string,string>", "map<string, string>")
        spark.sql(f"CREATE TABLE lake.web.t{number} ({columns}) USING iceberg PARTITIONED BY (dt, app)")
        spark.read.parquet(source).writeTo(f"lake.web.t{number}").append()
        return int(spark.table(f"lake.web.t{number}").count())

    return race({"Spark": by_spark(spark, source, f"{home}/theirs"), "Iceberg": by_iceberg})


def of_the_runtime(home: Path, source: str) -> dict[str, float] | None:
    try:
        pyspark, jars = fetch_iceberg_judge()
    except Unavailable as reason:
        print(f"without Iceberg's Spark runtime: {reason}")
        return None
    judge = IcebergJudge(pyspark, jars, home / "judge", memory="4g")
    try:
        return judge.ask(judged, source, str(home))
    finally:
        judge.close()


def main() -> None:
    """Run, check, print."""
    home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        settings = {"spark.sql.shuffle.partitions": "8", "spark.ui.showConsoleProgress": "false"}
        spark = penstock.session(master="local[2]", **settings, **{"spark.driver.memory": "4g"})
        source = str(home / "source")
        spark.range(0, ROWS, 1, 4).selectExpr(*SELECT).write.parquet(source)
        lake = penstock.connect(home / "lake")

        def by_penstock(number: int) -> int:
            table = lake.create_table(f"web.t{number}", COLUMNS, ["dt", "app"])
            table.append(spark.read.parquet(source))
            return table.count()

        ours = race({"Spark": by_spark(spark, source, str(home / "ours")), "Penstock": by_penstock})
        spark.stop()
        print(f"{ROWS:,} rows into 600 partitions")
        print(
            f"Spark {ours['Spark']:.1f} s, Penstock {ours['Penstock']:.1f} s: {ours['Spark'] / ours['Penstock']:.2f}x"
        )
        theirs = of_the_runtime(home, source)
        if theirs is not None:
            ratio = theirs["Spark"] / theirs["Iceberg"]
            print(f"its Spark {theirs['Spark']:.1f} s, Iceberg's runtime {theirs['Iceberg']:.1f} s: {ratio:.2f}x")
        print("target: 1x of both")
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
