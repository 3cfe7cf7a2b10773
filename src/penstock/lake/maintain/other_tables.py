"""What other tables and declared layouts of the lake need, so that maintenance of one table removes nothing of theirs.

A table may keep its data below the location of another, and may have adopted files that lie there (`add_files`). All
tables of the catalog are loaded, with all their snapshots, and a layout that is declared in the warehouse owns all that
lies below its root. A table that cannot be loaded may need anything: then nothing is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError
from penstock.lake.commit.snapshot import own_folders
from penstock.lake.maintain.reachable_files import metadata_files, reachable
from penstock.storage.path_names import Names, is_below
from penstock.tables.iceberg.metadata.catalogs import sources_of

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


class Claim(NamedTuple):
    """A folder, by its normal name, and the table or layout whose it is."""

    folder: str
    owner: str


@dataclass(frozen=True)
class Others:
    """The other tables of a catalog, and the roots of declared layouts by their names."""

    tables: Sequence[Table]
    layouts: Mapping[str, str]
    names: Names

    def claims(self) -> Iterator[Claim]:
        """The folders of all others."""
        for table in self.tables:
            for folder in own_folders(table):
                yield Claim(self.names.folder(folder), _name(table))
        for name, root in self.layouts.items():
            yield Claim(self.names.folder(root), name)

    def inside(self, folders: Sequence[str]) -> list[Claim]:
        """The folders of others that lie in some."""
        return [claim for claim in self.claims() if any(is_below(claim.folder, folder) for folder in folders)]

    def need(self, files: Collection[str]) -> set[str]:
        """Which of some files, by their normal names, others need."""
        claimed = [claim.folder for claim in self.claims() if claim.owner in self.layouts]
        needed = {file for file in files if any(is_below(file, folder) for folder in claimed)}
        for table in self.tables if len(needed) < len(files) else ():
            needed.update(name for name in self._references(table) if name in files)
        return needed

    def _references(self, table: Table) -> Iterator[str]:
        try:
            yield from reachable(table.metadata, sources_of(table), self.names)
        except PenstockError as error:
            raise _unknown(_name(table), error) from None
        yield from map(self.names.of, metadata_files(table))


def others_of(table: Table, layouts: Mapping[str, str], names: Names) -> Others:
    """All others that the catalog of a table and the lake know; an error when one of them cannot be known."""
    return Others(list(_other_tables(table)), layouts, names)


def _other_tables(table: Table) -> Iterator[Table]:
    catalog = table.catalog
    for name in _listed(catalog):
        if tuple(name) == tuple(table.name()):
            continue
        try:
            yield catalog.load_table(name)
        except CLIENT_ERRORS as error:
            raise _unknown(".".join(name), error) from None


def _listed(catalog: Catalog) -> list[tuple[str, ...]]:
    try:
        return list(all_tables(catalog))
    except CLIENT_ERRORS as error:
        message = f"the catalog does not list its tables, which may need the files: {_one_line(error)}"
        raise LakeError(message, hint="nothing was removed; use a catalog that lists all namespaces") from None


def all_tables(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    """The names of the tables of all namespaces, nested ones included."""
    waiting = list(catalog.list_namespaces())
    while waiting:
        namespace = waiting.pop()
        yield from catalog.list_tables(namespace)
        waiting += [below for below in catalog.list_namespaces(namespace) if len(below) > len(namespace)]


def _unknown(name: str, error: Exception) -> LakeError:
    message = f"{name} cannot be loaded, and may need files of this table: {_one_line(error)}"
    return LakeError(message, hint=f"nothing was removed; repair {name}, or drop it from the catalog")


def _one_line(error: Exception) -> str:
    message = error.message if isinstance(error, PenstockError) else str(error)
    return " ".join(message.split())[:200] or type(error).__name__


def _name(table: Table) -> str:
    return ".".join(table.name())
