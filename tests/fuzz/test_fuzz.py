"""Small runs of the fuzzer, judged by plain Spark: each kind of table in every run, all cells in the slow one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.fuzz.faults import find_faults
from tests.fuzz.run import Run
from tests.fuzz.session import sessions
from tests.fuzz.world import KINDS, worlds_for_all_cells

pytestmark = pytest.mark.spark
SEED = "small"
SMALL = 110  # cells of a world


def check(run: Run) -> None:
    print(run.coverage.summary())
    assert not run.broken, "\n".join(run.broken)
    assert not run.failures, "\n".join(map(str, run.failures))


def test_no_row_is_lost_or_invented_in_a_small_world_of_each_kind(tmp_path: Path) -> None:
    run = Run(SEED, tmp_path, sessions(), size=SMALL)
    run.run(range(len(KINDS)))
    check(run)


@pytest.mark.slow
def test_every_function_type_and_cast_is_asked_and_every_layout_in_every_way(tmp_path: Path) -> None:
    run = Run(SEED, tmp_path, sessions())
    worlds = worlds_for_all_cells()
    run.run(range(worlds))
    if run.coverage.missing_cells():
        run.run([len(KINDS) * worlds], cells=run.coverage.missing_cells())  # a Hive layout, which has all types
    check(run)
    assert not run.coverage.missing_cells(), [str(cell) for cell in run.coverage.missing_cells()]
    assert not run.coverage.missing_paths()


@pytest.mark.slow
def test_planted_faults_are_found(tmp_path: Path) -> None:
    times = find_faults(SEED, tmp_path, sessions())
    assert [name for name, seconds in times.items() if seconds is None] == []
