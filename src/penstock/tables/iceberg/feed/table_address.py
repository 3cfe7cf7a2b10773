"""Where an Iceberg table is found again, in another process too: a catalog and a name, or a metadata file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.catalogs import clear_errors, from_pyiceberg, iceberg
from penstock.tables.iceberg.metadata.version import SnapshotChoice

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


@dataclass
class Place:
    """A table by its place; opening it gives the table as it is now."""

    name: str
    timezone: str
    snapshot: SnapshotChoice
    properties: Mapping[str, str] = field(repr=False)  # of the catalog, or of the storage
    catalog: tuple[type[Catalog], str] | None  # its class and its name
    identifier: tuple[str, ...] = ()
    _opened: Catalog | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def open(self) -> IcebergTable:
        """The table as it is now."""
        if self.catalog is None:
            table = iceberg(self.name, storage=self.properties, timezone=self.timezone)
        else:
            with clear_errors(self.name, self.properties):
                if self._opened is None:
                    kind, name = self.catalog
                    self._opened = kind(name, **self.properties)
                table = from_pyiceberg(self._opened.load_table(self.identifier), self.name, self.timezone)
        return replace(table, snapshot=self.snapshot)


def place_of(table: IcebergTable) -> Place:
    """Where a table lies."""
    from pyiceberg.table import StaticTable

    handle = table.table
    zone = table.context.timezone
    if isinstance(handle, StaticTable):
        return Place(table.name, zone, table.snapshot, dict(handle.io.properties), None)
    catalog = handle.catalog
    if ":memory:" in str(catalog.properties.get("uri", "")):
        message = f"{table.name} is in a catalog that lives in the memory of this process"
        raise LakeError(message, hint="use a catalog that other processes can open: penstock.connect('./warehouse')")
    place = (type(catalog), str(catalog.name))
    return Place(table.name, zone, table.snapshot, dict(catalog.properties), place, tuple(handle.name()), catalog)
