"""The relations of a Hive layout: Spark's own reader of their format over the files of a plan.

Spark asks for files through `PenstockIndex`, with the table's key and the filters that reached the scan; `planner.py`
answers. The answer lists files by partition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import PenstockError
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.sql_text import quote_name
from penstock.expr.tree import Column
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.spark.scan.connect_files import guarded, has_floats, load
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
from penstock.spark.scan.iceberg_partition import PARTITION_OF_FILE, SPEC_OF_FILE
from penstock.spark.scan.planner import as_answer, by_partition, plain_values, summary_of
from penstock.spark.scan.relation import relation
from penstock.spark.scan.translate import translate
from penstock.spark.session.session import gateway_of
from penstock.tables.file_metadata import with_metadata
from penstock.tables.hive.hive_files import Mapping
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.walk import check_readable

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
        return as_answer(summary_of(plan.report, len(files)), by_partition(keys, files))


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

    def rows_with_partitions(self, spark: SparkSession) -> DataFrame:
        """All rows, and behind them the spec and the partition of the file of each: a layout has one spec."""
        values = [F.col(quote_name(column.name)) for column in self.table.columns]
        added = [F.lit(0).alias(SPEC_OF_FILE), F.struct(*values).alias(PARTITION_OF_FILE)]
        return self.rows(spark, None).select("*", *added)

    def planned_rows(self, spark: SparkSession, where: str) -> DataFrame:
        """The files of a plan made now, read by Spark with the table's own schema."""
        return _connect_dataframe(self.table, spark, where)


def _kinds(table: HiveTable, where: str | None) -> list[Mapping | None]:
    """The mappings of hot keys that a DataFrame has relations for; None for one that does not look at footers."""
    if not _may_be_shredded(table):
        return [None]
    if table.shredded is None:
        return [()]
    return list(kinds_of(table, _kept(table.plan(where), table.columns)[1]))


def _may_be_shredded(table: HiveTable) -> bool:
    """Whether some files may have sidecars of maps."""
    return table.shredded is not False and table.data_files.file_format.keeps_metadata and has_maps(table.file_schema)


def _relation(source: HiveFiles, spark: SparkSession) -> DataFrame:
    """Spark's own reader over some files of a layout."""
    table = source.table
    types = gateway_of(spark).jvm.org.apache.spark.sql.types.StructType
    partitions = types.fromDDL(ddl(table.columns)) if table.columns else types()
    data = types.fromDDL(ddl(stored_fields(table, source.mapping or ())))
    key = f"{table.key} {source.mapping}" if source.mapping else table.key
    files = table.data_files
    options = {**files.spark_options(), **(source.bucket.options if source.bucket else {})}
    return relation(spark, key, source, files.file_format, partitions, data, options)


def _connect_dataframe(table: HiveTable, spark: SparkSession, where: str) -> DataFrame:
    plan = table.plan(where)
    check_readable(plan, table.columns)
    if _may_be_shredded(table):
        files = _kept(plan, table.columns)[1]
        for file, mapping in zip(files, mappings(table, files), strict=True):
            if mapping:
                raise _needs_classic(file[0])
    paths = plan.files.paths.to_pylist()
    pattern = next((path for path in paths if _PATTERN.search(path)), None)
    if pattern is not None:
        hint = "use a classic Spark session or table.arrow(), or rename it"
        raise PenstockError(f"{pattern} is a pattern to Spark Connect", hint=hint)
    options = options_for_connect(table.storage, spark) | {"basePath": table.root_url}
    guards = {f.name: guarded(F.col(quote_name(f.name)), f.type) for f in table.file_schema if has_floats(f.type)}
    options |= table.data_files.spark_options()
    rows = load(spark, table.data_files.file_format, ddl([*table.file_schema, *table.columns]), options, paths)
    return (rows.withColumns(guards) if guards else rows).where(where)


def _needs_classic(url: str) -> PenstockError:
    message = f"hot keys of maps lie in columns of their own in {url}, which Spark Connect cannot put together"
    return PenstockError(message, hint="use a classic Spark session, or table.arrow()")


def _kept(plan: Plan, columns: Sequence[pa.Field]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The partition values of the kept files, and the files."""
    keys: list[tuple[Any, ...]] = []
    files: list[tuple[Any, ...]] = []
    for judgement in plan.judgements:
        containers, kept = judgement.containers, judgement.kept
        assert containers.names is not None
        assert containers.sizes is not None
        names, sizes = (column.take(pa.array(kept)).to_pylist() for column in (containers.names, containers.sizes))
        files += zip(names, sizes, _times(judgement), strict=True)
        facts = {fact.name: fact for fact in containers.facts if isinstance(fact, Exact)}
        values = [plain_values(facts[column.name].single_values(kept)[0]) for column in columns]
        keys += zip(*values, strict=True) if values else [()] * len(kept)
    return keys, files


def _times(judgement: Judgement) -> list[int]:
    """When each kept file was written, in milliseconds, as Spark shows it in `_metadata`; 0 when it is not known."""
    column = ("_metadata", "file_modification_time")
    for fact in judgement.containers.facts:
        if isinstance(fact, Exact) and isinstance(fact.term, Column) and fact.term.path == column:
            return [micros // 1_000 for micros in from_arrow(fact.single_values(judgement.kept)[0])]
    return [0] * len(judgement.kept)
