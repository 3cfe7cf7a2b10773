"""Any table as a lazy DataFrame over Spark's own reader; filters put on it later prune too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.spark.session.session import attach, is_connect
from penstock.tables.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def dataframe(table: Source, spark: SparkSession, where: str | None = None) -> Any:
    """The table as a lazy DataFrame. On Spark Connect, which has no JVM to plan in, `where` must be given."""
    relations = table.relations()
    if is_connect(spark):
        if where is None:
            hint = "give it: table.dataframe(spark, where=…); 'TRUE' reads everything"
            raise PenstockError(
                "on Spark Connect filters put on later cannot prune, so the filter is needed here", hint=hint
            )
        return relations.planned_rows(spark, where)
    rows = relations.rows(attach(spark), where)
    return rows if where is None else rows.where(where)
