"""NULL in a column that is NOT NULL: Spark's error, which speaks of Scala's types, in the words of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CONDITION = "NOT_NULL_ASSERT_VIOLATION"


@contextmanager
def clear_nulls(table: str) -> Iterator[None]:
    """Say which column of the table has a row without a value."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if not is_null_error(error):
            raise
        raise null_error(table, error) from None


def is_null_error(error: PySparkException) -> bool:
    """Whether a row has NULL where Spark was told that there is none."""
    return bool(error.getCondition() == _CONDITION)


def null_error(table: str, error: PySparkException) -> SchemaError:
    """The same error, with the name of the table and what to do."""
    path = (error.getMessageParameters() or {}).get("walkedTypePath", "")
    column = ".".join(path.strip("\n").split("\n"))
    hint = "filter these rows, or allow NULL: ALTER TABLE … ALTER COLUMN … DROP NOT NULL"
    return SchemaError(f"column {column} of {table} is NOT NULL, and a row has NULL in it", hint=hint)
