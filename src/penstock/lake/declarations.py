"""Hive layouts that are declared under a name: one small JSON file each, below the warehouse.

A declaration is written whole or not at all, and holds no credential: of the storage's properties only those that are
known to be none are kept. The rest comes from PyIceberg's configuration when the table is opened again.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, PenstockWarning
from penstock.expr.schema import as_schema
from penstock.expr.sql_text import quote_name
from penstock.expr.types import type_name
from penstock.storage.redaction import storable
from penstock.storage.schemes import HARMLESS_PROPERTIES
from penstock.storage.storage import properties_of
from penstock.tables.hive.hive_table import HiveTable, hive

_NAME = re.compile(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+")
_VERSION = 1


@dataclass(frozen=True)
class Declarations:
    """The layouts that are declared in a warehouse; without one there are none."""

    warehouse: Path | None

    def has(self, name: str) -> bool:
        """Whether a layout is declared under a name."""
        return self.warehouse is not None and _NAME.fullmatch(name) is not None and self._path(name).exists()

    def names(self) -> list[str]:
        """The names of all layouts."""
        paths = () if self.warehouse is None else self.warehouse.glob("penstock/tables/*/*.json")
        return [f"{path.parent.name}.{path.stem}" for path in paths]

    def roots(self) -> dict[str, str]:
        """Where each layout lies."""
        return {name: str(self._read(name)["root"]) for name in self.names()}

    def save(self, name: str, table: HiveTable) -> None:
        """Declare a layout; an older declaration of that name is replaced."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(_declaration(name, table), file, indent=2)
        os.replace(file.name, path)

    def remove(self, name: str) -> None:
        """Forget a layout; its files stay."""
        self._path(name).unlink()

    def rename(self, name: str, new_name: str) -> None:
        """Declare a layout under another name."""
        target = self._path(new_name)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(self._path(name), target)

    def open(self, name: str) -> HiveTable:
        """The layout that is declared under a name."""
        declared = self._read(name)
        schema: pa.Schema = as_schema(declared["schema"])
        storage = {**properties_of(None), **declared["storage"]}
        return hive(declared["root"], declared["partition_by"], schema, storage=storage, **declared["options"])

    def _read(self, name: str) -> dict[str, Any]:
        try:
            declared: dict[str, Any] = json.loads(self._path(name).read_text())
        except (OSError, ValueError) as error:
            message = f"the declaration of {name} cannot be read: {error}"
            raise LakeError(message, hint="register it again") from None
        if declared.get("version") != _VERSION or declared.get("kind") != "hive":
            raise LakeError(f"{name} was declared by another version of Penstock", hint="register it again")
        return declared

    def _path(self, name: str) -> Path:
        if self.warehouse is None:
            hint = "connect with a warehouse too: penstock.connect('./warehouse', catalog=…)"
            raise LakeError("declarations need a warehouse to lie in", hint=hint)
        if not _NAME.fullmatch(name):
            hint = "write namespace.name, in letters, digits and underscores"
            raise LakeError(f"invalid table name {name!r}", hint=hint)
        namespace, _, table = name.partition(".")
        return self.warehouse / "penstock" / "tables" / namespace / f"{table}.json"


def _declaration(name: str, table: HiveTable) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "kind": "hive",
        "root": table.storage.url,
        "partition_by": _ddl(table.columns),
        "schema": _ddl(table.file_schema),
        "storage": _kept(name, table.storage.properties),
        "options": {
            "union_by_name": table.in_any_order,
            "on_forbidden": table.on_forbidden,
            "format": None if table.file_format is None else table.file_format.name,
            "options": dict(table.options),
            "timezone": table.context.timezone,
            "lists_at_once": table.lists_at_once,
            "warn_partitions": table.limits.warn_partitions,
            "max_partitions": table.limits.max_partitions,
            "max_lists": table.max_lists,
            "shredded": table.shredded,
            "cache_seconds": 0 if table.cache is None else table.cache.seconds,
        },
    }


def _kept(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a storage that are no credentials; a warning names those that have to be configured."""
    kept = storable(properties, HARMLESS_PROPERTIES)
    configured = properties_of(None)
    dropped = sorted(key for key, value in properties.items() if key not in kept and configured.get(key) != value)
    if dropped:
        message = f"the declaration of {name} does not keep {', '.join(dropped)}, which may hold credentials"
        hint = "set them in PyIceberg's configuration, .pyiceberg.yaml"
        warnings.warn(f"{message}; {hint}", PenstockWarning, stacklevel=5)
    return kept


def _ddl(fields: Any) -> str:
    return ", ".join(f"{quote_name(f.name)} {type_name(f.type)}{'' if f.nullable else ' NOT NULL'}" for f in fields)
