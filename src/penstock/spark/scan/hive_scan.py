"""The relations of a Hive layout: Spark's own Parquet reader over the files of a plan.

Spark asks for files through `PenstockIndex`, with the table's key and the filters that reached the scan; `planner.py`
answers. The answer lists files by partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.sql_text import quote_name
from penstock.expr.tree import Column
from penstock.formats.format_registry import DEFAULT
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.spark.scan.hadoop_client import Bucket, open_for_spark, options_for_connect
from penstock.spark.scan.hive_shredded import (
    ddl,
    has_maps,
    kinds_of,
    mappings,
    stored_fields,
    unexpected,
    with_sidecars,
)
from penstock.spark.scan.nan_guard import guarded, has_floats
from penstock.spark.scan.planner import as_answer, by_partition, plain_values, remember
from penstock.spark.scan.translate import translate
from penstock.spark.session.java_classes import new
from penstock.spark.session.session import gateway_of
from penstock.tables.file_metadata import with_metadata
from penstock.tables.hive.hive_files import Mapping
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.walk import check_readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATTERN = re.compile(r"[][{}*?\\]")  # `part-*` would be read as all files of its directory


@dataclass(frozen=True)
class HiveFiles:
    """The files of a Hive layout, for its relation: all, or those with one mapping of hot keys."""

    table: HiveTable
    bucket: Bucket | None = field(compare=False, repr=False)
    mapping: Mapping | None = None  # None: footers are not looked at
    others: frozenset[Mapping] = frozenset()  # mappings that other relations of the same DataFrame read

    def roots(self) -> tuple[str, ...]:
        """Where its files lie."""
        return (self.table.root_url,)

    def answer(self, question: AnyMapping[str, Any]) -> dict[str, Any]:
        """The kept files by their partition values."""
        table = self.table
        filters = [*question["partition"], *question["data"]]
        plan = table.plan(translate(filters, with_metadata(table.schema), table.context))
        check_readable(plan, table.columns)
        if self.bucket is not None:
            self.bucket.check_client()
        keys, files = _kept(plan, table.columns)
        if self.mapping is not None:
            file_mappings = mappings(table, files)
            for file, mapping in zip(files, file_mappings, strict=True):
                if mapping != self.mapping and mapping not in self.others:
                    raise unexpected(file[0])
            own = [i for i, mapping in enumerate(file_mappings) if mapping == self.mapping]
            keys, files = [keys[i] for i in own], [files[i] for i in own]
        summary = f"{len(files)} of {plan.report.files.total} files, {plan.report.list_calls} lists"
        return as_answer(summary, by_partition(keys, files))


@dataclass(frozen=True)
class HiveRelations:
    """How Spark reads a Hive layout: one relation for each mapping of hot keys."""

    table: HiveTable

    def rows(self, spark: SparkSession, where: str | None) -> DataFrame:
        """All rows; where files have sidecars, `where` tells the files whose footers are looked at."""
        table = self.table
        bucket = open_for_spark(table.storage, spark)
        kinds = _kinds(table, where)
        parts = []
        for kind in kinds:
            others = frozenset(other for other in kinds if other is not None and other != kind)
            rows = _relation(HiveFiles(table, bucket, kind, others), spark)
            parts.append(with_sidecars(rows, table, kind or (), spark))
        return reduce(lambda left, right: left.unionAll(right), parts)

    def planned_rows(self, spark: SparkSession, where: str) -> DataFrame:
        """The files of a plan made now, read by Spark with the table's own schema."""
        return _connect_dataframe(self.table, spark, where)


def _kinds(table: HiveTable, where: str | None) -> list[Mapping | None]:
    """The mappings of hot keys that a DataFrame has relations for; None for one that does not look at footers."""
    if table.shredded is False or not has_maps(table.file_schema):
        return [None]
    if table.shredded is None:
        return [()]
    return list(kinds_of(table, _kept(table.plan(where), table.columns)[1]))


def _relation(source: HiveFiles, spark: SparkSession) -> DataFrame:
    """Spark's own reader over some files of a layout."""
    from pyspark.sql import DataFrame

    gateway, table = gateway_of(spark), source.table
    types = gateway.jvm.org.apache.spark.sql.types.StructType
    partitions = types.fromDDL(ddl(table.columns))
    data = types.fromDDL(ddl(stored_fields(table, source.mapping or ())))
    suffix = f" {source.mapping}" if source.mapping else ""
    index = new(gateway, "PenstockIndex", remember(f"{table.key}{suffix}", source), partitions)
    options = source.bucket.options if source.bucket else {}
    return DataFrame(index.dataFrame(spark._jsparkSession, data, options), spark)


def _connect_dataframe(table: HiveTable, spark: SparkSession, where: str) -> DataFrame:
    from pyspark.sql import functions as F

    plan = table.plan(where)
    check_readable(plan, table.columns)
    if table.shredded is not False and has_maps(table.file_schema):
        files = _kept(plan, table.columns)[1]
        for file, mapping in zip(files, mappings(table, files), strict=True):
            if mapping:
                raise _needs_classic(file[0])
    columns = ddl([*table.file_schema, *table.columns])
    paths = plan.files.paths.to_pylist()
    if not paths:
        return spark.createDataFrame([], columns)
    pattern = next((path for path in paths if _PATTERN.search(path)), None)
    if pattern is not None:
        hint = "use a classic Spark session or table.arrow(), or rename it"
        raise PenstockError(f"{pattern} is a pattern to Spark Connect", hint=hint)
    reader = spark.read.schema(columns).options(**options_for_connect(table.storage, spark), basePath=table.root_url)
    guards = {f.name: F.expr(guarded(quote_name(f.name), f.type)) for f in table.file_schema if has_floats(f.type)}
    rows = reader.format(DEFAULT.name).load(paths)
    return (rows.withColumns(guards) if guards else rows).where(where)


def _needs_classic(url: str) -> PenstockError:
    message = f"hot keys of maps lie in columns of their own in {url}, which Spark Connect cannot put together"
    return PenstockError(message, hint="use a classic Spark session, or table.arrow()")


def _kept(plan: Plan, columns: Sequence[pa.Field]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The partition values of the kept files, and the files."""
    keys = [key for judgement in plan.judgements for key in _keys(judgement, columns)]
    return keys, [file for judgement in plan.judgements for file in _files(judgement)]


def _files(judgement: Judgement) -> Iterator[tuple[Any, ...]]:
    names, sizes = judgement.containers.names, judgement.containers.sizes
    assert names is not None
    assert sizes is not None
    kept = pa.array(judgement.kept)
    return zip(names.take(kept).to_pylist(), sizes.take(kept).to_pylist(), _times(judgement), strict=True)


def _times(judgement: Judgement) -> list[int]:
    """When each kept file was written, in milliseconds, as Spark shows it in `_metadata`; 0 when it is not known."""
    column = ("_metadata", "file_modification_time")
    for fact in judgement.containers.facts:
        if isinstance(fact, Exact) and isinstance(fact.term, Column) and fact.term.path == column:
            return [micros // 1_000 for micros in from_arrow(fact.single_values(judgement.kept)[0])]
    return [0] * len(judgement.kept)


def _keys(judgement: Judgement, columns: Sequence[pa.Field]) -> list[tuple[Any, ...]]:
    facts = {fact.name: fact for fact in judgement.containers.facts if isinstance(fact, Exact)}
    values = [plain_values(facts[column.name].single_values(judgement.kept)[0]) for column in columns]
    return list(zip(*values, strict=True)) if values else [()] * len(judgement.kept)
