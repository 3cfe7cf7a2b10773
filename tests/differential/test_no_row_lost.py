"""No row is lost and none is added: random predicates over random containers with random knowledge, against the
evaluator.

For each example: a skipped container has no row that matches, one that is kept whole has no other, the residual
finds the same rows as the predicate, a predicate prints and simplifies to itself, P, NOT P and P IS NULL divide
the rows (TLP), and a container gets the same verdict alone as among others. `oracle` has the checks.
"""

import pytest
from hypothesis import Phase, given, settings

from tests.differential import oracle
from tests.differential.generate import build, seeds
from tests.differential.predicates import MEASURED, REQUIRED

# A seed does not shrink; the failing case is made small by `oracle.explain`.
by_seed = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])


def check(case):
    found = oracle.explain(case)
    if found is not None:
        pytest.fail(found, pytrace=False)


@by_seed
@given(seeds)
def test_pruning_any_predicate_with_any_knowledge_loses_no_row(seed):
    check(build(seed))


@by_seed
@given(seeds)
def test_pruning_a_simple_predicate_with_one_kind_of_knowledge_loses_no_row(seed):
    kinds = [*REQUIRED, *MEASURED]
    fact_kinds = ["exact", "bounds", "transforms", "tuples", "several"]
    check(build(seed, kinds[seed % len(kinds)], fact_kinds[seed // len(kinds) % len(fact_kinds)]))
