"""An Iceberg table, read: planned by every file's own spec, read by Spark or without it.

A table object is one version of the table: the newest when it was opened, until `refresh()`. `at(…)` gives another
version; planning, reading and counting all go through the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, SchemaError
from penstock.expr.bind import Context
from penstock.expr.tree import Column, Expr, Lookup
from penstock.expr.types import is_nested, type_name
from penstock.prune.judge import Pruner
from penstock.prune.notebook import as_grid, columns, facts
from penstock.prune.plan import Plan
from penstock.prune.plan_report import human_bytes
from penstock.prune.verdict import Verdict
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables import bridge
from penstock.tables.file_metadata import METADATA, bind_filters
from penstock.tables.iceberg.metadata.partition_statistics import list_partitions
from penstock.tables.iceberg.metadata.version import Asked, Version, resolve
from penstock.tables.iceberg.scan.extremes import extreme
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import Sources, delete_batches, judge_files, plan_files
from penstock.tables.outputs import Keys, empty, outputs

_TOTALS = {"rows": "total-records", "files": "total-data-files", "bytes": "total-files-size"}


@dataclass(frozen=True)
class IcebergTable:
    """An Iceberg table at one snapshot, returned by `penstock.iceberg` and by `at()`."""

    name: str
    table: Any = field(repr=False, compare=False)  # PyIceberg's
    sources: Sources = field(repr=False, compare=False)
    context: Context = field(repr=False)
    snapshot: Asked = None

    @cached_property
    def version(self) -> Version:
        """The snapshot that is read, with its schema and specs."""
        return resolve(self.table.metadata, self.snapshot, self.name)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their normalised types."""
        return self.version.columns.arrow

    @cached_property
    def known_schema(self) -> pa.Schema:
        """What predicates may name: the columns, and what Spark calls `_metadata`."""
        return self.schema.append(pa.field("_metadata", METADATA))

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: the table, its snapshot and its schema."""
        version = self.version
        return f"iceberg {version.metadata.table_uuid} @{version.snapshot_id} schema {version.columns.schema.schema_id}"

    def at(self, snapshot: Asked) -> IcebergTable:
        """The table as it was: by a snapshot's id, a time, a tag or a branch."""
        return replace(self, snapshot=snapshot)

    def refresh(self) -> IcebergTable:
        """The table as it is now."""
        newest = copy(self.table)
        newest.refresh()
        return replace(self, table=newest)

    def plan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        snapshot: Asked = None,
        *,
        path: str | None = None,
    ) -> Plan:
        """Which files hold rows that may match; with a limit, only as many as are sure to have that many rows.

        `path` is a LIKE pattern that the file's URL must match.
        """
        if snapshot is not None:
            return self.at(snapshot).plan(where, columns, limit, path=path)
        if limit is not None and limit < 0:
            raise LakeError(f"limit is {limit}", hint="give 0 or more")
        keys = list(self.outputs(columns)[1].values())
        return self.plan_predicate(self.bind(where, path), limit, keys)

    def plan_predicate(self, predicate: Expr, limit: int | None = None, keys: Sequence[Lookup] = ()) -> Plan:
        """The same for a bound predicate; `keys` of maps are asked for besides those in it."""
        pruner = Pruner(predicate, self.context.timezone)
        return plan_files(self.version, self.sources, pruner, limit, keys=keys)

    def arrow(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        snapshot: Asked = None,
    ) -> pa.Table:
        """The matching rows, read from the planned files only, each filtered by its own residual.

        A column may be a key of a map: `headers['content-type']`.
        """
        if snapshot is not None:
            return self.at(snapshot).arrow(where, columns, limit=limit)
        names, keys = self.outputs(columns)
        plan = self.plan(where, limit=limit)
        parts, missing = [], limit
        for part in Reader(self.version, self.sources.io, self.context.timezone).rows(plan.files, names, keys):
            parts.append(part if missing is None else part.slice(0, missing))
            if missing is not None:
                missing -= len(parts[-1])
                if missing <= 0:
                    break
        return pa.concat_tables(parts) if parts else empty(names, keys, self.schema)

    def count(self, where: str | None = None, *, snapshot: Asked = None) -> int:
        """The number of matching rows; files that match whole and have no deletes are counted by metadata alone."""
        if snapshot is not None:
            return self.at(snapshot).count(where)
        plan = self.plan(where)
        counted, others = 0, []
        for task in plan.files:
            if task.verdict == Verdict.KEEP_WHOLE and not task.deletes and task.rows is not None:
                counted += task.rows
            else:
                others.append(task)
        reader = Reader(self.version, self.sources.io, self.context.timezone)
        read = sum(part.num_rows for part in reader.rows(others, self.schema.names[:1])) if others else 0
        return counted + read

    def minimum(self, column: str, where: str | None = None, *, snapshot: Asked = None) -> Any:
        """The smallest value of a column; bounds tell which files are worth reading, most often one."""
        return self.at(snapshot or self.snapshot)._extreme(column, where, largest=False)

    def maximum(self, column: str, where: str | None = None, *, snapshot: Asked = None) -> Any:
        """The largest value of a column; bounds tell which files are worth reading, most often one."""
        return self.at(snapshot or self.snapshot)._extreme(column, where, largest=True)

    def partitions(self, where: str | None = None) -> pa.Table:
        """The logical partitions with their rows, files, bytes, deletes and last change, from metadata alone.

        `shared` says whether a partition lies in files that it shares with others, `shared_files` in how many.
        `unknown` names the columns whose values no metadata says; they are null, and no partition of null values.
        """
        pruner = Pruner(self.bind(where), self.context.timezone)
        judged = judge_files(self.version, self.sources, pruner)
        found = list_partitions(self.version, judged, delete_batches(self.version, self.sources))
        return as_grid(found, self.context.timezone)

    def dataframe(self, spark: Any, where: str | None = None) -> Any:
        """A lazy DataFrame over Spark's own reader; filters put on it later prune too."""
        return bridge.iceberg_dataframe(self, spark, where)

    def stream(
        self,
        spark: Any,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        starting: str | int | datetime = "earliest",
        max_files_per_trigger: int | None = None,
        max_bytes_per_trigger: int | str | None = None,
        **options: Any,
    ) -> Any:
        """A streaming DataFrame of new rows, pruned when they are found; for all options see `stream_options`."""
        given = {
            "where": where,
            "columns": columns,
            "starting": starting,
            "max_files_per_trigger": max_files_per_trigger,
            "max_bytes_per_trigger": max_bytes_per_trigger,
            **options,
        }
        return bridge.stream(self, spark, given)

    def feed(self, options: StreamOptions) -> Feed:
        """What is new in the table, step by step; the options are checked here."""
        from penstock.tables.iceberg.feed.iceberg_feed import IcebergFeed

        return IcebergFeed(self, options)

    def _extreme(self, column: str, where: str | None, largest: bool) -> Any:
        name = self._name(column)
        kind = self.schema.field(name).type
        if is_nested(kind):
            raise SchemaError(
                f"{name} is a {type_name(kind)}, which has no order", hint="name a column of plain values"
            )
        found = Column((name,), kind)
        pruner = Pruner(self.bind(where), self.context.timezone)
        plan = plan_files(self.version, self.sources, pruner, also=[found])
        return extreme(plan, Reader(self.version, self.sources.io, self.context.timezone), found, largest)

    def _repr_html_(self) -> str:
        """Which version it is and what it has, for a notebook; from metadata that is loaded already."""
        return facts(self._facts()) + columns(self.schema)

    def _facts(self) -> list[tuple[str, str]]:
        version = self.version
        spec = version.specs[version.metadata.default_spec_id]
        by = [f.name if f.transform == "identity" else f"{f.name} ({f.transform})" for f in spec.fields]
        found = [("Iceberg table", self.name), ("partitions", ", ".join(by) or "nothing")]
        if version.snapshot is None:
            return [*found, ("rows", "none yet")]
        told = version.snapshot.summary.additional_properties if version.snapshot.summary else {}
        sizes = {name: int(told[key]) for name, key in _TOTALS.items() if key in told}
        found.append(("snapshot", str(version.snapshot_id)))
        return [*found, *((name, human_bytes(n) if name == "bytes" else f"{n:,}") for name, n in sizes.items())]

    def bind(self, where: str | None, path: str | None = None) -> Expr:
        """A predicate with the columns it names; `path` is a LIKE pattern for the file's URL."""
        return bind_filters(where, path, self.known_schema, self.context)

    def outputs(self, columns: Sequence[str] | None) -> tuple[list[str], Keys]:
        """The columns as the schema spells them, and those that are keys of maps."""
        return outputs(columns, self.schema, self.bind)

    def _name(self, column: str) -> str:
        """A column as the schema spells it."""
        found: str | None = next((name for name in self.schema.names if name.lower() == column.lower()), None)
        if found is None:
            raise SchemaError(f"no column {column!r}", hint=f"there are: {', '.join(self.schema.names)}")
        return found
