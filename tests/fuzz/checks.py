"""One predicate through one path of Penstock, against the judge's answer; a wrong answer is a line of text.

Where Spark raises for a row, Penstock may raise, answer or leave the row out. No file may be skipped that holds a row
for which the predicate is true, and none be taken whole that holds one for which it is false or null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.prune.verdict import Verdict
from tests.fuzz.layout import Layout, local
from tests.fuzz.oracle import Answer
from tests.fuzz.rows import ID, physical


class Outcome(Enum):
    """What became of a question."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"


Checked = tuple[Outcome, str]
Check = Callable[[Layout, str, Answer], Checked]


def guarded(check: Callable[..., Checked], *arguments: Any) -> Checked:
    """A check in which only Penstock's own errors are refusals."""
    try:
        return check(*arguments)
    except PenstockError as error:
        return Outcome.REFUSED, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    except Exception as error:
        return Outcome.WRONG, f"raises {type(error).__name__}: {str(error)[:300]}"


def check_plan(layout: Layout, text: str, answer: Answer) -> Checked:
    """No file with a matching row is skipped, and files taken whole have only matching rows."""
    tasks = {local(task.path): task for task in layout.table.plan(text).files}
    unknown = set(tasks) - set(layout.files)
    if unknown:
        return Outcome.WRONG, f"plans files that the table does not have: {sorted(unknown)[:3]}"
    matching = answer.ids & layout.live
    for path, ids in layout.files.items():
        lost = ids & matching
        if lost and path not in tasks:
            return Outcome.WRONG, f"skips {path} with matching rows {sorted(lost)[:5]}"
        others = (ids & layout.live) - matching - answer.doubtful
        if others and path in tasks and tasks[path].verdict == Verdict.KEEP_WHOLE:
            return Outcome.WRONG, f"takes {path} whole, whose rows {sorted(others)[:5]} do not match"
    return Outcome.RIGHT, f"{len(tasks)} of {len(layout.files)} files"


def check_arrow(layout: Layout, text: str, answer: Answer) -> Checked:
    """The rows that match, each once."""
    return compare(layout, answer, layout.table.arrow(text, columns=["id"]).column("id").to_pylist())


def check_count(layout: Layout, text: str, answer: Answer) -> Checked:
    """The number of matching rows."""
    matching, doubtful = answer.ids & layout.live, answer.doubtful & layout.live
    count = layout.table.count(text)
    if not len(matching) <= count <= len(matching | doubtful):
        return Outcome.WRONG, f"counts {count} rows, not {len(matching)}"
    return Outcome.RIGHT, ""


def check_extremes(layout: Layout, text: str, answer: Answer) -> Checked:
    """The smallest and the largest id among the matching rows."""
    matching = answer.ids & layout.live
    if answer.doubtful & layout.live:
        return Outcome.REFUSED, "some rows raise"
    extremes = layout.table.minimum("id", text), layout.table.maximum("id", text)
    expected = (min(matching), max(matching)) if matching else (None, None)
    if extremes != expected:
        return Outcome.WRONG, f"finds the extremes {extremes}, not {expected}"
    return Outcome.RIGHT, ""


def compare(layout: Layout, answer: Answer, ids: list[int]) -> Checked:
    """The ids of an answer with the judge's."""
    matching, doubtful = answer.ids & layout.live, answer.doubtful & layout.live
    if len(set(ids)) != len(ids):
        return Outcome.WRONG, f"returns {len(ids) - len(set(ids))} rows twice"
    lost, invented = matching - set(ids), set(ids) - matching - doubtful
    if lost or invented:
        return Outcome.WRONG, f"loses rows {sorted(lost)[:5]} and invents {sorted(invented)[:5]}"
    return Outcome.RIGHT, ""


def compare_content(table: pa.Table, rows: pa.Table, live: Iterable[int]) -> Checked:
    """Every value of every live row, as it was written; the id of a row is its place in `rows`."""
    ids = sorted(live)
    table, expected = table.sort_by(ID), rows.take(pa.array(ids, pa.int64()))
    if table.column(ID).to_pylist() != ids:
        return Outcome.WRONG, "has other rows"
    for name in expected.schema.names:
        ours, theirs = _comparable(table.column(name)), _comparable(expected.column(name))
        if ours != theirs:
            place = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            return Outcome.WRONG, f"{name} of row {ids[place]} is {ours[place]}, not {theirs[place]}"
    return Outcome.RIGHT, ""


def _comparable(values: pa.ChunkedArray) -> list[str]:
    if pa.types.is_struct(values.type):
        flat = [_comparable(column) for column in pa.table({"c": values}).flatten().columns]
        return [" ".join(parts) for parts in zip(*flat, strict=True)]
    if pa.types.is_map(values.type):
        return [repr(v if v is None else sorted(v)) for v in values.to_pylist()]
    return [repr(value) for value in physical(values)]
