"""Tags and branches that others make while snapshots are removed.

A catalog that removes a snapshot removes the tags and branches that point to it as well. Iceberg's requirements for a
commit name refs one by one, and cannot say that there are no others. PyIceberg checks requirements itself for all
catalogs but REST: there, a requirement of our own can. After a commit to a REST catalog it is checked what it removed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pydantic import Field
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertTableUUID

from penstock.errors import CLIENT_ERRORS, LakeError

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


class AssertNoOtherRefs(AssertTableUUID):
    """The table has no tag or branch but these; to a REST catalog it is the requirement of the table's id."""

    refs: frozenset[str] = Field(exclude=True)

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        super().validate(base_metadata)
        assert base_metadata is not None  # or it has raised
        new = sorted(set(base_metadata.refs) - self.refs)
        if new:
            raise CommitFailedException(f"{new[0]} was created concurrently")


def check_refs(before: Table, after: Table, removed: Collection[int]) -> None:
    """An error when a commit on top of another one removed tags or branches that it did not know."""
    from pyiceberg.serializers import FromInputFile

    log = after.metadata.metadata_log
    if not log or log[-1].metadata_file == before.metadata_location:
        return
    path = log[-1].metadata_file
    try:
        known = FromInputFile.table_metadata(after.io.new_input(path)).refs
    except CLIENT_ERRORS as error:
        message = (
            f"{len(removed):,} snapshots were removed, but no file was: {path} cannot be read, and may have new tags"
        )
        raise LakeError(message, hint="`sweep` removes the files that no snapshot has") from error
    lost = sorted(name for name, ref in known.items() if ref.snapshot_id in removed)
    if lost:
        message = f"{lost[0]} was created while its snapshot was removed; no file was removed"
        raise LakeError(message, hint=f"restore it from the metadata before: {path}")
