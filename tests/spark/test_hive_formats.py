"""Files of CSV, JSON, text, ORC and Avro in Hive layouts: the rows of Spark's own reader, or an error with a name.

Each file lies in a partition of its own, so one read of Spark judges a whole group, and each question reads one file.
"""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.errors import LayoutError
from tests.spark.format_cases import DAMAGED, GROUPS, UTF8, Group

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
