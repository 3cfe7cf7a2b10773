"""Tags and branches in a commit: where a ref points to now, and where it is to point."""

from __future__ import annotations

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import AssertRefSnapshotId, SetSnapshotRefUpdate

_SETTINGS = ("max_ref_age_ms", "max_snapshot_age_ms", "min_snapshots_to_keep")


def unmoved(metadata: TableMetadata, name: str) -> AssertRefSnapshotId:
    """The requirement that a ref points where it did; None is that it did not exist."""
    ref = metadata.refs.get(name)
    return AssertRefSnapshotId(ref=name, snapshot_id=None if ref is None else ref.snapshot_id)  # type: ignore[call-arg]


def move_ref(
    metadata: TableMetadata, name: str, snapshot_id: int, kind: SnapshotRefType = SnapshotRefType.BRANCH
) -> SetSnapshotRefUpdate:
    """The update that makes a ref point to a snapshot; how long it keeps snapshots stays as it was set."""
    before = metadata.refs.get(name)
    kept = {} if before is None else {setting: getattr(before, setting) for setting in _SETTINGS}
    return SetSnapshotRefUpdate.model_validate({"ref_name": name, "snapshot_id": snapshot_id, "type": kind, **kept})
