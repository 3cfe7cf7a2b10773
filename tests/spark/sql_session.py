"""What tests of Spark SQL share; their lake, session and `sql` are fixtures in `conftest.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
Sql = Callable[[str], list[tuple[Any, ...]]]
COALESCED = """CREATE TABLE {} (id bigint, app string, headers map<string, string>) USING penstock PARTITIONED BY (app)
TBLPROPERTIES ('penstock.coalesce.columns' = 'app', 'parquet.map.shredding.columns' = 'headers',
               'parquet.map.shredding.headers.keys' = 'k')"""


def declare(sql: Sql, name: str, layout: Path) -> None:
    """Make the layout a table."""
    columns = "(id bigint, dt date, app string)"
    sql(f"CREATE TABLE {name} {columns} USING parquet PARTITIONED BY (dt, app) LOCATION '{layout}'")


def message_of(sql: Sql, text: str) -> str:
    """What a statement that fails says: one line without internal names."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        sql(text)
    message = str(raised.value)
    assert "\n" not in message, message
    assert not any(word in message for word in ("io.penstock", "__penstock", "py4j", "Traceback", "Error("))
    return message


def files_below(place: Path) -> set[Path]:
    """The Parquet files in a folder and below it."""
    return {path for path in place.rglob("*.parquet") if path.is_file()}
