"""The pipeline: a predicate is compiled once, and containers are judged batch by batch, stage by stage.

The safety contract. A container is skipped only when *no assignment of values that the facts allow* makes the
predicate true. It is kept whole only when no such assignment makes it anything but true. Everything unknown widens
what is allowed:

| what the facts allow | predicate can be true | predicate can be not true | verdict |
|---|---|---|---|
| only rows for which it is true | yes | no | KEEP_WHOLE |
| only rows for which it is false or NULL | no | yes | SKIP |
| both | yes | yes | KEEP |
| no rows at all | no | no | SKIP |

`STAGES` is the order in which facts are brought in, cheap ones first. Each stage uses its own facts *together with*
those of the stages before it, so an OR over a partition column and a data column is excluded by both at once. The
fact that alone excludes a container is its reason; where it takes several, the stage is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.kernels.physical import mask_of
from penstock.expr.kernels.vector import Mask
from penstock.expr.simplify import simplify
from penstock.expr.sql_text import summarize
from penstock.expr.tree import TRUE, Expr, conjuncts
from penstock.prune.containers import Containers
from penstock.prune.evidence import Evidence, Positions, Tally, evidence_of, possible, possible_by_tuples
from penstock.prune.facts import Tuples, Witness
from penstock.prune.question import NOTHING, Arm, Question, ask
from penstock.prune.ranges import Rows, at
from penstock.prune.truth import Truths
from penstock.prune.verdict import Reason, Verdict

_MOST_TESTS = 4
_DENSE = 3
NOT_EXCLUDED = Reason("not excluded")
EVERYTHING = Reason("no predicate")
NEVER_TRUE = Reason("no row can match")
WHOLE = Reason("every row matches")


def _have_rows(question: Question, containers: Containers, rows: Rows, evidence: Evidence, tally: Tally | None) -> Mask:
    if containers.rows is None:
        return np.ones(containers.count if rows is None else len(rows), np.bool_)
    return at(~mask_of(pc.equal(containers.rows, 0)), rows)


def _by_values(question: Question, containers: Containers, rows: Rows, evidence: Evidence, tally: Tally | None) -> Mask:
    return possible(question, evidence, rows, tally)


def _by_tuples(question: Question, containers: Containers, rows: Rows, evidence: Evidence, tally: Tally | None) -> Mask:
    alive = np.ones(containers.count if rows is None else len(rows), np.bool_)
    for fact in containers.facts:
        if isinstance(fact, Tuples):
            alive &= possible_by_tuples(question, evidence, fact, rows)
    return alive


NO_ROWS = "having no rows"
# The name of each stage in reports, and which of the containers survive it.
STAGES = ((NO_ROWS, _have_rows), ("values", _by_values), ("logical values", _by_tuples))


class Pruner:
    """A bound predicate, simplified and compiled; it keeps no state between batches and may be used by many threads.

    With `whole_by_laws` off, a container is not kept whole on the strength of a function's law: removing files
    that match whole, without reading them, relies on exact values and plain comparisons alone.
    """

    def __init__(self, predicate: Expr, zone: str = "UTC", *, whole_by_laws: bool = True) -> None:
        self.predicate = simplify(predicate)
        self.zone, self.whole_by_laws = zone, whole_by_laws
        self.truths = Truths(zone)
        self.question = ask(self.predicate, self.truths)

    @cached_property
    def opposite(self) -> Question:
        """The question whether a row can fail to match."""
        return ask(self.predicate, self.truths, negated=True)

    @cached_property
    def summary(self) -> str:
        return summarize(self.predicate)

    @cached_property
    def unused(self) -> tuple[tuple[str, str], ...]:
        """The parts of the predicate that can never prune, each with the reason."""
        reasons = [(part, unevaluable(part)) for part in conjuncts(self.predicate)]
        return tuple((summarize(part), why) for part, why in reasons if why is not None)

    def judge(self, containers: Containers) -> Judgement:
        """Verdicts and reasons for a batch."""
        if self.question == NOTHING:
            codes = np.zeros(containers.count, np.int32)
            return Judgement(self, containers, codes.astype(np.int8), codes, (NEVER_TRUE,))
        tally = _Reasons(containers.count)
        evidence = evidence_of(containers, self.zone)
        rows: Rows = None
        for name, survive in STAGES:
            alive = survive(self.question, containers, rows, evidence, tally.excluded)
            if not alive.all():
                tally.rest(rows, ~alive, Reason(name, "" if name == NO_ROWS else self.summary))
                rows = np.flatnonzero(alive) if rows is None else rows[alive]
        verdicts = (tally.codes == 0).astype(np.int8)  # SKIP is 0, KEEP is 1
        whole = ~self._may_fail(containers, rows)
        if whole.any():
            where = whole if rows is None else rows[whole]
            verdicts[where] = Verdict.KEEP_WHOLE
            tally.assign(where, EVERYTHING if self.predicate == TRUE else WHOLE)
        return Judgement(self, containers, verdicts, tally.codes, tuple(tally.reasons))

    def _may_fail(self, containers: Containers, rows: Rows) -> Mask:
        """Which of the containers may have a row that does not match."""
        evidence = evidence_of(containers, self.zone, self.whole_by_laws)
        if rows is None or len(rows) * _DENSE < containers.count:
            return may_be(self.opposite, containers, rows, evidence)
        return may_be(self.opposite, containers, None, evidence)[rows]  # most of them: cheaper than picking them out


class _Reasons:
    """The reason of each container so far, as a code; 0 is: not excluded."""

    def __init__(self, count: int) -> None:
        self.codes = np.zeros(count, np.int32)
        self.reasons = [NOT_EXCLUDED]

    def excluded(self, rows: Rows, dead: Mask, witness: Witness, term: Expr, arm: Arm) -> None:
        """One fact has excluded some containers by what the predicate says of one term."""
        detail = " AND ".join(summarize(test) for test in arm.tests.get(term, ())[:_MOST_TESTS])
        source = witness.label if witness.term == term else f"{witness.label} {witness.term}"
        self.assign(dead if rows is None else rows[dead], Reason(source, detail))

    def rest(self, rows: Rows, dead: Mask, reason: Reason) -> None:
        """Containers that fell out of a stage without a single fact being to blame."""
        left = dead & (at(self.codes, rows) == 0)
        if left.any():
            self.assign(left if rows is None else rows[left], reason)

    def assign(self, where: Mask | Positions, reason: Reason) -> None:
        """Give a reason to containers, by mask or by position."""
        self.codes[where] = len(self.reasons)
        self.reasons.append(reason)


def may_be(question: Question, containers: Containers, rows: Rows, evidence: Evidence) -> Mask:
    """Which containers may have a row for which the question is answered with yes, from all facts together."""
    possible_here = _by_values(question, containers, rows, evidence, None)
    if any(isinstance(fact, Tuples) for fact in containers.facts) and possible_here.any():
        here = np.flatnonzero(possible_here) if rows is None else rows[possible_here]
        possible_here[possible_here] = _by_tuples(question, containers, here, evidence, None)
    return possible_here


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one batch of containers, as columns."""

    pruner: Pruner
    containers: Containers
    verdicts: npt.NDArray[np.int8]
    codes: npt.NDArray[np.int32]
    reasons: tuple[Reason, ...]

    @cached_property
    def kept(self) -> Positions:
        """The positions of the containers to be read."""
        return np.flatnonzero(self.verdicts != Verdict.SKIP)

    def verdict(self, i: int) -> Verdict:
        return Verdict(int(self.verdicts[i]))

    def reason(self, i: int) -> Reason:
        return self.reasons[int(self.codes[i])]

    def residual(self, i: int) -> Expr:
        """What is left to check on the rows of container i; TRUE when nothing is."""
        return self._residuals.get(i, self.pruner.predicate)

    @cached_property
    def _residuals(self) -> dict[int, Expr]:
        from penstock.prune.residual import residuals

        return residuals(self)
