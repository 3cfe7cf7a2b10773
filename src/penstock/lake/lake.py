"""A lake: tables by name. Iceberg tables are those of a catalog; Hive layouts are those declared in the warehouse."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError
from penstock.expr.bind import Context
from penstock.lake.create import create
from penstock.lake.declarations import Declarations
from penstock.lake.layout.coalesce import Coalesce, as_rule
from penstock.lake.maintain.other_tables import all_tables
from penstock.lake.managed_table import ManagedTable
from penstock.maps.shred_rule import Asked as Shredding
from penstock.maps.shred_rule import as_rules
from penstock.tables import bridge
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.iceberg.metadata.catalogs import (
    CatalogSource,
    clear_errors,
    embedded_catalog,
    open_catalog,
    sources_of,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


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
    def declarations(self) -> Declarations | None:
        """The layouts that are declared; they need a warehouse to lie in."""
        return None if self.warehouse is None else Declarations(self.warehouse)

    def create_table(
        self,
        name: str,
        schema: Any,
        partition_by: str | Sequence[str] = (),
        *,
        coalesce: Coalesce | str | Sequence[str] | None = None,
        shred: Shredding | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ManagedTable:
        """Make a table. The schema is DDL text, or Arrow's, Iceberg's or Spark's.

        `partition_by` names columns and Iceberg's transforms of them: `["day(ts)", "app", "bucket(16, user_id)"]`.
        `coalesce` says which partitions share files: `["app"]`, or `penstock.Coalesce("app", below="32MB")`.
        `shred` says which keys of maps get columns of their own: `{"headers": ["content-type"]}`,
        `{"headers": "auto"}`, or `{"headers": penstock.Shred("content-type", mode="mirror")}`.
        """
        if self.declarations is not None and self.declarations.has(name):
            raise LakeError(f"{name} is a declared layout", hint="make the table under another name")
        with clear_errors("the catalog", {}):
            rule, hot = as_rule(coalesce), as_rules(shred)
            made = create(self.catalog, name, schema, partition_by, rule, hot, properties or {})
        return self._managed(made, name)

    def register(self, name: str, table: HiveTable) -> HiveTable:
        """Keep the declaration of a table under `namespace.name`; an older one of that name is replaced.

        Credentials are not kept: they come from PyIceberg's configuration when the table is opened by its name.
        """
        if self.declarations is None:
            hint = "connect with a warehouse too: penstock.connect('./warehouse', catalog=…)"
            raise LakeError("declarations need a warehouse to lie in", hint=hint)
        if self._has_iceberg(name):
            raise LakeError(f"{name} is an Iceberg table", hint="register the layout under another name")
        self.declarations.save(name, table)
        return table

    def table(self, name: str) -> HiveTable | ManagedTable:
        """Open a table by its name: a declared layout, or an Iceberg table of the catalog."""
        declared = self.declarations
        if declared is not None and declared.has(name):
            return declared.open(name)
        return self._iceberg(name)

    def writable_table(self, name: str) -> ManagedTable:
        """Open a table for writing or maintenance; a declared layout is an error."""
        if self.declarations is not None and self.declarations.has(name):
            message = f"{name} is a Hive layout, which Penstock does not write"
            raise LakeError(message, hint="name another table; penstock ingest writes the rows of a layout to one")
        return self._iceberg(name)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        names = set(self.declarations.names() if self.declarations is not None else ())
        if self._has_catalog():
            with clear_errors("the catalog", {}):
                names.update(".".join(name) for name in all_tables(self.catalog))
        return sorted(names)

    def sql(self, text: str, spark: Any = None) -> Any:
        """Run Spark SQL in which `namespace.name` means a table of this lake; a session is made when none is given."""
        return bridge.sql(self, text, spark)

    def _iceberg(self, name: str) -> ManagedTable:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if "." not in name.strip("."):
            raise LakeError(f"invalid table name {name!r}", hint="write namespace.name")
        if self._has_catalog():
            try:
                with clear_errors("the catalog", {}):
                    return self._managed(self.catalog.load_table(name), name)
            except LakeError as error:
                if not isinstance(error.__cause__, NoSuchTableError | NoSuchNamespaceError):
                    raise
        if self.source is None and self.warehouse is not None and not self.warehouse.exists():
            hint = "give the folder of one that is there: --warehouse FOLDER, or connect(FOLDER)"
            raise LakeError(f"no table {name!r}: there is no warehouse {self.warehouse}", hint=hint)
        known = ", ".join(self.tables()) or "none"
        raise LakeError(f"no table {name!r} in {self.warehouse or 'the catalog'}", hint=f"there are: {known}")

    def _managed(self, table: Table, name: str) -> ManagedTable:
        """A table that PyIceberg has opened in the catalog."""
        return ManagedTable(
            name, table, sources_of(table), declarations=self.declarations, context=Context(self.timezone)
        )

    def _has_catalog(self) -> bool:
        return self.source is not None or (self.warehouse is not None and (self.warehouse / "catalog.db").exists())

    def _has_iceberg(self, name: str) -> bool:
        with clear_errors("the catalog", {}):
            return self._has_catalog() and bool(self.catalog.table_exists(name))


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
