"""UPDATE, MERGE and some DELETE in SQL, and merges of DataFrames: Spark computes which rows change, by file and place.

A few changes are collected, and their files rewritten one by one. Many are joined with the rows of their files, and all
of these are written by Spark's tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import LakeError, SchemaError
from penstock.expr.sql_text import quote_name
from penstock.lake.write.by_place import ByPlace, ChangedPlaces
from penstock.lake.write.conform import check_schema, in_order
from penstock.lake.write.row_change import Places
from penstock.lake.write.write_modes import merges_on_read
from penstock.lake.write.write_result import WriteResult
from penstock.lake.write.writes import Done, change_once, mark_rows, prepare, produce, replace_files
from penstock.tables.file_metadata import spark_url
from penstock.tables.iceberg.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Columns of rows that a statement changes, which EXPLAIN shows; the rest are those of the table.
OPERATION, FILE, PLACE = "operation on the row", "file of the row", "place of the row"
REMOVED, UPDATED, ADDED = 1, 2, 3  # as Spark numbers them
_COLLECTED_BYTES, _COLLECTED_ROWS = 128 << 20, 2_000_000
NO_FIT = "a value does not fit the column "  # of errors that are raised in Spark
_SEVERAL = "MERGE_CARDINALITY_VIOLATION"
_RAISED = re.compile(rf"{NO_FIT}(.*)")


def change_computed(base: IcebergTable, rows: DataFrame, command: str, properties: Mapping[str, str]) -> Done:
    """Commit the changes of one statement; `Overtaken` when others changed the table since its rows were read."""
    from pyspark.sql import functions as F

    kept = rows.persist()
    try:
        with _clear_errors(base.name):
            counts = {row[0]: row[1] for row in kept.groupBy(OPERATION).agg(F.count(F.lit(1))).collect()}
        if not counts:
            return Done(base.table, WriteResult())
        plan = kept._jdf.queryExecution().withCachedData()
        if sum(counts.values()) <= _COLLECTED_ROWS and int(str(plan.stats().sizeInBytes())) <= _COLLECTED_BYTES:
            return _change_files(base, kept.toArrow(), command, properties)
        return _change_in_tasks(base, kept, counts, command, properties)
    finally:
        kept.unpersist()


def paths_of(table: IcebergTable, urls: Iterable[str]) -> dict[str, str]:
    """The table's paths of files that Spark shows by URL."""
    wanted = set(urls)
    paths = {spark_url(task.path): task.path for task in table.plan().files} if wanted else {}
    return {url: paths[url] for url in wanted}


def _change_files(base: IcebergTable, rows: pa.Table, command: str, properties: Mapping[str, str]) -> Done:
    job = prepare(base)
    names = [name for name in rows.column_names if name not in (OPERATION, FILE, PLACE)]
    columns = check_schema(rows.select(names).schema, job.layout.schema) if names else [None for _ in job.layout.names]
    values = in_order(rows, columns).combine_chunks()
    operations = rows.column(OPERATION).to_numpy()
    files = rows.column(FILE).combine_chunks().dictionary_encode()
    of_row = files.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    places = rows.column(PLACE).fill_null(-1).to_numpy()
    urls = files.dictionary.to_pylist()
    paths = paths_of(base, urls)
    by_file = np.argsort(of_row, kind="stable")
    starts = np.searchsorted(of_row[by_file], np.arange(len(urls)))
    changed = {}
    for url, here in zip(urls, np.split(by_file, starts)[1:], strict=True):  # first come the rows of no file
        removed, updated = here[operations[here] == REMOVED], here[operations[here] == UPDATED]
        changed[paths[url]] = ChangedPlaces(places[removed], places[updated], values.take(pa.array(updated)))
    new = values.filter(pc.equal(rows.column(OPERATION), ADDED))
    return change_once(base, job, ByPlace(base.version.snapshot_id, changed, new), properties, command=command)


def _change_in_tasks(
    base: IcebergTable, rows: DataFrame, counts: Mapping[int, int], command: str, properties: Mapping[str, str]
) -> Done:
    from pyspark.sql import functions as F

    job = prepare(base)
    there = rows.where(F.col(FILE).isNotNull())
    columns = [F.col(quote_name(name)) for name in base.schema.names]
    new = rows.where(F.col(OPERATION) != REMOVED).select(*columns) if len(rows.columns) > 3 else None
    removed = counts.get(REMOVED, 0)
    if removed and command == "merge":  # several rows of the source may delete the same row
        removed = there.where(F.col(OPERATION) == REMOVED).select(FILE, PLACE).distinct().count()
    rows_changed = {"added": counts.get(ADDED, 0), "updated": counts.get(UPDATED, 0), "removed": removed}
    if merges_on_read(job.properties, base.version.metadata.format_version, command):
        marked = _by_file(base, there.groupBy(FILE).agg(F.collect_set(PLACE).alias(PLACE)).toArrow())
        written = produce(job, new) if new is not None else []
        return mark_rows(base, job, marked, written, rows_changed, command, properties)
    urls = [row[0] for row in there.select(FILE).distinct().collect()]
    hidden = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(PLACE)]
    all_rows = base.dataframe(rows.sparkSession).select("*", *hidden).where(F.col(FILE).isin(urls))
    staying = all_rows.join(there.select(FILE, PLACE), [FILE, PLACE], "left_anti").select(*columns)
    written = produce(job, staying if new is None else staying.unionByName(new))
    removed_files = frozenset(paths_of(base, urls).values())
    return replace_files(base, job, removed_files, written, rows_changed, command, properties)


def _by_file(base: IcebergTable, rows: pa.Table) -> dict[str, Places]:
    """The places of rows by the table's path of their file; of each file there is one list."""
    urls = rows.column(FILE).to_pylist()
    paths = paths_of(base, urls)
    return {paths[url]: places.values.to_numpy() for url, places in zip(urls, rows.column(PLACE), strict=True)}


@contextmanager
def _clear_errors(table: str) -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raised = _RAISED.search(str(error))
        if raised is not None:
            raise SchemaError(raised[0].strip(), hint="cast or filter the rows first; nothing was written") from None
        if error.getCondition() != _SEVERAL:
            raise
        message = f"a row of {table} is met by several rows of the source"
        raise LakeError(message, hint="give one row for each key; nothing was written") from None
