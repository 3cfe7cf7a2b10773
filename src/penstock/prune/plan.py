"""The plan: which files are read, why, and what is still to be checked on each.

A plan holds columns: the judgements of one or more batches of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.tree import TRUE, Expr
from penstock.prune.file_task import FileTasks, task_cells, task_dict
from penstock.prune.judge import Judgement, Pruner
from penstock.prune.notebook import facts, grid
from penstock.prune.plan_report import Level, Report, ServedKey
from penstock.prune.verdict import Verdict

_SHOWN = 10


@dataclass(frozen=True)
class Plan:
    """The files that a query needs, returned by `plan()` of every table; `report` has the counts."""

    pruner: Pruner
    judgements: Sequence[Judgement]
    report: Report

    @cached_property
    def files(self) -> FileTasks:
        """The kept files with their verdicts, reasons and residuals."""
        return FileTasks(self.judgements)

    @property
    def predicate(self) -> Expr:
        """The whole predicate in normal form."""
        return self.pruner.predicate

    @cached_property
    def residual(self) -> Expr:
        """What must be checked on the rows of the kept files taken together; TRUE when all of them match whole."""
        kinds = {judgement.residual(int(i)) for judgement in self.judgements for i in judgement.kept}
        return self.predicate if len(kinds) > 1 else next(iter(kinds), TRUE)

    def explain(self) -> str:
        """The report as text."""
        return self.report.explain()

    def _repr_html_(self) -> str:
        """The report and the first files, for a notebook."""
        names = ("file", "size", "rows", "partition", "verdict", "left to check")
        shown = [task_cells(task) for task in self.files[:_SHOWN]]
        return facts(self.report.lines()) + grid(names, shown, more=len(self.files) - len(shown))

    def to_dict(self) -> dict[str, Any]:
        """The report and the kept files as plain values, for JSON."""
        files = [task_dict(task) for task in self.files]
        whole = {"where": str(self.predicate), "residual": str(self.residual)}
        return {**self.report.to_dict(), **whole, "tasks": files}


def make_plan(
    pruner: Pruner,
    judgements: Sequence[Judgement],
    seconds: float,
    *,
    outer: Sequence[Level] = (),
    files: Level | None = None,
    list_calls: int = 0,
    notes: Sequence[str] = (),
    keys: Sequence[ServedKey] = (),
) -> Plan:
    """A plan over judged batches of files; `outer` are the levels that were judged before them.

    `files` are the counts of files where more is known of them than the judgements tell.
    """
    levels = [*outer, count(judgements) if files is None else files]
    return Plan(pruner, judgements, Report(pruner.summary, levels, pruner.unused, list_calls, seconds, notes, keys))


def count(judgements: Sequence[Judgement], kind: str = "files") -> Level:
    """The counts over batches of one kind of container."""
    skipped: dict[str, int] = {}
    for judgement in judgements:
        codes = judgement.codes[judgement.verdicts == Verdict.SKIP]
        for code, number in zip(*np.unique(codes, return_counts=True), strict=True):
            reason = str(judgement.reasons[code])
            skipped[reason] = skipped.get(reason, 0) + int(number)
    rows, rows_kept = _sums(judgements, "rows")
    size, size_kept = _sums(judgements, "sizes")
    return Level(
        kind,
        total=sum(j.containers.count for j in judgements),
        kept=sum(len(j.kept) for j in judgements),
        whole=sum(int((j.verdicts == Verdict.KEEP_WHOLE).sum()) for j in judgements),
        rows=rows,
        rows_kept=rows_kept,
        bytes=size,
        bytes_kept=size_kept,
        skipped=skipped,
    )


def _sums(judgements: Sequence[Judgement], column: str) -> tuple[int | None, int | None]:
    known = [(values, j.kept) for j in judgements if (values := getattr(j.containers, column)) is not None]
    if not known:
        return None, None
    total = sum(pc.sum(values).as_py() or 0 for values, _ in known)
    return total, sum(pc.sum(values.take(pa.array(kept))).as_py() or 0 for values, kept in known)
