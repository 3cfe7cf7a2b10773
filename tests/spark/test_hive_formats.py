"""Files of CSV, JSON, text, ORC and Avro in Hive layouts: the rows of Spark's own reader, or an error with a name.

Each file lies in a partition of its own, so one read of Spark judges a whole group, and each question reads one file.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.errors import LayoutError, PenstockError
from penstock.formats.avro_file import AVRO as AVRO_FORMAT
from tests.spark.format_cases import DAMAGED, GROUPS, UTF8, Group
from tests.spark.readers import has_avro

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("utc")]


def key(value: Any) -> Any:
    """A value that compares exactly."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return {name: key(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [key(each) for each in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def rows_of(table: pa.Table) -> list[str]:
    """Rows in an order that does not depend on who has read them; dates and times as numbers of any size."""
    columns = []
    for column in table.columns:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append(column.to_pylist())
    return sorted(repr(key(row)) for row in zip(*columns, strict=True))


def plain_spark(spark: SparkSession, root: Path, group: Group) -> DataFrame:
    """What Spark's own reader has."""
    options = {**group.options, "timeZone": group.zone} if group.format != "text" else group.options
    return spark.read.schema(f"{group.schema}, p int").options(**options).format(group.format).load(str(root))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group.format}: {group.name}")
def test_rows_are_those_of_sparks_reader(spark: SparkSession, tmp_path: Path, group: Group) -> None:
    if group.suffix == ".zst" and spark.version.startswith("4.0"):
        pytest.skip("the Hadoop of this Spark was built without zstd")
    for i, (content, _) in enumerate(group.files):
        path = tmp_path / f"p={i}" / f"part-0.{group.format}{group.suffix}"
        path.parent.mkdir()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = penstock.hive(
        tmp_path, "p int", group.schema, format=group.format, options=group.options, timezone=group.zone
    )
    unreadable = (DAMAGED, UTF8)  # Spark raises, too, or has bytes that Arrow takes for no text
    readable = [i for i, (_, why) in enumerate(group.files) if why not in unreadable]
    where = f"p IN ({', '.join(map(str, readable))})"
    judged = plain_spark(spark, tmp_path, group).where(where).toArrow()
    assert rows_of(table.dataframe(spark).where(where).toArrow()) == rows_of(judged)
    for i, (content, why) in enumerate(group.files):
        if why is None:
            expected = judged.filter(pa.compute.equal(judged["p"], i))
            assert rows_of(table.arrow(f"p = {i}")) == rows_of(expected), content
            continue
        with pytest.raises(LayoutError, match=why) as raised:
            table.arrow(f"p = {i}")
        assert f"p={i}/part-0.{group.format}{group.suffix}" in str(raised.value)
        assert len(str(raised.value).splitlines()) == 1
    plan = table.plan("p = 0").report
    assert (plan.files.kept, plan.list_calls) == (1 if group.files[0][0] else 0, 2)


def test_orc_is_as_spark_has_written_it(spark: SparkSession, tmp_path: Path) -> None:
    query = """SELECT 1 a, timestamp'2020-07-01 10:00:00.123456' t, timestamp_ntz'2020-07-01 10:00:00' n,
        date'1600-01-01' d,
        cast(1.5 AS decimal(10,2)) q, cast(1 AS decimal(38,10)) r, 'x' s, cast('ab' AS binary) b, cast(1 AS tinyint) y,
        named_struct('x', 1, 'y', array(1, 2)) st, map('a', 1, 'b', null) m, cast(1 AS float) f, true o, 'p' p
        UNION ALL SELECT null, null, null, null, null, null, null, null, null, null, null, null, null, 'q'"""
    spark.sql(query).coalesce(1).write.partitionBy("p").orc(str(tmp_path / "t"))
    table, judged = penstock.hive(tmp_path / "t", "p string"), spark.read.orc(str(tmp_path / "t"))
    assert rows_of(table.arrow()) == rows_of(table.dataframe(spark).toArrow()) == rows_of(judged.toArrow())
    assert [f.dataType for f in table.dataframe(spark).schema] == [f.dataType for f in judged.schema]
    assert rows_of(table.arrow("p = 'p' AND a > 0", ["n", "t"])) == rows_of(
        judged.where("p = 'p'").select("n", "t").toArrow()
    )


def test_columns_that_hive_gave_no_names_go_by_position_in_orc(spark: SparkSession, tmp_path: Path) -> None:
    pyarrow.orc.write_table(pa.table({"_col0": [1, 2], "_col1": ["a", None]}), tmp_path / "000000_0")
    schema = "ID bigint, name string, more double"
    table = penstock.hive(tmp_path, "", schema, format="orc")
    judged = spark.read.schema(schema).orc(str(tmp_path)).toArrow()
    assert rows_of(table.arrow()) == rows_of(table.dataframe(spark).toArrow()) == rows_of(judged)
    assert table.arrow("id = 2", ["ID"]).to_pylist() == [{"ID": 2}]
    with pytest.raises(
        LayoutError, match=r"000000_0: it has 2 columns without names, and the table 1; declare all of them"
    ):
        penstock.hive(tmp_path, "", "id bigint", format="orc").arrow()


def test_a_day_of_the_old_calendar_in_orc_is_read_by_spark_alone(spark: SparkSession, tmp_path: Path) -> None:
    for i, value in enumerate(["date'1500-01-01'", "timestamp'1500-01-01 00:00:00'", "array(date'1500-01-01')"]):
        spark.sql(f"SELECT {value} d, 1 n").write.orc(str(tmp_path / f"p={i}"))
        table = penstock.hive(tmp_path / f"p={i}", "")
        assert rows_of(table.dataframe(spark).toArrow()) == rows_of(spark.read.orc(str(tmp_path / f"p={i}")).toArrow())
        assert table.arrow(columns=["n"]).to_pylist() == [{"n": 1}]
        with pytest.raises(LayoutError, match=r"\.orc: it has a (day before 1582-10-15|time before 1677)"):
            table.arrow()


@pytest.mark.parametrize("kind", ["orc", "csv", "json"])
def test_filters_on_rows_find_nan(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rows = pa.table({"id": [1, 2, 3], "d": [1.0, float("nan"), None]})
    texts = {"csv": "1,1.0\n2,NaN\n3,\n", "json": '{"id":1,"d":1.0}\n{"id":2,"d":"NaN"}\n{"id":3}\n'}
    (tmp_path / "p=1").mkdir()
    if kind == "orc":
        pyarrow.orc.write_table(rows, tmp_path / "p=1" / "a.orc")
    else:
        (tmp_path / "p=1" / f"a.{kind}").write_text(texts[kind])
    table = penstock.hive(tmp_path, "p int", "id bigint, d double")
    for where in ("d > 1e9", "d = double('NaN')", "d <> 1", "NOT (d < 5)", "d >= 1", "d IS NULL", "p = 1 AND isnan(d)"):
        found = spark.read.schema("id bigint, d double, p int").format(kind).load(str(tmp_path))
        expected = sorted(row.id for row in found.collect() if row.id in _matching(where))
        assert sorted(table.arrow(where)["id"].to_pylist()) == expected
        assert sorted(row.id for row in table.dataframe(spark).where(where).collect()) == expected


def _matching(where: str) -> set[int]:
    is_null = where == "d IS NULL"
    return {3} if is_null else {1, 2} if where == "d >= 1" else {2}


SCHEMAS = {
    "csv": ["a,b,c\n1,x,\n", "a,A,b\n", "a,,a\n", "\"x,y\",z\n", "\n\na\n"],
    "json": [
        '{"b":1,"a":"x","C":1.5,"B2":true}\n{"a":null,"z":[1,2.5],"s":{"q":1,"p":"x"}}\n{"b":1.5,"n":null,"e":[],"o":{}}\n',
        '{"a":12345678901234567890}\n{"b":123456789012345678901234567890123456789012}\n{"c":1e3}\n{"d":[1,"x"]}\n',
        '{"e":[{"x":1},{"y":2}]}\n{"f":"2020-01-01"}\n{"g":[[1],[]]}\n', '{"a":1}\n{"a":"x"}\n{"a":true}\n',
        '[{"a":1},{"b":2}]\n', '{"a":NaN}\n', '{"a":12345678901234567890}\n{"a":1.5}\n',
        '{"a":12345678901234567890}\n{"a":1}\n', '{"a":[null,1]}\nnull\n',
        '{"a":[{}],"é":1,"Z":1,"_":1,"😀":1,"￮":2}\n',
    ],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*columns as one file shows them")
@pytest.mark.parametrize(("kind", "content"), [(kind, content) for kind, texts in SCHEMAS.items() for content in texts])
def test_columns_that_nobody_declares_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, kind: str, content: str
) -> None:
    (tmp_path / f"a.{kind}").write_text(content)
    for options in ({}, {"header": True}) if kind == "csv" else ({},):
        table = penstock.hive(tmp_path, "", options=options)
        judged = spark.read.options(**options).format(kind).load(str(tmp_path))
        assert [(f.name, f.dataType) for f in table.dataframe(spark).schema] == [
            (f.name, f.dataType) for f in judged.schema
        ]
        assert rows_of(table.arrow()) == rows_of(judged.toArrow())


def test_options_that_only_spark_follows_are_followed_by_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,05/01/2020\nx,y\n2,06/01/2020\n")
    options = {"dateFormat": "dd/MM/yyyy", "mode": "DROPMALFORMED"}
    table = penstock.hive(tmp_path, "", "id int, d date", options=options)
    judged = spark.read.schema("id int, d date").options(**options).csv(str(tmp_path))
    assert rows_of(table.dataframe(spark).toArrow()) == rows_of(judged.toArrow())
    with pytest.raises(
        LayoutError, match=r"a\.csv: only Spark follows the option dateFormat='dd/MM/yyyy' of CSV files; read"
    ):
        table.arrow()


AVRO = [
    {"name": "A", "type": ["null", "int"]},
    {"name": "i", "type": "long"},
    {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "u", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    {"name": "n", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
    {"name": "q", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "s", "type": "string"},
    {"name": "b", "type": "bytes"},
    {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["X", "Y"]}},
    {"name": "f", "type": {"type": "fixed", "name": "f", "size": 2}},
    {"name": "m", "type": {"type": "map", "values": ["null", "int"]}},
    {"name": "g", "type": ["null", "double"]},
    {
        "name": "l",
        "type": {"type": "array", "items": {"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}},
    },
]


def test_avro_is_read_by_name_with_and_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    day = dt.datetime(2020, 7, 1, 10, tzinfo=dt.UTC)
    row: dict[str, Any] = {"A": 1, "i": 2, "t": day, "u": day, "n": day.replace(tzinfo=None), "d": day.date()}
    row |= {"q": Decimal("1.50"), "s": "x", "b": b"ab", "e": "Y", "f": b"zz", "m": {"a": 1, "b": None}, "g": math.nan}
    row |= {"l": [{"x": 1}]}
    for p, codec in enumerate(("null", "deflate")):
        (tmp_path / f"p={p}").mkdir()
        with (tmp_path / f"p={p}" / "part-0.avro").open("wb") as file:
            schema = {"type": "record", "name": "row", "fields": AVRO}
            fastavro.writer(file, schema, [row, row | {"A": None, "u": None, "g": None}], codec=codec)
    table = penstock.hive(tmp_path, "p int")
    assert [row["A"] for row in table.arrow("p = 1").to_pylist()] == [1, None]
    assert table.arrow("p = 1 AND a = 1", ["i", "p"]).to_pylist() == [{"i": 2, "p": 1}]
    if not has_avro(spark):
        return
    judged = spark.read.format(AVRO_FORMAT.spark_source).load(str(tmp_path))
    assert rows_of(table.arrow()) == rows_of(table.dataframe(spark).toArrow()) == rows_of(judged.toArrow())
    assert [f.dataType.simpleString() for f in table.dataframe(spark).schema] == [
        f.dataType.simpleString() for f in judged.schema
    ]
    other = penstock.hive(tmp_path, "p int", "zz string, g double, a bigint, I bigint")
    named = (
        spark.read.format(AVRO_FORMAT.spark_source)
        .schema("zz string, g double, a bigint, I bigint, p int")
        .load(str(tmp_path))
    )
    assert rows_of(other.arrow()) == rows_of(other.dataframe(spark).toArrow()) == rows_of(named.toArrow())


def test_a_reader_that_spark_lacks_is_named_with_its_package(spark: SparkSession, tmp_path: Path) -> None:
    with (tmp_path / "a.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}, [{"a": 1}])
    table = penstock.hive(tmp_path, "")
    lacking = replace(table, file_format=replace(AVRO_FORMAT, spark_reader="org.example.AvroFileFormat"))
    package = f"org.apache.spark:spark-avro_2.13:{spark.version}"
    with pytest.raises(PenstockError, match=r"spark-avro_2\.13 is not on its class path") as raised:
        lacking.dataframe(spark)
    assert f"spark.jars.packages={package}" in str(raised.value)


def test_a_stream_reads_files_of_text(spark: SparkSession, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / "t" / f"day={day}").mkdir(parents=True)
        (tmp_path / "t" / f"day={day}" / "a.csv").write_text(f"id;name\n{day};a\n,\n")
    table = penstock.hive(tmp_path / "t", "day int", "id int, name string", options={"header": True, "sep": ";"})
    query = (
        table.stream(spark, where="day = 2").writeStream.format("memory").queryName("text").trigger(availableNow=True)
    )
    started = query.option("checkpointLocation", str(tmp_path / "c")).start()
    started.awaitTermination(120)
    assert sorted(map(tuple, spark.table("text").collect()), key=str) == [(2, "a", 2), (None, None, 2)]
    options = {
        "partition_by": "day int",
        "schema": "id int, name string",
        "format": "csv",
        "option.header": "true",
        "option.sep": ";",
    }
    assert spark.read.format("penstock").options(**options).load(str(tmp_path / "t")).count() == 4
