"""Counts of NULL and NaN: what a column cannot hold when all its values are of one kind."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.expr.bind import Context, bind_text
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict

SKIP, KEEP, WHOLE = Verdict.SKIP, Verdict.KEEP, Verdict.KEEP_WHOLE
SCHEMA = pa.schema({"x": pa.float64()})


def verdict(where: str, nulls: int | None, nans: int | None, values: int | None) -> Verdict:
    counts = [pa.array([count], pa.int64()) for count in (nulls, nans, values)]
    fact = Bounds(Column(("x",), pa.float64()), pa.nulls(1, pa.float64()), pa.nulls(1, pa.float64()), *counts)
    pruner = Pruner(bind_text(where, SCHEMA, Context("UTC")))
    return pruner.judge(Containers(1, [fact])).verdict(0)


@pytest.mark.parametrize(
    ("nulls", "nans", "values", "verdicts"),
    [
        (5, None, 5, (SKIP, SKIP, WHOLE, SKIP)),
        (None, 5, 5, (WHOLE, SKIP, SKIP, WHOLE)),
        (2, 3, 5, (KEEP, SKIP, KEEP, KEEP)),
        (2, None, 5, (KEEP, KEEP, KEEP, KEEP)),
        (None, 2, 5, (KEEP, KEEP, KEEP, KEEP)),
        (5, 5, None, (KEEP, KEEP, KEEP, KEEP)),
        (0, None, 5, (KEEP, KEEP, SKIP, KEEP)),
    ],
)
def test_all_null_and_all_nan_exclude_everything_else(
    nulls: int | None, nans: int | None, values: int | None, verdicts: tuple[Verdict, ...]
) -> None:
    predicates = ("x > 1e300", "x < 5", "x IS NULL", "isnan(x)")
    assert tuple(verdict(where, nulls, nans, values) for where in predicates) == verdicts
