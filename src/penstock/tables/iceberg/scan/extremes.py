"""The smallest or largest value of a column, reading as few files as can be.

A bound is no value: Iceberg only promises that no value lies beyond it. So files are read in the order of their bounds,
and reading stops when no other file can have anything beyond what was found. Where bounds are what they usually are,
the true extremes, that is one file. Files of which no bound is known, or which may hold NaN, are read first.

NaN is larger than everything, as Spark has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.tree import Column
from penstock.expr.types import is_float
from penstock.prune.facts import Bounds
from penstock.prune.file_task import FileTask
from penstock.prune.plan import Plan
from penstock.tables.iceberg.scan.reader import Reader


def extreme(plan: Plan, reader: Reader, column: Column, largest: bool) -> Any:
    """The largest or smallest value in the matching rows of planned files; None when there is none but NULL."""
    bounds = list(_bounds(plan, column, largest))
    beyond = _greater if largest else lambda a, b: _greater(b, a)
    unknown = [i for i, bound in enumerate(bounds) if bound is None]
    known = sorted((i for i, bound in enumerate(bounds) if bound is not None), key=bounds.__getitem__, reverse=largest)
    best: Any = None
    for i in (*unknown, *known):
        if best is not None and bounds[i] is not None and not beyond(bounds[i], best):
            break
        value = _in_file(reader, plan.files[i], column, largest)
        if value is not None and (best is None or beyond(value, best)):
            best = value
    return best


def _greater(a: Any, b: Any) -> bool:
    """Whether one value is larger than another; NaN is larger than every other."""
    if isinstance(a, float) and math.isnan(a):
        return not math.isnan(b)
    return bool(a > b)


def _bounds(plan: Plan, column: Column, largest: bool) -> Iterator[Any]:
    """The bound of each planned file; None where it is not known."""
    for judgement in plan.judgements:
        facts = (f for f in judgement.containers.facts if isinstance(f, Bounds) and f.term == column)
        fact = next(facts, Bounds(column))
        ends = fact.upper if largest else fact.lower
        if ends is None:
            yield from [None] * len(judgement.kept)
            continue
        hidden = fact.may_be_nan[judgement.kept] & largest
        values = ends.take(pa.array(judgement.kept)).to_pylist()
        yield from (None if nan else value for value, nan in zip(values, hidden, strict=True))


def _in_file(reader: Reader, task: FileTask, column: Column, largest: bool) -> Any:
    """The extreme of the matching rows of one file."""
    values = reader.file(task, [column.path[0]]).column(0)
    if column.type is not None and is_float(column.type):
        numbers = values.filter(pc.invert(pc.is_nan(values)))
        has_nan = len(numbers) + values.null_count < len(values)
        if has_nan and (largest or len(numbers) == numbers.null_count):
            return math.nan
        values = numbers
    ends = pc.min_max(values)
    return (ends["max"] if largest else ends["min"]).as_py()
