"""Answers to what `LakeCatalog.java` asks: one function for each verb, from JSON to JSON."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

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
from penstock.lake.commit.commit import Overtaken, wait_for_others
from penstock.spark.catalog.few_rows import most_rows
from penstock.spark.catalog.lakes import attached_lake, open_lake
from penstock.spark.catalog.metadata_tables import metadata_table
from penstock.spark.catalog.new_tables import as_new_table, create_table
from penstock.spark.catalog.not_null import clear_nulls
from penstock.spark.catalog.open_tables import handles
from penstock.spark.catalog.procedures import call_procedure, describe_procedure, procedure_names
from penstock.spark.catalog.staged_tables import CreatedTable, ReplacedTable, stage
from penstock.spark.catalog.table_changes import alter_table
from penstock.spark.catalog.versions import TableVersion, is_name, new_name, ref_of, table_name, version_of

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
_NEEDLESS = "files have their statistics and partitions from every write"
_INSTEAD = {
    "ADD PARTITION": "insert rows: partitions exist as long as they have some",
    "DROP PARTITION": "write DELETE FROM … WHERE",
    "TRUNCATE PARTITION": "write DELETE FROM … WHERE",
    "RENAME PARTITION": "INSERT the rows with the new value, and DELETE those with the old one",
    "LOAD DATA": "INSERT INTO … SELECT * FROM parquet.`path`",
    "CREATE INDEX": "set which partitions share files and which keys have columns: CALL system.advise",
    "CLUSTER BY": "partition the table, and let partitions share files: set_coalesce",
}
# Options of a read that other catalogs know; without a word they would give another version's rows, or all.
_NO_OPTIONS = {
    "snapshot-id": "VERSION AS OF, or option('versionAsOf', …)",
    "as-of-timestamp": "TIMESTAMP AS OF, or option('timestampAsOf', …)",
    "branch": "VERSION AS OF 'branch', or option('versionAsOf', …)",
    "tag": "VERSION AS OF 'tag', or option('versionAsOf', …)",
    "start-snapshot-id": "readStream.table with option('from', …)",
    "end-snapshot-id": "readStream.table with option('from', …)",
    "where": "DataFrame.where(…), which prunes",
}
_SESSIONS = 16  # that asked last; they are kept alive
_DEFAULT = "default"  # where JDBC clients begin; it can be used though it has no tables


class Catalog:
    """Answers the requests of the catalogs in one JVM; `questions` is its `Questions.java`."""

    def __init__(self, questions: Any) -> None:
        self._questions = questions
        self._sessions: LRUCache[str, SparkSession] = LRUCache(_SESSIONS)
        self._lock = threading.Lock()

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
        namespace = _spelled(lake, request["namespace"])
        names = [name.rpartition(".")[2] for name in lake.tables() if name.rpartition(".")[0] == namespace]
        if not names and namespace not in ("", _DEFAULT):
            lake.namespaces.check(namespace)
        return {"names": names}

    def _exists(self, lake: Lake, request: Request) -> Answer:
        parts = request["table"]
        if (named := ref_of(lake, parts)) is not None:
            return {"exists": named[2] in lake.writable_table(named[0]).refs()["name"].to_pylist()}
        return {"exists": is_name(parts) and lake.has_table(table_name(lake, parts))}

    def _load(self, lake: Lake, request: Request) -> Answer:
        opened = metadata_table(lake, request["table"])
        version, micros = request.get("version"), request.get("micros")
        if opened is None:
            return _kept(version_of(lake, request["table"], version, micros))
        if version is not None or micros is not None:
            raise LakeError(f"{opened.name} is read as it is now", hint="leave out AS OF, and filter by snapshot_id")
        return _kept(opened)

    def _create(self, lake: Lake, request: Request) -> Answer:
        create_table(lake, as_new_table(new_name(lake, request["table"]), request))
        return _kept(version_of(lake, request["table"], None, None))

    def _stage(self, lake: Lake, request: Request) -> Answer:
        return _kept(stage(lake, as_new_table(new_name(lake, request["table"]), request), request["verb"]))

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
        lake.rename_table(table_name(lake, request["table"]), new_name(lake, request["to"]))
        return {}

    def _namespaces(self, lake: Lake, request: Request) -> Answer:
        return {"names": [name.split(".") for name in lake.namespaces.names(_spelled(lake, request["parent"]))]}

    def _namespace(self, lake: Lake, request: Request) -> Answer:
        name = _spelled(lake, request["namespace"])
        if name == _DEFAULT and not lake.namespaces.exists(name):
            return {"properties": {}}
        return {"properties": lake.namespaces.properties(name)}

    def _create_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.create_namespace(_spelled(lake, request["namespace"]), request["properties"])
        return {}

    def _alter_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.namespaces.change(_spelled(lake, request["namespace"]), request["set"], request["removed"])
        return {}

    def _drop_namespace(self, lake: Lake, request: Request) -> Answer:
        lake.namespaces.drop(_spelled(lake, request["namespace"]), cascade=request["cascade"])
        return {}

    def _read(self, lake: Lake, request: Request) -> Answer:
        spark = self._session(self._questions.held(request["session"]))
        opened = handles.get(request["handle"])
        _check_options(opened.name, request["options"])
        rows = opened.rows(spark, request["hidden"])
        return {"rows": self._questions.hold(rows._jdf)}

    def _partitions(self, lake: Lake, request: Request) -> Answer:
        listed = _version(request).partitions()
        return {"rows": list(listed), "counts": list(listed.values())}

    def _stream(self, lake: Lake, request: Request) -> Answer:
        from penstock.spark.stream.stream_reader import register_feed

        spark = self._session(self._questions.held(request["session"]))
        return {"source": register_feed(_version(request).feed(request["options"]), spark)}

    def _sink(self, lake: Lake, request: Request) -> Answer:
        return {"options": _version(request).sink()}

    def _needless(self, lake: Lake, request: Request) -> Answer:
        message = f"{request['statement']} {request['name']}: {_NEEDLESS}, so nothing was done"
        warnings.warn(message, PenstockWarning, stacklevel=1)
        return {}

    def _write(self, lake: Lake, request: Request) -> Answer:
        from pyspark.sql import DataFrame

        frame = self._questions.held(request["rows"])
        rows = DataFrame(frame, self._session(frame.sparkSession()))
        statement = request.get("statement")
        opened = handles.get(request["handle"])
        wait_for_others(opened.name, request["attempt"], "nothing was changed; try again when they are done")
        try:
            with clear_nulls(opened.name):
                opened.change(request["mode"], None if statement is None else json.loads(statement), rows)
        except Overtaken:
            return {"again": True}
        return {}

    def _few_rows(self, lake: Lake, request: Request) -> Answer:
        merge = _version(request).merge(request["parts"], request["schema"])
        rows, size = most_rows()
        return {} if merge is None or rows < 0 else {"rows": rows, "bytes": size}

    def _merge_rows(self, lake: Lake, request: Request) -> Answer:
        from pyspark.sql import DataFrame

        frame = self._questions.held(request["rows"])
        rows = DataFrame(frame, self._session(frame.sparkSession()))
        opened = _version(request)
        opened.for_writing()
        merge = opened.merge(request["parts"], request["schema"])
        wait_for_others(opened.name, request["attempt"], "nothing was changed; try again when they are done")
        try:
            return {"done": True} if merge is not None and merge.execute(rows) else {}
        except Overtaken:
            return {"again": True}

    def _for_writing(self, lake: Lake, request: Request) -> Answer:
        handles.get(request["handle"]).for_writing()
        return {}

    def _truncate(self, lake: Lake, request: Request) -> Answer:
        handles.get(request["handle"]).for_writing().delete("TRUE")
        return {}

    def _unsupported(self, lake: Lake, request: Request) -> Answer:
        opened = handles.get(request["handle"])
        opened.for_writing()  # where nothing is written, that is what to say
        message = f"{opened.name} does not support {request['statement']}"
        raise LakeError(message, hint=_INSTEAD.get(request["statement"], "see the SQL reference"))

    def _procedure(self, lake: Lake, request: Request) -> Answer:
        return describe_procedure(request["name"])

    def _procedures(self, lake: Lake, request: Request) -> Answer:
        return {"names": procedure_names(request["namespace"])}

    def _call(self, lake: Lake, request: Request) -> Answer:
        return call_procedure(lake, request["name"], request["arguments"])

    def _session(self, java_session: Any) -> SparkSession:
        """PySpark's object for a session of the JVM; making and attaching one costs as much as a small query."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        name = java_session.sessionUUID()
        with self._lock:
            known = self._sessions.get(name)
        if known is None:
            known = SparkSession(SparkContext.getOrCreate(), java_session)
            with self._lock:
                self._sessions[name] = known
        return known


def error_kind(error: PenstockError) -> str:
    """Which of Spark's own errors means the same; empty when there is none."""
    return _KINDS.get(type(error), "")


def _spelled(lake: Lake, namespace: Sequence[str]) -> str:
    return lake.namespaces.spelled(".".join(namespace))


def _check_options(name: str, options: Mapping[str, str]) -> None:
    unknown = next((key for key in options if key.lower() in _NO_OPTIONS), None)
    if unknown is not None:
        raise LakeError(f"{name} is not read with the option {unknown!r}", hint=f"use {_NO_OPTIONS[unknown.lower()]}")


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
