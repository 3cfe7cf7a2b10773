"""SQL over the tables of a lake: `namespace.name` in a query becomes a view over the native scan.

Only the text of the names is replaced, at the places where sqlglot found tables; the query itself goes to Spark as it
was written. A table keeps its name as an alias, so that `events.app` still means a column of `web.events`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

import sqlglot
from pyspark.errors import AnalysisException
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import LakeError
from penstock.spark.scan.iceberg_columns import quoted
from penstock.spark.session.session import attach, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake


def run_sql(lake: Lake, text: str, spark: SparkSession | None = None) -> DataFrame:
    """Run a query over the tables of a lake."""
    places = table_names(text)
    attached = attach(spark) if spark is not None else session()
    known = set(lake.tables())
    pieces: list[str] = []
    end = 0
    for start, stop, name, aliased in places:
        if name not in known:
            continue
        view = view_name(lake, name)
        lake.table(name).dataframe(attached).createOrReplaceTempView(view)
        pieces += [text[end:start], view, "" if aliased else f" AS {quoted(name.rpartition('.')[2])}"]
        end = stop
    try:
        return attached.sql("".join([*pieces, text[end:]]))
    except AnalysisException as error:
        unknown = next((name for *_, name, _ in places if name not in known), None)
        if unknown is not None and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            lake.table(unknown)  # an error that names those there are
        raise


def view_name(lake: Lake, name: str) -> str:
    """The view of one table of one lake; Spark compares names without their case, so a hash tells views apart."""
    source = sorted(lake.source.items()) if isinstance(lake.source, Mapping) else lake.source
    place = source if source is None or isinstance(source, str | list) else id(source)
    identity = repr((lake.warehouse, place, lake.timezone, name))
    return f"penstock_{re.sub(r'[^a-z0-9]', '_', name.lower())}_{sha256(identity.encode()).hexdigest()[:16]}"


def table_names(text: str) -> list[tuple[int, int, str, bool]]:
    """The two-part table names of a query: where each begins and ends, and whether it has an alias."""
    try:
        statement = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise LakeError(f"cannot read the query: {str(error).splitlines()[0]}") from None
    places = []
    for table in statement.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and table.db and not table.catalog and "." not in table.name:
            database = table.args["db"]
            start, stop = database.meta.get("start"), table.this.meta.get("end")
            if start is not None and stop is not None:
                places.append((start, stop + 1, f"{table.db}.{table.name}", bool(table.alias)))
    return sorted(places)
