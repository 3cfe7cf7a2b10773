"""Writing with Spark: rows are counted by partition, sent to the task that writes their file, and written there.

    DataFrame ─→ rows of each partition, counted ─→ slots (lake/layout/slots) ─→ shuffle by slot ─→ sort ─→ Parquet

Counting reads only what the partition needs. What is costly to compute is computed once and kept for both passes. Rows
whose partition the count did not see, because the data changed in between, are given a slot by the task that gets them.

Workers need Penstock installed, as they need any package that a job uses.
"""

from __future__ import annotations

import heapq
import math
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial, reduce
from inspect import signature
from itertools import count, pairwise
from typing import Any
from uuid import UUID

import mmh3
import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, StructType

from penstock.errors import PenstockError, SchemaError
from penstock.expr.sql_text import quote_name
from penstock.lake.layout.grouping import stored
from penstock.lake.layout.slots import Slot, Slots, assign
from penstock.lake.layout.table_layout import Layout
from penstock.lake.write.arrangement import write_slots
from penstock.lake.write.conform import check_schema, conform, null_error, required
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard
from penstock.maps.sidecar_columns import path_to
from penstock.progress import Counted
from penstock.spark.session.session import is_connect, session
from penstock.spark.session.tasks import progress_of_tasks, tasks_at_once
from penstock.spark.write.partition_columns import FLOATS, partition_columns
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.schema_columns import Columns, arrow_type

_SLOT, _KEY, _PART, _KNOWN, _NUMBER = (f"__penstock_{name}" for name in ("slot", "key", "part", "known", "number"))
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_PER_BATCH = 65_536
_SAMPLE = 20_000
_SPARK_SEED = 42
_BYTES_PER_TASK = 64 << 20
# What a plan may consist of to be computed twice without a thought.
_CHEAP = {"Project", "Filter", "Relation", "RelationV2", "LocalRelation", "Range", "Union", "InMemoryRelation",
          "SubqueryAlias", "LocalLimit", "GlobalLimit", "OneRowRelation"}  # fmt: skip
_NODE = re.compile(r"^[\s:+\-!]*'?([A-Za-z0-9]+)", re.MULTILINE)


def write_dataframe(job: WriteJob, df: DataFrame) -> list[WrittenFile]:
    """Write the rows of a DataFrame as data files."""
    spark = df.sparkSession
    names = check_schema(arrow_schema(df.schema), job.layout.schema)
    columns = nullable_columns(df)
    missing = _nulls(job.layout.schema, [name is None for name in names])
    fields = zip(names, job.layout.schema.fields, strict=True)
    rows = df.select([(missing if name is None else columns)[name or f.name].alias(f.name) for name, f in fields])
    rows = _with_partition_sources(rows, job.layout)
    with _computed_once(rows) as kept:
        with progress_of_tasks("counting the rows of each partition", spark):
            _check_required(job, kept, df)
            slots, known = _slots(job, kept, spark)
        if not slots.slots:
            return []
        placed = _placed(job, kept, slots, known, spark)
        with progress_of_tasks(f"writing {Counted(len(slots.slots), None, 'file')}", spark):
            return _collect(job, placed.mapInArrow(_writer(job, slots.slots), "answer binary"), spark)


def nullable_columns(df: DataFrame) -> dict[str, Column]:
    """The columns of a DataFrame, without required fields: PySpark's `toArrow` fails on null structs that have any."""
    nullable = {field.name: field.dataType for field in df.schema.toNullable().fields}
    casts = {each.name: nullable[each.name] for each in df.schema.fields if each.dataType != nullable[each.name]}
    return {name: _column(name).cast(casts[name]) if name in casts else _column(name) for name in nullable}


def _nulls(schema: Schema, is_missing: Sequence[bool]) -> dict[str, Column]:
    """NULL in the types of columns that rows do not have, by their names."""
    types = from_arrow_schema(Columns(schema).arrow, prefer_timestamp_ntz=True)
    fields = zip(types.fields, is_missing, strict=True)
    return {field.name: F.lit(None).cast(field.dataType) for field, missing in fields if missing}


def _with_partition_sources(rows: DataFrame, layout: Layout) -> DataFrame:
    """Rows whose structs have the fields that the table is partitioned by; others are added as files are written."""
    for source in {field.source_id for field in layout.fine.fields}:
        path = path_to(layout.schema.fields, source) or ()
        place = _missing_part(rows.schema, path)
        if place is not None:
            kind = from_arrow_type(arrow_type(layout.schema.find_field(".".join(place)).field_type, ""), True)
            inside = ".".join(quote_name(name) for name in place[1:])
            column = _column(place[0]).withField(inside, F.lit(None).cast(kind))
            rows = rows.withColumn(quote_name(place[0]), column)
    return rows


def _missing_part(schema: StructType, path: Sequence[str]) -> tuple[str, ...] | None:
    """The first part of a path that a schema does not have."""
    kind: Any = schema
    for i, name in enumerate(path):
        inner = next((field for field in kind.fields if field.name.lower() == name.lower()), None)
        if inner is None:
            return tuple(path[: i + 1])
        kind = inner.dataType
    return None


def rewrite_table(job: WriteJob, table: IcebergTable) -> list[WrittenFile]:
    """Write all rows of a version of a table again, in the session that is there or in a new one."""
    return write_dataframe(job, table.dataframe(_session()))


def sample(df: DataFrame, names: Sequence[str], rows: int) -> pa.Table:
    """The first rows of a DataFrame, of some columns: any others would cost a pass over all of them."""
    with progress_of_tasks("looking for hot keys", df.sparkSession):
        rows_taken: pa.Table = df.select(*map(_column, names)).limit(rows).toArrow()
    return rows_taken


def map_files(tasks: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Do something with each of some files in tasks of the session that is there, or of a new one.

    An answer may be a `PenstockError`.
    """
    spark = _session()
    numbered = pa.table(
        {_NUMBER: pa.array(range(len(tasks)), pa.int64()), "task": [pickle.dumps(task) for task in tasks]}
    )
    parts = min(len(tasks), 4 * tasks_at_once(spark))
    spread = spark.createDataFrame(numbered).repartition(parts, _NUMBER)
    with progress_of_tasks(f"rewriting {Counted(len(tasks), None, 'file')}", spark):
        answers = spread.mapInArrow(_mapper(work), "answer binary").collect()
    results = dict(pair for row in answers for pair in [pickle.loads(row.answer)])
    return [results[i] for i in range(len(tasks))]


def _session() -> SparkSession:
    return SparkSession.getActiveSession() or session()


def _column(name: str) -> Column:
    return F.col(quote_name(name))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Arrow's schema of one of Spark's."""
    has_zone = "timezone" in signature(to_arrow_schema).parameters  # from 4.2
    zone: dict[str, Any] = {"timezone": "UTC"} if has_zone else {}
    try:
        return to_arrow_schema(schema, **zone)
    except (PySparkException, pa.ArrowException, TypeError, ValueError) as error:
        message = f"the rows have a column that no table can hold: {' '.join(str(error).split())[:200]}"
        raise SchemaError(message, hint="cast or drop it; nothing was written") from None


def _check_required(job: WriteJob, rows: DataFrame, df: DataFrame) -> None:
    """Nulls in required columns are found before anything is written; columns that cannot be null are not read."""
    nullable = {field.name for field in rows.schema.fields if field.nullable}
    names = [name for name in required(job.layout.schema) if name in nullable]
    if not names:
        return
    counts = [F.sum(_column(name).isNull().cast("bigint")).alias(str(i)) for i, name in enumerate(names)]
    (null_counts,) = rows.agg(*counts).collect()
    for name, nulls in zip(names, null_counts, strict=True):
        if nulls:
            raise null_error(name, nulls)


def _slots(job: WriteJob, rows: DataFrame, spark: SparkSession) -> tuple[Slots, pa.Table]:
    """The slots of all partitions in the rows, and those partitions as columns."""
    layout = job.layout
    columns = partition_columns(layout.schema, layout.fine)
    parts = [column.alias(f"{_PART}{i}") for i, column in enumerate(columns)]
    counted = rows.select(*parts).groupBy(*(f"{_PART}{i}" for i in range(len(parts))))
    counts_by_partition: pa.Table = counted.agg(F.count(F.lit(1)).alias(_NUMBER)).toArrow()
    numbers = counts_by_partition.column(_NUMBER).to_numpy()
    counts_by_partition = counts_by_partition.filter(pa.array(numbers > 0)).combine_chunks()
    known = counts_by_partition.drop_columns([_NUMBER])
    tuples = _tuples(known, layout)
    if not tuples:
        return Slots([], [], []), known
    per_row = job.bytes_per_row or job.measure(conform(rows.limit(_SAMPLE).toArrow(), layout))
    sizes = (counts_by_partition.column(_NUMBER).to_numpy() * per_row).tolist()
    return assign(layout, tuples, sizes, job.expected(tuples, sizes), job.target, tasks_at_once(spark)), known


def _tuples(known: pa.Table, layout: Layout) -> list[tuple[Any, ...]]:
    """The partitions as manifests have them."""
    if not known.num_columns:
        return [()] * known.num_rows
    columns = []
    for field, column in zip(layout.fine.fields, known.columns, strict=True):
        source = layout.schema.find_field(field.source_id).field_type
        array = column.combine_chunks()
        if str(source) in FLOATS and pa.types.is_string(array.type):
            numbers = [None if text is None else float(text) for text in array.to_pylist()]
            array = pa.array(numbers, FLOATS[str(source)])
        values = stored(array)
        if str(source) == "uuid" and str(field.transform) == "identity":
            values = [None if value is None else UUID(value).bytes for value in values]
        columns.append(values)
    return list(zip(*columns, strict=True))


def _placed(job: WriteJob, rows: DataFrame, slots: Slots, known: pa.Table, spark: SparkSession) -> DataFrame:
    """The rows with their slots, each slot in one task, sorted by slot and, in shared files, by the logical columns."""
    layout = job.layout
    tasks = min(len(slots.slots), max(4 * tasks_at_once(spark), math.ceil(sum(slots.bytes) / _BYTES_PER_TASK)))
    keys = _keys(tasks)
    task_of = _balanced(slots.bytes, tasks)
    places = pa.table(
        {
            **{f"{_KNOWN}{i}": column for i, column in enumerate(known.columns)},
            _SLOT: pa.array([each.slot for each in slots.assigned], pa.int32()),
            _KEY: pa.array(
                [[keys[task_of[each.slot + i]] for i in range(each.slots)] for each in slots.assigned],
                pa.list_(pa.int32()),
            ),
            _NUMBER: pa.array([slots.slots[each.slot].is_shared for each in slots.assigned]),
        }
    )
    columns = partition_columns(layout.schema, layout.fine)
    with_parts = rows.select("*", *(column.alias(f"{_PART}{i}") for i, column in enumerate(columns)))
    same = [F.col(f"{_PART}{i}").eqNullSafe(F.col(f"{_KNOWN}{i}")) for i in range(len(columns))]
    match = reduce(lambda a, b: a & b, same, F.lit(True))
    joined = with_parts.join(
        F.broadcast(spark.createDataFrame(places, _places_schema(with_parts, len(columns)))), match, "left"
    )
    share = _share(rows, F.size(_KEY)) if any(each.slots > 1 for each in slots.assigned) else F.lit(0)
    spread = joined.withColumn(_SLOT, F.col(_SLOT) + share)
    spread = spread.withColumn(_KEY, F.coalesce(F.get(F.col(_KEY), share), F.lit(keys[0])))
    shared = [F.when(F.col(_NUMBER), _column(layout.schema.find_field(i).name)) for i in layout.logical_ids]
    sorted_rows = spread.repartition(tasks, F.col(_KEY)).sortWithinPartitions(F.col(_SLOT), *shared)
    # mapInArrow does not quote the names by which it looks for columns, so these are plain.
    columns = [_column(field.name).alias(f"{_PART}{i}") for i, field in enumerate(layout.schema.fields)]
    return sorted_rows.select(*columns, F.col(_SLOT))


def _places_schema(rows: DataFrame, parts: int) -> StructType:
    """Spark's own types of the partitions: Arrow's do not tell a time with a zone from one without."""
    schema = StructType()
    for i in range(parts):
        schema = schema.add(f"{_KNOWN}{i}", rows.schema[f"{_PART}{i}"].dataType)
    return schema.add(_SLOT, IntegerType()).add(_KEY, ArrayType(IntegerType())).add(_NUMBER, BooleanType())


def _share(rows: DataFrame, parts: Column) -> Column:
    """Which part of a partition a row belongs to; the same whenever it is computed, as a task may be repeated."""
    names = [field.name for field in rows.schema.fields if "map<" not in field.dataType.simpleString()]
    number = F.hash(*map(_column, names)).cast("bigint") if names else F.lit(0)
    return F.when(parts > 1, F.pmod(number, parts.cast("bigint")).cast("int")).otherwise(0)


def _writer(job: WriteJob, slots: Sequence[Slot]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: its answer is the files that it wrote, or what is wrong with the rows."""
    own = replace(job, known={})

    names = [field.name for field in job.layout.schema.fields]

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _answer(_attempt(lambda: write_slots(own, _runs(batches, slots, names))))

    return write


def _mapper(work: Callable[[Any], Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, task in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True):
                yield _answer((number, _attempt(partial(work, pickle.loads(task)))))

    return run


def _attempt(work: Callable[[], Any]) -> Any:
    """What the work gives, or what is wrong."""
    try:
        return work()
    except PenstockError as error:
        return error


def _answer(answer: Any) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([pickle.dumps(answer)], pa.binary())})


def _runs(
    batches: Iterator[pa.RecordBatch], slots: Sequence[Slot], names: Sequence[str]
) -> Iterator[tuple[Slot | None, pa.Table]]:
    """Rows of one slot after the other."""
    for batch in batches:
        numbers = batch.column(batch.num_columns - 1).fill_null(-1).to_numpy(zero_copy_only=False)
        rows = pa.table(batch).drop_columns([_SLOT]).rename_columns(names)
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(edges):
            if end > start:
                yield (slots[numbers[start]] if numbers[start] >= 0 else None), rows.slice(start, end - start)


def _collect(job: WriteJob, answers: DataFrame, spark: SparkSession) -> list[WrittenFile]:
    """The files of all tasks; when one of them found something wrong, none."""
    before = str(spark.conf.get(_BATCH))  # it has a default
    spark.conf.set(_BATCH, str(_ROWS_PER_BATCH))
    try:
        results = [pickle.loads(row.answer) for row in answers.collect()]
    finally:
        spark.conf.set(_BATCH, before)
    files = [file for answer in results if isinstance(answer, list) for file in answer]
    failed = next((answer for answer in results if isinstance(answer, PenstockError)), None)
    if failed is not None:
        discard(job.io, files)
        raise failed
    return files


@contextmanager
def _computed_once(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are read twice: those that are costly to compute are kept in between."""
    if is_connect(rows.sparkSession) or rows.is_cached:
        yield rows
        return
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    if set(_NODE.findall(plan)) <= _CHEAP:
        yield rows
        return
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _balanced(sizes: Sequence[float], tasks: int) -> list[int]:
    """A task for each slot: the largest first, each to the task that has the least to do."""
    heap = [(0.0, task) for task in range(tasks)]
    tasks_of = [0] * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        load, task = heapq.heappop(heap)
        tasks_of[i] = task
        heapq.heappush(heap, (load + sizes[i], task))
    return tasks_of


@cache
def _keys(tasks: int) -> list[int]:
    """A number for each task that Spark's hash partitioning sends there."""
    numbers: dict[int, int] = {}
    for number in count():
        numbers.setdefault(mmh3.hash(number.to_bytes(4, "little"), _SPARK_SEED) % tasks, number)
        if len(numbers) == tasks:
            break
    return [numbers[task] for task in range(tasks)]
