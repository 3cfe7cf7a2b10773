"""`lake.sql(text)`: any statement of Spark SQL, with the lake as the current catalog."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.spark.catalog.lakes import catalog_name
from penstock.spark.session.session import attach, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake

_lock = threading.Lock()


@contextmanager
def clear_names(lake: Lake) -> Iterator[None]:
    """A table that does not exist is an error that names those that do."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND" and name.count("."):
            lake.table(name.split(".", 1)[1] if name.count(".") > 1 else name)
        raise


def run_sql(lake: Lake, text: str, spark: SparkSession | None = None) -> DataFrame:
    """Run a statement in which `namespace.name` means a table of the lake.

    The session's own current catalog is another one only while Spark reads the text.
    """
    attached = attach(spark) if spark is not None else session()
    name = catalog_name(attached, lake)
    with _lock, clear_names(lake):
        before = attached.catalog.currentCatalog()
        namespace = attached.catalog.currentDatabase() if before == name else None
        attached.catalog.setCurrentCatalog(name)
        try:
            return attached.sql(text)
        finally:
            attached.catalog.setCurrentCatalog(before)
            if namespace:
                attached.catalog.setCurrentDatabase(namespace)
