"""Tags and branches are made, moved and dropped: commits of metadata alone, which move no row.

A rollback goes back to a snapshot that was current before, or forward again: another one undoes it, as the snapshots
after it stay until they expire. A branch is fast-forwarded to another one that goes on from its head, as in Git.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotRefUpdate, TableUpdate

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError
from penstock.lake.commit.commit import commit_metadata, update
from penstock.lake.commit.ref_updates import move_ref, unmoved
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.metadata.branch import ancestors, branch_head, branch_of, refs_of
from penstock.tables.iceberg.metadata.version import SnapshotChoice, has_columns_of, resolve

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


@dataclass(frozen=True)
class Moved:
    """Where a branch pointed to, and where it points to now."""

    branch: str
    previous_snapshot_id: int
    current_snapshot_id: int

    def to_dict(self) -> dict[str, str | int]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        if self.previous_snapshot_id == self.current_snapshot_id:
            return f"{self.branch} is at snapshot {self.current_snapshot_id} already"
        return f"{self.branch} is at snapshot {self.current_snapshot_id} now; it was at {self.previous_snapshot_id}"


def create_ref(table: Table, name: str, kind: SnapshotRefType, snapshot: SnapshotChoice) -> Table:
    """Create a tag or a branch at a snapshot; PyIceberg's table afterwards."""
    check_name(name, kind)

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        if name in metadata.refs:
            message = f"{_name(table)} has a {metadata.refs[name].snapshot_ref_type} {name!r} already"
            raise LakeError(message, hint="drop it first, or choose another name")
        wanted = resolve(metadata, snapshot, _name(table)).snapshot
        if wanted is None:
            message = f"{_name(table)} has no snapshot that a {kind} could point to"
            raise LakeError(message, hint="append rows first")
        return [move_ref(metadata, name, wanted.snapshot_id, kind)]

    return _change_ref(table, name, needed)


def drop_ref(table: Table, name: str, kind: SnapshotRefType) -> Table:
    """Drop a tag or a branch; PyIceberg's table afterwards."""
    if name == MAIN_BRANCH:
        raise LakeError(f"{name!r} is the table itself, and cannot be dropped", hint="name another branch")

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        if name not in (known := refs_of(metadata, kind)):
            raise LakeError(f"{_name(table)} has no {kind} {name!r}", hint=f"there are: {', '.join(known) or 'none'}")
        return [RemoveSnapshotRefUpdate(ref_name=name)]  # type: ignore[call-arg]

    return _change_ref(table, name, needed)


def rollback(table: Table, to: SnapshotChoice) -> tuple[Table, Moved]:
    """Make a snapshot current that was so before; PyIceberg's table afterwards, and what moved."""
    if to is None:
        raise LakeError("rollback has no snapshot", hint="give an id, a time or a tag")

    def target(metadata: TableMetadata) -> int:
        version = resolve(metadata, to, _name(table))
        assert version.snapshot is not None
        log = {entry.snapshot_id for entry in metadata.snapshot_log}
        before = {snapshot.snapshot_id for snapshot in ancestors(metadata, metadata.current_snapshot_id)}
        if version.snapshot_id not in log | before and not _was_left(metadata, version.snapshot, branch_of(table)):
            message = f"snapshot {version.snapshot_id} was never current on {branch_of(table)} of {_name(table)}"
            raise LakeError(message, hint="see its history; a branch is published by a fast-forward")
        if not has_columns_of(metadata.schema(), metadata, version.snapshot):
            message = f"{_name(table)} was replaced since snapshot {version.snapshot_id}, whose columns are all gone"
            raise LakeError(message, hint="read it with at(), and write its rows to the table or to another one")
        return int(version.snapshot.snapshot_id)

    return _move(table, branch_of(table), target)


def fast_forward(table: Table, branch: str, to: str) -> tuple[Table, Moved]:
    """Move a branch to the head of another one, or to a tag, that comes from its own head."""

    def target(metadata: TableMetadata) -> int:
        head, ref = branch_head(metadata, branch, _name(table)), metadata.refs.get(to)
        if ref is None:
            known = ", ".join(sorted(metadata.refs))
            raise LakeError(f"{_name(table)} has no branch or tag {to!r}", hint=f"there are: {known}")
        if head not in (snapshot.snapshot_id for snapshot in ancestors(metadata, ref.snapshot_id)):
            raise _apart(metadata, branch, to, _name(table))
        return int(ref.snapshot_id)

    return _move(table, branch, target)


def _apart(metadata: TableMetadata, branch: str, to: str, name: str) -> LakeError:
    """The error for a branch that another one does not go on from."""
    ours, theirs = metadata.refs[branch].snapshot_id, metadata.refs[to].snapshot_id
    *_, first = ancestors(metadata, theirs)
    message = f"{branch} of {name} cannot be fast-forwarded to {to}: "
    if any(snapshot.snapshot_id == theirs for snapshot in ancestors(metadata, ours)):
        return LakeError(f"{message}it has all snapshots of {to}, and newer ones", hint="there is nothing to publish")
    again = f"create the branch again at {branch}, and write its rows again"
    if first.timestamp_ms > metadata.snapshot_by_id(ours).timestamp_ms:  # type: ignore[union-attr]
        return LakeError(f"{message}the snapshots between both have expired", hint=again)
    return LakeError(f"{message}{branch} has snapshots that {to} lacks", hint=again)


def _was_left(metadata: TableMetadata, snapshot: Snapshot, branch: str) -> bool:
    """Whether a branch may have been rolled back from a snapshot: it goes on from its head, and no ref leads to it.

    Tables have a log of what was current on `main` only.
    """
    if branch == MAIN_BRANCH:
        return False
    lineage = {each.snapshot_id for each in ancestors(metadata, snapshot.snapshot_id)}
    others = (ancestors(metadata, ref.snapshot_id) for name, ref in metadata.refs.items() if name != branch)
    led_to = {each.snapshot_id for lineage_of_ref in others for each in lineage_of_ref}
    return metadata.current_snapshot_id in lineage and snapshot.snapshot_id not in led_to


def check_name(name: str, kind: SnapshotRefType) -> None:
    """An error for a name that reads of a table would take for something else."""
    is_text = isinstance(name, str) and bool(name) and name == name.strip() and name.isprintable()
    if not is_text or name.isdigit() or _is_time(name):
        message = f"invalid {kind} name {name!r}: a number is a snapshot's id, and a date is a time"
        raise LakeError(message, hint=f"write a name such as 'eod-{name}'" if is_text else "write a name")


def _is_time(name: str) -> bool:
    try:
        datetime.fromisoformat(name)
    except ValueError:
        return False
    return re.search(r"\d", name) is not None


def _move(table: Table, branch: str, target: Callable[[TableMetadata], int]) -> tuple[Table, Moved]:
    moved: list[Moved] = []

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        snapshot_id = target(metadata)
        moved.append(Moved(branch, branch_head(metadata, branch, _name(table)), snapshot_id))
        is_there = moved[-1].previous_snapshot_id == snapshot_id
        return [] if is_there else [move_ref(metadata, branch, snapshot_id)]

    return _change_ref(table, branch, needed), moved[-1]


def _change_ref(table: Table, name: str, needed: Callable[[TableMetadata], Sequence[TableUpdate]]) -> Table:
    """Commit updates of one ref, again while it is moved by others."""

    def publish(table: Table) -> Table:
        metadata, updates = table.metadata, needed(table.metadata)
        requirements = (AssertTableUUID(uuid=metadata.table_uuid), unmoved(metadata, name))
        try:
            return update(table, requirements, updates) if updates else table
        except (CommitFailedException, PenstockError):
            raise
        except CLIENT_ERRORS as error:
            message = f"the catalog did not take the change of {name!r} of {_name(table)}: {one_line(error)}"
            raise LakeError(message, hint="see the table's refs, and try again") from error

    return commit_metadata(table, publish, f"{name!r} of {{}} was moved by other writers again and again")


def _name(table: Table) -> str:
    return ".".join(table.name())
