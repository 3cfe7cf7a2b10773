"""What an adoption did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.progress import counted


@dataclass(frozen=True)
class Adopted:
    """Which files of a tree are in the table now, and which are not what they were."""

    table: str
    made: bool
    files: int
    rows: int
    bytes: int
    known: int  # files that were adopted before
    empty: int  # files without rows, which are left out
    vanished: tuple[str, ...] = ()  # files that the table still has, and the tree does not
    changed: tuple[str, ...] = ()  # files that were written again since they were adopted

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        counts = {name: getattr(self, name) for name in ("table", "made", "files", "rows", "bytes", "known", "empty")}
        return {**counts, "vanished": list(self.vanished), "changed": list(self.changed)}

    def __str__(self) -> str:
        what = f"{counted(self.files, 'file')} with {counted(self.rows, 'row')} adopted into {self.table}"
        parts = [f"{what}, which is new" if self.made else what if self.files else f"no new file for {self.table}"]
        parts += [f"{counted(self.known, 'file')} adopted before"] if self.known else []
        parts += [f"{counted(self.empty, 'file')} without rows left out"] if self.empty else []
        return "; ".join(parts)

    @property
    def notes(self) -> list[str]:
        """What somebody has to look at."""
        notes = []
        if self.vanished:
            what = f"{counted(len(self.vanished), 'file')} of {self.table} vanished from the tree"
            notes.append(f"{what}, such as {self.vanished[0]}; restore them, or delete their partitions from the table")
        if self.changed:
            what = f"{counted(len(self.changed), 'file')} of {self.table} were written again in the tree"
            notes.append(
                f"{what}, such as {self.changed[0]}; delete their partitions from the table, and append the rows"
            )
        return notes
