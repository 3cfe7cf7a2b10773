"""What planning did, counted, with denominators: one record that `explain`, the command line and the tests all read.

>>> level = Level("files", total=10, kept=2, whole=1, rows=100, rows_kept=20, skipped={"bounds: x = 5": 8})
>>> print(Report("x = 5", [level], seconds=0.0021).explain())
where       x = 5
files       2 of 10 kept (20 %), 1 matches whole
rows        20 of 100 (20 %)
skipped     8 files by bounds: x = 5
planned     in 2.1 ms
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.errors import printable

_SINGULAR = {"directories": "directory"}


@dataclass(frozen=True, slots=True)
class Level:
    """The counts of one kind of container: directories, manifests, files, row groups.

    `rows` and `bytes` are sums over the containers for which they are known; None when they are known for none.
    """

    kind: str
    total: int = 0
    kept: int = 0
    whole: int = 0
    rows: int | None = None
    rows_kept: int | None = None
    bytes: int | None = None
    bytes_kept: int | None = None
    skipped: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        names = {"whole": "kept_whole", "skipped": "skipped_by_reason"}
        return {names.get(name, name): value for name, value in asdict(self).items() if name != "kind"}


@dataclass(frozen=True, slots=True)
class ServedKey:
    """A key of a shredded map in the query: in how many kept files it is read from where."""

    key: str
    sidecar: int = 0
    both: int = 0
    map: int = 0

    def __str__(self) -> str:
        places = [
            (self.sidecar, "from its sidecar alone"),
            (self.both, "from its sidecar and the map"),
            (self.map, "from the map"),
        ]
        parts = [f"{place} in {count:,} {'file' if count == 1 else 'files'}" for count, place in places if count]
        return f"{self.key} {', '.join(parts) or 'is in none of the files read'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a plan: `levels` from the outermost to the files, parts of the predicate that were not used, List
    calls, seconds, notes, and how keys of maps are read."""

    predicate: str
    levels: Sequence[Level]
    unused: Sequence[tuple[str, str]] = ()
    list_calls: int = 0
    seconds: float = 0.0
    notes: Sequence[str] = ()
    keys: Sequence[ServedKey] = ()

    def level(self, kind: str) -> Level:
        """The counts of one kind of container; all zero when planning met none."""
        return next((level for level in self.levels if level.kind == kind), Level(kind))

    @property
    def files(self) -> Level:
        """The counts of data files."""
        return self.level("files")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {
            "where": self.predicate,
            **{level.kind: level.to_dict() for level in self.levels},
            "unused": [{"predicate": part, "why": why} for part, why in self.unused],
            "notes": list(self.notes),
            "keys": [key.to_dict() for key in self.keys],
            "list_calls": self.list_calls,
            "planning_seconds": self.seconds,
        }

    def explain(self) -> str:
        """The same for people."""
        return "\n".join(f"{head:<12}{printable(text)}" for head, text in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """The lines of `explain`, each with its head."""
        lines = [("where", self.predicate)]
        for level in self.levels:
            lines.extend(_describe(level, with_sizes=level is self.levels[-1]))
        lines += [("unused", f"{part}: {why}; it never skips a file") for part, why in self.unused]
        lines += [("note", note) for note in self.notes]
        lines += [("" if i else "keys", str(key)) for i, key in enumerate(self.keys)]
        if self.list_calls:
            lines.append(("listed", f"{self.list_calls:,} List {'call' if self.list_calls == 1 else 'calls'}"))
        seconds = self.seconds
        lines.append(("planned", f"in {seconds:.2f} s" if seconds >= 1 else f"in {seconds * 1000:.1f} ms"))
        return lines


def _describe(level: Level, with_sizes: bool) -> list[tuple[str, str]]:
    """The lines of one level; rows and bytes are shown for the innermost one only."""
    whole = f", {level.whole:,} {'matches' if level.whole == 1 else 'match'} whole" if level.whole else ""
    lines = [(level.kind, f"{level.kept:,} of {level.total:,} kept{_share(level.kept, level.total)}{whole}")]
    if with_sizes and level.rows is not None and level.rows_kept is not None:
        lines.append(("rows", f"{level.rows_kept:,} of {level.rows:,}{_share(level.rows_kept, level.rows)}"))
    if with_sizes and level.bytes is not None and level.bytes_kept is not None:
        kept, total = human_bytes(level.bytes_kept), human_bytes(level.bytes)
        lines.append(("bytes", f"{kept} of {total}{_share(level.bytes_kept, level.bytes)}"))
    head = "skipped"
    for reason, count in sorted(level.skipped.items(), key=lambda item: -item[1]):
        noun = level.kind if count != 1 else _SINGULAR.get(level.kind, level.kind.removesuffix("s"))
        lines.append((head, f"{count:,} {noun} by {reason}"))
        head = ""
    return lines


def _share(part: int, whole: int) -> str:
    if not whole:
        return ""
    share = 100 * part / whole
    if part < whole and share >= 99.5:
        return " (> 99 %)"
    return f" ({share:.0f} %)" if share >= 10 or part == 0 else f" ({share:.2g} %)"


def human_bytes(count: int) -> str:
    """A size as people write it.

    >>> human_bytes(999), human_bytes(32 * 1024 * 1024)
    ('999 B', '32.0 MiB')
    """
    power = max(0, min(4, (count.bit_length() - 1) // 10))
    return f"{count / 1024**power:.1f} {'KMGT'[power - 1]}iB" if power else f"{count} B"
