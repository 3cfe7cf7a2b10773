"""The namespaces of a lake: those of its catalog, and those in which layouts are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError

from penstock.errors import (
    LakeError,
    NamespaceExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
)
from penstock.tables.iceberg.metadata.catalogs import clear_errors

if TYPE_CHECKING:
    from penstock.lake.lake import Lake


@dataclass(frozen=True)
class Namespaces:
    """The namespaces of one lake; a nested one is written `a.b`."""

    lake: Lake

    def names(self, parent: str = "") -> list[str]:
        """The namespaces directly below one, or all at the top."""
        names = {name for name in self._declared() if name.rpartition(".")[0] == parent}
        if self.lake.has_catalog():
            with clear_errors("the catalog", {}):
                listed = self.lake.catalog.list_namespaces(tuple(parent.split(".")) if parent else ())
            names.update(".".join(each) for each in listed if len(each) == (parent.count(".") + 2 if parent else 1))
        return sorted(names)

    def exists(self, name: str) -> bool:
        """Whether there is such a namespace."""
        if name in self._declared():
            return True
        with clear_errors("the catalog", {}):
            return self.lake.has_catalog() and bool(self.lake.catalog.namespace_exists(name))

    def spelled(self, name: str) -> str:
        """A name as the lake spells it, where it is written in other case and only one fits; else as it is."""
        parent = ""
        parts = name.split(".") if name else []
        while parts:
            known = [each.rpartition(".")[2] for each in self.names(parent)]
            alike = [each for each in known if each.lower() == parts[0].lower()]
            if parts[0] not in known and len(alike) != 1:  # nothing is below it
                return ".".join([*([parent] if parent else []), *parts])
            part = parts.pop(0)
            parent = f"{parent}.".lstrip(".") + (part if part in known else alike[0])
        return parent

    def properties(self, name: str) -> dict[str, str]:
        """The properties of a namespace."""
        self.check(name)

        with suppress(NoSuchNamespaceError):  # one in which only layouts are declared
            if self.lake.has_catalog():
                return dict(self.lake.catalog.load_namespace_properties(name))
        return {}

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        """Create a namespace."""
        if not all(part.strip() for part in name.split(".")):
            raise LakeError(f"invalid namespace {name!r}", hint="write a name, or one below another: web.raw")
        if self.exists(name):
            raise NamespaceExistsError(f"there is a namespace {name} already", hint="use it, or choose another name")
        with clear_errors("the catalog", {}):
            self.lake.catalog.create_namespace(name, dict(properties))

    def create_if_missing(self, name: str) -> None:
        """Create a namespace unless it exists."""
        with clear_errors("the catalog", {}):
            self.lake.catalog.create_namespace_if_not_exists(name)

    def change(self, name: str, new: Mapping[str, str], removed: Sequence[str]) -> None:
        """Set and remove properties of a namespace."""
        self.check(name)
        with clear_errors("the catalog", {}):
            self.create_if_missing(name)
            self.lake.catalog.update_namespace_properties(name, removals=set(removed), updates=dict(new))

    def drop(self, name: str, *, cascade: bool = False) -> None:
        """Remove a namespace; with tables in it, only when `cascade` is set, which drops them and keeps their files."""
        self.check(name)
        tables = [table for table in self.lake.tables() if table.rpartition(".")[0] == name]
        below = self.names(name)
        if (tables or below) and not cascade:
            contents = ", ".join([*tables, *below])
            raise NamespaceNotEmptyError(f"namespace {name} is not empty: {contents}", hint="drop its tables first")
        for each in below:
            self.drop(each, cascade=True)
        for table in tables:
            self.lake.drop_table(table)
        if self.lake.has_catalog():
            with clear_errors("the catalog", {}):
                if self.lake.catalog.namespace_exists(name):
                    self.lake.catalog.drop_namespace(name)

    def check(self, name: str) -> None:
        """An error for a namespace that does not exist."""
        if not self.exists(name):
            known = ", ".join(self.names()) or "none"
            raise NamespaceNotFoundError(f"no namespace {name!r}", hint=f"there are: {known}")

    def _declared(self) -> set[str]:
        return {name.rpartition(".")[0] for name in self.lake.declarations.names()}
