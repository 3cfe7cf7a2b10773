"""A table as one of its branches: the head of the branch is the current snapshot, its history is the table's log.

Whatever reads, plans, writes or commits looks at the current snapshot of the metadata and needs to know no more. What a
catalog is sent names the branch (`branch_of`), and every newer version of the table is seen as the branch again.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry

from penstock.errors import LakeError


class BranchTable(Table):
    """PyIceberg's table, seen as a branch."""

    branch: str = MAIN_BRANCH


def branch_of(table: Table) -> str:
    """The branch that is read and written."""
    return table.branch if isinstance(table, BranchTable) else MAIN_BRANCH


def on_branch(table: Table, branch: str) -> Table:
    """A table as one of its branches; an error when it has no such branch."""
    if branch == MAIN_BRANCH:
        return table
    metadata = table.metadata
    head = branch_head(metadata, branch, ".".join(table.name()))
    lineage = [*ancestors(metadata, head)][::-1]
    log = [SnapshotLogEntry(snapshot_id=s.snapshot_id, timestamp_ms=s.timestamp_ms) for s in lineage]  # type: ignore[call-arg]
    seen = metadata.model_copy(update={"current_snapshot_id": head, "snapshot_log": log})
    viewed = BranchTable(table.name(), seen, table.metadata_location, table.io, table.catalog, table.config)
    viewed.branch = branch
    return viewed


def branch_head(metadata: TableMetadata, branch: str, name: str) -> int:
    """The snapshot that a branch points to; an error when there is no such branch."""
    ref = metadata.refs.get(branch)
    if ref is None or ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        known = ", ".join(refs_of(metadata, SnapshotRefType.BRANCH)) or "none"
        is_tag = "" if ref is None else f": {branch!r} is a tag"
        raise LakeError(f"{name} has no branch {branch!r}{is_tag}", hint=f"there are: {known}")
    return int(ref.snapshot_id)


def refs_of(metadata: TableMetadata, kind: SnapshotRefType) -> list[str]:
    """The names of tags, or of branches."""
    return sorted(name for name, ref in metadata.refs.items() if ref.snapshot_ref_type == kind)


def ancestors(metadata: TableMetadata, head: int | None) -> Iterator[Snapshot]:
    """A snapshot, the one before it, and so on, as far back as they are kept."""
    known: dict[int | None, Snapshot] = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while (snapshot := known.pop(head, None)) is not None:  # each once, whatever the metadata says
        yield snapshot
        head = snapshot.parent_snapshot_id
