"""A table as a lazy DataFrame over Spark's own Parquet reader; filters put on it later prune too.

Spark asks for files through `PenstockIndex`, which calls `Planner.apply` with the table's key and the filters
that reached the scan. The answer lists files by partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.predicate.bind import Context
from penstock.predicate.sql import quote_name
from penstock.predicate.tree import Column, Expr
from penstock.predicate.types import type_name
from penstock.predicate.values import from_arrow
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.spark.compile import new
from penstock.spark.planner import Planner as Planner
from penstock.spark.planner import by_partition, plain_values, planner, remember
from penstock.spark.s3 import Bucket, open_for_spark, options_for_connect
from penstock.spark.session import attach, gateway_of, is_connect
from penstock.spark.translate import translate
from penstock.tables.storage import Storage


class Scannable(Protocol):
    """What the scan needs of a table."""

    @property
    def key(self) -> str: ...
    @property
    def storage(self) -> Storage: ...
    @property
    def columns(self) -> Sequence[pa.Field]: ...
    @property
    def file_schema(self) -> pa.Schema: ...
    @property
    def known_schema(self) -> pa.Schema: ...
    @property
    def context(self) -> Context: ...
    def plan_predicate(self, predicate: Expr) -> Plan: ...
    @property
    def root_url(self) -> str: ...
    def plan(self, where: str | None = None) -> Plan: ...
    def check_readable(self, plan: Plan) -> None: ...


@dataclass(frozen=True)
class HiveFiles:
    """The files of a Hive layout, for its relation."""

    table: Scannable
    bucket: Bucket | None = field(compare=False, repr=False)

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The kept files by their partition values."""
        table = self.table
        plan = table.plan_predicate(translate([*asked["partition"], *asked["data"]], table.known_schema, table.context))
        table.check_readable(plan)
        if self.bucket is not None:
            self.bucket.check_client()
        return {"summary": _summary(plan), "partitions": _partitions(plan, table.columns)}


def dataframe(table: Scannable, spark: Any, where: str | None = None) -> Any:
    """The table as a lazy DataFrame. On Spark Connect, which has no JVM to plan in, `where` must be given."""
    if is_connect(spark):
        return _connect_dataframe(table, spark, where)
    attach(spark)
    gateway = gateway_of(spark)
    jvm = gateway.jvm
    types = jvm.org.apache.spark.sql.types.StructType
    partitions, data = types.fromDDL(_ddl(table.columns)), types.fromDDL(_ddl(table.file_schema))
    bucket = open_for_spark(table.storage, spark)
    name = remember(table.key, HiveFiles(table, bucket))
    index = new(gateway, "PenstockIndex", name, partitions, planner)
    from pyspark.sql import DataFrame

    found = DataFrame(index.dataFrame(spark._jsparkSession, data, bucket.options if bucket else {}), spark)
    return found if where is None else found.where(where)


def _connect_dataframe(table: Scannable, spark: Any, where: str | None) -> Any:
    """The files of a plan made now, read by Spark with the table's own schema."""
    if where is None:
        hint = "give it: table.dataframe(spark, where=…); 'TRUE' reads everything"
        raise PenstockError(
            "on Spark Connect filters put on later cannot prune, so the filter is needed here", hint=hint
        )
    plan = table.plan(where)
    table.check_readable(plan)
    ddl = _ddl([*table.file_schema, *table.columns])
    paths = plan.files.paths.to_pylist()
    if not paths:
        return spark.createDataFrame([], ddl)
    reader = spark.read.schema(ddl).options(**options_for_connect(table.storage, spark), basePath=table.root_url)
    return reader.parquet(*paths).where(where)


def _ddl(fields: Any) -> str:
    return ", ".join(f"{quote_name(f.name)} {type_name(f.type)}" for f in fields)


def _summary(plan: Plan) -> str:
    files = plan.report.files
    return f"{files.kept} of {files.total} files, {plan.report.list_calls} lists"


def _partitions(plan: Plan, columns: Sequence[pa.Field]) -> list[dict[str, Any]]:
    """The kept files grouped by their partition values."""
    keys = (key for judgement in plan.judgements for key in _keys(judgement, columns))
    return by_partition(keys, (file for judgement in plan.judgements for file in _files(judgement)))


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
