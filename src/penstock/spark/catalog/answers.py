"""Answers to what `LakeCatalog.java` asks: one function for each verb, from JSON to JSON."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import (
    LakeError,
    NamespaceExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    PenstockError,
    PenstockWarning,
    TableExistsError,
    TableNotFoundError,
)
from penstock.spark.catalog.lakes import attached_lake, open_lake
from penstock.spark.catalog.metadata_tables import metadata_table
from penstock.spark.catalog.new_tables import as_new_table, create_table
from penstock.spark.catalog.open_tables import handles
from penstock.spark.catalog.procedures import call_procedure, describe_procedure, procedure_names
from penstock.spark.catalog.staged_tables import CreatedTable, ReplacedTable, stage
from penstock.spark.catalog.table_changes import alter_table
from penstock.spark.catalog.versions import TableVersion, table_name, version_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake
    from penstock.lake.managed_table import ManagedTable

Request = Mapping[str, Any]
Answer = dict[str, Any]
# What Spark throws for them; it matters for IF EXISTS and IF NOT EXISTS.
_KINDS: dict[type[PenstockError], str] = {
    TableNotFoundError: "no-table",
    TableExistsError: "table-exists",
    NamespaceNotFoundError: "no-namespace",
    NamespaceExistsError: "namespace-exists",
    NamespaceNotEmptyError: "namespace-not-empty",
}
_DEFAULT = "default"  # where JDBC clients begin; it can be used though it has no tables


class Catalog:
    """Answers the requests of the catalogs in one JVM; `questions` is its `Questions.java`."""

    def __init__(self, questions: Any) -> None:
        self._questions = questions

    def answer(self, request: Request) -> Answer:
        """Execute a request; what it says of errors is left to the caller."""
        verb = request["verb"]
        if verb == "open":
            open_lake(request["lake"], request["options"])
            return {}
        own = getattr(self, f"_{verb.replace('-', '_')}")
        answer: Answer = own(attached_lake(request["lake"]), request)
        return answer

    def _tables(self, lake: Lake, request: Request) -> Answer:
        namespace = ".".join(request["namespace"])
        names = [name.rpartition(".")[2] for name in lake.tables() if name.rpartition(".")[0] == namespace]
        if not names and namespace not in ("", _DEFAULT):
            lake.namespaces.check(namespace)
        return {"names": names}

    def _exists(self, lake: Lake, request: Request) -> Answer:
        parts = request["table"]
        return {"exists": lake.has_table(table_name(lake, parts)) if len(parts) > 1 else False}

    def _load(self, lake: Lake, request: Request) -> Answer:
        opened = metadata_table(lake, request["table"])
        version, micros = request.get("version"), request.get("micros")
        if opened is None:
            return _kept(version_of(lake, request["table"], version, micros))
        if version is not None or micros is not None:
            raise LakeError(f"{opened.name} is read as it is now", hint="leave out AS OF, and filter by snapshot_id")
        return _kept(opened)

    def _create(self, lake: Lake, request: Request) -> Answer:
        create_table(lake, as_new_table(request["table"], request))
        return _kept(version_of(lake, request["table"], None, None))

    def _stage(self, lake: Lake, request: Request) -> Answer:
        return _kept(stage(lake, as_new_table(request["table"], request), request["verb"]))

    _stage_create = _stage_replace = _stage_create_or_replace = _stage

    def _commit_staged(self, lake: Lake, request: Request) -> Answer:
        _staged(request).commit()
        return {}

    def _abort_staged(self, lake: Lake, request: Request) -> Answer:
        _staged(request).abort()
        return {}

    def _alter(self, lake: Lake, request: Request) -> Answer:
        alter_table(_writable(lake, request["table"]), request["changes"])
        return _kept(version_of(lake, request["table"], None, None))

    def _drop(self, lake: Lake, request: Request) -> Answer:
        name = table_name(lake, request["table"])
        if not lake.has_table(name):
            return {"dropped": False}
        lake.drop_table(name, purge=request["purge"])
        return {"dropped": True}

    def _rename(self, lake: Lake, request: Request) -> Answer:
        lake.rename_table(table_name(lake, request["table"]), ".".join(request["to"]))
        return {}

    def _namespaces(self, lake: Lake, request: Request) -> Answer:
        return {"names": [name.split(".") for name in lake.namespaces.names(".".join(request["parent"]))]}

    def _namespace(self, lake: Lake, request: Request) -> Answer:
        name = ".".join(request["namespace"])
        if name == _DEFAULT and not lake.namespaces.exists(name):
            return {"properties": {}}
        return {"properties": lake.namespaces.properties(name)}

    def _create_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.create_namespace(".".join(request["namespace"]), request["properties"])
        return {}

    def _alter_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.namespaces.change(".".join(request["namespace"]), request["set"], request["removed"])
        return {}

    def _drop_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.namespaces.drop(".".join(request["namespace"]), cascade=request["cascade"])
        return {}

    def _read(self, lake: Lake, request: Request) -> Answer:
        spark = self._session(self._questions.held(request["session"]))
        rows = handles.get(request["handle"]).rows(spark, request["hidden"])
        return {"rows": self._questions.hold(rows._jdf)}

    def _partitions(self, lake: Lake, request: Request) -> Answer:
        return {"rows": _version(request).partitions()}

    def _stream(self, lake: Lake, request: Request) -> Answer:
        from penstock.spark.stream.stream_reader import register_feed

        spark = self._session(self._questions.held(request["session"]))
        return {"source": register_feed(_version(request).feed(request["options"]), spark)}

    def _sink(self, lake: Lake, request: Request) -> Answer:
        return {"options": _version(request).sink()}

    def _analyze(self, lake: Lake, request: Request) -> Answer:
        message = f"ANALYZE {request['name']}: every write keeps the statistics of its files, so nothing was done"
        warnings.warn(message, PenstockWarning, stacklevel=1)
        return {}

    def _write(self, lake: Lake, request: Request) -> Answer:
        from pyspark.sql import DataFrame

        frame = self._questions.held(request["rows"])
        rows = DataFrame(frame, self._session(frame.sparkSession()))
        statement = request.get("statement")
        opened = handles.get(request["handle"])
        opened.change(request["mode"], None if statement is None else json.loads(statement), rows)
        return {}

    def _truncate(self, lake: Lake, request: Request) -> Answer:
        handles.get(request["handle"]).for_writing().delete("TRUE")
        return {}

    def _unsupported(self, lake: Lake, request: Request) -> Answer:
        message = f"{request['statement']} on {request['name']} is not supported yet"
        raise LakeError(message, hint="use DELETE and INSERT, or table.overwrite(rows, where=…)")

    def _procedure(self, lake: Lake, request: Request) -> Answer:
        return describe_procedure(request["name"])

    def _procedures(self, lake: Lake, request: Request) -> Answer:
        return {"names": procedure_names(request["namespace"])}

    def _call(self, lake: Lake, request: Request) -> Answer:
        return call_procedure(lake, request["name"], request["arguments"])

    def _session(self, java_session: Any) -> SparkSession:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        return SparkSession(SparkContext.getOrCreate(), java_session)


def error_kind(error: PenstockError) -> str:
    """Which of Spark's own errors means the same; empty when there is none."""
    return _KINDS.get(type(error), "")


def _kept(opened: Any) -> Answer:
    facts = opened.facts()
    return {**facts, "handle": handles.add(opened)}


def _version(request: Request) -> TableVersion:
    opened = handles.get(request["handle"])
    if not isinstance(opened, TableVersion):
        raise LakeError(f"{opened.name} is a metadata table", hint="name the table itself")
    return opened


def _staged(request: Request) -> CreatedTable | ReplacedTable:
    staged = handles.get(request["handle"])
    assert isinstance(staged, CreatedTable | ReplacedTable)
    return staged


def _writable(lake: Lake, parts: Sequence[str]) -> ManagedTable:
    return lake.writable_table(table_name(lake, parts))
