"""An Iceberg table, read: planned by every file's own spec, read by Spark or without it.

A table object is one version of the table: the newest when it was opened, until `refresh()`. `at(…)` gives another
version; planning, reading and counting all go through the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock.errors import LakeError, PenstockError, SchemaError
from penstock.expr.tree import Column, Expr, Lookup
from penstock.expr.types import is_nested, type_name
from penstock.maps.shred_rule import is_property
from penstock.prune.judge import Pruner
from penstock.prune.notebook import as_grid
from penstock.prune.plan import Plan
from penstock.prune.verdict import Verdict
from penstock.storage.redaction import is_secret
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables import bridge
from penstock.tables.description import Description
from penstock.tables.iceberg.metadata.partition_statistics import list_partitions
from penstock.tables.iceberg.metadata.version import SnapshotChoice, Version, resolve
from penstock.tables.iceberg.scan.extremes import extreme
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.iceberg.scan.scan_plan import Sources, delete_batches, judge_files, plan_files
from penstock.tables.source import Relations, Source, bind, column_name, empty, outputs

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, repr=False)
class IcebergTable(Source):
    """An Iceberg table at one snapshot, returned by `penstock.iceberg` and by `at()`."""

    name: str
    table: Table = field(compare=False)  # PyIceberg's
    sources: Sources = field(compare=False)
    snapshot: SnapshotChoice = None

    def __repr__(self) -> str:
        try:
            snapshot: SnapshotChoice = self.version.snapshot_id
        except PenstockError:  # it does not exist
            snapshot = self.snapshot
        return f"{type(self).__name__}({self.name!r}, snapshot={snapshot!r})"

    @cached_property
    def version(self) -> Version:
        """The snapshot that is read, with its schema and specs."""
        return resolve(self.table.metadata, self.snapshot, self.name)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their normalised types."""
        return self.version.columns.arrow

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: the table, its snapshot and its schema."""
        version = self.version
        return f"iceberg {version.metadata.table_uuid} @{version.snapshot_id} schema {version.columns.schema.schema_id}"

    def partition_schema(self) -> pa.Schema:
        """The fields of the spec that new files have."""
        fields = self.version.specs[self.version.metadata.default_spec_id].fields
        return pa.schema([pa.field(field.name, field.type) for field in fields if field.type is not None])

    def comments(self) -> dict[str, str]:
        """The comments of columns, by name."""
        return {field.name: field.doc for field in self.version.columns.schema.fields if field.doc}

    def properties(self) -> dict[str, str]:
        """The table's properties."""
        metadata = self.version.metadata
        shown = {"location": metadata.location, "format-version": str(metadata.format_version)}
        if self.version.snapshot_id is not None:
            shown["current-snapshot-id"] = str(self.version.snapshot_id)
        rules_and_others = {
            name: value for name, value in metadata.properties.items() if is_property(name) or not is_secret(name)
        }  # the hot keys of a map are no secret
        return {**rules_and_others, **shown}

    def at(self, snapshot: SnapshotChoice) -> Self:
        """The table as it was: by a snapshot's id, a time, a tag or a branch."""
        return replace(self, snapshot=snapshot)

    def refresh(self) -> Self:
        """Move on to the table as it is now, and return it; DataFrames made before stay with their version."""
        from penstock.tables.iceberg.metadata.catalogs import reloaded

        self._move(reloaded(self))
        return self

    def _move(self, table: Table) -> None:
        """See another version from now on; copies of this object stay where they are."""
        object.__setattr__(self, "table", table)
        for name in ("version", "schema"):
            self.__dict__.pop(name, None)

    def plan(
        self,
        where: str | Expr | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        snapshot: SnapshotChoice = None,
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
        keys = list(outputs(columns, self)[1].values())
        return self.planned(bind(self, where, path), limit, keys)

    def planned(
        self, predicate: Expr, limit: int | None = None, keys: Sequence[Lookup] = (), also: Sequence[Column] = ()
    ) -> Plan:
        """The plan of a bound predicate; `keys` of maps are asked for besides those in it, and bounds of `also`.

        All plans of a table go through here: a table that has some of its files only overrides it.
        """
        pruner = Pruner(predicate, self.context.timezone)
        return plan_files(self.version, self.sources, pruner, limit, keys=keys, also=also)

    def arrow(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        snapshot: SnapshotChoice = None,
    ) -> pa.Table:
        """The matching rows, read from the planned files only, each filtered by its own residual.

        A column may be a key of a map: `headers['content-type']`.
        """
        if snapshot is not None:
            return self.at(snapshot).arrow(where, columns, limit=limit)
        names, keys = outputs(columns, self)
        plan = self.plan(where, limit=limit)
        parts: list[pa.Table] = []
        count = 0
        for part in self._reader.rows(plan.files, names, keys):
            parts.append(part)
            count += part.num_rows
            if limit is not None and count >= limit:
                break
        return (pa.concat_tables(parts) if parts else empty(names, keys, self.schema)).slice(0, limit)

    def count(self, where: str | None = None, *, snapshot: SnapshotChoice = None) -> int:
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
        return counted + sum(int(part.num_rows) for part in self._reader.rows(others, self.schema.names[:1]))

    @property
    def _reader(self) -> Reader:
        return Reader(self.version, self.sources.io, self.context.timezone)

    def minimum(self, column: str, where: str | None = None, *, snapshot: SnapshotChoice = None) -> Any:
        """The smallest value of a column; bounds tell which files are worth reading, most often one."""
        return self.at(snapshot or self.snapshot)._extreme(column, where, largest=False)

    def maximum(self, column: str, where: str | None = None, *, snapshot: SnapshotChoice = None) -> Any:
        """The largest value of a column; bounds tell which files are worth reading, most often one."""
        return self.at(snapshot or self.snapshot)._extreme(column, where, largest=True)

    def partitions(self, where: str | None = None) -> pa.Table:
        """The logical partitions with their rows, files, bytes, deletes and last change, from metadata alone.

        `shared` says whether a partition lies in files that it shares with others, `shared_files` in how many.
        `unknown` names the columns whose values no metadata says; they are null, and no partition of null values.
        """
        pruner = Pruner(bind(self, where), self.context.timezone)
        judged = judge_files(self.version, self.sources, pruner)
        partitions = list_partitions(self.version, judged, delete_batches(self.version, self.sources))
        return as_grid(partitions, self.context.timezone)

    def relations(self) -> Relations:
        """Relations over Spark's own Parquet reader; they stay with this version of the table."""
        relations: Relations = bridge.iceberg_relations(copy(self))
        return relations

    def feed(self, options: StreamOptions) -> Feed:
        from penstock.tables.iceberg.feed.iceberg_feed import IcebergFeed

        return IcebergFeed(self, options)

    def describe(self) -> Description:
        from penstock.tables.iceberg.iceberg_description import IcebergDescription

        return IcebergDescription(self)

    def _extreme(self, column: str, where: str | None, largest: bool) -> Any:
        name = column_name(column, self.schema)
        kind = self.schema.field(name).type
        if is_nested(kind):
            hint = "name a column of plain values"
            raise SchemaError(f"{name} is a {type_name(kind)}, which has no order", hint=hint)
        term = Column((name,), kind)
        plan = self.planned(bind(self, where), also=[term])
        return extreme(plan, self._reader, term, largest)
