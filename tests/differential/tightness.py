"""How much of what a perfect judge would skip is skipped, by kind of predicate and by kind of knowledge.

    python -m tests.differential.tightness --examples 20000

Each example is one random case of one kind of predicate and one kind of knowledge, from `generate`; the perfect
judge is that of `perfect`. A container that the perfect judge cannot decide (an unknown function, too many
combinations) is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

from penstock.prune.facts import Derived, Tuples
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict
from tests.differential.generate import FACT_KINDS, Case, build
from tests.differential.perfect import PerfectJudge
from tests.differential.predicates import MEASURED, REQUIRED

KINDS = [*REQUIRED, *MEASURED]
# Knowledge about which only some is promised: the values of a bucket are scattered, and tuples beside bounds or
# partition
# values that contradict some of the tuples would have to be tested against those first.
REPORTED = ("transforms with bucket", "several with bucket", "several with tuples")


@dataclass(frozen=True)
class Pair:
    """The verdicts of both judges on one container."""

    perfect: Verdict
    ours: Verdict

    @property
    def is_wrong(self) -> bool:
        """Whether ours claims what is not so."""
        return self.ours is not Verdict.KEEP and self.ours is not self.perfect and not self._both_empty

    @property
    def _both_empty(self) -> bool:
        return self.perfect is Verdict.SKIP  # no row at all is possible: whole is as right as skip

    @property
    def is_loose(self) -> bool:
        """Whether the perfect judge proves what ours does not."""
        return self.perfect is not Verdict.KEEP and self.ours is Verdict.KEEP


def case_of(seed: int) -> tuple[str, str, Case]:
    """The kind of predicate, the kind of knowledge, and the case of a seed."""
    kind = KINDS[seed % len(KINDS)]
    fact_kind = FACT_KINDS[seed // len(KINDS) % len(FACT_KINDS)]
    return kind, fact_kind, build(seed, kind, fact_kind)


def knowledge_of(case: Case, fact_kind: str) -> str:
    """The kind of knowledge as it is reported: what needs joint reasoning (`REPORTED`) is apart."""
    facts = case.containers.facts
    derived = [f.term for f in facts if not isinstance(f, Tuples) and isinstance(f.term, Derived)]
    if any("bucket" in term.transform for term in derived):
        return f"{fact_kind} with bucket"
    if fact_kind == "several" and any(isinstance(f, Tuples) for f in facts):
        return "several with tuples"
    return fact_kind


def compare(case: Case) -> list[tuple[int, Pair]]:
    """Both verdicts on each container that the perfect judge can decide."""
    bound = case.bind(case.text)
    ours = Pruner(bound, case.zone).judge(case.containers)
    judge = PerfectJudge(bound, case.containers, case.zone)
    found = []
    for i in range(case.containers.count):
        perfect = judge.verdict(i)
        if perfect is not None:
            found.append((i, Pair(perfect, ours.verdict(i))))
    return found


def share(part: int, whole: int) -> str:
    """A percentage that is 100 only when nothing is missing."""
    if not whole:
        return "-"
    return "100 %" if part == whole else f"{min(99.99, 100 * part / whole):.2f} %"


def tally(seeds: range) -> dict[tuple[str, str], Counter[str]]:
    """Counts by kind of predicate and kind of knowledge."""
    table: dict[tuple[str, str], Counter[str]] = {}
    for seed in seeds:
        kind, fact_kind, case = case_of(seed)
        counts = table.setdefault((kind, knowledge_of(case, fact_kind)), Counter())
        counts["examples"] += 1
        for _, pair in compare(case):
            counts["judged"] += 1
            counts["perfect skips"] += pair.perfect is Verdict.SKIP
            counts["skips"] += pair.perfect is Verdict.SKIP and pair.ours is not Verdict.KEEP
            counts["perfect wholes"] += pair.perfect is Verdict.KEEP_WHOLE
            counts["wholes"] += pair.perfect is Verdict.KEEP_WHOLE and pair.ours is Verdict.KEEP_WHOLE
            counts["wrong"] += pair.is_wrong
    return table


def print_by(table: dict[tuple[str, str], Counter[str]], which: int, title: str) -> None:
    """One line for each kind, in the order of their first appearance."""
    print(
        f"{title:28} {'judged':>8} {'perfect':>8} {'skipped':>8} {'':8} {'perfect':>8} {'whole':>8} {'':8} {'wrong':>6}"
    )
    kinds = list(dict.fromkeys(key[which] for key in sorted(table, key=lambda k: (KINDS.index(k[0]), k[1]))))
    for kind in kinds:
        counts = sum((c for key, c in table.items() if key[which] == kind), Counter())
        skips, wholes = (
            share(counts["skips"], counts["perfect skips"]),
            share(counts["wholes"], counts["perfect wholes"]),
        )
        numbers = f"{counts['judged']:8} {counts['perfect skips']:8} {counts['skips']:8} {skips:>8}"
        print(f"{kind:28} {numbers} {counts['perfect wholes']:8} {counts['wholes']:8} {wholes:>8} {counts['wrong']:6}")
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=3000)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    begin = time.perf_counter()
    table = tally(range(options.start, options.start + options.examples))
    required = {key: counts for key, counts in table.items() if key[0] in REQUIRED}
    print_by(table, 0, "kind of predicate")
    print_by(required, 1, "knowledge (required kinds)")
    print(f"{options.examples} examples in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
