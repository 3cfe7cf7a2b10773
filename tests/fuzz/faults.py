"""Faults planted in Penstock, one at a time: the fuzzer must find each, else it looks in the wrong places.

A fault replaces one function by one that is wrong in the way such code tends to be wrong. It is found when any question
gets a wrong answer.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyiceberg.io.pyarrow as pyiceberg_files

from penstock.expr import simplify
from penstock.expr.functions import laws
from penstock.expr.functions.function import RISING
from penstock.expr.tree import TRUE, Call, In, IsNull, Literal, Or
from penstock.prune import facts, residual, transforms
from penstock.prune import ordered_keys as keys
from penstock.prune.domain import Domain
from penstock.spark.catalog import row_changes, versions
from penstock.tables.iceberg.manifest import entrywise
from penstock.tables.iceberg.manifest import logical_values as logical
from penstock.tables.iceberg.manifest.manifest_cache import default_cache
from penstock.tables.iceberg.metadata import catalogs as opened
from penstock.tables.iceberg.scan import reader as iceberg_read
from tests.fuzz.fault import Fault
from tests.fuzz.row_faults import ROW_FAULTS
from tests.fuzz.run import Failure, Prepared, Run
from tests.fuzz.session import Sessions
from tests.fuzz.world import CELLS, draw_world

_CUT = "truncate_upper_bound_text_string"
_FEW = 30  # worlds until a fault counts as not found


def _invented(law_of: Any) -> Any:
    """An inverted law does no harm: a range whose ends are swapped counts as unknown."""

    def wrong(node: Any, place: int) -> Any:
        invents = isinstance(node, Call) and node.name in ("abs", "month", "dayofweek", "%", "length", "hour")
        return RISING if invents else law_of(node, place)

    return wrong


def _slack_dropped(law_of: Any) -> Any:
    def wrong(node: Any, place: int) -> Any:
        law = law_of(node, place)
        return None if law is None else dataclasses.replace(law, slack=0, clock=False)

    return wrong


def _digit_lost(to_unscaled: Any) -> Any:
    return lambda value, scale: to_unscaled(value, scale) // 10 * 10


def _tuple_dropped(read: Any) -> Any:
    def wrong(text: str | None) -> Any:
        record = read(text)
        if record is None or len(record.tuples) < 2:
            return record
        return record._replace(tuples=record.tuples[1:], rows=None)

    return wrong


def _nothing_is(name: str) -> Callable[[Any], Any]:
    return lambda _: property(lambda self: np.zeros(self.count, np.bool_))


def _null_forgotten(membership: Any) -> Any:
    def wrong(node: In) -> Any:
        known = tuple(option for option in node.options if option.value is not None)
        return membership(dataclasses.replace(node, options=known) if known else node)

    return wrong


def _residual_dropped(residuals: Any) -> Any:
    return lambda judgement: dict.fromkeys(residuals(judgement), TRUE)


def _strictly(project: Any) -> Any:
    """The partition at the end of a range is left out, as a strict projection would."""

    def wrong(interval: Any, *arguments: Any) -> Any:
        low, high = project(interval, *arguments)
        return low, high - 1 if isinstance(high, int) else high

    return wrong


def _other_bucket(function: Any) -> Any:
    def wrong(transform: str, source: pa.DataType) -> Any:
        made = function(transform, source)
        if made is None or not transform.startswith("bucket"):
            return made
        return lambda value: made(_other(value))

    return wrong


def _other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, int):
        return value ^ 1
    return value[::-1] if isinstance(value, str | bytes) else -value


def _no_deletes(listed: Any) -> Any:
    return lambda rows, deleted, names: np.zeros(rows.num_rows, np.bool_)


def _cut(text: str | None, length: int | None) -> str | None:
    return None if text is None else text[:length]


def _open_end(with_null: Any) -> Any:
    """`x <= 5` without 5."""

    def wrong(op: str, literal: Literal) -> Domain:
        return with_null("<" if op == "<=" else op, literal)

    return wrong


def _newest(rows: Any) -> Any:
    """The version that a query names is forgotten."""
    return lambda self, spark, hidden: rows(dataclasses.replace(self, table=self.lake.table(self.name)), spark, hidden)


def _or_null(condition: Any) -> Any:
    def wrong(*arguments: Any) -> Any:
        known = condition(*arguments)
        return None if known is None else Or((known, IsNull(known)))

    return wrong


def _everything(change_rows: Any) -> Any:
    def wrong(table: Any, loaded: Any, mode: str, statement: Any, rows: Any) -> None:
        is_dynamic = statement is not None and statement["kind"] == "dynamic"
        table.overwrite(rows) if is_dynamic else change_rows(table, loaded, mode, statement, rows)

    return wrong


def _faults() -> tuple[Fault, ...]:
    from penstock.prune import truth

    lake, managed = ("iceberg", "managed"), ("managed",)
    return (
        Fault("a law is declared where there is none", laws, "_law_of", _invented),
        Fault("the slack of a law is dropped", laws, "_law_of", _slack_dropped),
        Fault("the last digit of decimals is lost", keys, "to_unscaled", _digit_lost),
        Fault("a tuple is dropped from a record", logical, "read_tuples", _tuple_dropped, managed),
        Fault("a null count is taken for zero", facts.Bounds, "may_be_null", _nothing_is("null"), lake),
        Fault("NaN is forgotten beside bounds", facts.Bounds, "may_be_nan", _nothing_is("NaN"), lake),
        Fault("an upper bound is cut and not raised", pyiceberg_files, _CUT, lambda _: _cut, managed, writes=True),
        Fault("NOT IN forgets its NULL", simplify, "_membership", _null_forgotten),
        Fault("equality deletes are ignored", iceberg_read, "listed", _no_deletes, ("iceberg",)),
        Fault("the residual of a kept file is dropped", residual, "residuals", _residual_dropped),
        Fault("a transform is projected strictly", transforms, "project_interval", _strictly, lake),
        Fault("a bucket is that of another value", transforms, "transform_function", _other_bucket, lake),
        Fault("x <= 5 leaves out 5", truth, "_compared", _open_end),
        Fault(
            "doubles are rounded when a manifest is written again",
            entrywise.ExactDecoder,
            "read_double",
            lambda _: lambda self: self._decoder.read_double(),
            managed,
            writes=True,
        ),
        Fault(
            "SQL reads the newest version, whichever it names", versions.TableVersion, "rows", _newest, managed, True
        ),
        Fault("a condition of SQL takes NULL for true", row_changes, "_condition", _or_null, managed, True),
        Fault("INSERT OVERWRITE of partitions replaces all", versions, "change_rows", _everything, managed, True),
        *ROW_FAULTS,
    )


def find_faults(
    seed: str, root: Path, sessions: Sessions, only: str = "", cells: int = CELLS
) -> dict[str, float | None]:
    """The seconds until each fault was found, what its worlds took to make included; None where it was not.

    `only` are parts of the names of the faults to look for, separated by ;.
    """
    planted = [fault for fault in _faults() if any(part in fault.name for part in only.split(";"))]
    spent = dict.fromkeys((fault.name for fault in planted), 0.0)
    times: dict[str, float | None] = dict.fromkeys(spent)
    for number in range(_FEW):
        world = draw_world(seed, number, cells=cells)
        waiting = [fault for fault in planted if times[fault.name] is None and world.kinds[0] in fault.kinds]
        if not waiting:
            continue
        start = time.monotonic()
        with Run(seed, root, sessions).prepared(world) as prepared:
            prepared.memory = None
            sound = Run(seed, root, sessions)
            sound.ask_core(prepared)
            known = frozenset((failure.path.split()[1], failure.case) for failure in sound.failures)
            preparation = time.monotonic() - start
            for fault in waiting:
                start = time.monotonic()
                failure = _first_failure(fault, prepared, Run(seed, root / fault.attribute, sessions, known=known))
                spent[fault.name] += preparation + time.monotonic() - start
                if failure is not None:
                    times[fault.name] = spent[fault.name]
                    print(f"{fault.name}: found in {spent[fault.name]:.0f} s, world {number}\n{failure}", flush=True)
    for name in (name for name, seconds in times.items() if seconds is None):
        print(f"{name}: NOT FOUND in {spent[name]:.0f} s", flush=True)
    return times


def _first_failure(fault: Fault, prepared: Prepared, run: Run) -> Failure | None:
    """What is wrong with the fault; the table is opened again, so that nothing of it is remembered."""
    for memory in (opened._batches, opened._lists, default_cache):
        memory.cache_clear()
    (layout,) = prepared.layouts
    with fault.planted():
        if fault.writes:
            layout = run.layout(prepared.world, layout.kind, run.root / uuid.uuid4().hex, prepared.answers)
        elif layout.lake is not None:
            layout = dataclasses.replace(layout, table=layout.lake.table(layout.name))
        run.ask_core(dataclasses.replace(prepared, layouts=(layout,)), stop=True)
    return run.failures[0] if run.failures else None
