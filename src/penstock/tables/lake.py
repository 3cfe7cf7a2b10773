"""A lake: tables by name. Declarations of Hive layouts are kept in files, types included, so nothing is guessed twice.

A declaration is a small JSON file below the warehouse, written whole or not at all. It holds no credential: of the
storage's properties only those that are none are kept, and the rest comes from PyIceberg's configuration when the table
is opened again.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.predicate.schema import as_schema
from penstock.predicate.sql import quote_name
from penstock.predicate.types import type_name
from penstock.tables import bridge
from penstock.tables.hive.table import HiveTable, hive
from penstock.tables.storage import is_secret, properties_of

_NAME = re.compile(r"[A-Za-z0-9_]+")
_VERSION = 1


@dataclass(frozen=True)
class Lake:
    """The tables of one warehouse."""

    warehouse: Path

    def register(self, name: str, table: HiveTable) -> HiveTable:
        """Keep the declaration of a table under `namespace.name`; an older one of that name is replaced."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(_declaration(table), file, indent=2)
        os.replace(file.name, path)
        return table

    def table(self, name: str) -> HiveTable:
        """Open a table by its name."""
        path = self._path(name)
        try:
            declared = json.loads(path.read_text())
        except FileNotFoundError:
            known = ", ".join(self.tables()) or "none"
            raise LakeError(f"no table {name!r} in {self.warehouse}", hint=f"there are: {known}") from None
        except (OSError, ValueError) as error:
            raise LakeError(f"the declaration of {name} cannot be read: {error}", hint="register it again") from None
        return _open(declared, name)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        root = self.warehouse / "penstock" / "tables"
        return sorted(f"{path.parent.name}.{path.stem}" for path in root.glob("*/*.json"))

    def sql(self, text: str, spark: Any = None) -> Any:
        """Run Spark SQL in which `namespace.name` means a table of this lake; a session is made when none is given."""
        return bridge.sql(self, text, spark)

    def _path(self, name: str) -> Path:
        parts = name.split(".")
        if len(parts) != 2 or not all(_NAME.fullmatch(part) for part in parts):
            hint = "write namespace.name, in letters, digits and underscores"
            raise LakeError(f"{name!r} is no name of a table", hint=hint)
        return self.warehouse / "penstock" / "tables" / parts[0] / f"{parts[1]}.json"


def connect(warehouse: str | os.PathLike[str]) -> Lake:
    """The lake below a directory, which is made when the first table is registered."""
    path = Path(os.path.expanduser(os.fspath(warehouse))).absolute()
    if path.exists() and not path.is_dir():
        raise LakeError(f"{path} is not a directory", hint="give the directory of the warehouse")
    return Lake(path)


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
