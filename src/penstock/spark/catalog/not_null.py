"""NULL in a column that is NOT NULL: Spark's error, which speaks of Scala's types, in the words of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import SchemaError

_CONDITION = "NOT_NULL_ASSERT_VIOLATION"


@contextmanager
def clear_nulls(table: str) -> Iterator[None]:
    """Say which column of the table has a row without a value."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if error.getCondition() != _CONDITION:
            raise
        column = ".".join((error.getMessageParameters() or {}).get("walkedTypePath", "").split())
        hint = "filter these rows, or allow NULL: ALTER TABLE … ALTER COLUMN … DROP NOT NULL"
        raise SchemaError(f"column {column} of {table} is NOT NULL, and a row has NULL in it", hint=hint) from None
