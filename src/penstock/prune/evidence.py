"""Everything that is known of a batch of containers, looked up by term, and a question answered from it.

`possible` is the one place where a question meets facts. It narrows as it goes: an arm stops looking at a container
once one of its sets is excluded, alternatives look only at containers that no earlier one admitted. All steps are
over columns.

Terms are independent here: two facts about different terms are never combined, except through `Tuples`, which say what
occurs *together*. There, each combination is judged as if it were a container of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.functions.laws import Path, lawful_path
from penstock.expr.kernels.evaluate import evaluate, unevaluable
from penstock.expr.kernels.physical import mask_of, row_codes
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Expr, is_term, terms_of
from penstock.prune.column_pairs import Span, meet, pair_possible, paired_terms
from penstock.prune.containers import Containers
from penstock.prune.domain import Domain
from penstock.prune.facts import Bounds, Derived, Exact, Term, Tuples, Witness, source_term
from penstock.prune.image import image
from penstock.prune.question import AllOf, Arm, Check, Question
from penstock.prune.ranges import Rows, at
from penstock.prune.transforms import transform_of

Positions = npt.NDArray[np.int64]
# Takes note of containers, among `rows`, that a witness excludes by what an arm says of a term.
Tally = Callable[[Rows, Mask, Witness, Expr, Arm], None]


class Evidence:
    """Facts by the term they are about; a fact about a partition field counts for its source."""

    def __init__(self, count: int, witnesses: Sequence[Witness], zone: str, with_laws: bool = True) -> None:
        self.count, self.zone, self.with_laws = count, zone, with_laws
        self._by_term: dict[Expr, list[Witness]] = {}
        self._projected: dict[tuple[int, int], tuple[Domain, Domain]] = {}
        self.witnesses = list(witnesses)
        for witness in self.witnesses:
            self._by_term.setdefault(source_term(witness.term), []).append(witness)

    def about(self, term: Expr) -> list[Witness]:
        """The facts that speak of a term, or of a function of one."""
        if term not in self._by_term and not is_term(term):
            self._by_term[term] = self._images(term)
        return self._by_term.get(term, [])

    def _images(self, expr: Expr) -> list[Witness]:
        path = lawful_path(expr)
        if path is None:
            return []
        images = (self._image(witness, expr, path) for witness in self.about(terms_of(expr)[0]))
        return [each for each in images if each is not None]

    def _image(self, witness: Witness, expr: Expr, path: Path) -> Witness | None:
        if isinstance(witness, _Reindexed):
            inner = self._image(witness.witness, expr, path)
            return None if inner is None else _Reindexed(inner, witness.places)
        return image(witness, expr, path, self.zone, self.with_laws) if isinstance(witness, Exact | Bounds) else None

    def cost(self, term: Expr) -> int:
        """Cheap facts first: exact values, bounds, terms without facts, and functions whose ends must be evaluated."""
        if not is_term(term):
            partitioned = any(isinstance(witness, Exact) for witness in self.about(terms_of(term)[0]))
            return 1 if partitioned else 3
        return min((0 if isinstance(witness, Exact) else 1 for witness in self.about(term)), default=2)

    def testimony(self, witness: Witness, domain: Domain, rows: Rows) -> Mask:
        """Where one fact admits a value of the set."""
        if isinstance(witness.term, Derived):
            key = (id(witness), id(domain))
            if key not in self._projected:  # the domain is kept beside its projection, so that its id stays its own
                self._projected[key] = (domain, transform_of(witness.term.transform).project(domain))
            domain = self._projected[key][1]
        return witness.admits(domain, rows)

    def passes(self, check: Check, rows: Rows) -> Mask:
        """Where a test may hold (or fail to, as the check says): no known single values of its terms rule it out."""
        count = self.count if rows is None else len(rows)
        everywhere = np.ones(count, np.bool_)
        if unevaluable(check.test) is not None:
            return everywhere
        pair = paired_terms(check.test)
        if pair is not None:
            everywhere = self._pair_passes(check, pair, rows, count)
        singles = [self._single_values(term, rows, count) for term in check.terms]
        known = np.logical_and.reduce([mask for _, mask in singles]) if singles else everywhere
        where = np.flatnonzero(known)
        if not len(where):
            return everywhere
        values = {t: v.take(pa.array(where)) for t, (v, _) in zip(check.terms, singles, strict=True)}
        everywhere[where] &= self._outcome(check, values, len(where))
        return everywhere

    def _pair_passes(self, check: Check, pair: tuple[Expr, Expr], rows: Rows, count: int) -> Mask:
        spans = []
        for term in pair:
            witnesses = [witness for witness in self.about(term) if not isinstance(witness.term, Derived)]
            known = [span for witness in witnesses if (span := witness.span(rows)) is not None]
            if not known:
                return np.ones(count, np.bool_)
            spans.append(meet(known))
        return pair_possible(check.test, check.holds, spans[0], spans[1])

    def _outcome(self, check: Check, values: dict[Expr, pa.Array], count: int) -> Mask:
        """Evaluated once for each distinct combination."""
        distinct, inverse = _distinct(values, count)
        size = len(next(iter(distinct.values()))) if distinct else count
        vector = evaluate(check.test, distinct, size, self.zone)
        true = mask_of(vector.values)
        outcome = true if check.holds else ~true
        if vector.failed is not None:
            outcome = outcome | vector.failed
        return outcome if inverse is None else outcome[inverse]

    def _single_values(self, term: Expr, rows: Rows, count: int) -> tuple[pa.Array, Mask]:
        values, known = pa.nulls(count, term.type), np.zeros(count, np.bool_)
        for witness in self.about(term):
            single = None if isinstance(witness.term, Derived) else witness.single_values(rows)
            if single is not None and single[0].type == term.type:
                values = pa.compute.if_else(pa.array(known), values, single[0]) if known.any() else single[0]
                known = known | single[1]
        return values, known


def _distinct(values: dict[Expr, pa.Array], count: int) -> tuple[dict[Expr, pa.Array], Positions | None]:
    if count < 64 or not values:
        return values, None
    _, first, inverse = np.unique(row_codes([*values.values()], count), return_index=True, return_inverse=True)
    return {term: array.take(pa.array(first)) for term, array in values.items()}, inverse


class _Reindexed(Witness):
    """A fact about containers, applied to entries that stand for them: entry i is container `places[i]`."""

    def __init__(self, witness: Witness, places: Rows) -> None:
        self.witness, self.places = witness, places
        self.term, self.label = witness.term, witness.label

    def admits(self, domain: Domain, rows: Rows) -> Mask:
        return self.witness.admits(domain, self._at(rows))

    def single_values(self, rows: Rows) -> tuple[pa.Array, Mask] | None:
        return self.witness.single_values(self._at(rows))

    def span(self, rows: Rows) -> Span | None:
        return self.witness.span(self._at(rows))

    def _at(self, rows: Rows) -> Rows:
        return rows if self.places is None else at(self.places, rows)


def evidence_of(containers: Containers, zone: str, with_laws: bool = True) -> Evidence:
    """Exact values, bounds and what they say together, in this order; tuples are left to `possible_by_tuples`.

    Without laws, a function of a column is only known where the column has one value.
    """
    witnesses: list[Witness] = [fact for fact in containers.facts if isinstance(fact, Exact)]
    witnesses += [fact for fact in containers.facts if isinstance(fact, Bounds)]
    return Evidence(containers.count, [*witnesses, *containers.joint], zone, with_laws)


def possible(question: Question, evidence: Evidence, rows: Rows = None, tally: Tally | None = None) -> Mask:
    """Which of the containers may have a row that answers the question with yes."""
    selection = _Selection(evidence.count if rows is None else len(rows), rows)
    if isinstance(question, Arm):
        _narrow_by_arm(selection, question, evidence, tally)
    elif isinstance(question, AllOf):
        for part in question.parts:
            selection.keep(possible(part, evidence, selection.rows, tally))
    else:
        for part in question.parts:  # what an alternative admits needs no further look: the rest is narrowed
            selection.keep(~possible(part, evidence, selection.rows))
        return ~selection.mask
    return selection.mask


class _Selection:
    """The containers still in question: facts are asked about all of them, and once they are few about those alone."""

    def __init__(self, count: int, rows: Rows) -> None:
        self.mask = np.ones(count, np.bool_)  # over the original ones
        self.rows = self._original = rows  # what to ask facts about
        self._places: Rows = None  # where `rows` stand among the original ones

    def keep(self, fits: Mask) -> None:
        """Drop the containers that do not fit."""
        if self._places is None:
            self.mask &= fits
        else:
            self.mask[self._places] &= fits
        if np.count_nonzero(self.mask) * _SPARSE <= len(fits):
            self._places = np.flatnonzero(self.mask)
            self.rows = self._places if self._original is None else self._original[self._places]

    def fresh(self, fits: Mask) -> Mask:
        """The containers that are dropped now and were not before."""
        return at(self.mask, self._places) & ~fits


_SPARSE = 4  # positions are used once at most one in four is left


def _narrow_by_arm(selection: _Selection, arm: Arm, evidence: Evidence, tally: Tally | None) -> None:
    if arm.is_impossible:
        selection.keep(np.zeros(len(selection.mask), np.bool_))
        return
    for term in sorted(arm.domains, key=evidence.cost):
        for witness in evidence.about(term):
            fits = evidence.testimony(witness, arm.domains[term], selection.rows)
            if tally is not None and not fits.all():
                tally(selection.rows, selection.fresh(fits), witness, term, arm)
            selection.keep(fits)
    for check in arm.checks:
        selection.keep(evidence.passes(check, selection.rows))


def possible_by_tuples(question: Question, evidence: Evidence, tuples: Tuples, rows: Rows) -> Mask:
    """The same for containers whose combinations of values are known: at least one combination must be possible."""
    alive = np.ones(len(tuples.complete) if rows is None else len(rows), np.bool_)
    listed = tuples.listed if rows is None else np.flatnonzero(tuples.complete[rows])
    containers = listed if rows is None else rows[listed]
    sizes = tuples.sizes[containers]
    alive[listed[sizes == 0]] = False  # complete, and nothing in it
    if not _mentions(question, tuples.terms):
        return alive
    owners = np.repeat(np.arange(len(containers)), sizes)
    places: Rows = None  # all entries in their order, unless some belong to other containers
    if len(owners) < tuples.offsets[-1]:
        places = np.arange(len(owners)) + np.repeat(tuples.offsets[containers] - np.cumsum(sizes) + sizes, sizes)
    inside: list[Witness] = [_Reindexed(fact, places) for fact in tuples.exact]
    outside: list[Witness] = [_Reindexed(witness, containers[owners]) for witness in evidence.witnesses]
    yes = possible(question, Evidence(len(owners), [*inside, *outside], evidence.zone, evidence.with_laws))
    hits = np.zeros(len(containers), np.bool_)
    hits[owners[yes]] = True
    alive[listed] &= hits
    return alive


def _mentions(question: Question, terms: Sequence[Term]) -> bool:
    """Whether the question asks anything about one of the terms."""
    if not isinstance(question, Arm):
        return any(_mentions(part, terms) for part in question.parts)
    mentioned = {term for expr in question.domains for term in terms_of(expr)}
    return not mentioned.union(*(check.terms for check in question.checks)).isdisjoint(map(source_term, terms))
