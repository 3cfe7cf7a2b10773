"""Where Iceberg tables come from: a catalog that PyIceberg knows, or a metadata file.

What was decoded of manifests is kept once for the process: manifests are immutable, whichever table they belong to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError, StorageError, TableNotFoundError
from penstock.expr.bind import Context
from penstock.storage.redaction import one_line
from penstock.storage.schemes import open_storage
from penstock.storage.storage import Properties, properties_of
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.manifest.file_batch import Batches
from penstock.tables.iceberg.manifest.manifest_cache import default_cache
from penstock.tables.iceberg.manifest.manifest_list import ManifestLists
from penstock.tables.iceberg.metadata.version import SnapshotChoice
from penstock.tables.iceberg.scan.scan_plan import Sources

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

CatalogSource = str | Mapping[str, str] | Any
_lists, _batches = cache(ManifestLists), cache(Batches)


def iceberg(
    metadata: str | os.PathLike[str], *, storage: Properties | str | None = None, timezone: str = "UTC"
) -> IcebergTable:
    """Open a table by its metadata file (`…/v3.metadata.json`), or by its folder when that has a version hint."""
    from pyiceberg.table import StaticTable

    place = open_storage(metadata, properties_of(storage))  # data files may lie elsewhere than the metadata
    with clear_errors(f"the metadata {place.url}", place.properties):
        table = StaticTable.from_metadata(place.url, dict(place.properties))
    return from_pyiceberg(table, place.url, timezone)


def from_pyiceberg(table: Table, name: str, timezone: str = "UTC") -> IcebergTable:
    """A table that PyIceberg has opened."""
    return IcebergTable(name, table, sources_of(table), context=Context(timezone))


def reloaded(table: IcebergTable) -> Table:
    """PyIceberg's table as the catalog has it now, or as the metadata file says."""
    from pyiceberg.table import StaticTable

    from penstock.tables.iceberg.metadata.branch import branch_of, on_branch

    if isinstance(table.table, StaticTable):
        return iceberg(table.name, storage=table.table.io.properties).table
    return on_branch(loaded(table.table), branch_of(table.table))


def loaded(table: Table) -> Table:
    """PyIceberg's table as its catalog has it now."""
    with clear_errors("the catalog", {}), clear_absence(".".join(table.name())):
        return table.catalog.load_table(table.name())


@contextmanager
def clear_absence(name: str) -> Iterator[None]:
    """What a catalog says of a table that another process has dropped or renamed, as one line."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        yield
    except NoSuchTableError:
        hint = "it was dropped or renamed; open it by the name that it has"
        raise TableNotFoundError(f"no table {name!r} in the catalog any more", hint=hint) from None


def sources_of(table: Table) -> Sources:
    """Where the metadata of a table comes from; what was decoded is shared by all tables."""
    return Sources(table.io, default_cache(), _lists(), _batches())


def open_catalog(source: CatalogSource) -> Catalog:
    """A PyIceberg catalog by its name in PyIceberg's configuration, by properties, or as it is."""
    from pyiceberg.catalog import Catalog, load_catalog

    if isinstance(source, Catalog):
        return source
    if isinstance(source, str):
        with clear_errors(f"catalog {source!r}", {}):
            try:
                return load_catalog(source)
            except ValueError as error:
                raise _without_uri(source) if "URI missing" in str(error) else error from None
    if isinstance(source, Mapping):
        with clear_errors("the catalog", source):
            return load_catalog("penstock", **{str(k): str(v) for k, v in source.items()})
    raise LakeError(f"a catalog is a name, properties or PyIceberg's object; found {type(source).__name__}")


def _without_uri(name: str) -> LakeError:
    """The error for a name that PyIceberg's configuration does not have; its own one names options of its command."""
    variable = f"PYICEBERG_CATALOG__{name.upper().replace('-', '_')}__URI"
    message = f"catalog {name!r} cannot be opened: PyIceberg's configuration has no uri for it"
    return LakeError(message, hint=f"describe it in .pyiceberg.yaml, or set {variable}")


def embedded_catalog(warehouse: Path) -> Catalog:
    """The catalog of a warehouse on a local disk: SQLite in `catalog.db`, tables in folders beside it."""
    from pyiceberg.catalog.sql import SqlCatalog

    try:
        warehouse.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the warehouse {warehouse} cannot be made: {error.strerror}"
        raise StorageError(message, hint="check the path and its permissions") from None
    place = {"uri": f"sqlite:///{warehouse / 'catalog.db'}?timeout=60", "warehouse": f"file://{warehouse}"}
    with clear_errors(f"the catalog in {warehouse}", {}):
        return SqlCatalog("penstock", **{**properties_of(None), **place})


@contextmanager
def clear_errors(what: str, properties: Properties) -> Iterator[None]:
    """Whatever a catalog or a storage throws, as one line without a credential in it."""
    try:
        yield
    except PenstockError:
        raise
    except FileNotFoundError:
        raise LakeError(f"{what} does not exist", hint="check the path") from None
    except ModuleNotFoundError as error:
        message = f"{what} cannot be opened: it needs the package {error.name}, which is not installed"
        raise LakeError(message, hint=f"pip install {error.name}") from None
    except CLIENT_ERRORS as error:
        from pyiceberg.exceptions import NoSuchIcebergTableError

        if isinstance(error, NoSuchIcebergTableError):  # of Glue, or of a Hive metastore
            hint = "open a table of a metastore with penstock.spark_table(spark, name)"
            raise LakeError(f"{what} has such a table, and it is not an Iceberg table", hint=hint) from None
        message = one_line(error, properties) or type(error).__name__
        hint = "check its address, its configuration and the credentials"
        raise LakeError(f"{what} cannot be opened: {message}", hint=hint) from error


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

    from penstock.tables.iceberg.metadata.branch import BranchTable

    handle = table.table
    zone = table.context.timezone
    if isinstance(handle, StaticTable):
        return Place(table.name, zone, table.snapshot, dict(handle.io.properties), None)
    catalog = handle.catalog
    if ":memory:" in str(catalog.properties.get("uri", "")):
        message = f"{table.name} is in a catalog that lives in the memory of this process"
        raise LakeError(message, hint="use a catalog that other processes can open: penstock.connect('./warehouse')")
    place = (type(catalog), str(catalog.name))
    snapshot = handle.branch if table.snapshot is None and isinstance(handle, BranchTable) else table.snapshot
    return Place(table.name, zone, snapshot, dict(catalog.properties), place, tuple(handle.name()), catalog)
