"""Merges of Arrow rows and of DataFrames, judged by DuckDB on the same rows; and which files they open and rewrite."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError
from penstock.spark.catalog import computed_changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, app string, n int, price double"
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "coalesced": {"partition_by": ["app"], "coalesce": ["app"]},
    "bucketed": {"partition_by": ["bucket(3, id)", "truncate(1, app)"]},
}
# Clauses, by their method here and as SQL.
CLAUSES: list[tuple[str, tuple[Any, ...], str | None, str]] = [
    ("when_matched_delete", (), "source.n > 70", "WHEN MATCHED AND source.n > 70 THEN DELETE"),
    (
        "when_matched_update",
        (),
        None,
        "WHEN MATCHED THEN UPDATE SET app = source.app, n = source.n, price = source.price",
    ),
    (
        "when_matched_update",
        ({"n": "n + source.n", "price": "target.price * 2"},),
        "source.app = target.app",
        "WHEN MATCHED AND source.app = target.app THEN UPDATE SET n = target.n + source.n, price = target.price * 2",
    ),
    (
        "when_matched_update",
        ({"app": "source.app"},),
        "target.app IS NULL",
        "WHEN MATCHED AND target.app IS NULL THEN UPDATE SET app = source.app",
    ),
    ("when_not_matched_insert", (), "n < 50", "WHEN NOT MATCHED AND source.n < 50 THEN INSERT BY NAME"),
    (
        "when_not_matched_insert",
        ({"id": "id", "app": "concat(app, '!')"},),
        None,
        "WHEN NOT MATCHED THEN INSERT (id, app) VALUES (source.id, source.app || '!')",
    ),
    (
        "when_not_matched_by_source_update",
        ({"n": "-n"},),
        "id % 5 = 0",
        "WHEN NOT MATCHED BY SOURCE AND target.id % 5 = 0 THEN UPDATE SET n = -target.n",
    ),
    (
        "when_not_matched_by_source_delete",
        (),
        "id % 7 = 0",
        "WHEN NOT MATCHED BY SOURCE AND target.id % 7 = 0 THEN DELETE",
    ),
]


def random_rows(rng: random.Random, ids: list[int | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "app": [rng.choice(["a", "b", "cc", "é", None]) for _ in ids],
            "n": pa.array([rng.randrange(100) for _ in ids], pa.int32()),
            "price": [rng.choice([0.5, 1.0, None]) for _ in ids],
        }
    )


def as_set(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(3))
def test_random_merges_leave_the_rows_that_duckdb_has(
    spark: SparkSession, tmp_path: Path, layout: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{layout} {seed}")
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA, **LAYOUTS[layout])
    judge = duckdb.connect()
    judge.execute("CREATE TABLE target (id BIGINT, app VARCHAR, n INTEGER, price DOUBLE)")
    for start in (0, 20, 40):
        rows = random_rows(rng, [*range(start, start + 20), None])
        table.append(rows)
        judge.execute("INSERT INTO target SELECT * FROM rows")
    for step in range(4):
        source = random_rows(rng, [*rng.sample(range(80), 15), None])
        chosen = sorted(rng.sample(range(len(CLAUSES)), rng.randint(1, 5)))
        # DuckDB wants a clause without a condition to be the last of its kind
        chosen.sort(key=lambda i: CLAUSES[i][2] is None)
        if step == 2:
            monkeypatch.setattr(computed_changes, "_COLLECTED_ROWS", 0)  # Spark writes all of it
        merge = table.merge(source if step % 2 else spark.createDataFrame(source), on="id")
        for i in chosen:
            method, values, where, _ = CLAUSES[i]
            merge = getattr(merge, method)(*values, **({} if where is None else {"where": where}))
        before = judge.execute("SELECT count(*) FROM target").fetchone()
        result = merge.execute()
        judge.execute(
            f"MERGE INTO target USING source ON target.id = source.id {' '.join(CLAUSES[i][3] for i in chosen)}"
        )
        expected = judge.execute("SELECT * FROM target").fetchall()
        assert as_set([tuple(row.values()) for row in table.arrow().to_pylist()]) == as_set(expected), (step, chosen)
        assert before is not None
        assert len(expected) - before[0] == result.rows_added - result.rows_removed
    assert as_set([tuple(row) for row in table.dataframe(spark).collect()]) == as_set(expected)


def test_a_merge_of_a_dataframe_rewrites_only_files_with_a_match(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", "id bigint, v int")
    for start in range(0, 100, 10):
        table.append(pa.table({"id": list(range(start, start + 10)), "v": pa.array([0] * 10, pa.int32())}))
    before = set(table.plan().files.paths.to_pylist())
    result = table.upsert(spark.createDataFrame([(33, 1), (58, 1), (200, 1)], "id bigint, v int"), on="id")
    assert len(before & set(table.plan().files.paths.to_pylist())) == 8
    assert (result.rows_updated, result.rows_added, result.files_removed) == (2, 1, 2)
    assert table.count("v = 1") == 3
    with pytest.raises(LakeError, match=r"a row of web.t is met by several of the rows"):
        table.upsert(spark.createDataFrame([(33, 2), (33, 3)], "id bigint, v int"), on="id")


def test_sql_opens_only_files_that_the_source_can_meet(spark: SparkSession, tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.narrow", "id bigint, v int")
    for start in range(0, 100, 10):
        table.append(pa.table({"id": list(range(start, start + 10)), "v": pa.array([0] * 10, pa.int32())}))
    files = {path: Path(path.removeprefix("file://")) for path in table.plan().files.paths.to_pylist()}
    opened = {task.path for task in table.plan("id IN (33, 58)").files}
    hidden = [path for url, path in files.items() if url not in opened]
    for path in hidden:  # whoever opens one of these fails
        path.rename(path.with_suffix(".hidden"))
    spark.createDataFrame([(33, 1), (58, 1), (200, 1)], "id bigint, v int").createOrReplaceTempView("narrow_source")
    merge = "MERGE INTO web.narrow t USING narrow_source s ON t.id = s.id "
    lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *", spark)
    lake.sql("UPDATE web.narrow SET v = v + 1 WHERE id = 58", spark)
    lake.sql("UPDATE web.narrow SET v = 9 WHERE id IN (SELECT id FROM narrow_source WHERE id = 33)", spark)
    lake.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *", spark)
    for path in hidden:
        path.with_suffix(".hidden").rename(path)
    assert table.refresh().arrow("v > 0").sort_by("id").to_pylist() == [
        {"id": 33, "v": 9},
        {"id": 58, "v": 2},
        {"id": 200, "v": 1},
    ]
    assert len(table.plan().files) == 11
