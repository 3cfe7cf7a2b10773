"""The residual of a kept container: the predicate less what its facts already prove.

A conjunct that is true for every row of the container is removed. From a conjunct that is an OR, the alternatives are
removed that no row can satisfy. Both are the questions behind the verdict itself, applied to the parts.

With the facts `dt = 5` and `app = 'b'`, the predicate `dt = 5 AND (app = 'a' OR n > 3)` leaves `n > 3`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import TRUE, And, Expr, Or, conjuncts, connected
from penstock.prune.evidence import Positions, evidence_of
from penstock.prune.judge import Judgement, may_be
from penstock.prune.question import ask
from penstock.prune.verdict import Verdict


def residuals(judgement: Judgement) -> dict[int, Expr]:
    """The residual of every kept container; containers with the same one share the object."""
    kept = judgement.kept
    whole = judgement.verdicts[kept] == Verdict.KEEP_WHOLE
    by_row: dict[int, Expr] = {int(i): TRUE for i in kept[whole]}
    rows = kept[~whole]
    if not len(rows):
        return by_row
    parts = conjuncts(judgement.pruner.predicate)
    needed = _needed(parts, judgement, rows)
    patterns, which = np.unique(needed, axis=0, return_inverse=True)
    built = [_build(parts, pattern) for pattern in patterns]
    by_row.update((int(row), built[int(i)]) for row, i in zip(rows, which.ravel(), strict=True))
    return by_row


def _needed(parts: Sequence[Expr], judgement: Judgement, rows: Positions) -> Mask:
    """For each container (row) and each part or alternative of a part (column), whether it must still be checked."""
    pruner, containers = judgement.pruner, judgement.containers
    evidence = evidence_of(containers, pruner.zone)
    columns = []
    for part in parts:
        columns.append(may_be(ask(part, pruner.truths, negated=True), containers, rows, evidence))
        for arm in _alternatives(part):
            columns.append(may_be(ask(arm, pruner.truths), containers, rows, evidence))
    return np.column_stack(columns)


def _alternatives(part: Expr) -> tuple[Expr, ...]:
    return part.arms if isinstance(part, Or) else ()


def _build(parts: Sequence[Expr], pattern: Mask) -> Expr:
    left: list[Expr] = []
    answers = iter(pattern.tolist())
    for part in parts:
        must_check = next(answers)
        alive = [arm for arm in _alternatives(part) if next(answers)]
        if must_check:
            left.append(connected(Or, alive) if alive else part)
    return connected(And, left)
