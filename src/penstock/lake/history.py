"""The history of a table: which snapshot is current can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import CLIENT_ERRORS, LakeError
from penstock.storage.redaction import one_line

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable


def rollback(table: ManagedTable, snapshot_id: int) -> tuple[int | None, int]:
    """Make an earlier snapshot the current one; the ids of the one before and of the one that is current now."""
    before = table.version.snapshot_id
    try:
        table.table.manage_snapshots().rollback_to_snapshot(snapshot_id).commit()
    except CLIENT_ERRORS as error:
        raise LakeError(f"{table.name} cannot be rolled back to {snapshot_id}: {one_line(error)}") from None
    table.refresh()
    return before, snapshot_id
