"""Predicates through Spark: DataFrames, SQL, joins with dynamic pruning and streams, each against the judge."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from penstock.errors import PenstockError
from tests.fuzz.checks import Checked, Outcome, compare
from tests.fuzz.layout import Layout
from tests.fuzz.oracle import Answer
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows
from tests.fuzz.session import Sessions

_names = itertools.count()
_SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the second: an exception of Java in a task, such as an overflow


def check_where(sessions: Sessions, flat: DataFrame, layout: Layout, text: str, answer: Answer) -> Checked:
    """`df.where(text)`."""
    return _asked(layout, answer, flat, text, lambda: layout.table.dataframe(sessions.judged).where(text))


def check_sql(sessions: Sessions, flat: DataFrame, layout: Layout, text: str, answer: Answer) -> Checked:
    """`lake.sql(…)`; a layout without a lake is asked through a view."""
    if layout.lake is not None:
        query = f"SELECT {ID} FROM {layout.name} WHERE {text}"
        return _asked(layout, answer, flat, text, lambda: layout.lake.sql(query, sessions.judged))
    view = f"fuzzed_{next(_names)}"
    layout.table.dataframe(sessions.judged).createOrReplaceTempView(view)
    ask = f"SELECT {ID} FROM {view} WHERE {text}"
    return _asked(layout, answer, flat, text, lambda: sessions.judged.sql(ask))


def check_stream(sessions: Sessions, flat: DataFrame, layout: Layout, text: str, answer: Answer) -> Checked:
    """`table.stream(where=text)`, all that is there, into memory."""
    sink = f"fuzzed_{next(_names)}"

    def rows() -> DataFrame:
        stream = layout.table.stream(sessions.judged, text, columns=[ID])
        query = stream.writeStream.format("memory").queryName(sink).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return sessions.judged.table(sink)

    try:
        return _asked(layout, answer, flat, text, rows)
    finally:
        sessions.judged.catalog.dropTempView(sink)


def check_join(sessions: Sessions, flat: DataFrame, layout: Layout, rows: Rows, rng: Random) -> tuple[str, Checked]:
    """The table joined with a few values of one of its columns, which prunes while the query runs."""
    nested = ("map", "map of int", "array", "struct")
    column = rng.choice([ID, *(c for c, t in rows.types.items() if t not in nested)])
    chosen = rng.sample(range(rows.table.num_rows), 3)
    some = f"{ID} IN ({', '.join(map(str, chosen))})"
    text = f"JOIN ON {column} WITH {some}"

    def joined(dimension: DataFrame, table: DataFrame) -> DataFrame:
        wanted = dimension.withColumnRenamed(column, "wanted").where("wanted IS NOT NULL").hint("broadcast")
        return table.join(wanted, table[quote(column)] == wanted["wanted"]).select(table[ID])

    values = flat.where(some).select(quote(column)).distinct().toArrow()
    try:
        theirs, ours = (spark.createDataFrame(values) for spark in (flat.sparkSession, sessions.judged))
    except pa.ArrowInvalid as error:  # a time without a zone that the session's clock skips
        return text, (Outcome.REFUSED, f"PySpark makes no DataFrame of the values: {error}")
    try:
        expected = {row[0] for row in joined(theirs, flat).collect()} & layout.live
        ids = _ids(joined(ours, layout.table.dataframe(sessions.judged)))
    except PenstockError as error:
        return text, (Outcome.REFUSED, str(error))
    except Exception as error:
        return text, (Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}")
    if sorted(ids) != sorted(expected):
        lost, invented = sorted(expected - set(ids))[:5], sorted(set(ids) - expected)[:5]
        return text, (Outcome.WRONG, f"loses rows {lost} and invents {invented}")
    return text, (Outcome.RIGHT, "")


def _asked(layout: Layout, answer: Answer, flat: DataFrame, text: str, query: Callable[[], DataFrame]) -> Checked:
    try:
        return compare(layout, answer, _ids(query()))
    except PenstockError as error:
        return Outcome.REFUSED, str(error)
    except _SPARK_ERRORS as error:
        if answer.doubtful or _raises(flat, text):
            return Outcome.REFUSED, "Spark raises"
        return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:400]}"
    except Exception as error:
        return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:400]}"


def _raises(flat: DataFrame, text: str) -> bool:
    """Whether plain Spark raises too when it filters: it may look at parts of a predicate in another order."""
    try:
        flat.where(text).select(ID).collect()
    except _SPARK_ERRORS:
        return True
    return False


def _ids(frame: DataFrame) -> list[int]:
    return [row[0] for row in frame.select(ID).collect()]
