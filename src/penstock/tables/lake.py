"""A lake: tables by name. Iceberg tables are those of a catalog; Hive layouts are kept as declarations, types included.

A declaration is a small JSON file below the warehouse, written whole or not at all. It holds no credential: of the
storage's properties only those that are none are kept, and the rest comes from PyIceberg's configuration when the table
is opened again.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.predicate.bind import Context
from penstock.predicate.schema import as_schema
from penstock.predicate.sql import quote_name
from penstock.predicate.types import type_name
from penstock.shred.rule import Asked as Shredding
from penstock.shred.rule import as_rules
from penstock.tables import bridge
from penstock.tables.hive.table import HiveTable, hive
from penstock.tables.iceberg.open import CatalogSource, clear_errors, embedded_catalog, open_catalog, sources_of
from penstock.tables.managed.coalesce import Coalesce, as_rule
from penstock.tables.managed.create import create
from penstock.tables.managed.table import ManagedTable
from penstock.tables.storage import is_secret, properties_of

_DECLARED = re.compile(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+")
_VERSION = 1


@dataclass(frozen=True)
class Lake:
    """The tables of a catalog, and the layouts that are declared in a warehouse."""

    warehouse: Path | None
    source: Any = field(default=None, repr=False)
    timezone: str = "UTC"

    @cached_property
    def catalog(self) -> Any:
        """PyIceberg's catalog; that of a warehouse is made on first use."""
        if self.source is not None:
            return open_catalog(self.source)
        assert self.warehouse is not None
        return embedded_catalog(self.warehouse)

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
        if self.warehouse is not None and _DECLARED.fullmatch(name) and self._path(name).exists():
            raise LakeError(f"{name} is a declared layout", hint="make the table under another name")
        with clear_errors("the catalog", {}):
            rule, hot = as_rule(coalesce), as_rules(shred)
            made = create(self.catalog, name, schema, partition_by, rule, hot, properties or {})
        return managed(made, name, self.timezone)

    def register(self, name: str, table: HiveTable) -> HiveTable:
        """Keep the declaration of a table under `namespace.name`; an older one of that name is replaced."""
        path = self._path(name)
        if self._has_iceberg(name):
            raise LakeError(f"{name} is an Iceberg table", hint="register the layout under another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(_declaration(table), file, indent=2)
        os.replace(file.name, path)
        return table

    def table(self, name: str) -> HiveTable | ManagedTable:
        """Open a table by its name: a declared layout, or an Iceberg table of the catalog."""
        path = self._path(name) if self.warehouse is not None and _DECLARED.fullmatch(name) else None
        if path is not None and path.exists():
            try:
                declared = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                said = f"the declaration of {name} cannot be read: {error}"
                raise LakeError(said, hint="register it again") from None
            return _open(declared, name)
        return self._iceberg(name)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        found = set(self._declared())
        if self._has_catalog():
            with clear_errors("the catalog", {}):
                found.update(".".join(name) for name in _all_tables(self.catalog))
        return sorted(found)

    def sql(self, text: str, spark: Any = None) -> Any:
        """Run Spark SQL in which `namespace.name` means a table of this lake; a session is made when none is given."""
        return bridge.sql(self, text, spark)

    def _iceberg(self, name: str) -> ManagedTable:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if "." not in name.strip("."):
            raise LakeError(f"{name!r} is no name of a table", hint="write namespace.name")
        if self._has_catalog():
            try:
                with clear_errors("the catalog", {}):
                    return managed(self.catalog.load_table(name), name, self.timezone)
            except LakeError as error:
                if not isinstance(error.__cause__, NoSuchTableError | NoSuchNamespaceError):
                    raise
        if self.source is None and self.warehouse is not None and not self.warehouse.exists():
            hint = "give the folder of one that is there: --warehouse FOLDER, or connect(FOLDER)"
            raise LakeError(f"no table {name!r}: there is no warehouse {self.warehouse}", hint=hint)
        known = ", ".join(self.tables()) or "none"
        raise LakeError(f"no table {name!r} in {self.warehouse or 'the catalog'}", hint=f"there are: {known}")

    def _has_catalog(self) -> bool:
        return self.source is not None or (self.warehouse is not None and (self.warehouse / "catalog.db").exists())

    def _has_iceberg(self, name: str) -> bool:
        with clear_errors("the catalog", {}):
            return self._has_catalog() and bool(self.catalog.table_exists(name))

    def _declared(self) -> list[str]:
        if self.warehouse is None:
            return []
        root = self.warehouse / "penstock" / "tables"
        return [f"{path.parent.name}.{path.stem}" for path in root.glob("*/*.json")]

    def _path(self, name: str) -> Path:
        if self.warehouse is None:
            hint = "connect with a warehouse too: penstock.connect('./warehouse', catalog=…)"
            raise LakeError("declarations need a warehouse to lie in", hint=hint)
        if not _DECLARED.fullmatch(name):
            hint = "write namespace.name, in letters, digits and underscores"
            raise LakeError(f"{name!r} is no name of a table", hint=hint)
        namespace, _, table = name.partition(".")
        return self.warehouse / "penstock" / "tables" / namespace / f"{table}.json"


def connect(
    warehouse: str | os.PathLike[str] | None = None, *, catalog: CatalogSource | None = None, timezone: str = "UTC"
) -> Lake:
    """A lake: a directory with a catalog of its own, made on first use, or any catalog that PyIceberg knows.

    `catalog` is a name in PyIceberg's configuration, properties such as `{"type": "rest", "uri": …}`, or an object.
    `timezone` is the zone of times without one in predicates on Iceberg tables; a Hive table has its own.
    """
    if warehouse is None:
        if catalog is None:
            raise LakeError("no lake is named", hint="give a directory, or catalog=…")
        return Lake(None, catalog, timezone)
    path = Path(os.path.expanduser(os.fspath(warehouse))).absolute()
    if path.exists() and not path.is_dir():
        raise LakeError(f"{path} is not a directory", hint="give the directory of the warehouse")
    odd = next((c for c in "#?%" if c in str(path)), None)
    if odd is not None:
        said = f"{path} has a {odd} in it, which readers of Iceberg tables take for a part of a URL"
        raise LakeError(said, hint="choose a directory without it")
    return Lake(path, catalog, timezone)


def managed(table: Any, name: str, timezone: str = "UTC") -> ManagedTable:
    """A table that PyIceberg has opened in its catalog."""
    return ManagedTable(name, table, sources_of(table), Context(timezone))


def _all_tables(catalog: Any) -> Iterator[tuple[str, ...]]:
    """The tables of all namespaces, nested ones included."""
    waiting = list(catalog.list_namespaces())
    while waiting:
        namespace = waiting.pop()
        yield from catalog.list_tables(namespace)
        waiting += [found for found in catalog.list_namespaces(namespace) if len(found) > len(namespace)]


def _declaration(table: HiveTable) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "kind": "hive",
        "root": table.storage.url,
        "partition_by": _ddl(table.columns),
        "schema": _ddl(table.file_schema),
        "storage": {name: value for name, value in table.storage.properties.items() if not is_secret(name)},
        "options": {
            "timezone": table.context.timezone,
            "lists_at_once": table.lists_at_once,
            "warn_partitions": table.limits.warn_partitions,
            "max_partitions": table.limits.max_partitions,
            "max_lists": table.max_lists,
            "shredded": table.shredded,
            "cache_seconds": 0 if table.cache is None else table.cache.seconds,
        },
    }


def _ddl(fields: Any) -> str:
    return ", ".join(f"{quote_name(f.name)} {type_name(f.type)}{'' if f.nullable else ' NOT NULL'}" for f in fields)


def _open(declared: dict[str, Any], name: str) -> HiveTable:
    if declared.get("version") != _VERSION or declared.get("kind") != "hive":
        raise LakeError(f"{name} was declared by another version of Penstock", hint="register it again")
    schema: pa.Schema = as_schema(declared["schema"])
    storage = {**properties_of(None), **declared["storage"]}
    return hive(declared["root"], declared["partition_by"], schema, storage=storage, **declared["options"])
