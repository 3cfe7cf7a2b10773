"""Two columns compared through their ranges, against all pairs of values in small ranges."""

import itertools

import pyarrow as pa
import pytest

from penstock.expr.bind import bind_text
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict

A, B = (Column((name,), pa.int32()) for name in "ab")
RANGES = [(low, high, nulls) for low, high in ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2)) for nulls in (0, 1)]


@pytest.mark.parametrize("where", ["a < b", "a <= b", "a > b", "a >= b", "a = b", "a <> b", "a <=> b", "NOT a <=> b"])
def test_a_comparison_of_columns_is_judged_as_sharply_as_ranges_allow(where: str) -> None:
    predicate = bind_text(where, "a int, b int")
    pairs = list(itertools.product(RANGES, RANGES))

    def bounds(column: Column, side: int) -> Bounds:
        columns = zip(*(pair[side] for pair in pairs), strict=True)
        low, high, nulls = (pa.array(values, pa.int32()) for values in columns)
        return Bounds(column, low, high, null_count=nulls)

    judgement = Pruner(predicate).judge(Containers(len(pairs), [bounds(A, 0), bounds(B, 1)]))
    for i, pair in enumerate(pairs):
        sides = [list(range(low, high + 1)) + [None] * nulls for low, high, nulls in pair]
        rows = pa.table(list(zip(*itertools.product(*sides), strict=True)), names=["a", "b"])
        truths = filter_mask(predicate, rows.cast(pa.schema({"a": pa.int32(), "b": pa.int32()}))).to_pylist()
        expected = Verdict.KEEP_WHOLE if all(truths) else (Verdict.KEEP if any(truths) else Verdict.SKIP)
        assert judgement.verdict(i) is expected, (where, pair)
