"""Kill -9 of a pipeline of two hops at random moments, again and again: in the end the target equals the source."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fixtures.processes import PATIENCE
from tests.spark import stream_kills
from tests.spark.managed_kills import descendants

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found through /proc")
_ROOT = Path(__file__).parents[2]


class Writer(threading.Thread):
    """Files that come to the directories all the time, some of them foreign; and now and then a compaction."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.root, self.rng, self.ended = root, random.Random(seed), threading.Event()
        self.wanted: list[int] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            number = 0
            while not self.ended.wait(self.rng.uniform(0.05, 0.4)):
                self.write(number)
                number += 1
                if number % 40 == 0:
                    stream_kills.table(self.root, "web.middle").compact()
        except BaseException as error:
            self.error = error

    def write(self, number: int) -> None:
        app = self.rng.choice(["a0", "a1", f"a{number}", "b0", f"b{number}"])
        ids = [number * 10 + i for i in range(3)]
        folder = self.root / "source" / f"app={app}"
        folder.mkdir(exist_ok=True)
        part = folder / f".{number}"
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), part)
        part.rename(folder / f"{self.rng.random()}.parquet")
        if app.startswith("a"):
            self.wanted += ids


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kills", [50])
def test_a_pipeline_that_is_killed_neither_loses_nor_doubles_a_row(tmp_path: Path, kills: int) -> None:
    stream_kills.make(tmp_path)
    rng, writer = random.Random(kills), Writer(tmp_path, kills)
    writer.start()
    progress = []
    for number in range(kills):
        _kill_after(tmp_path, rng.choice([0, 1, 2, 3, 5]), rng.uniform(0, 2))
        target = stream_kills.table(tmp_path, "web.target")
        ids = target.arrow(columns=["id"])["id"].to_pylist()
        assert len(ids) == len(set(ids)), f"rows came twice after kill {number + 1}"
        progress.append(len(ids))
    writer.ended.set()
    writer.join(PATIENCE)
    assert writer.error is None
    subprocess.run(_program(tmp_path, "finish"), cwd=_ROOT, check=True, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    for name in stream_kills.TABLES:
        found = stream_kills.table(tmp_path, name).arrow(columns=["id"])["id"].to_pylist()
        assert Counter(found) == Counter(writer.wanted), name
    assert writer.wanted
    assert len(set(progress)) > kills // 5, progress
    print(f"{kills} kills, {len(writer.wanted):,} rows; in the target after each: {progress}")


def _program(root: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.spark.stream_kills", str(root), *more]


def _kill_after(root: Path, batches: int, seconds: float) -> None:
    """Run both hops, and kill them with all processes below some time after they have done some batches."""
    errors = root / "stderr"
    with errors.open("w") as stderr:
        program = subprocess.Popen(_program(root), cwd=_ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert program.stdout is not None
    try:
        lines = [program.stdout.readline() for _ in range(1 + batches)]
        time.sleep(seconds)
        ended = program.poll()
    finally:
        for pid in [program.pid, *descendants(program.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait(PATIENCE)
        program.stdout.close()
    assert (lines, ended) == (["running\n", *["batch\n"] * batches], None), errors.read_text()[-5_000:]
