"""`penstock.hive(root, …)`: a directory tree as a table.

Opening reads at most one footer: the schema of the files, unless it is given. A plan lists only the branches that can
match. The value in the path wins over a column of the same name in a file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import EvaluationError, LayoutError, LimitError, MissingError, PenstockWarning
from penstock.expr.bind import Context
from penstock.expr.schema import as_schema, check_names
from penstock.expr.sql_text import quote_name
from penstock.expr.tree import Expr, column_of, terms_of
from penstock.expr.types import type_name
from penstock.formats.file_format import FileFormat, Options, Reading
from penstock.formats.format_options import declared_format, read_options
from penstock.formats.format_registry import DEFAULT, format_by_name
from penstock.progress import Counted, progress
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.plan import Plan
from penstock.storage.lister import Lister, ListingCache
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Properties, Storage
from penstock.stream.feed import Feed, Work
from penstock.stream.stream_options import StreamOptions
from penstock.tables import bridge
from penstock.tables.description import MOST_KEYS, Description, Pieces, pieces_of_files
from penstock.tables.hive.declaration import PartitionBy, partition_columns
from penstock.tables.hive.hive_files import LayoutFiles, first_file, format_of_file, no_files
from penstock.tables.hive.hive_files import Mapping as Footers
from penstock.tables.hive.united_columns import united_columns
from penstock.tables.hive.walk import Limits, Walk, check_readable, judge
from penstock.tables.source import Keys, Relations, Source, bind, count_partitions, empty, matching_rows, outputs


@dataclass(frozen=True, repr=False)
class HiveTable(Source):
    """A directory tree as a table, returned by `penstock.hive`. Every plan lists the directories again, unless
    `cache_seconds` is set."""

    storage: Storage
    columns: tuple[pa.Field, ...]
    file_schema: pa.Schema
    file_format: FileFormat | None  # None: nobody has said it, and no file has been looked at
    options: Options
    limits: Limits
    lists_at_once: int
    max_lists: int
    cache: ListingCache | None = field(default=None, repr=False)
    in_any_order: bool = False  # whether the levels of partition columns differ in order
    on_forbidden: str = "error"
    shredded: bool | None = None  # whether some files have sidecars; None: the first one that was looked at has none

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the files, then the partition columns, as Spark orders them."""
        return pa.schema([*self.file_schema, *self.columns])

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: place, account and declaration."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        place = f"{self.storage.identity} {self.storage.path}"
        files = f"{self.data_files.file_format.name} {self.options}"
        zone = "" if self.data_files.file_format.has_types else f" {self.context.timezone}"  # of times as text
        return f"hive {place} ({columns}) {self.file_schema} {files}{zone}"

    @cached_property
    def data_files(self) -> LayoutFiles:
        """How the data files are read; without a declared format the first one is looked at."""
        known = self.file_format
        if known is None:
            path = first_file(self.storage, self.columns)
            known = (format_of_file(self.storage, path) if path is not None else None) or DEFAULT
        return self._in_format(known)

    def _in_format(self, known: FileFormat) -> LayoutFiles:
        if len(self.file_schema):  # else a file is just being asked for its columns
            known.check_columns(self.file_schema)
        return LayoutFiles(self.storage, known, Reading(self.options, self.context.timezone))

    def _files_like(self, url: str) -> LayoutFiles:
        """How one file is read: a name that tells the format spares a look at other files."""
        known = self.file_format or format_by_name(url)
        return self.data_files if known is None else self._in_format(known)

    def partition_fields(self) -> list[str]:
        return [quote_name(column.name) for column in self.columns]

    def partition_schema(self) -> pa.Schema:
        """The columns of the directories."""
        return pa.schema(self.columns)

    def properties(self) -> dict[str, str]:
        """Where the files are."""
        return {"location": self.root_url}

    def plan(self, where: str | Expr | None = None, *, path: str | None = None) -> Plan:
        """Which files hold rows that may match; `path` is a LIKE pattern that the file's URL must match."""
        walk = self.walk(bind(self, where, path))
        listing = f"listing {self.storage.url}"
        with progress(listing, lambda: Counted(walk.lister.calls, None, "directory"), is_detail=True):
            return walk.plan()

    def walk(self, predicate: Expr, marker: str | None = None) -> Walk:
        """The way through the directories that a predicate admits; `marker` is the file that completes a partition."""
        lister = Lister(self.storage, self.lists_at_once, self.max_lists, self.cache, self.on_forbidden == "skip")
        pruner = Pruner(predicate, self.context.timezone)
        return Walk(self.columns, pruner, lister, self.limits, self.file_format, self.in_any_order, marker)

    def arrow(
        self, where: str | None = None, columns: Sequence[str] | None = None, *, path: str | None = None
    ) -> pa.Table:
        """The matching rows, read from the planned files only, each filtered by its own residual.

        A column may be a key of a map: `headers['content-type']`.
        """
        names, keys = outputs(columns, self)
        plan = self.plan(where, path=path)
        check_readable(plan, self.columns)
        parts = [self.read(task, names, keys) for task in plan.files]
        return pa.concat_tables(parts) if parts else empty(names, keys, self.schema)

    def relations(self) -> Relations:
        relations: Relations = bridge.hive_relations(self)
        return relations

    def feed(self, options: StreamOptions) -> Feed:
        from penstock.tables.hive.hive_feed import HiveFeed

        return HiveFeed(self, options)

    @property
    def root_url(self) -> str:
        """The root as Spark takes it."""
        return self.storage.url_of(self.storage.path)

    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""
        plan = self.plan(where)
        check_readable(plan, self.columns)
        return count_partitions(plan, [column.name for column in self.columns], self.context.timezone)

    def describe(self) -> Description:
        return HiveDescription(self)

    def read(self, task: FileTask, names: Sequence[str], keys: Keys) -> pa.Table:
        """The rows of one file that match its residual; only the columns that are asked for or checked are read."""
        terms = [*terms_of(task.residual), *keys.values()]
        if any(column_of(term) == "_metadata" for term in terms):
            hint = "put what is about the file into a condition of its own"
            raise EvaluationError(f"{task.residual} needs _metadata together with the rows", hint=hint)
        whole = {name for name in names if name not in keys}
        table, key_values = self._files_like(task.path).read(task.path, self.file_schema, whole, terms)
        for column in self.columns:
            value = pa.scalar(task.partition[column.name].value, column.type)
            table = table.append_column(column, pa.repeat(value, table.num_rows))
        return matching_rows(table, task.residual, names, keys, self.context.timezone, key_values)


@dataclass(frozen=True)
class HiveRows:
    """Reads files of a directory tree."""

    table: HiveTable
    names: tuple[str, ...]
    keys: Keys
    on_missing: str

    def read(self, work: Work) -> Iterator[pa.Table]:
        for task in work.tasks:
            try:
                yield self.table.read(task, self.names, self.keys)
            except MissingError as error:
                if self.on_missing == "error":
                    hint = "restore it, or set on_missing to skip"
                    raise MissingError(f"{task.path} vanished before it was read", hint=hint) from error
                warnings.warn(f"{task.path} vanished before it was read, and is skipped", PenstockWarning, stacklevel=2)


class HiveDescription(Description):
    """A Hive layout, described."""

    kind = "Hive layout"
    level = "directory"
    no_advice = (
        "A Hive layout is not written by Penstock; penstock ingest makes a table of it whose partitions share files."
    )

    def __init__(self, table: HiveTable) -> None:
        fields = [f"{column.name} {type_name(column.type)}" for column in table.columns]
        super().__init__(table.storage.url, table.root_url, fields)
        self._table = table

    @cached_property
    def pieces(self) -> Pieces | None:
        """All files; None where there are more than the table may be asked to list."""
        try:
            plan = self._table.plan()
        except LimitError:
            return None
        return pieces_of_files([judgement.containers for judgement in plan.judgements], self._table.context.timezone)

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file; directories that cannot be typed are kept."""
        return [judge(pruner, containers) for containers in pieces.containers]

    def hot_keys(self, pieces: Pieces) -> list[dict[str, Any]]:
        """The keys as the first file has them."""
        if not self._table.shredded or not len(pieces.names):
            return []
        mapping = self._table.data_files.mapping(str(pieces.names[0]))
        keys = [{"column": each.column, "key": key, "mode": each.mode} for each in mapping for key, _ in each.sidecars]
        return keys[:MOST_KEYS]


def hive(
    root: str | os.PathLike[str],
    partition_by: PartitionBy = "auto",
    schema: Any = None,
    *,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    union_by_name: bool = False,
    on_forbidden: str = "error",
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
    branch. Without a `schema` the columns are those of the first file, as text in CSV. `storage` is a catalog of
    PyIceberg's configuration, or properties such as `{"s3.endpoint": …}`.

    `format` is that of the files: `"parquet"`, `"orc"`, `"csv"`, `"json"`, `"avro"` or `"text"`; without it the name of
    the first file tells it. `options` say how they are read, under the names that Spark has for them:
    `{"header": True, "sep": ";"}`.

    `union_by_name` takes the columns of all files, each of which is opened once, and the levels of partition columns
    in any order. With `on_forbidden="skip"` directories that may not be read are left out of answers, with a warning
    that counts them.

    `shredded` says whether some files have hot keys of maps in columns of their own. Without it the first file decides,
    and it is an error when Spark reads a later file that differs; with False no file is checked.
    """
    if lists_at_once < 1:
        raise LayoutError(f"lists_at_once is {lists_at_once}", hint="give 1 or more")
    if on_forbidden not in ("error", "skip"):
        raise LayoutError(f"on_forbidden is {on_forbidden!r}", hint="write 'error' or 'skip'")
    place = open_storage(root, storage)
    columns = partition_columns(partition_by, place)
    file_format = declared_format(format) if format is not None else None
    path = first_file(place, columns) if schema is None or (options and file_format is None) else None
    if path is not None and file_format is None:
        file_format = format_of_file(place, path) or DEFAULT
    table = HiveTable(
        place,
        columns,
        pa.schema([]),
        file_format,
        read_options(file_format or DEFAULT, options),
        Limits(warn_partitions, max_partitions),
        lists_at_once,
        max_lists,
        ListingCache(cache_seconds, cache_entries) if cache_seconds > 0 and cache_entries > 0 else None,
        union_by_name,
        on_forbidden,
        shredded,
        context=Context(timezone),
    )
    if schema is not None:
        declared = as_schema(schema)
        if not len(declared):
            raise LayoutError("the schema has no columns")
        return _with_columns(table, declared, ())
    if path is None:
        raise no_files(place, columns)
    files, mapping = _united(table) if union_by_name else table.data_files.schema(path)
    _check_seen(place, table.data_files.file_format, files, columns)
    return _with_columns(table, files, mapping)


def _united(table: HiveTable) -> tuple[pa.Schema, Footers]:
    """The columns of all files, and what one of them says of the sidecars of its maps."""
    return united_columns(table.data_files, table.plan().files.paths.to_pylist())


def _with_columns(table: HiveTable, files: pa.Schema, mapping: Footers) -> HiveTable:
    """The table with the columns of its files, but for those that are in the path."""
    names = {column.name.lower() for column in table.columns}
    # A file may lack any column, so all may be NULL, whatever the schema says: as in Spark.
    own = pa.schema([f.with_nullable(True) for f in files if f.name.lower() not in names])
    check_names(own, table.storage.url)
    (table.file_format or DEFAULT).check_columns(own)
    return replace(table, file_schema=own, shredded=True if mapping else table.shredded)


def _check_seen(place: Storage, file_format: FileFormat, files: pa.Schema, columns: Sequence[pa.Field]) -> None:
    """What a file that tells the columns does not tell."""
    if file_format.is_by_position:
        names = {column.name.lower() for column in columns}
        both = next((name for name in files.names if name.lower() in names), None)
        if both is not None:
            message = f"{place.url}: files have a column {both!r}, and directories, too"
            title = file_format.title
            raise LayoutError(
                message, hint=f"declare the schema with another name for it: columns of {title} go by position"
            )
    if file_format.is_guessed:
        ddl = ", ".join(f"{quote_name(field.name)} {type_name(field.type)}" for field in files)
        way = f'to be sure, declare them: schema="{ddl}"'
        warnings.warn(f"{place.url}: columns as one file shows them; {way}", PenstockWarning, stacklevel=3)
