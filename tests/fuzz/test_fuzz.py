"""A small run of the fuzzer: every cell of the registry once, in all layouts, with plain Spark as the judge."""

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


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """As many worlds as it takes to ask about every cell."""
    run = Run(SEED, Path(tmp_path_factory.mktemp("fuzz")), sessions())
    worlds = worlds_for_all_cells()
    run.run(range(worlds))
    if run.coverage.missing_cells():
        run.run([len(KINDS) * worlds], cells=run.coverage.missing_cells())  # a Hive layout, which has all types
    print(run.coverage.summary())
    return run


def test_no_row_is_lost_and_none_invented(run: Run) -> None:
    assert not run.broken, "\n".join(run.broken)
    assert not run.failures, "\n".join(map(str, run.failures))


def test_every_function_with_every_argument_type_and_every_cast_is_asked(run: Run) -> None:
    assert not run.coverage.missing_cells(), [str(cell) for cell in run.coverage.missing_cells()]


@pytest.mark.slow
def test_planted_faults_are_found(tmp_path: Path) -> None:
    times = find_faults(SEED, tmp_path, sessions())
    assert [name for name, seconds in times.items() if seconds is None] == []


def test_every_layout_is_asked_in_every_way(run: Run) -> None:
    assert not run.coverage.missing_paths()
