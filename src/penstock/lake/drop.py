"""Tables that are dropped: out of the catalog, and with `purge` their files too.

Only files in the table's own folders are removed, and none that another table or layout of the lake needs. They are
looked for before the table is dropped, so that an error leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from penstock.lake.commit.snapshot import own_folders
from penstock.lake.maintain.other_tables import others_of
from penstock.lake.maintain.reachable_files import check_collectable, metadata_files, reachable
from penstock.lake.write.data_files import delete_quietly
from penstock.progress import Count, progress
from penstock.storage.path_names import Names, is_below
from penstock.tables.iceberg.metadata.catalogs import clear_errors

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable

_AT_ONCE = 8


def drop(table: ManagedTable, layouts: Mapping[str, str], *, purge: bool) -> None:
    """Drop a table of a catalog; `layouts` are the roots of the lake's declared layouts, by name."""
    files = _removable(table, layouts) if purge else []
    with clear_errors("the catalog", {}):
        table.table.catalog.drop_table(table.table.name())
    io, removed = table.sources.io, Count(len(files), "file")
    with progress("removing", removed), ThreadPoolExecutor(_AT_ONCE, "penstock-drop") as pool:
        list(removed.each(pool.map(lambda path: delete_quietly(io, path), files)))


def _removable(table: ManagedTable, layouts: Mapping[str, str]) -> list[str]:
    """The files of a table that nobody else needs."""
    check_collectable(table.table.metadata, table.name)
    names = Names()
    own = {name: file.path for name, file in reachable(table.table.metadata, table.sources, names).items()}
    own |= {names.of(path): path for path in metadata_files(table.table)}
    folders = [names.folder(folder) for folder in own_folders(table.table)]
    inside = {name: path for name, path in own.items() if any(is_below(name, folder) for folder in folders)}
    others = others_of(table.table, layouts, names)
    claimed = [claim.folder for claim in others.inside(folders)]
    needed = others.need(inside.keys())
    return [
        path
        for name, path in inside.items()
        if name not in needed and not any(is_below(name, folder) for folder in claimed)
    ]
