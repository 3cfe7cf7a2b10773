"""What can be proven is proven: against a perfect judge with the same knowledge, over random cases.

For the required kinds of predicate with each kind of knowledge Penstock skips, and keeps whole, exactly what the
perfect judge does. For all kinds it never claims more. `python -m tests.differential.tightness` prints the rates
of all kinds.
"""

import pytest
from hypothesis import Phase, given, settings

from tests.differential.generate import minimize, seeds
from tests.differential.predicates import REQUIRED
from tests.differential.tightness import REPORTED, case_of, compare, knowledge_of

by_seed = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])


def refuse(case, is_bad):
    if any(is_bad(pair) for _, pair in compare(case)):
        small = minimize(case, lambda other: any(is_bad(pair) for _, pair in compare(other)))
        pytest.fail(f"{compare(small)}\n{small.report()}", pytrace=False)


@by_seed
@given(seeds)
def test_nothing_is_claimed_that_a_perfect_judge_denies(seed):
    refuse(case_of(seed)[2], lambda pair: pair.is_wrong)


@by_seed
@given(seeds)
def test_what_a_perfect_judge_proves_of_a_required_kind_is_proven(seed):
    kind, fact_kind, case = case_of(seed)
    if kind in REQUIRED and knowledge_of(case, fact_kind) not in REPORTED:
        refuse(case, lambda pair: pair.is_loose)
