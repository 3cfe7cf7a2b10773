"""A table as a lazy DataFrame over Spark's own Parquet reader; filters put on it later prune too.

Spark asks for files through `PenstockIndex`, which calls `Planner.apply` here with the table's key and the filters
that reached the scan. The answer lists files by partition. Tables are kept by key as long as the process lives, because
a plan that Spark has cached may ask again at any time.
"""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.predicate.bind import Context
from penstock.predicate.sql import quote_name
from penstock.predicate.tree import Column, Expr
from penstock.predicate.types import is_decimal, is_float, type_name
from penstock.predicate.values import from_arrow
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.spark.compile import new
from penstock.spark.s3 import Bucket, open_for_spark, options_for_connect
from penstock.spark.session import attach, gateway_of, is_connect, remember_error
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


_tables: dict[str, Scannable] = {}
_buckets: dict[str, Bucket | None] = {}
_lock = threading.Lock()


class Planner:
    """The one object that Spark calls: a `java.util.function.Function` from a question to an answer, both JSON."""

    def apply(self, request: str) -> str:
        """Plan one scan; an error is an answer too, so that it arrives as itself and not as a broken call."""
        try:
            asked = json.loads(request)
            table = _tables[asked["table"]]
            predicate = translate([*asked["partition"], *asked["data"]], table.known_schema, table.context)
            plan = table.plan_predicate(predicate)
            table.check_readable(plan)
            if bucket := _buckets[asked["table"]]:
                bucket.check_client()
            return json.dumps({"summary": _summary(plan), "partitions": _partitions(plan, table.columns)})
        except PenstockError as error:
            return json.dumps({"error": remember_error(error)})
        except Exception as error:
            return json.dumps({"error": remember_error(PenstockError(f"planning failed: {error!r}"))})

    class Java:
        """What py4j makes of it."""

        implements = ["java.util.function.Function"]  # noqa: RUF012 (py4j's own form)


_planner = Planner()


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
    index = new(gateway, "PenstockIndex", _remember(table, bucket), partitions, _planner)
    from pyspark.sql import DataFrame

    found = DataFrame(index.dataFrame(spark._jsparkSession, data, bucket.options if bucket else {}), spark)
    return found if where is None else found.where(where)


def _remember(table: Scannable, bucket: Bucket | None) -> str:
    """The name by which Spark asks for a table: its key, and a number where two tables of one key are not the same.

    They differ in their time zone or their limits, and each DataFrame keeps those of the table it was made from.
    """
    with _lock:
        for number in itertools.count():
            name = f"{table.key} #{number}" if number else table.key
            if _tables.setdefault(name, table) == table:
                _buckets[name] = bucket
                return name
    raise AssertionError("unreachable")


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
    found: dict[tuple[Any, ...], list[list[Any]]] = {}
    for judgement in plan.judgements:
        keys = _keys(judgement, columns)
        names, sizes = judgement.containers.names, judgement.containers.sizes
        assert names is not None
        assert sizes is not None
        kept = pa.array(judgement.kept)
        columns_of_files = (names.take(kept).to_pylist(), sizes.take(kept).to_pylist(), _times(judgement))
        for key, *file in zip(keys, *columns_of_files, strict=True):
            found.setdefault(key, []).append(file)
    return [{"values": list(key), "files": files} for key, files in found.items()]


def _times(judgement: Judgement) -> list[int]:
    """When each kept file was written, in milliseconds, as Spark shows it in `_metadata`; 0 when it is not known."""
    column = ("_metadata", "file_modification_time")
    for fact in judgement.containers.facts:
        if isinstance(fact, Exact) and isinstance(fact.term, Column) and fact.term.path == column:
            return [micros // 1_000 for micros in from_arrow(fact.single_values(judgement.kept)[0])]
    return [0] * len(judgement.kept)


def _keys(judgement: Judgement, columns: Sequence[pa.Field]) -> list[tuple[Any, ...]]:
    facts = {fact.name: fact for fact in judgement.containers.facts if isinstance(fact, Exact)}
    values = [_plain(facts[column.name].single_values(judgement.kept)[0]) for column in columns]
    return list(zip(*values, strict=True)) if values else [()] * len(judgement.kept)


def _plain(values: pa.Array) -> list[Any]:
    if is_decimal(values.type):
        return [None if v is None else str(v) for v in values.to_pylist()]
    if is_float(values.type):
        return [None if v is None else _java_float(v) for v in values.to_pylist()]
    if values.type == pa.binary():
        return [None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()]
    return from_arrow(values)


def _java_float(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    return repr(float(value)) if np.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
