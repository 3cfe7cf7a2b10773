"""A lake: tables by name. Iceberg tables are those of a catalog; Hive layouts are those declared in the warehouse."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from penstock.errors import LakeError, TableExistsError, TableNotFoundError
from penstock.expr.bind import Context
from penstock.lake.adopt.adopt import Adopting
from penstock.lake.adopt.adopted import Adopted
from penstock.lake.adopt.adopted_tree import adopted_tree
from penstock.lake.adopt.table_to_adopt import TableToAdopt, partition_ddl
from penstock.lake.create import define
from penstock.lake.declarations import Declarations
from penstock.lake.layout.coalesce import Coalesce, as_rule
from penstock.lake.maintain.unneeded_files import all_tables, removable_files, remove_files
from penstock.lake.managed_table import ManagedTable
from penstock.lake.namespaces import Namespaces
from penstock.maps.shred_rule import ShredRules, as_rules
from penstock.storage.storage import Properties, clear_storage_errors
from penstock.tables import bridge
from penstock.tables.hive.declaration import PartitionBy
from penstock.tables.hive.hive_table import HiveTable, hive
from penstock.tables.iceberg.metadata.catalogs import (
    CatalogSource,
    clear_absence,
    clear_errors,
    embedded_catalog,
    open_catalog,
    sources_of,
)
from penstock.tables.metastore.metastore_table import MetastoreTable


@dataclass(frozen=True)
class Lake:
    """The tables of a catalog and the Hive layouts registered in a warehouse, returned by `penstock.connect`."""

    warehouse: Path | None
    source: CatalogSource | None = field(default=None, repr=False)
    timezone: str = "UTC"

    @cached_property
    def catalog(self) -> Catalog:
        """PyIceberg's catalog; that of a warehouse is made on first use."""
        if self.source is not None:
            return open_catalog(self.source)
        assert self.warehouse is not None
        return embedded_catalog(self.warehouse)

    @property
    def declarations(self) -> Declarations:
        """The layouts that are declared."""
        return Declarations(self.warehouse)

    def create_table(
        self,
        name: str,
        schema: Any,
        partition_by: str | Sequence[str] = (),
        *,
        coalesce: Coalesce | str | Sequence[str] | None = None,
        shred: ShredRules | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> ManagedTable:
        """Make a table. The schema is DDL text, or Arrow's, Iceberg's or Spark's.

        `partition_by` names columns and Iceberg's transforms of them: `["day(ts)", "app", "bucket(16, user_id)"]`.
        `coalesce` says which partitions share files: `["app"]`, or `penstock.Coalesce("app", below="32MB")`.
        `shred` says which keys of maps get columns of their own: `{"headers": ["content-type"]}`,
        `{"headers": "auto"}`, or `{"headers": penstock.Shred("content-type", mode="mirror")}`.
        `location` is the folder of its files, where the catalog is not to choose one.
        """
        _check_name(name)
        if self.declarations.has(name):
            raise TableExistsError(f"{name} is a declared layout", hint="make the table under another name")
        with clear_errors("the catalog", {}):
            definition = define(schema, partition_by, as_rule(coalesce), as_rules(shred), properties or {})
            self.namespaces.create_if_missing(name.rpartition(".")[0])
            try:
                made = self.catalog.create_table(
                    name, definition.schema, location, definition.spec, properties=dict(definition.properties)
                )
            except TableAlreadyExistsError:
                raise TableExistsError(
                    f"there is a table {name} already", hint=f"open it: lake.table({name!r})"
                ) from None
        return self._managed(made, name)

    def adopt(
        self,
        source: str | os.PathLike[str] | HiveTable,
        name: str,
        partition_by: PartitionBy = "auto",
        *,
        coalesce: Coalesce | str | Sequence[str] | None = None,
        shred: ShredRules | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        storage: Properties | str | None = None,
        timezone: str | None = None,
    ) -> Adopted:
        """Make a table of a Parquet tree where it lies, or bring the table up to date with a tree that has grown.

        `source` is the path or URL of the tree, partitioned by `partition_by` as in `penstock.hive`, the name of a
        declared layout, or a layout. No file is copied, changed or ever removed; `compact()` writes their rows into the
        table's own folders. The same call again goes on where it was interrupted, and adds files that are new.

        `coalesce`, `shred`, `properties` and `location` are those of a new table, as in `create_table`. `timezone` is
        that of times in directory names, the lake's if it is not given.
        """
        _check_name(name)
        target = TableToAdopt(self, name, as_rule(coalesce), as_rules(shred), properties or {}, location)
        existing = target.existing()
        tree = adopted_tree(self._layout(source, partition_by, storage, timezone, existing))
        with clear_storage_errors(f"{name} cannot be written"):
            return Adopting(tree, target).run()

    def _layout(
        self,
        source: str | os.PathLike[str] | HiveTable,
        partition_by: PartitionBy,
        storage: Properties | str | None,
        timezone: str | None,
        table: ManagedTable | None,
    ) -> HiveTable:
        """The tree of a path, a name or a layout; partitioned as the table that has adopted it, unless that is said."""
        if isinstance(source, HiveTable):
            return source
        text = os.fspath(source)
        if _is_name(text) and self.declarations.has(text):
            return self.declarations.open(text)
        if table is not None and partition_by == "auto":
            partition_by = partition_ddl(table)
        return hive(source, partition_by, storage=storage, timezone=timezone or self.timezone)

    def register(self, name: str, table: HiveTable) -> HiveTable:
        """Keep the declaration of a table under `namespace.name`; an older one of that name is replaced.

        Credentials are not kept: they come from PyIceberg's configuration when the table is opened by its name.
        """
        if self._has_iceberg(name):
            raise LakeError(f"{name} is an Iceberg table", hint="register the layout under another name")
        if isinstance(table, MetastoreTable):  # a declaration has one place, and no session to ask
            hint = "for SQL attach them all: penstock.attach(spark, penstock.spark_catalog(spark), name=…)"
            raise LakeError(f"{table.name} is declared in the metastore already", hint=hint)
        self.declarations.save(name, table)
        return table

    def table(self, name: str) -> HiveTable | ManagedTable:
        """Open a table by its name: a declared layout, or an Iceberg table of the catalog."""
        return self.declarations.open(name) if self.declarations.has(name) else self._iceberg(name)

    def writable_table(self, name: str) -> ManagedTable:
        """Open a table for writing or maintenance; a declared layout is an error."""
        if self.declarations.has(name):
            message = f"{name} is a Hive layout, which Penstock does not write"
            raise LakeError(message, hint="name another table; penstock ingest writes the rows of a layout to one")
        return self._iceberg(name)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        names = set(self.declarations.names())
        if self.has_catalog():
            with clear_errors("the catalog", {}):
                names.update(".".join(name) for name in all_tables(self.catalog))
        return sorted(names)

    def has_table(self, name: str) -> bool:
        """Whether there is a declared layout or an Iceberg table of this name."""
        return self.declarations.has(name) or self._has_iceberg(name)

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Remove a table from the lake. Its files stay, unless `purge` is set; those of a layout always stay."""
        if self.declarations.has(name):
            if purge:
                hint = "drop it without purge; remove the files by hand if they are not needed"
                raise LakeError(f"{name} is a Hive layout, whose files are not Penstock's", hint=hint)
            self.declarations.remove(name)
            return
        table = self._iceberg(name)
        # Looked for before the table is dropped: an error leaves everything as it was.
        files = removable_files(table.table, table.sources, self.declarations.roots()) if purge else []
        with clear_errors("the catalog", {}), clear_absence(name):
            self.catalog.drop_table(name)
        remove_files(table.sources.io, files)

    def unregister(self, name: str) -> None:
        """Remove the declaration of a Hive layout; its files stay."""
        if not self.declarations.has(name):
            raise TableNotFoundError(f"no layout is declared as {name!r}", hint="see lake.tables()")
        self.declarations.remove(name)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, or another namespace; its files stay where they are."""
        _check_name(new_name)
        if self.has_table(new_name):
            raise TableExistsError(f"there is a table {new_name} already", hint="choose another name")
        if self.declarations.has(name):
            self.declarations.rename(name, new_name)
            return
        self._iceberg(name)
        with clear_errors("the catalog", {}), clear_absence(name):
            self.namespaces.create_if_missing(new_name.rpartition(".")[0])
            self.catalog.rename_table(name, new_name)

    @property
    def namespaces(self) -> Namespaces:
        """The namespaces, to be listed, created and dropped."""
        return Namespaces(self)

    def create_namespace(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace for tables."""
        self.namespaces.create(name, properties or {})

    def sql(self, text: str, spark: Any = None) -> Any:
        """Run Spark SQL in which `namespace.name` means a table of this lake; a session is made when none is given."""
        return bridge.sql(self, text, spark)

    def _iceberg(self, name: str) -> ManagedTable:
        _check_name(name)
        if self.has_catalog():
            try:
                with clear_errors("the catalog", {}):
                    return self._managed(self.catalog.load_table(name), name)
            except LakeError as error:
                if not isinstance(error.__cause__, NoSuchTableError | NoSuchNamespaceError):
                    raise
        if self.source is None and self.warehouse is not None and not self.warehouse.exists():
            hint = "give the folder of one that is there: --warehouse FOLDER, or connect(FOLDER)"
            raise TableNotFoundError(f"no table {name!r}: there is no warehouse {self.warehouse}", hint=hint)
        known = ", ".join(self.tables()) or "none"
        raise TableNotFoundError(f"no table {name!r} in {self.warehouse or 'the catalog'}", hint=f"there are: {known}")

    def _managed(self, table: Table, name: str) -> ManagedTable:
        """A table that PyIceberg has opened in the catalog."""
        sources, context = sources_of(table), Context(self.timezone)
        return ManagedTable(name, table, sources, declarations=self.declarations, context=context)

    def has_catalog(self) -> bool:
        """Whether there is a catalog: that of a warehouse is made with its first table."""
        return self.source is not None or (self.warehouse is not None and (self.warehouse / "catalog.db").exists())

    def _has_iceberg(self, name: str) -> bool:
        with clear_errors("the catalog", {}):
            return _is_name(name) and self.has_catalog() and bool(self.catalog.table_exists(name))


def _is_name(name: str) -> bool:
    return "." in name and all(part.strip() for part in name.split("."))


def _check_name(name: str) -> None:
    if not _is_name(name):
        raise LakeError(f"invalid table name {name!r}", hint="write namespace.name")


def connect(
    warehouse: str | os.PathLike[str] | None = None, *, catalog: CatalogSource | None = None, timezone: str = "UTC"
) -> Lake:
    """A lake: a directory with a catalog of its own, made on first use, or any catalog that PyIceberg knows.

    `catalog` is a name in PyIceberg's configuration, properties such as `{"type": "rest", "uri": …}`, or an object.
    `timezone` is the zone of times without one in predicates on Iceberg tables; a Hive table has its own.
    """
    Context(timezone)  # a zone that does not exist is an error here, not at the first table
    if warehouse is None:
        if catalog is None:
            raise LakeError("no lake is named", hint="give a directory, or catalog=…")
        return Lake(None, catalog, timezone)
    path = Path(os.path.expanduser(os.fspath(warehouse))).absolute()
    if path.exists() and not path.is_dir():
        raise LakeError(f"{path} is not a directory", hint="give the directory of the warehouse")
    odd = next((c for c in "#?%" if c in str(path)), None)
    if odd is not None:
        message = f"{path} has a {odd} in it, which readers of Iceberg tables take for a part of a URL"
        raise LakeError(message, hint="choose a directory without it")
    return Lake(path, catalog, timezone)
