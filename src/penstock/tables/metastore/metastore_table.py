"""A table of a metastore: the files of a Hive layout, in partitions that lie wherever the metastore says.

Everything but the way to the files is that of a Hive layout: how they are read, here and by Spark. A table whose
partitions only its directories tell is walked as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.errors import LakeError
from penstock.expr.bind import Context
from penstock.expr.schema import check_names
from penstock.expr.tree import Expr
from penstock.prune.judge import Pruner
from penstock.storage.storage import Properties
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables.description import Description
from penstock.tables.hive.hive_table import HiveDescription, HiveTable
from penstock.tables.hive.walk import Limits, Walk
from penstock.tables.metastore.metastore import Metastore, StoredTable
from penstock.tables.metastore.partition_walk import PartitionWalk, PlaceLister
from penstock.tables.metastore.places import Places
from penstock.tables.metastore.stored_format import stored_format


@dataclass(frozen=True, repr=False)
class MetastoreTable(HiveTable):
    """A table of Spark's session catalog, returned by `penstock.spark_table`. Every plan asks the metastore again."""

    stored: StoredTable = field(kw_only=True)
    metastore: Metastore = field(kw_only=True, repr=False)

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: name, place and declaration."""
        return f"metastore {self.stored.name} {super().key}"

    @property
    def name(self) -> str:
        """The table's name, with its database."""
        return self.stored.name

    def comments(self) -> Mapping[str, str]:
        return self.stored.comments

    def walk(self, predicate: Expr, marker: str | None = None) -> Walk:
        """The way from the metastore to the files that a predicate admits."""
        if self.columns and not self.stored.has_partitions:
            return super().walk(predicate, marker)
        lister = PlaceLister(self.storage, self.lists_at_once, self.max_lists, self.cache)
        pruner = Pruner(predicate, self.context.timezone)
        walk = PartitionWalk(self.stored, self.metastore, pruner, lister, self.limits)
        walk.file_format = self.file_format
        return walk

    def feed(self, options: StreamOptions) -> Feed:
        """An error: a stream is planned by a process of its own, which has no metastore to ask."""
        hint = f"stream the directories, if all lie at one place: penstock.hive({self.storage.url!r}).stream(spark)"
        raise LakeError(f"{self.name} is a table of a metastore, which cannot be streamed", hint=hint)

    def refresh(self) -> MetastoreTable:
        """The table itself: each plan asks the metastore for its partitions; columns stay as they were."""
        return self

    def describe(self) -> Description:
        return MetastoreDescription(self)


class MetastoreDescription(HiveDescription):
    """A table of a metastore, described."""

    kind = "Metastore table"
    level = "partition"
    no_advice = "The table is not written by Penstock; penstock ingest makes one of it whose partitions share files."

    def __init__(self, table: MetastoreTable) -> None:
        super().__init__(table)
        self.name = table.name


def open_stored(
    metastore: Metastore,
    name: str,
    *,
    storage: Properties | str | None = None,
    timezone: str = "UTC",
    lists_at_once: int = 16,
    limits: Limits | None = None,
    max_lists: int = 10_000,
    shredded: bool | None = None,
) -> MetastoreTable:
    """Open a table by its name in a metastore."""
    stored = metastore.table(name)
    file_format, options = stored_format(stored)
    for columns in (stored.columns, stored.partition_columns):
        check_names(columns, stored.name)
    return MetastoreTable(
        Places.at(stored.location, storage),
        tuple(stored.partition_columns),
        pa.schema([f.with_nullable(True) for f in stored.columns]),
        file_format,
        options,
        limits or Limits(),
        lists_at_once,
        max_lists,
        shredded=shredded,
        stored=stored,
        metastore=metastore,
        context=Context(timezone),
    )
