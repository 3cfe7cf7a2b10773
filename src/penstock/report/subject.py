"""A table as the report sees it: all its files, and how a query judges each of them.

The plan is the judge. What it never looked at, because a directory or a manifest above was skipped, is judged here once
more, by what is known of the file itself, and only to say the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import LimitError
from penstock.expr.tree import TRUE, Column, walk
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.plan import Plan
from penstock.report.pieces import Pieces, pieces_of_batches, pieces_of_files
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.hive.walk import judge as judge_directories
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.manifest.members import members_of
from penstock.tables.iceberg.metadata.catalogs import clear_errors
from penstock.tables.iceberg.scan.scan_plan import data_batches, hot_keys


class HiveSubject:
    """A directory tree. To see all of it, all of it is listed."""

    level = "directory"

    def __init__(self, table: HiveTable) -> None:
        self.table = table

    @cached_property
    def pieces(self) -> Pieces | None:
        """All files; None where there are more than the table may be asked to list."""
        try:
            return pieces_of_files(
                [judgement.containers for judgement in self.table.plan().judgements], self.table.context.timezone
            )
        except LimitError:
            return None

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file by what is known of it."""
        return [judge_directories(pruner, containers) for containers in pieces.containers]

    def possible(self, judged: Sequence[Judgement], pieces: Pieces) -> npt.NDArray[np.bool_]:
        """Which pieces of kept files may match themselves; here a piece is a file."""
        return np.ones(len(pieces.of_file), np.bool_)

    def refresh(self) -> None:
        """List again what is needed."""
        self.__dict__.pop("pieces", None)


class IcebergSubject:
    """One version of an Iceberg table. To see all of it, all its manifests are opened."""

    level = "manifest"

    def __init__(self, table: IcebergTable) -> None:
        self.table = table

    @property
    def _batches(self) -> list[Any]:
        return data_batches(self.table.version, self.table.sources)

    @cached_property
    def pieces(self) -> Pieces:
        """All data files."""
        return pieces_of_batches(self.table.version, self._batches, self.table.context.timezone)

    def judge(self, pruner: Pruner, pieces: Pieces) -> list[Judgement]:
        """How a query would judge each file by what is known of it."""
        version = self.table.version
        used = [node for node in walk(pruner.predicate) if isinstance(node, Column)]
        keys = hot_keys(version, pruner.predicate)
        return [pruner.judge(batch.containers(version.columns, used, keys)) for batch in self._batches]

    def possible(self, judged: Sequence[Judgement], pieces: Pieces) -> npt.NDArray[np.bool_]:
        """Which pieces of kept files may match themselves: a shared file is read for some of its partitions."""
        found = []
        for number, (batch, judgement) in enumerate(zip(self._batches, judged, strict=True)):
            whole = judgement.pruner.predicate == TRUE
            matching = iter(()) if whole else members_of(self.table.version, batch, judgement)
            for part in (part for owner, part in pieces.parts if owner == number):
                if part.places is None or whole:
                    found.append(np.ones(len(part.of_file), np.bool_))
                else:
                    found.append(np.isin(part.places, next(matching).places))
        return np.concatenate([np.array([], np.bool_), *found])

    def refresh(self) -> None:
        """The table as it is now."""
        with clear_errors("the catalog", {}):
            self.table = self.table.refresh()
        self.__dict__.pop("pieces", None)


Subject = HiveSubject | IcebergSubject


def subject_of(table: Any) -> Subject:
    """What is to be seen of a table."""
    return HiveSubject(table) if isinstance(table, HiveTable) else IcebergSubject(table)


def planned_pieces(plan: Plan) -> Pieces:
    """The files that a plan looked at, where nobody can say what others there are."""
    return pieces_of_files([judgement.containers for judgement in plan.judgements], plan.pruner.zone)
