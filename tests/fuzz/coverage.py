"""What a run has asked so far, cell by cell, and what it has not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz.cells import Cell, all_cells, zoned_cells
from tests.fuzz.hive_case import FLAVOURS
from tests.fuzz.managed_case import MODES, STEPS, VARIETIES

ZONES = ("UTC", "America/New_York", "Pacific/Apia", "Asia/Kolkata", "Australia/Lord_Howe")
_READS = ("plan", "arrow", "where", "sql", "join", "sql join", "rows", "sql rows", "stream")
_EXACT = ("count", "extremes")
LIFE = ("append", "adopt", *STEPS, *MODES.values(), "time travel")
PATHS = {
    **dict.fromkeys(FLAVOURS, _READS),
    "metastore": tuple(path for path in _READS if path != "stream"),
    "iceberg": (*_READS, *_EXACT),
    "managed": (*_READS, *_EXACT, *LIFE),
    "memory": ("plan", "arrow"),
}


@dataclass
class Coverage:
    """Counts of questions that were answered, by what they cover."""

    cells: Counter[Cell] = field(default_factory=Counter)
    zoned: Counter[tuple[str, Cell]] = field(default_factory=Counter)
    paths: Counter[tuple[str, str]] = field(default_factory=Counter)
    operations: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def missing_cells(self) -> list[Cell]:
        """Cells of the registry of which no predicate was planned against the judge."""
        return [cell for cell in all_cells() if cell not in self.cells]

    def missing_zones(self) -> list[tuple[str, Cell]]:
        """Zoned cells that were not asked in a zone."""
        return [(zone, cell) for zone in ZONES for cell in zoned_cells() if (zone, cell) not in self.zoned]

    def missing_paths(self) -> list[tuple[str, str]]:
        """Layouts that were not asked in some way."""
        return [(kind, path) for kind, paths in PATHS.items() for path in paths if (kind, path) not in self.paths]

    def missing_steps(self) -> list[tuple[str, str]]:
        """Varieties of managed tables on which a step was not right once."""
        return [(variety, step) for variety in VARIETIES for step in LIFE if (variety, step) not in self.steps]

    def summary(self) -> str:
        """All counts, and what is missing."""
        lines = ["questions: " + _counts(self.outcomes)]
        total = len(all_cells())
        lines.append(f"cells of functions and casts: {total - len(self.missing_cells())} of {total}")
        zoned = len(ZONES) * len(zoned_cells())
        lines.append(f"zones x zoned cells: {zoned - len(self.missing_zones())} of {zoned}")
        asked = sum(map(len, PATHS.values())) - len(self.missing_paths())
        lines.append(f"layouts x paths: {asked} of {sum(map(len, PATHS.values()))}")
        steps = len(VARIETIES) * len(LIFE)
        lines.append(f"varieties of managed tables x steps: {steps - len(self.missing_steps())} of {steps}")
        lines.append(f"layouts x operations x paths: {len(self.operations)}")
        lines.append("paths: " + _counts(Counter({" ".join(key): n for key, n in self.paths.items()})))
        lines.append("forms: " + _counts(self.forms))
        lines.append("settings: " + _counts(self.settings))
        missing = [str(cell) for cell in self.missing_cells()]
        lines += [f"not covered: {text}" for text in [*(" ".join(p) for p in self.missing_paths()), *missing][:60]]
        return "\n".join(lines)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items(), key=lambda item: -item[1]))
