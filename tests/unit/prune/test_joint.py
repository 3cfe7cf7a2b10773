"""Several facts about one column, none of which excludes a container alone."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.expr.bind import bind_text
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Derived, Exact, Fact
from penstock.prune.judge import Pruner
from penstock.prune.transform_functions import transform_function
from penstock.prune.verdict import Verdict

X = Column(("x",), pa.int32())
S = Column(("s",), pa.string())


def verdict(where: str, *facts: Fact) -> Verdict:
    return Pruner(bind_text(where, "x int, s string, f double")).judge(Containers(1, facts)).verdict(0)


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def test_one_sided_bounds_and_a_truncated_partition_exclude_together() -> None:
    bounds = Bounds(X, upper=ints(50), null_count=pa.array([0]))
    partition = Exact(Derived(X, "truncate[10]"), ints(40))
    assert verdict("x IN (1, 100)", bounds) is Verdict.KEEP
    assert verdict("x IN (1, 49)", partition) is Verdict.KEEP
    assert verdict("x IN (1, 60)", bounds, partition) is Verdict.SKIP
    assert verdict("x IN (1, 45)", bounds, partition) is Verdict.KEEP
    assert verdict("x IN (55, 45)", bounds, partition) is Verdict.KEEP
    assert verdict("x >= 40", bounds, partition) is Verdict.KEEP_WHOLE


def test_nulls_allowed_by_one_fact_and_values_by_the_other_are_not_enough() -> None:
    bounds = Bounds(X, lower=ints(10), null_count=pa.array([3]))
    partition = Exact(Derived(X, "truncate[10]"), ints(10))
    assert verdict("x IS NULL OR x = 5", bounds, partition) is Verdict.SKIP
    assert verdict("x IS NULL OR x = 15", bounds, partition) is Verdict.KEEP


def test_points_of_another_bucket_do_not_count_inside_the_bounds() -> None:
    bucket = transform_function("bucket[8]", pa.int32())
    assert bucket is not None
    mine = bucket(7)
    other = next(v for v in range(8, 100) if bucket(v) != mine)
    far = next(v for v in range(1000, 2000) if bucket(v) == mine)
    facts = (Exact(Derived(X, "bucket[8]"), ints(mine)), Bounds(X, ints(0), ints(200), pa.array([0])))
    assert verdict(f"x IN ({other}, {far})", facts[0]) is Verdict.KEEP
    assert verdict(f"x IN ({other}, {far})", facts[1]) is Verdict.KEEP
    assert verdict(f"x IN ({other}, {far})", *facts) is Verdict.SKIP
    assert verdict(f"x IN ({other}, {far}, 7)", *facts) is Verdict.KEEP


def test_strings_are_taken_together_as_well() -> None:
    bounds = Bounds(S, lower=pa.array(["m"]), null_count=pa.array([0]))
    partition = Exact(Derived(S, "truncate[1]"), pa.array(["m"]))
    assert verdict("s IN ('a', 'zebra')", bounds) is Verdict.KEEP
    assert verdict("s IN ('a', 'zebra')", bounds, partition) is Verdict.SKIP
    assert verdict("s IN ('a', 'mole')", bounds, partition) is Verdict.KEEP


@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_partition_value_implies_nothing(known: bool) -> None:
    bounds = Bounds(X, upper=ints(50), null_count=pa.array([0]))
    partition = Exact(Derived(X, "truncate[10]"), ints(40), known=np.array([known]))
    assert verdict("x IN (1, 60)", bounds, partition) is (Verdict.SKIP if known else Verdict.KEEP)
