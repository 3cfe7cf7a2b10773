"""Predicates through Spark: DataFrames, SQL, joins with dynamic pruning and streams, each against the judge."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.errors import PenstockError
from tests.fuzz.checks import Checked, Outcome, compare, compare_content
from tests.fuzz.layout import Layout
from tests.fuzz.oracle import Answer
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows
from tests.fuzz.session import SPARK_ERRORS, Sessions
from tests.fuzz.values import SCALARS, UUID

_names = itertools.count()


def check_where(sessions: Sessions, flat: DataFrame, layout: Layout, text: str, answer: Answer) -> Checked:
    """`df.where(text)`."""
    return _asked(layout, answer, flat, text, lambda: layout.table.dataframe(sessions.judged).where(text))


def check_sql(sessions: Sessions, flat: DataFrame, layout: Layout, text: str, answer: Answer) -> Checked:
    """`SELECT … FROM catalog.namespace.table WHERE …`."""
    query = f"SELECT {ID} FROM {layout.sql_name} WHERE {text}"
    return _asked(layout, answer, flat, text, lambda: sessions.judged.sql(query))


def check_rows(sessions: Sessions, layout: Layout, rows: Rows) -> Checked:
    """`SELECT * FROM …`: every value of every row."""
    try:
        content = sessions.judged.table(layout.sql_name).toArrow()
    except PenstockError as error:
        return Outcome.REFUSED, str(error)
    return compare_content(content, rows.table, layout.live)


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


def check_join(
    sessions: Sessions, flat: DataFrame, layout: Layout, rows: Rows, rng: Random, *, by_name: bool
) -> tuple[str, Checked]:
    """The table joined with a few values of one of its columns, which prunes while the query runs."""
    column = rng.choice([ID, *(c for c, t in rows.types.items() if t in SCALARS or t == UUID)])
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
        spark = sessions.judged
        ids = _ids(joined(ours, spark.table(layout.sql_name) if by_name else layout.table.dataframe(spark)))
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
    except SPARK_ERRORS as error:
        if answer.doubtful or _raises(flat, text):
            return Outcome.REFUSED, "Spark raises"
        return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:400]}"
    except Exception as error:
        return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:400]}"


def _raises(flat: DataFrame, text: str) -> bool:
    """Whether plain Spark raises too when it filters: it may look at parts of a predicate in another order."""
    try:
        flat.where(text).select(ID).collect()
    except SPARK_ERRORS:
        return True
    return False


def _ids(frame: DataFrame) -> list[int]:
    return [row[0] for row in frame.select(ID).collect()]
