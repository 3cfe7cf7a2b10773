"""Spark's session catalog as a metastore: `penstock.spark_table(spark, "dw.events")`.

Behind it is a Hive metastore, or the memory of the session. A table, or all its partitions, are one call of the JVM and
one JSON (`SessionTables.java`). What the metastore can check of a filter, Spark sends to it, as for scans of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from penstock.errors import LakeError, PenstockError, SchemaError, TableNotFoundError
from penstock.expr.schema import as_schema
from penstock.expr.sql_text import quote_name
from penstock.spark.scan.planner import plain_values
from penstock.spark.session.java_classes import call
from penstock.spark.session.process import one_line
from penstock.spark.session.session import gateway_of, is_connect
from penstock.storage.storage import Properties
from penstock.tables.hive.directory_names import DEFAULT_PARTITION
from penstock.tables.hive.walk import Limits
from penstock.tables.metastore.metastore import Stored, StoredPartitions, StoredTable, Test
from penstock.tables.metastore.metastore_table import MetastoreTable, open_stored
from penstock.tables.metastore.stored_format import stored_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class SessionCatalog:
    """The session catalog of a Spark application."""

    application: str
    spark: SparkSession = field(compare=False, repr=False)

    @classmethod
    def of(cls, spark: SparkSession) -> SessionCatalog:
        """The catalog of a session; an error on Spark Connect."""
        if is_connect(spark):
            hint = "open it where Spark runs, or its directories: penstock.hive(location)"
            raise PenstockError("this is a Spark Connect session, which does not show its catalog", hint=hint)
        return cls(spark.sparkContext.applicationId, spark)

    def table(self, name: str) -> StoredTable:
        """The table of a name; an error where there is none, or where it is none of files."""
        answer = self._ask(name, "table", name)
        if "foreign" in answer:
            hint = "name a table of the session catalog: database.table"
            raise LakeError(f"{name} is a table of the catalog {answer['foreign']!r}", hint=hint)
        if "missing" in answer:
            raise TableNotFoundError(f"no table {answer['missing']} in Spark's session catalog", hint="see SHOW TABLES")
        if answer["kind"] == "VIEW":
            hint = "open the tables that it reads, or use spark.table"
            raise LakeError(f"{answer['name']} is a view, which has no files of its own", hint=hint)
        return _stored_table(answer)

    def partitions(self, table: StoredTable, tests: Sequence[Test]) -> StoredPartitions:
        """The partitions that pass all tests, or all."""
        requested = [{"column": test.column, "op": test.op, "values": plain_values(test.values)} for test in tests]
        answer = self._ask(table.name, "partitions", *table.parts, json.dumps(requested))
        stored = [_stored(json.loads(text)) for text in answer["stored"]]
        missing = next((i for i, place in enumerate(answer["locations"]) if place is None), None)
        if missing is not None:
            values = ", ".join(str(texts[missing]) for texts in answer["texts"])
            raise LakeError(f"{table.name}: the metastore has no location of partition ({values})")
        texts = [_texts(values) for values in answer["texts"]]
        return StoredPartitions(
            texts, answer["locations"], answer["kinds"], stored, answer["total"], answer.get("problem")
        )

    def databases(self) -> list[str]:
        """The names of all databases."""
        return list(self._ask("the session catalog", "names", ""))

    def tables(self, database: str) -> list[str]:
        """The names of the tables and views in a database."""
        return list(self._ask(database, "names", database))

    def __reduce__(self) -> NoReturn:
        message = "a table of a metastore cannot be sent to another process, which has no metastore to ask"
        raise LakeError(message, hint="open its directories there: penstock.hive(location)")

    def _ask(self, what: str, method: str, *arguments: str) -> Any:
        """What Java answers; what Spark or the metastore refuses, in one line."""
        try:
            gateway = gateway_of(self.spark)
            return json.loads(call(gateway, "SessionTables", method, self.spark._jsparkSession, *arguments))
        except (Py4JError, PySparkException) as error:
            raise LakeError(f"{what}: {_cause(error)}", hint="see spark.table for what Spark says of it") from None


def _cause(error: Exception) -> str:
    cause: Any = error.java_exception if isinstance(error, Py4JJavaError) else None
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return one_line(error if cause is None else cause.getMessage() or cause.getClass().getName())


def _stored_table(answer: dict[str, Any]) -> StoredTable:
    none = pa.schema([])
    table = StoredTable(
        answer["name"],
        (answer["database"], answer["table"]),
        answer["provider"],
        answer["location"] or "",
        none,
        none,
        _stored(answer["stored"]),
        answer["tracked"],
        properties=answer["properties"],
    )
    stored_format(table)  # one that is refused may have any columns
    for column in answer["columns"]:
        _check_column(table.name, column)
    by = {name.lower() for name in answer["partitionBy"]}
    return replace(
        table,
        columns=_schema(table.name, [column for column in answer["columns"] if column["name"].lower() not in by]),
        partition_columns=_schema(table.name, [column for column in answer["columns"] if column["name"].lower() in by]),
        comments={column["name"]: column["comment"] for column in answer["columns"] if column["comment"]},
    )


def _check_column(table: str, column: dict[str, Any]) -> None:
    """Refuse columns whose values Spark makes up or changes when it reads them."""
    hint = "use spark.table"
    if column["char"] is not None and column["char"].startswith("char"):
        raise LakeError(f"{table}: {column['name']} is {column['char']}, which Spark pads when it reads", hint=hint)
    if column["default"] not in (None, "NULL"):
        message = f"{table}: {column['name']} has the default {column['default']} in files that lack it"
        raise LakeError(message, hint=hint)


def _schema(table: str, columns: Sequence[dict[str, Any]]) -> pa.Schema:
    if not columns:
        return pa.schema([])
    try:
        return as_schema(", ".join(f"{quote_name(column['name'])} {column['type']}" for column in columns))
    except SchemaError as error:
        raise LakeError(f"{table} has columns that are not supported: {error}", hint="use spark.table") from None


def _stored(answer: dict[str, Any]) -> Stored:
    return Stored(answer["serde"], tuple(sorted(answer["options"].items())))


def _texts(values: Sequence[str | None]) -> pa.Array:
    """The texts of one partition column, in which a name stands for NULL."""
    texts = pa.array(values, pa.string())
    return pc.if_else(pc.equal(texts, DEFAULT_PARTITION), pa.scalar(None, pa.string()), texts)


def spark_table(
    spark: SparkSession,
    name: str,
    *,
    storage: Properties | str | None = None,
    lists_at_once: int = 16,
    warn_partitions: int = 5_000,
    max_partitions: int = 50_000,
    max_lists: int = 10_000,
    shredded: bool | None = None,
) -> MetastoreTable:
    """Open a table of Spark's session catalog: one of a Hive metastore, or of the session's memory.

    `name` is `"database.table"`, or that of a table in the current database. Columns, formats and options are those
    of the metastore, which is asked anew for each plan; only locations of partitions that match are listed. Times are
    those of the session's zone.

    `storage` is the account for Python's reads: a catalog of PyIceberg's configuration, or properties such as
    `{"s3.endpoint": …}`. Spark reads with the session's own configuration. The other options are those of
    `penstock.hive`.
    """
    if lists_at_once < 1:
        raise LakeError(f"lists_at_once is {lists_at_once}", hint="give 1 or more")
    return open_stored(
        SessionCatalog.of(spark),
        name,
        storage=storage,
        timezone=str(spark.conf.get("spark.sql.session.timeZone")),
        lists_at_once=lists_at_once,
        limits=Limits(warn_partitions, max_partitions),
        max_lists=max_lists,
        shredded=shredded,
    )
