"""Small runs of the fuzzer, judged by plain Spark: a table of each kind in every run, all cells in the slow one.

Every run plans a predicate for each cell of the registry; in the slow one all of them have been judged.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from penstock.lake.managed_table import ManagedTable
from tests.fuzz import history_steps, managed_case, merge_clauses, python_steps, row_steps, schema_steps
from tests.fuzz.cells import Cell, all_cells
from tests.fuzz.checks import Checked, Outcome, guarded
from tests.fuzz.coverage import LIFE
from tests.fuzz.faults import find_faults
from tests.fuzz.layout import Layout
from tests.fuzz.memory_case import memory_layout
from tests.fuzz.predicates import Predicate
from tests.fuzz.run import Run
from tests.fuzz.session import sessions
from tests.fuzz.world import KINDS, World, draw_world, worlds_for_all_cells

pytestmark = pytest.mark.spark
SEED = "small"
SMALL = 60  # cells of a world
MORE = 10  # worlds, until every kind of table was asked in every way
MOST_LIVES = 150
READS = {"advise", "arrow", "at", "at_branch", "changes", "comments", "committed_run", "count", "dataframe"}
READS |= {"describe", "feed", "history", "maximum", "minimum", "partition_fields", "partition_schema", "partitions"}
READS |= {"plan", "planned", "properties", "refresh", "refs", "relations", "snapshots", "stream"}
UNCHANGING = READS | {"comment_column"}


def check(run: Run) -> None:
    print(run.coverage.summary())
    assert not run.broken, "\n".join(run.broken)
    assert not run.failures, "\n".join(map(str, run.failures))


def test_no_row_is_lost_or_invented_in_a_small_world_with_a_table_of_each_kind(tmp_path: Path) -> None:
    run = Run(SEED, tmp_path, sessions(), size=SMALL, together=True)
    run.run([0])
    check(run)


def test_every_cell_of_the_registry_is_drawn_and_planned() -> None:
    planned = planned_cells(draw_world(SEED, 0, cells=len(all_cells())))
    missing = [cell for cell in all_cells() if cell not in planned]
    if missing:  # constants that do not fit
        planned |= planned_cells(draw_world(SEED, 0, missing))
    assert [str(cell) for cell in all_cells() if cell not in planned] == []


def planned_cells(world: World) -> set[Cell]:
    """The cells of the predicates that a table in memory plans."""
    layout = memory_layout(world.rng("memory"), world.rows, world.zone)
    planned: set[Cell] = set()
    for predicate in world.predicates:
        if not predicate.cells <= planned and guarded(plans, layout, predicate)[0] is Outcome.RIGHT:
            planned |= predicate.cells
    return planned


def plans(layout: Layout, predicate: Predicate) -> Checked:
    layout.table.plan(predicate.text)
    return Outcome.RIGHT, ""


@pytest.mark.slow
def test_every_function_type_and_cast_is_asked_and_every_layout_in_every_way(tmp_path: Path) -> None:
    run = Run(SEED, tmp_path, sessions())
    worlds = worlds_for_all_cells()
    run.run(range(worlds))
    if run.coverage.missing_cells():
        run.run([len(KINDS) * worlds], cells=run.coverage.missing_cells())  # a Hive layout, which has all types
    for number in range(MOST_LIVES):  # managed tables have more steps than so few worlds draw
        if not set(LIFE).isdisjoint(path for _, path in run.coverage.missing_paths()):
            run.live([number])
    for number in range(worlds, worlds + MORE):
        if run.coverage.missing_paths():
            run.run([number])
    check(run)
    assert not run.coverage.missing_cells(), [str(cell) for cell in run.coverage.missing_cells()]
    assert not run.coverage.missing_paths()


@pytest.mark.slow
def test_every_step_is_right_on_every_variety_of_managed_tables(tmp_path: Path) -> None:
    run = Run(SEED, tmp_path, sessions(), size=SMALL // 2)
    for number in range(MOST_LIVES):
        if run.coverage.missing_steps():
            run.live([number])
    check(run)
    assert not run.coverage.missing_steps()


def test_every_method_that_changes_a_table_is_in_a_step() -> None:
    """Of those that change more than a comment; a new one is a read, or needs a step."""
    steps = (history_steps, python_steps, row_steps, schema_steps, merge_clauses)
    text = "".join(inspect.getsource(module) for module in (*steps, managed_case))
    methods = {name for name in dir(ManagedTable) if name[0] != "_" and callable(getattr(ManagedTable, name))}
    assert sorted(name for name in methods - UNCHANGING if not re.search(rf"(table|schema)\.{name}\b", text)) == []
    assert methods >= UNCHANGING


@pytest.mark.slow
def test_planted_faults_are_found(tmp_path: Path) -> None:
    times = find_faults(SEED, tmp_path, sessions())
    assert [name for name, seconds in times.items() if seconds is None] == []
