"""A table that Penstock writes, described: with its rules, and advice on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.lake.advise.advice import describe
from penstock.lake.layout.renames import current_properties
from penstock.maps.shredding import hot_keys
from penstock.tables.description import Pieces
from penstock.tables.iceberg.iceberg_description import IcebergDescription

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable


class ManagedDescription(IcebergDescription):
    """A table of a lake, described."""

    def __init__(self, table: ManagedTable) -> None:
        super().__init__(table)
        self._managed = table

    @property
    def facts(self) -> list[tuple[str, str]]:
        """With the rules for shared files and hot keys."""
        rules = self._managed.shred.items()
        keys = "; ".join(f"{column}: {'auto' if rule.auto else ', '.join(rule.keys)}" for column, rule in rules)
        return [*super().facts, ("shared files", describe(self._managed.coalesce)), ("hot keys", keys or "none")]

    def to_dict(self) -> dict[str, Any]:
        """With the rule for shared files."""
        rule = self._managed.coalesce
        coalesce = {} if rule is None else {"coalesce": describe(rule)}
        return {**super().to_dict(), "kind": "table of a catalog", **coalesce}

    def hot_keys(self, pieces: Pieces) -> list[dict[str, Any]]:
        """With whether new files still get a column for each."""
        rules = hot_keys(current_properties(self._version.metadata)).items()
        written = {(column, key) for column, (_, keys) in rules for key in keys}
        return [{**key, "current": (key["column"], key["key"]) in written} for key in super().hot_keys(pieces)]

    def advice(self) -> dict[str, str]:
        """How skewed the partitions are, and what would change that."""
        advice = self._managed.advise()
        return {"said": advice.advice, "text": advice.explain()}
