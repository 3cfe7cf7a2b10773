"""What a write did: rows, files and bytes, the snapshot that it made, and how often it had to be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.progress import counted


@dataclass(frozen=True)
class WriteResult:
    """What a write did, returned by `append`, `overwrite`, `delete`, `update`, `merge` and `upsert`.

    Rows that were only written again, because a row beside them changed, are not counted. `snapshot_id` is None, and
    all counts are 0, when there was nothing to do. When a run was committed before, `already_committed` is true,
    `snapshot_id` is that of the earlier commit, and all counts are 0.
    """

    snapshot_id: int | None = None
    rows_added: int = 0
    rows_updated: int = 0
    rows_removed: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    retries: int = 0
    already_committed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for machines."""
        return asdict(self)

    def __str__(self) -> str:
        if self.already_committed:
            return f"already committed by snapshot {self.snapshot_id}, nothing changed"
        rows = [(self.rows_added, "added"), (self.rows_updated, "updated"), (self.rows_removed, "removed")]
        parts = [f"{counted(count, 'row')} {verb}" for count, verb in rows if count]
        if not parts:
            return "nothing changed" if self.snapshot_id is None else "no rows changed"
        files = [(self.files_added, "written"), (self.files_removed, "removed")]
        parts += [f"{counted(count, 'file')} {verb}" for count, verb in files if count]
        return ", ".join(parts)


def result_of(
    snapshot_id: int, summary: Mapping[str, str], *, updated: int, removed: int, added: int, retries: int
) -> WriteResult:
    """The result of a snapshot: files and bytes are those of its summary."""

    def total(name: str) -> int:
        return int(summary.get(name, 0))

    return WriteResult(
        snapshot_id,
        rows_added=added,
        rows_updated=updated,
        rows_removed=removed,
        files_added=total("added-data-files") + total("added-delete-files"),
        files_removed=total("deleted-data-files") + total("removed-delete-files"),
        bytes_added=total("added-files-size"),
        bytes_removed=total("removed-files-size"),
        retries=retries,
    )
