"""What must hold of any case, checked row by row; each check raises AssertionError with what it found.

A row *fails* when the evaluator promises no answer: Spark would raise, or a function is not known. What such a row may
turn out to be is found by letting every failing test be true, false and null, and combining by Kleene's tables here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from penstock.expr.kernels.evaluate import evaluate, read_terms
from penstock.expr.simplify import simplify
from penstock.expr.tree import Compare, Expr, Not
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict
from tests.differential.generate import Case, minimize
from tests.differential.knowledge import only
from tests.differential.predicates import Node

FAILED = "failed"
Answer = Any  # True, False, None or FAILED


def answers(case: Case, expr: Expr) -> list[Answer]:
    """What a bound predicate says of each row of the case."""
    vector = evaluate(expr, read_terms(expr, case.table), len(case.rows), case.zone)
    values = vector.values.to_pylist()
    if vector.failed is None:
        return values
    return [FAILED if failed else value for value, failed in zip(values, vector.failed, strict=True)]


def possible(case: Case, node: Node) -> list[frozenset[Any]]:
    """For each row what the predicate may turn out to be."""
    word, parts = node
    if word == "leaf":
        return _possible_test(case, case.bind(parts[0]))
    below = [possible(case, part) for part in parts]
    if word == "isnull":
        return [frozenset(v is None for v in row) for row in below[0]]
    if word == "not":
        return [frozenset(None if v is None else not v for v in row) for row in below[0]]
    decided = word == "or"
    return [frozenset(_kleene(values, decided) for values in product(*row)) for row in zip(*below, strict=True)]


def _possible_test(case: Case, test: Expr) -> list[frozenset[Any]]:
    anything = frozenset([True, False, None])
    found = [anything if a == FAILED else frozenset([a]) for a in answers(case, test)]
    inner = test.child if isinstance(test, Not) else test
    if isinstance(inner, Compare) and inner.op != "<=>" and anything in found:
        # A comparison with NULL on one side is NULL, whatever would come of the other side.
        for side in inner.children:
            nulls = [a is None for a in answers(case, side)]
            found = [frozenset([None]) if null else outcome for null, outcome in zip(nulls, found, strict=True)]
    return found


def _kleene(values: tuple[Any, ...], decided: bool) -> Any:
    if decided in values:
        return decided
    return None if None in values else not decided


class Checked:
    """One predicate of a case with its answers, its pruner and the verdicts."""

    def __init__(self, case: Case, text: str, node: Node) -> None:
        self.case, self.text = case, text
        self.bound = case.bind(text)
        self.answers = answers(case, self.bound)
        self.possible = possible(case, node) if FAILED in self.answers else [frozenset([a]) for a in self.answers]
        self.pruner = Pruner(self.bound, case.zone)
        self.judgement = self.pruner.judge(case.containers)

    def check(self) -> int:
        """All checks; the number of rows found through the verdicts and residuals."""
        self.check_verdicts()
        self.check_print_and_simplify()
        self.check_alone()
        return self.check_residuals()

    def check_verdicts(self) -> None:
        for i, part in enumerate(self.case.split):
            verdict = self.judgement.verdict(i)
            outcomes = [self.possible[row] for row in part]
            if verdict is Verdict.SKIP:
                lost = [row for row, outcome in zip(part, outcomes, strict=True) if True in outcome]
                assert not lost, (
                    f"{self.text}: container {i} is skipped ({self.judgement.reason(i)}) but has rows {lost}"
                )
            if verdict is Verdict.KEEP_WHOLE:
                wrong = [row for row, outcome in zip(part, outcomes, strict=True) if outcome != {True}]
                assert not wrong, f"{self.text}: container {i} is kept whole but rows {wrong} do not match"

    def check_residuals(self) -> int:
        found = 0
        cache: dict[int, list[Answer]] = {}
        for i in self.judgement.kept:
            residual = self.judgement.residual(int(i))
            if id(residual) not in cache:
                cache[id(residual)] = answers(self.case, residual)
            for row in self.case.split[i]:
                left, whole = cache[id(residual)][row], self.answers[row]
                found += left is True
                if whole == FAILED:
                    fits = (
                        left == FAILED
                        or (left is True and True in self.possible[row])
                        or (left is not True and self.possible[row] != {True})
                    )
                else:
                    fits = left != FAILED and (left is True) == (whole is True)
                assert fits, (
                    f"{self.text}: residual {residual} of container {i} gives {left} for row {row}, not {whole}"
                )
        return found

    def check_print_and_simplify(self) -> None:
        printed = str(self.bound)
        again = self.case.bind(printed)
        same = again == self.bound
        assert same, f"{self.text} prints as {printed}, which is read as {again}"
        simple = simplify(self.bound)
        for row, (a, b) in enumerate(zip(self.answers, answers(self.case, simple), strict=True)):
            fits = (b == FAILED or b in self.possible[row]) if a == FAILED else (type(a) is type(b) and a == b)
            assert fits, f"{self.text} simplifies to {simple}, which says {b} of row {row}, not {a}"
        printed = str(simple)
        again = self.case.bind(printed)
        same = again == simple or simplify(again) == simple
        assert same, f"simplified {self.text} prints as {printed}, which is read as {again}"

    def check_alone(self) -> None:
        for i, part in enumerate(self.case.split):
            if not part:
                continue  # what is said of no rows may contradict itself, and then any verdict is right
            alone = self.pruner.judge(only(self.case.containers, i))
            mine = (self.judgement.verdict(i), str(self.judgement.residual(i)))
            his = (alone.verdict(0), str(alone.residual(0)))
            assert mine == his, f"{self.text}: container {i} is {mine} in the batch and {his} alone"


def check_case(case: Case) -> None:
    """The predicate, its negation and the test whether it is null, each by itself and all three together (TLP)."""
    forms = [
        (case.text, case.predicate),
        (f"NOT ({case.text})", ("not", [case.predicate])),
        (f"({case.text}) IS NULL", ("isnull", [case.predicate])),
    ]
    checked = [Checked(case, text, node) for text, node in forms]
    counts = [each.check() for each in checked]
    yes, no, null = (each.answers for each in checked)
    for row, three in enumerate(zip(yes, no, null, strict=True)):
        assert (three[0] == FAILED) == (three[1] == FAILED) == (three[2] == FAILED), (
            f"row {row} fails for some of {three}"
        )
        if FAILED not in three:
            assert [v is True for v in three].count(True) == 1, f"row {row}: P, NOT P and P IS NULL are {three}"
    if FAILED not in yes:
        listed = sum(len(part) for part in case.split)
        assert sum(counts) == listed, f"TLP: {counts} rows, of {listed}"


def failure_of(case: Case, check: Callable[[Case], None] = check_case) -> str | None:
    """What is wrong with a case; None when nothing is."""
    try:
        check(case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def explain(case: Case, check: Callable[[Case], None] = check_case) -> str | None:
    """What is wrong with a case, made as small as it gets, for a reader; None when nothing is."""
    if failure_of(case, check) is None:
        return None
    small = minimize(case, lambda other: failure_of(other, check) is not None)
    return f"{failure_of(small, check)}\n{small.report()}"
