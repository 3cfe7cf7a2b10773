"""A map that is stored split gives the same rows as one that is not, and single keys are read from their sidecars."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.scan.shredded_map import rule_failures, shredded_map
from penstock.spark.session.session import attach
from tests.fixtures.spark_settings import INTERPRETED
from tests.fixtures.variants import variants
from tests.spark.hot_keys_corpus import COLD, HOT, QUERIES, READS, rows_of

pytestmark = pytest.mark.spark
STATES = {
    "exact": "EXACT",
    "value": "VALUE",
    "maybe": "MAYBE",
    "mirror": "MIRROR_VALUE",
    "mirror_exact": "MIRROR_EXACT",
}
TWINS = {"exact": "full", "mirror_exact": "full", "value": "holes", "maybe": "holes", "mirror": "holes", "union": "all"}
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.maxMetadataStringLength": "100000",
    "spark.sql.debug.maxToStringFields": "1000",
    **INTERPRETED,  # `compiled` is for queries that have to be
}
Rows = list[dict[str, Any]]
MAP = pa.map_(pa.string(), pa.string())


def make_rows(count: int, first: int, holes: bool) -> Rows:
    """Maps of hot and cold keys; with holes there are explicit nulls, empty maps and no maps."""
    random.seed(count + first)
    rows: Rows = []
    for i in range(first, first + count):
        headers: dict[str, str | None] | None = {
            key: f"v{random.randrange(6)}" for key in HOT + COLD if random.random() < 0.6
        }
        if holes:
            headers = {key: None if random.random() < 0.2 else value for key, value in (headers or {}).items()}
            headers = None if i % 11 == 0 else {} if i % 13 == 0 else headers
        rows.append({"id": i, "g": i % 3, "headers": headers})
    return rows


def split(row: dict[str, Any], state: str) -> dict[str, Any]:
    """A row as it is stored: filled hot keys in sidecars, the rest in the residual."""
    headers = row["headers"]
    sidecars = {f"__s{i}": (headers or {}).get(key) for i, key in enumerate(HOT)}
    rest = None if headers is None else {k: v for k, v in headers.items() if k not in HOT or v is None}
    if state.startswith("mirror"):
        rest = headers
    if state == "maybe" and headers is not None:
        if row["id"] % 4 == 0:  # another writer, who knows nothing of sidecars
            rest, sidecars = headers, dict.fromkeys(sidecars)
        elif row["id"] % 4 == 1:  # both have it, and the sidecar is right
            rest = {k: "shadowed" if k in HOT and v is not None else v for k, v in headers.items()}
        elif not rest and any(sidecars.values()):
            rest = None
    return {**row, "headers": rest, **sidecars}


def write(path: Path, rows: Rows) -> str:
    names = [name for name in rows[0] if name.startswith("__s")]
    fields = [("id", pa.int64()), ("g", pa.int32()), ("headers", MAP), *((name, pa.string()) for name in names)]
    plain = [{**row, "headers": None if row["headers"] is None else list(row["headers"].items())} for row in rows]
    pq.write_table(pa.Table.from_pylist(plain, pa.schema(fields)), path, row_group_size=16)
    return str(path)


def shredded(spark: SparkSession, path: str, state: str) -> DataFrame:
    sidecars = [(key, F.col(f"__s{i}"), STATES[state]) for i, key in enumerate(HOT)]
    return spark.read.parquet(path).select("id", "g", shredded_map(spark, F.col("headers"), sidecars).alias("headers"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DataFrame]]:
    """The table by state, and the same rows with plain maps."""
    root = tmp_path_factory.mktemp("maps")
    attach(spark)
    attach(spark)  # the second time does nothing, and nothing is answered twice
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    rows = {"full": make_rows(60, 0, False), "holes": make_rows(140, 1000, True)}
    found = {name: spark.read.parquet(write(root / f"{name}.parquet", made)) for name, made in rows.items()}
    for state in STATES:
        stored = [split(row, state) for row in rows[TWINS[state]]]
        found[state] = shredded(spark, write(root / f"{state}.parquet", stored), state)
    found["union"] = found["exact"].unionAll(found["maybe"])
    found["all"] = found["full"].unionAll(found["holes"])
    spark.udf.register("shout", lambda text: text and text.upper())
    yield found
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@contextmanager
def compiled(spark: SparkSession, *, whole_stages: bool) -> Iterator[None]:
    """Have Spark compile: each expression by itself, or whole stages."""
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.codegen.wholeStage", str(whole_stages).lower())
    try:
        yield
    finally:
        for name, value in INTERPRETED.items():
            spark.conf.set(name, value)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def reads_of(plan: str) -> set[str]:
    """Which parts of the map the scans of a physical plan read: `s` sidecars, `r` the residual."""
    schemas = re.findall(r"ReadSchema: struct<(.*)>", plan)
    found = {"r" for schema in schemas if "headers:map" in schema}
    return found | {"s" for schema in schemas if re.search(r"__s\d:", schema)}


def expected_reads(needs: str, state: str) -> set[str]:
    parts = ("exact", "maybe") if state == "union" else (state,)
    return {letter for part in parts for need in needs for letter in READS[part][need]}


def ask(spark: SparkSession, frame: DataFrame, query: str) -> DataFrame:
    frame.createOrReplaceTempView("t")
    return spark.sql(query)


def check(spark: SparkSession, tables: dict[str, DataFrame], number: int, states: list[str]) -> None:
    needs, query = QUERIES[number]
    answers = {twin: rows_of(ask(spark, tables[twin], query)) for twin in {TWINS[state] for state in states}}
    for state in states:
        found = ask(spark, tables[state], query)
        plan = plan_of(found)
        assert "shredded_map" not in plan
        assert rows_of(found) == answers[TWINS[state]], state
        assert reads_of(plan) == expected_reads(needs, state), (state, plan)
    assert rule_failures(spark) == (0, "")


@pytest.mark.parametrize(
    "number",  # every sixth; others are asked in `test_shredded_tables.py`, and all of them below
    [pytest.param(number, id=query) for number, (_, query) in enumerate(QUERIES) if number % 6 == 1],
)
def test_query_gives_the_rows_of_the_plain_map_and_reads_what_it_needs(
    spark: SparkSession, tables: dict[str, DataFrame], number: int
) -> None:
    check(spark, tables, number, [list(TWINS)[number // 6 % len(TWINS)]])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUERIES)), ids=[query for _, query in QUERIES])
def test_query_is_right_in_every_state(spark: SparkSession, tables: dict[str, DataFrame], number: int) -> None:
    check(spark, tables, number, list(TWINS))


@pytest.mark.parametrize("test", ["= 'v1'", "IN ('v1', 'v2')", "LIKE 'v%'", "> 'v2'", "IS NULL", "IS NOT NULL"])
def test_filters_on_sidecars_are_pushed_to_files_unless_the_residual_may_have_the_key(
    spark: SparkSession, tables: dict[str, DataFrame], test: str
) -> None:
    for state in STATES:
        plan = plan_of(ask(spark, tables[state], f"SELECT id FROM t WHERE headers['a'] {test}"))
        pushed = re.findall(r"PushedFilters: \[(.*?)\], ReadSchema", plan)
        assert ("__s0" in pushed[0]) == (state != "maybe"), (state, plan)


def test_filter_on_presence_is_pushed_only_where_the_sidecar_says_it(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    for state in STATES:
        plan = plan_of(ask(spark, tables[state], "SELECT id FROM t WHERE map_contains_key(headers, 'a')"))
        assert ("PushedFilters: [IsNotNull(__s0)]" in plan) == state.endswith("exact"), (state, plan)


@pytest.mark.parametrize("state", list(STATES))
def test_filters_pushed_to_small_row_groups_lose_no_row(
    spark: SparkSession, tables: dict[str, DataFrame], state: str
) -> None:
    query = "SELECT id, headers['b'] FROM t WHERE headers['a'] = 'v2' AND headers['größe'] IS NOT NULL"
    twin = ask(spark, tables[TWINS[state]], query)
    assert rows_of(ask(spark, tables[state], query)) == rows_of(twin) != []


@pytest.mark.parametrize("state", list(STATES))
def test_expressions_and_whole_stages_are_compiled_to_the_same_rows(
    spark: SparkSession, tables: dict[str, DataFrame], state: str
) -> None:
    query = "SELECT id, headers, size(headers), sort_array(map_keys(headers)), headers['a'] FROM t"
    expected = rows_of(ask(spark, tables[TWINS[state]], query))
    for whole_stages in (False, True):
        with compiled(spark, whole_stages=whole_stages):
            found = ask(spark, tables[state], query)
            assert ("*(1)" in plan_of(found)) == whole_stages
            assert rows_of(found) == expected


def test_adaptive_plans_give_the_same_rows(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    query = "SELECT x.headers['a'] a, count(*) FROM t x JOIN t y ON x.headers['b'] = y.headers['n'] GROUP BY 1"
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        assert rows_of(ask(spark, tables["union"], query)) == rows_of(ask(spark, tables["all"], query))
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")


@pytest.mark.parametrize("state", ["value", "maybe"])
def test_equal_shuffles_are_made_once(spark: SparkSession, tables: dict[str, DataFrame], state: str) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        for column in ("headers", "headers['a'] m"):
            query = f"SELECT * FROM (SELECT id, {column} FROM t) x JOIN (SELECT id, {column} FROM t) y ON x.id = y.id"
            assert "ReusedExchange" in plan_of(ask(spark, tables[state], query))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_cached_table_is_found_again(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    again = tables["value"].select("*")
    again.cache()
    try:
        found = ask(spark, tables["value"], "SELECT id, headers, headers['a'] FROM t")
        assert "InMemoryTableScan" in plan_of(found)
        assert rows_of(found) == rows_of(ask(spark, tables["holes"], "SELECT id, headers, headers['a'] FROM t"))
    finally:
        again.unpersist()


def test_same_map_is_the_same_expression_and_another_state_is_not(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    value = tables["value"]
    assert value.sameSemantics(value.select("id", "g", "headers"))
    path = value.inputFiles()[0]
    assert shredded(spark, path, "value").semanticHash() == shredded(spark, path, "value").semanticHash()
    assert not shredded(spark, path, "value").sameSemantics(shredded(spark, path, "exact"))


def test_element_at_of_a_missing_key_is_null_in_ansi_mode(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    for name in ("holes", *STATES):
        found = ask(spark, tables[name], "SELECT element_at(headers, 'nobody'), headers['nobody'] FROM t LIMIT 3")
        assert found.collect() == [(None, None)] * 3


@pytest.mark.parametrize("state", list(STATES))
def test_size_of_no_map_is_what_the_session_says(spark: SparkSession, tables: dict[str, DataFrame], state: str) -> None:
    query = "SELECT x.id, size(x.headers), size(y.headers) FROM t x LEFT JOIN t y ON x.id = y.id + 1"
    spark.conf.set("spark.sql.ansi.enabled", "false")  # minus one then, and null otherwise
    try:
        found = rows_of(ask(spark, tables[state], query))
        assert found == rows_of(ask(spark, tables[TWINS[state]], query))
        assert any(row.endswith(", -1)") for row in found)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


VALUES: dict[str, list[Any]] = {
    "int": [1, -2],
    "bigint": [1 << 40, 0],
    "double": [1.5, float("inf")],
    "float": [0.5, -0.0],
    "boolean": [True, False],
    "decimal(10,2)": [Decimal("1.25"), Decimal("-3.00")],
    "decimal(30,5)": [Decimal("12345678901234567890.5"), Decimal("0.00001")],
    "date": [dt.date(2026, 1, 2), dt.date(1600, 1, 1)],
    "timestamp": [dt.datetime(2026, 1, 2, 3, 4, 5), dt.datetime(1990, 1, 1)],
    "binary": [bytearray(b"ab"), bytearray(b"")],
    "string": ["x", ""],
}


@pytest.mark.parametrize("state", ["MAYBE", "EXACT"])
def test_values_of_every_type(spark: SparkSession, tables: dict[str, DataFrame], state: str) -> None:
    columns, whole, keys = ["id int"], [], []
    stored: list[tuple[Any, ...]] = [(1,), (2,), (3,)]
    expected: list[tuple[Any, ...]] = [(1,), (2,), (3,)]
    for i, (kind, (one, two)) in enumerate(VALUES.items()):
        columns.append(f"m{i} map<string,{kind}>, a{i} {kind}, b{i} {kind}")
        given = [({"c": one}, two, None), ({"c": None}, None, one), ({}, one, two)]
        answers = [({"c": one, "a": two}, two), ({"c": None, "b": one}, None), ({"a": one, "b": two}, one)]
        stored = [(*row, *more) for row, more in zip(stored, given, strict=True)]
        expected = [(*row, *more) for row, more in zip(expected, answers, strict=True)]
        sidecars = [("a", F.col(f"a{i}"), state), ("b", F.col(f"b{i}"), state)]
        whole.append(shredded_map(spark, F.col(f"m{i}"), sidecars).alias(f"m{i}"))
        keys += [f"m{i}", f"m{i}['a'] AS a{i}"]
    rows = spark.createDataFrame(stored, ", ".join(columns)).repartition(1)
    found = rows.select("id", *whole).selectExpr("id", *keys).orderBy("id")
    assert [tuple(row) for row in found.collect()] == expected
    with compiled(spark, whole_stages=False):
        assert [tuple(row) for row in found.select("*").collect()] == expected


@pytest.mark.parametrize("count", variants([12, 13, 1, 31, 60], every_run=2))
def test_any_number_of_sidecars(spark: SparkSession, tables: dict[str, DataFrame], count: int) -> None:
    names = [f"k{i}" for i in range(count)]
    cells = ", ".join(f"if(id % {i + 2} = 0, NULL, '{i}') k{i}" for i in range(count))
    rows = spark.sql(f"SELECT id, map('c', 'cold') m, {cells} FROM range(10)")
    whole = shredded_map(spark, F.col("m"), [(name, F.col(name), "VALUE") for name in names])
    for how in (compiled(spark, whole_stages=True), compiled(spark, whole_stages=False), nullcontext()):
        with how:
            found = rows.repartition(1).select("id", whole.alias("m"), F.size(whole).alias("n")).collect()
        for row in found:
            filled = {f"k{i}": str(i) for i in range(count) if row.id % (i + 2)}
            assert row.m == {"c": "cold", **filled}
            assert row.n == len(row.m)


def test_literal_rows_are_evaluated_by_the_optimizer(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    rows = spark.sql("SELECT * FROM VALUES (map('c', 'x'), 'y'), (NULL, 'z') AS v(m, a)")
    for state, second in (("MAYBE", {"a": "z"}), ("VALUE", None)):
        whole = shredded_map(spark, F.col("m"), [("a", F.col("a"), state)])
        assert [row[0] for row in rows.select(whole).collect()] == [{"c": "x", "a": "y"}, second]


NESTED = [
    "SELECT s.m['a'] FROM t",
    "SELECT s.m['a'], s.m['b'], s.id FROM t",
    "SELECT s.id FROM t WHERE s.m['a'] = 'v1'",
    "SELECT x.s.m['a'], y.s.m['b'] FROM t x LEFT JOIN t y ON x.s.id = y.s.id + 1",
    "SELECT q.m['a'], q.m['b'] FROM (SELECT s q FROM t ORDER BY s.id LIMIT 9)",
    "SELECT lag(s) OVER (ORDER BY s.id).m['a'] FROM t",
    "SELECT max_by(s, s.id).m['a'] FROM t",
    "SELECT q.m['a'] FROM (SELECT s q FROM t UNION ALL SELECT s FROM t) WHERE q.m['b'] = 'v2'",
]


@pytest.mark.parametrize("query", NESTED)
@pytest.mark.parametrize("state", ["value", "maybe"])
def test_map_in_a_structure(spark: SparkSession, tables: dict[str, DataFrame], query: str, state: str) -> None:
    frames = []
    for name in (state, "holes"):
        made = F.struct(F.col("headers").alias("m"), F.col("id"))
        frames.append(tables[name].select(F.when(F.col("g") == 2, None).otherwise(made).alias("s")))
    found = ask(spark, frames[0], query)
    plan = plan_of(found)
    assert rows_of(found) == rows_of(ask(spark, frames[1], query))
    assert reads_of(plan) == expected_reads("S", state), plan
    assert rule_failures(spark) == (0, "")


@pytest.mark.parametrize(
    "shape",
    [
        lambda s, made: F.when(s.isNull(), None).otherwise(made),
        lambda s, made: F.when(s.isNotNull(), made),
        lambda s, made: made,
    ],
)
def test_filter_on_a_sidecar_within_a_structure_is_pushed(
    spark: SparkSession, tables: dict[str, DataFrame], tmp_path: Path, shape: Callable[[Column, Column], Column]
) -> None:
    rows = spark.sql("SELECT named_struct('m', map('c', 'x'), 'a', 'y') s UNION ALL SELECT NULL")
    rows.write.parquet(str(tmp_path / "t"))
    whole = shredded_map(spark, F.col("s.m"), [("a", F.col("s.a"), "VALUE")])
    shown = shape(F.col("s"), F.struct(whole.alias("m"))).alias("s")
    found = spark.read.parquet(str(tmp_path / "t")).select(shown).where("s.m['a'] = 'y'").selectExpr("s.m['a']")
    assert found.collect() == [("y",)]
    assert "EqualTo(s.a,y)" in plan_of(found)
    assert "map<" not in plan_of(found)


def test_written_table_has_the_whole_map(spark: SparkSession, tables: dict[str, DataFrame], tmp_path: Path) -> None:
    tables["union"].write.parquet(str(tmp_path / "copy"))
    assert rows_of(spark.read.parquet(str(tmp_path / "copy"))) == rows_of(tables["all"])


def test_explain_says_what_the_map_is_made_of(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    plan = str(tables["value"]._jdf.queryExecution().analyzed().toString())
    assert re.search(r"shredded_map\(headers#\d+, a value: __s0#\d+, b value: __s1#\d+", plan)


def test_without_sidecars_the_residual_is_the_map(spark: SparkSession) -> None:
    residual = F.col("headers")
    assert shredded_map(spark, residual, []) is residual


def test_wrong_arguments_are_refused(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    with pytest.raises(ValueError, match="the state of the sidecar of 'a' is 'SURE'"):
        shredded_map(spark, F.col("m"), [("a", F.col("a"), "SURE")])
    rows = spark.sql("SELECT map('c', 'x') m, 1 a, map(1, 2) i")
    with pytest.raises(AnalysisException, match="the sidecar of a must be STRING, not INT"):
        rows.select(shredded_map(spark, F.col("m"), [("a", F.col("a"), "VALUE")]))
    with pytest.raises(AnalysisException, match="the keys of the map must be STRING, not INT"):
        rows.select(shredded_map(spark, F.col("i"), [("a", F.col("a"), "VALUE")]))


def test_rule_never_failed(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    assert rule_failures(spark) == (0, "")
