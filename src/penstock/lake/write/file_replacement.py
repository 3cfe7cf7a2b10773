"""Files that are replaced by rows computed from them: the end of a DELETE that only Spark can evaluate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError
from penstock.lake.commit.snapshot import Change
from penstock.lake.write.writes import attempt, prepare, produce, removed_on_failure
from penstock.tables.file_metadata import spark_url

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from penstock.tables.iceberg.iceberg_table import IcebergTable


def replace_files(base: IcebergTable, urls: Collection[str], rows: Any, operation: str) -> Table:
    """Put rows in the place of files of a version; PyIceberg's table afterwards.

    The URLs are as Spark shows them. When others have added files since, or changed these, nothing is changed: the
    rows were computed without them.
    """
    files = {spark_url(task.path): task.path for task in base.plan().files}
    removed = frozenset(files[url] for url in urls)
    if not removed:
        return base.table
    job = prepare(base)
    written = produce(job, rows)
    known = frozenset(files.values())

    def has_new_files(newest: Table) -> bool:
        return not known.issuperset(replace(base, table=newest, snapshot=None).plan().files.paths.to_pylist())

    change = Change(operation, written, removed, base.version.snapshot_id, touches=has_new_files)
    with removed_on_failure(job, written):
        published = attempt(base, job, (), change)
        if published is None:
            message = f"{base.name} was changed by another writer while the statement ran"
            raise ConflictError(message, hint="nothing was changed; run the statement again")
    return published
