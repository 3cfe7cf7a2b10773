"""MERGE INTO of few rows needs no join, and leaves what the join leaves: each statement is executed both ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.lake.write import rewrite
from penstock.spark.catalog import few_rows, row_changes
from penstock.spark.write import merge_frames
from tests.fixtures.variants import variants
from tests.spark.test_merge import MODES, as_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (
    "id bigint, app string, n int, price double, d decimal(9,2), ts timestamp, day date, raw binary,"
    " m map<string, string>, s struct<x: int, y: string>"
)
ROWS = """SELECT * FROM VALUES
    (1L, 'a', 10, 0.0D, 1.50, TIMESTAMP'2026-10-25 00:30:00Z', DATE'1969-12-31', X'00', map('a', '1'),
     named_struct('x', 1, 'y', 'one')),
    (2L, 'b', 20, double('NaN'), 2.50, TIMESTAMP'2026-10-25 01:30:00Z', DATE'2026-01-01', X'', NULL, NULL),
    (3L, NULL, 30, 1.5D, NULL, NULL, NULL, NULL, map('b', NULL), named_struct('x', NULL, 'y', 'x')),
    (4L, 'a', NULL, NULL, -1.00, TIMESTAMP'1900-01-01 00:00:00Z', DATE'2026-01-02', X'FF', map(), NULL),
    (NULL, 'null', 0, -2.0D, 0.00, NULL, NULL, NULL, NULL, NULL),
    (7L, 'c', 70, 7.0D, NULL, NULL, NULL, NULL, NULL, NULL)
    AS v(id, app, n, price, d, ts, day, raw, m, s)"""
SOURCE = """SELECT * FROM VALUES
    (100, 1L, 'a', -0.0D, CAST(1.50 AS decimal(9,2)), TIMESTAMP'2026-10-25 00:30:00Z', DATE'1969-12-31', X'00'),
    (200, 2L, 'moved', double('NaN'), 2.50, TIMESTAMP'2026-10-25 01:30:00Z', DATE'2026-01-01', X''),
    (300, 3L, NULL, 9.5D, NULL, NULL, NULL, NULL),
    (NULL, NULL, 'nobody', NULL, 9.99, TIMESTAMP'2030-01-01 00:00:00Z', DATE'2030-01-01', X'AA'),
    (700, 8L, 'new', 8.0D, -7.00, NULL, NULL, NULL)
    AS v(N, ID, App, price, d, ts, day, raw)"""
OWN = "(SELECT *, map('k', App) AS m, named_struct('x', n, 'y', 'new') AS s FROM src)"
STAR = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
ONE = "WHEN MATCHED THEN UPDATE SET n = 1"
TWICE = "(SELECT * FROM src UNION ALL SELECT * FROM src)"
# Without a join, by what they are about.
FEW = {
    "star": f"USING {OWN} s ON t.id = s.id {STAR}",
    "names": "USING src AS S ON T.ID = S.iD WHEN MATCHED THEN UPDATE SET N = s.n + T.N, APP = concat(t.app, S.aPP)",
    "cte": "USING (WITH best AS (SELECT id, max(n) AS n FROM src GROUP BY id) SELECT id, n FROM best) s ON t.id = s.id"
    " WHEN MATCHED AND t.n < s.n THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
    "values": "USING (SELECT * FROM VALUES (1, 'int'), (50, 'new') AS v(id, app)) s ON t.id = s.id WHEN MATCHED "
    "THEN UPDATE SET app = s.app"
    " WHEN NOT MATCHED THEN INSERT (id, app) VALUES (s.id, s.app)",
    "double": f"USING {OWN} s ON t.price = s.price WHEN MATCHED THEN UPDATE SET app = 'met' WHEN NOT MATCHED THEN "
    "INSERT *",
    "decimal": "USING src s ON t.d = s.d WHEN MATCHED THEN UPDATE SET n = s.n",
    "timestamp": "USING src s ON t.ts = s.ts WHEN MATCHED THEN UPDATE SET n = s.n, ts = s.day",
    "date": "USING src s ON t.day = s.day WHEN MATCHED THEN UPDATE SET day = s.ts, n = day(t.day)",
    "binary": "USING src s ON t.raw = s.raw WHEN MATCHED THEN UPDATE SET raw = s.raw, n = s.n",
    "two keys": "USING src s ON t.id = s.id AND t.app = s.app WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT "
    "(id) VALUES (s.id)",
    "clauses": "USING src s ON t.id = s.id WHEN MATCHED AND t.n > 15 AND s.app IS NOT NULL THEN UPDATE SET app = s.app,"
    " n = t.n + s.n WHEN MATCHED AND s.app IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET n = -t.n"
    " WHEN NOT MATCHED AND s.n > 600 THEN INSERT (id, n) VALUES (s.id, s.n) WHEN NOT MATCHED THEN INSERT "
    "(app) VALUES (s.app)",
    "where": "USING src s ON t.id = s.id AND t.n > 10 AND s.n <> 300 AND t.n + 50 < s.n"
    " WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
    "of the source": "USING src s ON s.n > 100 AND t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT"
    " (id) VALUES (s.id)",
    "insert": f"USING {OWN} s ON t.id = s.id WHEN NOT MATCHED AND s.n > 1 THEN INSERT *",
    "inserts": "USING src s ON t.id = s.id AND t.n = 10 WHEN NOT MATCHED AND s.n > 600 THEN INSERT (id, n) VALUES "
    "(s.id, s.n)"
    " WHEN NOT MATCHED THEN INSERT (app, price) VALUES (sha2(s.app, 256), 1)",
    "twice new": f"USING {TWICE} s ON t.id = s.id AND s.id > 7 WHEN MATCHED THEN UPDATE SET n = 1"
    " WHEN NOT MATCHED AND s.id > 7 THEN INSERT (id) VALUES (s.id)",
    "casts": "USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.id, price = s.n, d = 1.005D, app = "
    "s.n, m = map('x', s.app)",
    "case": "USING src s ON t.id = s.id WHEN MATCHED AND coalesce(t.n, s.n) > 5 THEN UPDATE SET"
    " app = CASE WHEN t.n > 15 THEN s.app ELSE t.app END, d = t.d",
    "struct": f"USING {OWN} u ON t.id = u.id WHEN MATCHED AND t.s.y = 'one' THEN UPDATE SET s = u.s",
    "itself": "USING {table} s ON t.id = s.id + 1 WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED AND s.id = "
    "7 THEN INSERT (id) VALUES (8)",
    "error elsewhere": "USING (SELECT id, CAST(n / 0.5D AS int) AS n FROM src) s ON t.id = s.id WHEN MATCHED THEN"
    " UPDATE SET n = s.n",
}  # fmt: skip
# By Spark's join: what is not known to be the same.
MANY = {
    "no rows, as Spark knows": f"USING (SELECT * FROM src WHERE n > 10000) s ON t.id = s.id {ONE}",
    "by source": "USING src s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "no key": "USING src s ON t.id < s.id AND s.id = 2 WHEN MATCHED THEN UPDATE SET n = 0",
    "computed key": "USING src s ON t.id + 1 = s.id WHEN MATCHED THEN UPDATE SET n = 0",
    "null-safe": "USING src s ON t.id <=> s.id WHEN MATCHED THEN UPDATE SET n = 5",
    "function": "USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = hash(t.id)",
    "deleted twice": f"USING {TWICE} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "an error that no row meets": "USING src s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET n = CAST(700 / (s.n - 700) AS int)",
    "an upper-case letter of Spark's": "USING src s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET app = upper(concat(t.app, 'é'))",
}  # fmt: skip
ERRORS = {
    "twice": f"USING {TWICE} s ON t.id = s.id {ONE}",
    "twice, by another condition": f"USING {TWICE} s ON t.id = s.id AND t.n = 10 WHEN MATCHED AND t.n < 0 THEN DELETE",
    "overflow": "USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n * 2000000000",
    "division": "USING src s ON t.id = s.id WHEN MATCHED AND 1 / (t.n - 10) > 0 THEN DELETE",
    "text": "USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = CAST(s.app AS int)",
    "no fit": "USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET d = s.n * 1000000",
}


class Both:
    """Executes statements both ways, each on the table as it was, and counts the joins."""

    def __init__(self, spark: SparkSession, lake: penstock.Lake, table: Any, patch: pytest.MonkeyPatch) -> None:
        self._spark, self._lake, self._table, self._patch = spark, lake, table, patch
        self.joins = 0
        for name in ("change_computed", "add_computed"):
            patch.setattr(row_changes, name, self._counted(getattr(row_changes, name)))

    def _counted(self, function: Any) -> Any:
        def counted(*arguments: Any) -> Any:
            self.joins += 1
            return function(*arguments)

        return counted

    def run(self, clauses: str, most: int) -> tuple[list[str], str | None, str | None]:
        """The rows afterwards, the operation, and the error."""
        self._patch.setattr(merge_frames, "_FEW_ROWS", most)
        self.joins, error = 0, None
        before = self._table.refresh().version.snapshot_id
        name = self._table.name
        try:
            self._lake.sql(f"MERGE INTO {name} t {clauses.replace('{table}', name)}", self._spark)
        except Exception as raised:
            error = str(raised)
        self._table.refresh()
        rows = as_set([tuple(row.values()) for row in self._table.arrow().to_pylist()])
        head = self._table.table.current_snapshot()
        operation = head.summary.operation.value if head.snapshot_id != before else None
        if head.snapshot_id != before:
            self._table.rollback(before)
        return rows, operation, error


@pytest.fixture
def both(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> Both:
    lake = penstock.connect(tmp_path / "lake")
    layout = {"partition_by": ["app"], "coalesce": ["app"], "shred": {"m": "a"}} if mode == "merge-on-read" else {}
    table = lake.create_table("web.t", COLUMNS, properties=MODES[mode], **layout)
    for part in ("id < 3", "id BETWEEN 3 AND 4", "id IS NULL OR id > 4"):
        table.append(spark.sql(ROWS).where(part))
    spark.sql(SOURCE).createOrReplaceTempView("src")
    return Both(spark, lake, table, monkeypatch)


@pytest.mark.parametrize("mode", variants(MODES, every_run=1))
def test_few_rows_are_merged_without_a_join_and_as_a_join_merges_them(
    both: Both, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mode == "merge-on-read":
        monkeypatch.setattr(rewrite, "_GLANCED_BYTES", 0)  # files are read by their keys first
    statements = FEW if mode == "copy-on-write" else dict(list(FEW.items())[::2])
    wrong = []
    for name, clauses in statements.items():
        few, joins = both.run(clauses, 100_000), both.joins
        many = both.run(clauses, -1)
        if joins or few[2] is not None or few != many or both.joins != 1:
            wrong.append(f"{name}: {joins} and {both.joins} joins\n  {few}\n  {many}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("mode", ["copy-on-write"])
def test_what_is_not_known_to_be_the_same_is_joined_by_spark(both: Both) -> None:
    for name, clauses in MANY.items():
        few, joins = both.run(clauses, 100_000), both.joins
        assert (joins, few[2]) == (1, None), name
        assert few == both.run(clauses, -1), name
    assert both.run(FEW["star"], 4) == both.run(FEW["star"], 100_000)
    for most, joins in ((4, 1), (5, 0)):  # the source has five rows
        both.run(FEW["star"], most)
        assert both.joins == joins


@pytest.mark.parametrize("mode", ["copy-on-write"])
def test_errors_are_those_of_the_join_and_nothing_is_written(both: Both) -> None:
    for name, clauses in ERRORS.items():
        few = both.run(clauses, 100_000)
        assert few[1] is None, name
        assert few[2] is not None, name
        assert few == both.run(clauses, -1), name


@pytest.mark.parametrize("mode", ["copy-on-write"])
def test_a_merge_of_few_rows_collects_its_source_by_one_job(both: Both, spark: SparkSession, tmp_path: Path) -> None:
    spark.table("src").coalesce(1).write.parquet(str(tmp_path / "source"))
    spark.read.parquet(str(tmp_path / "source")).createOrReplaceTempView("src")
    context = spark.sparkContext
    context.setJobGroup("few", "a merge")
    both.run(FEW["names"], few_rows.most_rows()[0])
    context.setLocalProperty("spark.jobGroup.id", None)
    assert len(context.statusTracker().getJobIdsForGroup("few")) == 1
