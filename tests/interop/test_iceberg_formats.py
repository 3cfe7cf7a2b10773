"""Iceberg tables with data files in ORC and Avro: rows and plans of Iceberg's own Spark runtime are the judge.

The judge is asked in a form that it cannot push down, because it loses rows with NaN otherwise; the files that it plans
are those of the predicate as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import LakeError, PredicateError
from penstock.tables.iceberg.iceberg_table import IcebergTable
from tests.interop import iceberg_judge as ask
from tests.interop.iceberg_formats_written import FORMATS, write_formats
from tests.interop.iceberg_judge import IcebergJudge
from tests.interop.spark_process import SparkProcess
from tests.interop.test_iceberg_judges import Rows, as_rows, by_spark
from tools.fetch_jars import Unavailable

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

IN_ORC = "in_orc"
WHERES = [
    "TRUE", "id < 10", "id >= 40", "n > 30", "n IS NULL", "b < 0", "app = 'shop'", "app IS NULL", "app LIKE 'sh%'",
    "x > 1.0", "x = 0", "x < 0", "x <= -0.0", "x = double('NaN')", "NOT (x > 1.0)", "f >= 1.5", "f = double('NaN')",
    "d >= DATE'1970-06-01'", "ts < TIMESTAMP'1972-01-01 00:00:00'", "ts = TIMESTAMP'2025-11-02 05:30:00'", "p = -30.26",
    "raw = X'6B30'", "s.a = 2", "s.b = 's1' OR n = 7", "ok AND id % 2 = 0", "m['k'] = 1", "later = 'new'",
    "ntz >= TIMESTAMP_NTZ'1970-01-01 00:00:00'", "big < 0", "`we.ird` = 7", "d = DATE'1500-03-01'", "m2 > 5",
]  # fmt: skip
MANY = 1_000  # files
READ_BY_SPARK = ("in_orc", "in_avro", "mixed")
REFUSED_BY_SPARK = {
    "renamed_orc": "was called 'm2' and 'n'|was that of another column",
    "renamed_avro": "was called 'm2' and 'n'|was that of another column",
    "deleted_orc": "has rows deleted by position, and Spark does not number the rows of ORC",
    "deleted_avro": "has rows deleted by position, and Spark does not number the rows of Avro",
    "vectors_orc": "has rows deleted by position, and Spark does not number the rows of ORC",
    "vectors_avro": "has rows deleted by position, and Spark does not number the rows of Avro",
    "types_orc": "column ntz is a timestamp in files in ORC",
    "types_avro": "column ntz is a timestamp in files in Avro",
    "times": r"may hold values of (d before 1582-10-15|ts before 1900-01-02), which Spark reads wrong from ORC",
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("formats")


@pytest.fixture(scope="module")
def judge(warehouse: Path) -> IcebergJudge:
    try:
        return ask.shared_judge(warehouse)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def written(judge: IcebergJudge, warehouse: Path) -> Callable[[str], str]:
    """Where the metadata of a table is; it is written when it is first asked for."""
    return ask.written_once(judge, warehouse, write_formats)


@pytest.fixture(scope="module")
def spark_of_tests() -> Iterator[SparkProcess]:
    """The tests' own PySpark, in a zone whose clocks change."""
    config = {
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=America/New_York",
    }
    process = SparkProcess(config=config, master="local[1]")
    yield process
    process.close()


def rows_in_spark(spark: Any, metadata: str, wheres: Sequence[str]) -> list[pa.Table]:
    """What a DataFrame of Penstock has for each predicate."""
    penstock.attach(spark)
    table = penstock.iceberg(metadata)
    rows = []
    for where in wheres:
        try:
            rows.append(table.dataframe(spark).where(where).toArrow())
        except LakeError as error:  # a format that nothing has told of, which is known from then on
            if "make the DataFrame again" not in str(error):
                raise
            rows.append(table.dataframe(spark).where(where).toArrow())
    return rows


def predicates_of(table: IcebergTable) -> list[str]:
    """Those whose columns the table has."""
    found = []
    for where in WHERES:
        try:
            table.plan(where)
        except PredicateError:
            continue
        found.append(where)
    return found


def judged(judge: IcebergJudge, name: str, wheres: Sequence[str], columns: Sequence[str]) -> list[tuple[Rows, int]]:
    """The rows by Iceberg's Spark runtime, NaN included, and the files that it plans where it loses none of them."""
    unpushed = [f"array_contains(array({where}), true)" for where in wheres]
    rows = by_spark(judge, f"lake.web.{name}", unpushed, columns)
    planned = by_spark(judge, f"lake.web.{name}", wheres, columns)
    return [(own, files if own == pushed else MANY) for (own, _), (pushed, files) in zip(rows, planned, strict=True)]


@pytest.mark.parametrize("name", FORMATS)
def test_rows_without_spark_are_those_of_iceberg(judge: IcebergJudge, written: Callable[[str], str], name: str) -> None:
    table = penstock.iceberg(written(name))
    wheres, columns = predicates_of(table), table.schema.names
    for where, (rows, files) in zip(wheres, judged(judge, name, wheres, columns), strict=True):
        assert as_rows(table.arrow(where), columns) == rows, where
        assert table.count(where) == rows.total(), where
        assert len(table.plan(where).files) <= files, where


@pytest.mark.parametrize("name", READ_BY_SPARK)
def test_rows_in_spark_are_those_of_iceberg(
    judge: IcebergJudge, written: Callable[[str], str], spark_of_tests: SparkProcess, name: str
) -> None:
    path = written(name)
    table = penstock.iceberg(path)
    wheres, columns = predicates_of(table), table.schema.names
    answers = spark_of_tests.ask(rows_in_spark, path, wheres)
    for where, own, (rows, _) in zip(wheres, answers, judged(judge, name, wheres, columns), strict=True):
        assert as_rows(own, columns) == rows, where


@pytest.mark.parametrize("name", REFUSED_BY_SPARK)
def test_what_spark_would_read_wrong_is_refused(
    written: Callable[[str], str], spark_of_tests: SparkProcess, name: str
) -> None:
    with pytest.raises(LakeError, match=REFUSED_BY_SPARK[name]) as error:
        spark_of_tests.ask(rows_in_spark, written(name), ["TRUE"])
    assert "table.arrow()" in str(error.value)
    assert "\n" not in str(error.value)


def test_files_in_orc_are_planned_by_partition_and_bounds(judge: IcebergJudge, written: Callable[[str], str]) -> None:
    table = penstock.iceberg(written(IN_ORC))
    wheres = ["TRUE", "app = 'shop'", "id >= 40", "app IS NULL AND id < 10"]
    theirs = [files for _, files in by_spark(judge, f"lake.web.{IN_ORC}", wheres, table.schema.names)]
    assert [len(table.plan(where).files) for where in wheres] == theirs
    assert theirs[0] > max(theirs[1:])
    assert {task.format for task in table.plan().files} == {"ORC"}
