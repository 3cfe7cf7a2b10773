"""The one place where tables reach up to Spark: `table.dataframe(spark)` is a promise of the public surface.

The import waits inside the function, so that tables plan where neither Spark nor Java is installed.
"""

from __future__ import annotations

from typing import Any


def dataframe(table: Any, spark: Any, where: str | None = None) -> Any:
    """The table as a lazy DataFrame; with `where`, filtered."""
    from penstock.spark.scan import dataframe as scan

    return scan(table, spark, where)
