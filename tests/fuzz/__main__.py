"""`python -m tests.fuzz`: the fuzzer for as long as asked, or one case of it again."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.cells import Cell
    from tests.fuzz.run import Run

MOST_BROKEN = 10  # worlds that end in an error of the fuzzer itself or of Spark


def main() -> int:
    """Run, print what was covered and what is wrong; 1 when anything is."""
    options = _options()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as root:
        os.environ["PENSTOCK_CACHE_DIR"] = f"{root}/cache"  # read when Penstock is imported
        from tests.fuzz.faults import find_faults
        from tests.fuzz.run import Run
        from tests.fuzz.session import sessions
        from tests.fuzz.world import CELLS

        if options.faults:
            times = find_faults(options.seed, Path(root), sessions(), options.fault, options.size or CELLS)
            return int(None in times.values())
        run = Run(options.seed, Path(root), sessions(), size=options.size or CELLS, together=options.together)
        _worlds(run, options)
        _report(run, options.refusals)
        return 1 if run.failures or run.broken else 0


def _worlds(run: Run, options: argparse.Namespace) -> None:
    """World after world, each with a line of what has been counted so far."""
    start = time.monotonic()
    world, _, number = (options.case or "").partition(".")
    for each in [int(world)] if world else range(options.worlds):
        left = options.seconds - (time.monotonic() - start)
        if left <= 0:
            return
        shown, troubles = len(run.failures), len(run.broken)
        run.run([each], left, int(number) if number else None, _cells(options.cells))
        for failure in run.failures[shown:]:
            print(failure)
        for trouble in run.broken[troubles:]:
            print(f"BROKEN {trouble}")
        counts = ", ".join(f"{run.coverage.outcomes[name]} {name}" for name in ("right", "refused", "wrong"))
        print(f"{time.monotonic() - start:.0f} s: world {each}, {counts}, {len(run.broken)} broken", flush=True)
        if len(run.broken) >= MOST_BROKEN:
            print("too many worlds could not be asked about at all: Spark may have ended")
            return


def _cells(names: str) -> list[Cell]:
    from tests.fuzz.cells import all_cells

    wanted = names.split(";")
    return [cell for cell in all_cells() if str(cell) in wanted]


def _report(run: Run, refusals: int) -> None:
    print(run.coverage.summary())
    for doubt in run.doubts:
        print(f"DuckDB disagrees with Spark: {doubt}")
    for refusal, count in run.refusals.most_common(refusals):
        print(f"refused {count} times: {refusal}")
    print(f"{run.worlds} worlds, {len(run.failures)} wrong, {len(run.broken)} broken, seed {run.seed}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--seed", default=str(random.SystemRandom().randrange(10**6)), help="what everything follows from"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop")
    parser.add_argument("--worlds", type=int, default=sys.maxsize, help="after how many tables to stop")
    parser.add_argument("--faults", action="store_true", help="plant faults, and say how long it takes to find each")
    parser.add_argument(
        "--fault", default="", help="with --faults: only those with one of these, separated by ;, in their names"
    )
    parser.add_argument("--case", help="only this one: the number of a world, or world.predicate")
    parser.add_argument("--cells", default="", help="only these cells, as a failure names them, separated by ;")
    parser.add_argument("--together", action="store_true", help="a table of each kind in every world")
    parser.add_argument("--size", type=int, help="how many cells a world has, as a failure names it")
    parser.add_argument("--refusals", type=int, default=0, help="how many kinds of refusals to list")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
