"""A directory tree described for reports and notebooks. To see all of it, all of it is listed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.errors import LimitError
from penstock.expr.types import type_name
from penstock.prune.judge import Judgement, Pruner
from penstock.tables.description import MOST_KEYS, Description
from penstock.tables.hive.hive_files import read_mapping
from penstock.tables.hive.walk import judge as judge_directories
from penstock.tables.pieces import Pieces, pieces_of_files

if TYPE_CHECKING:
    from penstock.tables.hive.hive_table import HiveTable


class HiveDescription(Description):
    """A Hive layout, described."""

    kind = "Hive layout"
    level = "directory"
    no_advice = (
        "A Hive layout is not written by Penstock; penstock ingest makes a table of it whose partitions share files."
    )

    def __init__(self, table: HiveTable) -> None:
        fields = [f"{column.name} {type_name(column.type)}" for column in table.columns]
        super().__init__(table.storage.url, table.root_url, fields)
        self._table = table

    @cached_property
    def pieces(self) -> Pieces | None:
        """All files; None where there are more than the table may be asked to list."""
        try:
            plan = self._table.plan()
        except LimitError:
            return None
        return pieces_of_files([judgement.containers for judgement in plan.judgements], self._table.context.timezone)

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file; directories that cannot be typed are kept."""
        return [judge_directories(pruner, containers) for containers in pieces.containers]

    def hot_keys(self, pieces: Pieces) -> list[dict[str, Any]]:
        """The keys as the first file has them."""
        if not self._table.shredded or not len(pieces.names):
            return []
        mapping = read_mapping(self._table.storage, str(pieces.names[0]))
        keys = [{"column": each.column, "key": key, "mode": each.mode} for each in mapping for key, _ in each.sidecars]
        return keys[:MOST_KEYS]
