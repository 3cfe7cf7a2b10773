"""Old snapshots are removed, and then the files that only they needed.

A snapshot stays when it is young enough, when a tag or a branch points to it, or when a branch needs it: the newest
`keep_last` of each branch, and those that the branch's own settings ask for. The metadata is committed first. From then
on nobody finds the files any more; what a crash leaves of them is found by `sweep`.

A file outside of the table's own folders was adopted and is not its own: it stays, and so does one that another table
or a declared layout of the lake needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError
from penstock.lake.commit.commit import UnknownOutcomeError, commit_metadata, fresh, update
from penstock.lake.commit.snapshot import ancestors, own_folders
from penstock.lake.maintain.other_tables import Others, others_of
from penstock.lake.maintain.reachable_files import (
    File,
    check_collectable,
    files_of,
    lists_of,
    manifests_of,
    statistics_of,
)
from penstock.progress import Count, counted, progress
from penstock.quantities import Age, moment
from penstock.storage.path_names import Names, is_below
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.scan.scan_plan import Sources

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_AT_ONCE = 8


@dataclass(frozen=True)
class Expired:
    """What was removed."""

    snapshots: int
    files: int
    bytes: int

    def to_dict(self) -> dict[str, int]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        gone = f"{counted(self.snapshots, 'snapshot')} and {counted(self.files, 'file')}"
        return f"removed {gone}, {counted(self.bytes, 'byte')}"


def expire(
    table: Table, sources: Sources, layouts: Mapping[str, str], older_than: Age, keep_last: int
) -> tuple[Table, Expired]:
    """Remove old snapshots and their files; PyIceberg's table afterwards, and what was removed.

    `layouts` are the roots of the lake's declared layouts, by name.
    """
    if isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1:
        raise LakeError(f"keep_last is {keep_last!r}", hint="give 1 or more: the current snapshot always stays")
    now = datetime.now(UTC)
    before = moment(older_than, now)
    names = Names()
    check_collectable(table.metadata, ".".join(table.name()))
    if not removable(table.metadata, now, before, keep_last):
        return table, Expired(0, 0, 0)
    others = others_of(table, layouts, names)  # one that cannot be known is an error before anything is removed
    base, published, gone = _commit(table, now, before, keep_last)
    try:
        unneeded = _unneeded(gone, base.metadata, published.metadata, sources, names)
        own = _own(unneeded, published, others)
        needed = others.need(own)
        doomed = [unneeded[name] for name in own if name not in needed]
    except PenstockError as error:
        message = f"{len(gone):,} snapshots were removed, but no file was: {error.message}"
        raise LakeError(message, hint="`sweep` removes the files that no snapshot has") from error
    removed = Count(len(doomed), "file")
    with progress("removing", removed), ThreadPoolExecutor(_AT_ONCE, "penstock-expire") as pool:
        removed_sizes = removed.each(pool.map(lambda file: _delete(sources.io, file), doomed))
        sizes = [size for size in removed_sizes if size is not None]
    return published, Expired(len(gone), len(sizes), sum(sizes))


def _commit(table: Table, now: datetime, before: datetime, keep_last: int) -> tuple[Table, Table, list[Snapshot]]:
    """The table before and after, and the snapshots that went; no ref may have moved since they were chosen."""
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.update import (
        AssertRefSnapshotId,
        RemovePartitionStatisticsUpdate,
        RemoveSnapshotsUpdate,
        TableUpdate,
    )

    from penstock.lake.maintain.refs import AssertNoOtherRefs, check_refs

    def publish(table: Table) -> tuple[Table, Table, list[Snapshot]]:
        metadata = table.metadata
        check_collectable(metadata, ".".join(table.name()))
        gone = removable(metadata, now, before, keep_last)
        if not gone:
            return table, table, []
        ids = [snapshot.snapshot_id for snapshot in gone]
        refs = {**{ref: r.snapshot_id for ref, r in metadata.refs.items()}, "main": metadata.current_snapshot_id}
        requirements = [AssertNoOtherRefs(uuid=metadata.table_uuid, refs=frozenset(refs))]
        requirements += [AssertRefSnapshotId(ref=ref, snapshot_id=i) for ref, i in refs.items()]  # type: ignore[call-arg,misc]
        updates: list[TableUpdate] = [RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": s.snapshot_id})
                              for s in metadata.partition_statistics if s.snapshot_id in ids]  # fmt: skip
        updates.append(RemoveSnapshotsUpdate(snapshot_ids=ids))  # type: ignore[call-arg]
        try:
            published = update(table, requirements, updates, (ValueError,))  # somebody else removed one of them
            check_refs(table, published, ids)
            return table, published, gone
        except (CommitFailedException, PenstockError):
            raise
        except CLIENT_ERRORS as error:
            message = f"the catalog did not take the commit: {one_line(error)}"
            hint = "no file was deleted; try again, and `sweep` removes what no snapshot has"
            raise UnknownOutcomeError(message, hint=hint) from error

    failure = "snapshots of {} could not be removed: other writers were faster"
    return commit_metadata(fresh(table), publish, failure)


def removable(metadata: TableMetadata, now: datetime, before: datetime, keep_last: int) -> list[Snapshot]:
    """The snapshots that are older and that nothing holds."""
    from pyiceberg.table.refs import SnapshotRefType

    limit = before.timestamp() * 1000
    held = {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}
    branches = [(ref.snapshot_id, ref.min_snapshots_to_keep or 1, ref.max_snapshot_age_ms)
                for ref in metadata.refs.values() if ref.snapshot_ref_type == SnapshotRefType.BRANCH]  # fmt: skip
    for head, fewest, age in [*branches, (metadata.current_snapshot_id, 1, None)]:
        young = limit if age is None else (now - timedelta(milliseconds=age)).timestamp() * 1000
        for i, snapshot in enumerate(ancestors(metadata, head)):
            if i < max(keep_last, fewest) or snapshot.timestamp_ms >= young:
                held.add(snapshot.snapshot_id)
    return [s for s in metadata.snapshots if s.timestamp_ms < limit and s.snapshot_id not in held]


def _own(files: Iterable[str], table: Table, others: Others) -> list[str]:
    """The files in the table's folders, without those in folders of others inside them."""
    folders = [others.names.folder(folder) for folder in own_folders(table)]
    claimed = [claim.folder for claim in others.inside(folders)]
    return [
        name for name in files
        if any(is_below(name, own) for own in folders) and not any(is_below(name, other) for other in claimed)
    ]  # fmt: skip


def _unneeded(
    gone: Sequence[Snapshot], before: TableMetadata, after: TableMetadata, sources: Sources, names: Names
) -> dict[str, File]:
    """Files of removed snapshots that no other needs; manifests that stay are not looked into for them."""
    staying = manifests_of(list(after.snapshots), sources)
    leaving = {path: m for path, m in manifests_of(gone, sources).items() if path not in staying}
    files = {**files_of(leaving.values(), sources, names), **lists_of(gone, names), **statistics_of(before, names)}
    needed = {**files_of(staying.values(), sources, names), **lists_of(after.snapshots, names)}
    needed |= statistics_of(after, names)
    return {key: file for key, file in files.items() if key not in needed}


def _delete(io: FileIO, file: File) -> int | None:
    """Delete a file; its size, or None when it was gone already or could not be deleted: then `sweep` finds it."""
    if "#" in file.path or "?" in file.path:
        return None  # PyIceberg cuts such a path short, and what it would delete is another file
    try:
        input_file = io.new_input(file.path)
        size = len(input_file) if file.size is None else file.size  # a list does not say its own
        try:
            io.delete(file.path)
        except FileNotFoundError:
            return None
        except OSError:
            # On S3, Arrow may fail to keep a directory alive whose last file it has deleted.
            return None if input_file.exists() else size
        return size
    except CLIENT_ERRORS:
        return None
