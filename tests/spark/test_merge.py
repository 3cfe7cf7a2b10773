"""Merges of Arrow rows and of DataFrames, judged by DuckDB on the same rows; and which files they open and rewrite."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import penstock
from penstock.errors import LakeError, SchemaError
from penstock.lake.commit import commit
from penstock.lake.write import writes
from penstock.spark.catalog import computed_changes
from penstock.spark.write import merge_frames
from tests.fixtures.variants import variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "id bigint, app string, n int, price double"
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "coalesced": {"partition_by": ["app"], "coalesce": ["app"]},
    "bucketed": {"partition_by": ["bucket(3, id)", "truncate(1, app)"]},
}
MODES: dict[str, dict[str, str]] = {
    "copy-on-write": {},
    "merge-on-read": {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")},
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


@pytest.mark.parametrize("layout", variants(LAYOUTS, every_run=1))
@pytest.mark.parametrize("seed", variants(range(3), every_run=1))
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


@pytest.mark.parametrize("key", ["bigint", "int"])
def test_a_merge_of_a_dataframe_opens_and_rewrites_only_files_with_a_match(
    spark: SparkSession, tmp_path: Path, key: str, hide: Callable[[Any, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", "id bigint, v int")
    for start in range(0, 100, 10):
        table.append(pa.table({"id": list(range(start, start + 10)), "v": pa.array([0] * 10, pa.int32())}))
    before = set(table.plan().files.paths.to_pylist())
    hide(table, "id IN (33, 58)")
    source = spark.createDataFrame([(33, 1), (58, 1), (200, 1)], "id int, v int").selectExpr(f"cast(id AS {key})", "v")
    merge = table.merge(source, on="id").when_matched_update({"v": "source.v"})
    result = merge.when_not_matched_insert({"id": "cast(id AS bigint)", "v": "v"}).execute()
    assert len(before & set(table.plan().files.paths.to_pylist())) == 8
    assert (result.rows_updated, result.rows_added, result.files_removed) == (2, 1, 2)
    assert table.count("v = 1") == 3
    for few in (merge_frames._FEW_ROWS, -1):
        monkeypatch.setattr(merge_frames, "_FEW_ROWS", few)
        with pytest.raises(LakeError, match=r"a row of web.t is met by several of the rows"):
            table.upsert(spark.createDataFrame([(33, 2), (33, 3)], "id bigint, v int"), on="id")


def test_few_rows_of_a_dataframe_are_merged_as_many_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    values = {
        "b": "id % 2 = 0",
        "f": "if(id = 3, float('nan'), float(id))",
        "d": "CAST(id AS decimal(20,3))",
        "day": "date_add(DATE'1969-12-30', CAST(id AS int))",
        "ts": "TIMESTAMP'2026-10-25 02:30:00' + make_interval(0, 0, 0, 0, CAST(id AS int))",
        "ntz": "TIMESTAMP_NTZ'2026-10-25 02:30:00'",
        "raw": "CAST(concat('x', id) AS binary)",
        "s": "if(id = 4, NULL, named_struct('x', id, 'y', array(named_struct('z', 'é'))))",
        "m": "map(concat('k', id), id, 'n', NULL)",
    }
    columns = ", ".join(f"{value} AS {name}" for name, value in values.items())
    try:
        lake = penstock.connect(tmp_path / "lake")
        tables = [
            lake.create_table(name, spark.sql(f"SELECT id, {columns} FROM range(1)").schema)
            for name in ("a.few", "a.many")
        ]
        calls, change = list[int](), merge_frames.change_computed
        for table, few in zip(tables, (merge_frames._FEW_ROWS, -1), strict=True):
            monkeypatch.setattr(merge_frames, "_FEW_ROWS", few)
            monkeypatch.setattr(merge_frames, "change_computed", counted(change, calls))
            for start in (0, 3):
                rows = spark.sql(f"SELECT id, {columns} FROM range({start}, {start + 4})")
                result = table.upsert(rows.withColumn("raw", F.lit(b"new")) if start else rows, on="id")
            assert (result.rows_updated, result.rows_added) == (1, 3)
        assert len(calls) == 2, "only many rows are joined by Spark"
        few_rows, many_rows = (as_set([tuple(row) for row in table.dataframe(spark).collect()]) for table in tables)
        assert few_rows == many_rows
        assert len(few_rows) == 7
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def counted(function: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    """A function that notes that it was called."""

    def noted(*arguments: Any) -> Any:
        calls.append(1)
        return function(*arguments)

    return noted


@pytest.mark.parametrize("way", ["DataFrame", "SQL"])
@pytest.mark.parametrize("key", ["bigint", "string"])
def test_many_keys_open_only_files_in_their_ranges(
    spark: SparkSession, tmp_path: Path, way: str, key: str, hide: Callable[[Any, str], None]
) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.many", f"id {key}, v int")
    ids = range(0, 50_000, 5_000) if key == "bigint" else range(100_000, 150_000, 5_000)
    for start in ids:
        values = pa.array(range(start, start + 5_000)).cast(pa.int64() if key == "bigint" else pa.string())
        table.append(pa.table({"id": values, "v": pa.array([0] * 5_000, pa.int32())}))
    first = ids[2]
    hide(table, f"id BETWEEN CAST({first} AS {key}) AND CAST({first + 11_999} AS {key})")
    far = f"UNION ALL SELECT * FROM VALUES ({-(2**63) + 1}L), ({2**63 - 1}L) t(id)" if key == "bigint" else ""
    text = f"SELECT CAST(id AS {key}) id, 1 AS v FROM (SELECT id FROM range({first}, {first + 12_000}) {far})"
    source = spark.sql(text)
    if way == "DataFrame":
        table.merge(source, on="id").when_matched_update({"v": "source.v"}).when_not_matched_insert().execute()
    else:
        source.createOrReplaceTempView("many_source")
        merge = "MERGE INTO web.many t USING many_source s ON t.id = s.id"
        lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", spark)
    assert table.refresh().count("v = 1") == 12_000 + (2 if far else 0)


@pytest.fixture
def hide() -> Iterator[Callable[[Any, str], None]]:
    """Hides the files of a table that a predicate does not need: whoever opens one of them fails."""
    hidden: list[Path] = []

    def hide(table: Any, where: str) -> None:
        opened = {task.path for task in table.plan(where).files}
        paths = [path.removeprefix("file://") for path in table.plan().files.paths.to_pylist() if path not in opened]
        for path in map(Path, paths):
            hidden.append(path.rename(path.with_suffix(".hidden")))

    yield hide
    for path in hidden:
        path.rename(path.with_suffix(".parquet"))


def test_sql_opens_only_files_that_the_source_can_meet(
    spark: SparkSession, tmp_path: Path, hide: Callable[[Any, str], None]
) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.narrow", "id bigint, v int")
    for start in range(0, 100, 10):
        table.append(pa.table({"id": list(range(start, start + 10)), "v": pa.array([0] * 10, pa.int32())}))
    hide(table, "id IN (33, 58)")
    spark.createDataFrame([(33, 1), (58, 1), (200, 1)], "id bigint, v int").createOrReplaceTempView("narrow_source")
    merge = "MERGE INTO web.narrow t USING narrow_source s ON t.id = s.id "
    lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *", spark)
    lake.sql("UPDATE web.narrow SET v = v + 1 WHERE id = 58", spark)
    lake.sql("UPDATE web.narrow SET v = 9 WHERE id IN (SELECT id FROM narrow_source WHERE id = 33)", spark)
    lake.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *", spark)
    assert table.refresh().arrow("v > 0").sort_by("id").to_pylist() == [
        {"id": 33, "v": 9},
        {"id": 58, "v": 2},
        {"id": 200, "v": 1},
    ]
    assert len(table.plan().files) == 11


def test_a_merge_of_a_dataframe_follows_the_rules_of_arrow_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "id bigint, source string, target string, d decimal(9,2), ts timestamp, s struct<x: int, y: int>"
    for name, modes in MODES.items():
        lake = penstock.connect(tmp_path / name)
        for collected in (True, False) if modes else (True,):
            monkeypatch.setattr(computed_changes, "_COLLECTED_ROWS", 2_000_000 if collected else 0)
            ours, theirs = (lake.create_table(f"web.t{i}{collected}", schema, properties=modes) for i in range(2))
            for table in (ours, theirs):
                table.append(
                    spark.sql(
                        "SELECT id, concat('s', id) AS source, 'x' AS target, CAST(id AS decimal(9,2)) AS d,"
                        " TIMESTAMP'2026-05-01 10:00:00 UTC' AS ts, named_struct('x', 1, 'y', 2) AS s"
                        " FROM VALUES (1L), (2L), (3L), (4L) AS v(id)"
                    )
                )
            rows = spark.sql(
                "SELECT id, CAST(id AS smallint) AS small, 'new' AS SOURCE, CAST(9 AS decimal(5,2)) AS d"
                " FROM VALUES (1L), (2L), (3L), (9L), (NULL) AS v(id)"
            )
            results = []
            for table, given in ((ours, rows), (theirs, rows.toArrow())):
                merge = (
                    table.merge(given, on={"ID": "Small"})
                    .when_matched_delete(where="source.id = 1 AND target.source = 's1'")
                    .when_matched_update({"Target": "concat(target.source, '>', source.source)"}, where="d = 2")
                    .when_matched_update({"d": "source.d", "source": "'changed'"})
                    .when_not_matched_insert({"id": "coalesce(id, -1)", "d": "d", "target": "source.source"})
                    .when_not_matched_by_source_update({"target": "concat(target.source, '!')"}, where="id = 4")
                )
                result = merge.execute()
                results.append((result.rows_added, result.rows_updated, result.rows_removed))
            assert results[0] == results[1] == (2, 3, 1)
            own = as_set([tuple(row.values()) for row in ours.arrow().to_pylist()])
            assert own == as_set([tuple(row.values()) for row in theirs.arrow().to_pylist()])
            assert "s2>new" in str(own)
            assert ours.upsert(spark.sql("SELECT 2L AS id, 'star' AS source"), on="ID").rows_updated == 1
            assert ours.arrow("id = 2").column("source").to_pylist() == ["star"]
    before = ours.version.snapshot_id
    cases = {
        "the key id is a bigint, and id of the rows a string": "SELECT '1' AS id",
        "s'? is a struct": "SELECT 1L AS id, named_struct('y', 1, 'x', 2) AS s",
        "target'? is a string": "SELECT 1L AS id, 5 AS target",
    }
    for few in (merge_frames._FEW_ROWS, -1):
        monkeypatch.setattr(merge_frames, "_FEW_ROWS", few)
        for message, query in cases.items():
            with pytest.raises(SchemaError, match=message):
                ours.upsert(spark.sql(query), on="id")
    with pytest.raises(SchemaError, match="a value does not fit the column d: 12345678901"):
        ours.merge(spark.sql("SELECT 2L AS id"), on="id").when_matched_update({"d": "12345678901"}).execute()
    assert ours.refresh().version.snapshot_id == before


@pytest.mark.parametrize("most", [10_000, 1])
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("timestamp", ["TIMESTAMP'2026-10-25 00:30:00 UTC'", "TIMESTAMP'2026-10-25 01:30:00 UTC'", "NULL"]),
        ("double", ["0.0D", "-0.0D", "double('NaN')", "1.5D"]),
        *(
            pytest.param(kind, keys, marks=pytest.mark.slow)
            for kind, keys in {
                "timestamp_ntz": ["TIMESTAMP_NTZ'2026-10-25 02:30:00'", "TIMESTAMP_NTZ'1900-01-01 00:00:00'"],
                "binary": ["X''", "X'FF'", "NULL"],
                "decimal(20,3)": ["1.500", "-2.000"],
                "date": ["DATE'1969-12-31'", "DATE'2026-01-01'"],
            }.items()
        ),
    ],
)
def test_keys_of_a_dataframe_find_their_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, keys: list[str], most: int
) -> None:
    monkeypatch.setattr(merge_frames, "_MOST_KEYS", most)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # an hour of that night comes twice
    try:
        table = penstock.connect(tmp_path / "lake").create_table("web.t", f"k {kind}, n int")
        for i, key in enumerate(keys):
            table.append(spark.sql(f"SELECT CAST({key} AS {kind}) AS k, {i} AS n"))
        # The two zeros are one key: a source has one of them.
        values = ", ".join(f"(CAST({key} AS {kind}))" for key in keys if key != "0.0D")
        merge = table.merge(spark.sql(f"SELECT * FROM VALUES {values} AS v(k)"), on="k")
        result = merge.when_matched_update({"n": "n + 100"}).when_not_matched_insert().execute()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    nulls = keys.count("NULL")
    assert (result.rows_updated, result.rows_added) == (len(keys) - nulls, nulls)
    assert table.count("n >= 100") == len(keys) - nulls


def after_another(write: Callable[..., Any], waiting: list[Callable[[], Any]]) -> Callable[..., Any]:
    """What writes, after another writer has committed once."""

    def slow(*arguments: Any) -> Any:
        while waiting:
            waiting.pop()()
        return write(*arguments)

    return slow


@pytest.mark.parametrize("few", [100_000, -1])
@pytest.mark.parametrize("level", variants(["serializable", "snapshot"], every_run=1))
def test_a_merge_in_sql_that_only_inserts_meets_rows_that_others_add_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, few: int
) -> None:
    monkeypatch.setattr(merge_frames, "_FEW_ROWS", few)
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.once", "id bigint, v string", properties={"write.merge.isolation-level": level})
    table.append(pa.table({"id": [1], "v": ["old"]}))
    spark.sql("SELECT * FROM VALUES (1L, 'new'), (2L, 'new'), (3L, 'new') AS s(id, v)").createOrReplaceTempView("once")

    def reopened() -> Any:
        return penstock.connect(tmp_path / "lake").table("web.once")

    merges = [
        "WHEN NOT MATCHED THEN INSERT *",
        "WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id, v) VALUES (s.id, 'two') WHEN NOT MATCHED THEN INSERT *",
        "WHEN MATCHED AND t.v = 'none' THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    ]
    for merge in merges:
        table.overwrite(pa.table({"id": [1], "v": ["old"]}))
        others = [lambda: reopened().append(pa.table({"id": [2], "v": ["other"]}))]
        slow = after_another(writes.produce, others)
        with monkeypatch.context() as patch:
            patch.setattr(writes, "change_files", after_another(writes.change_files, others))
            patch.setattr(writes, "produce", slow)
            patch.setattr(computed_changes, "produce", slow)
            patch.setattr(computed_changes, "_COLLECTED_ROWS", 0)
            lake.sql(f"MERGE INTO web.once t USING once s ON t.id = s.id {merge}", spark)
        counts = table.refresh().arrow().column("id").value_counts().to_pylist()
        twos = 1 if level == "serializable" else 2
        assert {each["values"]: each["counts"] for each in counts} == {1: 1, 2: twos, 3: 1}, merge


def test_a_statement_that_others_overtake_again_and_again_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_PLANS", 3)
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.busy", "id bigint, v int")
    table.append(pa.table({"id": [1], "v": pa.array([0], pa.int32())}))

    def overtaken(*arguments: Any, **named: Any) -> Any:
        raise commit.Overtaken

    monkeypatch.setattr(computed_changes, "change_once", overtaken)
    with pytest.raises(Exception, match=r"web\.busy was changed by other writers during all of 3 attempts"):
        lake.sql("UPDATE web.busy SET v = 1 WHERE id = 1", spark)
    assert table.refresh().arrow().to_pylist() == [{"id": 1, "v": 0}]


def test_a_merge_adds_the_columns_of_its_source_with_schema_evolution(spark: SparkSession, tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.wider", "id bigint, v int, s struct<x: int>")
    table.append(pa.table({"id": [1, 2], "v": [1, 2], "s": [{"x": 1}, None]}).cast(table.schema))
    source = "(SELECT 2L AS id, 5000000000L AS v, named_struct('x', 7, 'y', 'new') AS s, 'more' AS note)"
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO web.wider t USING {source} u ON t.id = u.id"
    lake.sql(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", spark)
    assert [str(f.type) for f in table.refresh().schema][:2] == ["int64", "int64"]
    assert table.arrow("id = 2").to_pylist() == [{"id": 2, "v": 5000000000, "s": {"x": 7, "y": "new"}, "note": "more"}]
