"""`penstock.hive(root, …)`: a directory tree as a table.

Opening reads at most one footer: the schema of the files, unless it is given. A plan lists only the branches that can
match. The value in the path wins over a column of the same name in a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import EvaluationError, LayoutError
from penstock.expr.bind import Context
from penstock.expr.kernels.evaluate import evaluate, filter_mask, read_terms
from penstock.expr.schema import as_schema, check_names
from penstock.expr.tree import Expr, Lookup, column_of, terms_of
from penstock.expr.types import type_name
from penstock.prune.facts import Exact
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.prune.notebook import as_grid
from penstock.prune.notebook import columns as columns_html
from penstock.prune.notebook import facts as facts_html
from penstock.prune.plan import Plan
from penstock.storage.lister import Lister, ListingCache
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Properties, Storage
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables import bridge
from penstock.tables.file_metadata import METADATA, bind_filters
from penstock.tables.hive.declaration import PartitionBy, partition_columns
from penstock.tables.hive.hive_files import first_file, read_file, read_schema
from penstock.tables.hive.walk import Limits, Walk, unreadable
from penstock.tables.outputs import Keys, empty, outputs
from penstock.tables.table import count_partitions


@dataclass(frozen=True)
class HiveTable:
    """A directory tree as a table, returned by `penstock.hive`. Every plan lists the directories again, unless
    `cache_seconds` is set."""

    storage: Storage
    columns: tuple[pa.Field, ...]
    file_schema: pa.Schema
    context: Context
    limits: Limits
    lists_at_once: int
    max_lists: int
    cache: ListingCache | None = field(default=None, repr=False)
    shredded: bool | None = None  # whether some files have sidecars; None: the first one that was looked at has none

    def __repr__(self) -> str:
        by = ", ".join(f"{column.name} {type_name(column.type)}" for column in self.columns)
        return f"HiveTable({self.storage.url!r}, partition_by={by!r})"

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the files, then the partition columns, as Spark orders them."""
        return pa.schema([*self.file_schema, *self.columns])

    @cached_property
    def known_schema(self) -> pa.Schema:
        """What predicates may name: the columns, and what Spark calls `_metadata`."""
        return self.schema.append(pa.field("_metadata", METADATA))

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: place, account and declaration."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        return f"hive {self.storage.identity} {self.storage.path} ({columns}) {self.file_schema}"

    def plan(self, where: str | None = None, *, path: str | None = None) -> Plan:
        """Which files hold rows that may match; `path` is a LIKE pattern that the file's URL must match."""
        return self.plan_predicate(self.bind(where, path))

    def plan_predicate(self, predicate: Expr) -> Plan:
        """The same for a bound predicate."""
        return self.walk(predicate).plan()

    def walk(self, predicate: Expr, marker: str | None = None) -> Walk:
        """The way through the directories that a predicate admits; `marker` is the file that completes a partition."""
        lister = Lister(self.storage, self.lists_at_once, self.max_lists, self.cache)
        pruner = Pruner(predicate, self.context.timezone)
        return Walk(self.columns, pruner, lister, self.limits, self.context.timezone, marker)

    def arrow(
        self, where: str | None = None, columns: Sequence[str] | None = None, *, path: str | None = None
    ) -> pa.Table:
        """The matching rows, read from the planned files only, each filtered by its own residual.

        A column may be a key of a map: `headers['content-type']`.
        """
        names, keys = self.outputs(columns)
        plan = self.plan(where, path=path)
        self.check_readable(plan)
        parts = [self.read(task, names, keys) for task in plan.files]
        return pa.concat_tables(parts) if parts else empty(names, keys, self.schema)

    def outputs(self, columns: Sequence[str] | None) -> tuple[list[str], Keys]:
        """The columns as the schema spells them, and those that are keys of maps."""
        return outputs(columns, self.schema, self.bind)

    def dataframe(self, spark: Any, where: str | None = None) -> Any:
        """A lazy DataFrame over Spark's own reader; filters put on it later prune too."""
        return bridge.dataframe(self, spark, where)

    def stream(
        self,
        spark: Any,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        starting: str | datetime = "earliest",
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
        from penstock.tables.hive.hive_feed import HiveFeed

        return HiveFeed(self, options)

    @property
    def root_url(self) -> str:
        """The root as Spark takes it."""
        return self.storage.url_of(self.storage.path)

    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""
        return self.partitions_of(self.plan(where))

    def partitions_of(self, plan: Plan) -> pa.Table:
        """The partitions of the files that a plan keeps."""
        self.check_readable(plan)
        (judgement,) = plan.judgements
        facts = {f.name: f for f in judgement.containers.facts if isinstance(f, Exact)}
        kept = pa.array(judgement.kept)
        keys = [facts[c.name].single_values(judgement.kept)[0] for c in self.columns]
        assert judgement.containers.sizes is not None
        found = count_partitions([c.name for c in self.columns], keys, judgement.containers.sizes.take(kept))
        return as_grid(found, self.context.timezone)

    def _repr_html_(self) -> str:
        """Where it lies and what it has, for a notebook."""
        by = ", ".join(column.name for column in self.columns) or "nothing"
        return facts_html([("Hive layout", self.storage.url), ("partitions", by)]) + columns_html(self.schema)

    def check_readable(self, plan: Plan) -> None:
        """Raise for a kept directory that cannot be read as declared: it is never silently left out."""
        error = unreadable(plan, self.columns)
        if error is not None:
            raise error

    def bind(self, where: str | None, path: str | None = None) -> Expr:
        """A predicate with the columns it names; `path` is a LIKE pattern for the file's URL."""
        return bind_filters(where, path, self.known_schema, self.context)

    def read(self, task: FileTask, names: Sequence[str], keys: Keys) -> pa.Table:
        """The rows of one file that match its residual; only the columns that are asked for or checked are read."""
        terms = [*terms_of(task.residual), *keys.values()]
        if any(column_of(term) == "_metadata" for term in terms):
            hint = "put what is about the file into a condition of its own"
            raise EvaluationError(f"{task.residual} needs _metadata together with the rows", hint=hint)
        lookups = [term for term in dict.fromkeys(terms) if isinstance(term, Lookup)]
        whole = {n for n in names if n not in keys} | {column_of(term) for term in terms if term not in lookups}
        table, given = read_file(self.storage, task.path, self.file_schema, whole, lookups)
        for column in self.columns:
            value = pa.scalar(task.partition[column.name].value, column.type)
            table = table.append_column(column, pa.repeat(value, table.num_rows))
        for name, term in keys.items():
            found = evaluate(term, read_terms(term, table, given), table.num_rows, self.context.timezone).values
            table = table.append_column(pa.field(name, term.type), found)
        return table.filter(filter_mask(task.residual, table, self.context.timezone, given)).select(list(names))


def hive(
    root: str | os.PathLike[str],
    partition_by: PartitionBy = "auto",
    schema: Any = None,
    *,
    storage: Properties | str | None = None,
    timezone: str = "UTC",
    lists_at_once: int = 16,
    warn_partitions: int = 5_000,
    max_partitions: int = 50_000,
    max_lists: int = 10_000,
    cache_seconds: float = 0,
    cache_entries: int = 10_000,
    shredded: bool | None = None,
) -> HiveTable:
    """Open a Hive-style directory tree as a table.

    `partition_by` has the partition columns and their types: `"dt date, app string"`; `"auto"` infers them from one
    branch. Without a `schema` the columns are those of the first file. `storage` is a catalog of PyIceberg's
    configuration, or properties such as `{"s3.endpoint": …}`.

    `shredded` says whether some files have hot keys of maps in columns of their own. Without it the first file decides,
    and it is an error when Spark reads a later file that differs; with False no file is checked.
    """
    if lists_at_once < 1:
        raise LayoutError(f"lists_at_once is {lists_at_once}", hint="give 1 or more")
    place = open_storage(root, storage)
    columns = partition_columns(partition_by, place)
    if schema is not None:
        files = as_schema(schema)
    else:
        files, mapping = read_schema(place, first_file(place, columns))
        shredded = True if mapping else shredded
    names = {column.name.lower() for column in columns}
    # A file may lack any column, so all may be NULL, whatever the schema says: as in Spark.
    own = pa.schema([f.with_nullable(True) for f in files if f.name.lower() not in names])
    check_names(own, place.url)
    if not len(own) and schema is not None and not len(files):
        raise LayoutError("the schema has no columns")
    cache = ListingCache(cache_seconds, cache_entries) if cache_seconds > 0 and cache_entries > 0 else None
    limits = Limits(warn_partitions, max_partitions)
    return HiveTable(place, columns, own, Context(timezone), limits, lists_at_once, max_lists, cache, shredded)
