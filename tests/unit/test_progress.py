"""What is told of work while it goes on: counts on a terminal, nothing anywhere else, and never an error of its own."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock.progress import Count, Counted, progress
from penstock.spark.session.tasks import progress_of_tasks
from tests.fixtures.managed_tables import local, managed_table
from tests.fixtures.processes import PATIENCE


class Terminal(io.StringIO):
    """A stream that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr a terminal; for the test itself, as pytest has a stderr of its own for each phase."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.mark.parametrize(
    ("counted", "said"),
    [
        (Counted(12, 40, "file"), "12 of 40 files"),
        (Counted(1, 40, "file"), "1 of 40 files"),
        (Counted(0, 1, "task"), "0 of 1 task"),
        (Counted(1_234, None, "directory"), "1,234 directories"),
        (Counted(1, None, "directory"), "1 directory"),
        (Counted(0, 12_345, "row"), "0 of 12,345 rows"),
    ],
)
def test_a_count_reads_as_people_say_it(counted: Counted, said: str) -> None:
    assert str(counted) == said


def test_what_was_given_on_is_done_when_the_next_is_asked_for() -> None:
    count = Count(3, "file")
    assert [(item, count().done) for item in count.each("abc")] == [("a", 0), ("b", 1), ("c", 2)]
    assert count() == (3, 3, "file")
    rows = Count(None, "row")
    assert list(rows.each(["ab", "c"], len)) == ["ab", "c"]
    assert rows() == (3, None, "row")


def test_steps_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress("sweeping [web.t]"), progress("a step of it", lambda: Counted(1, 3, "file")):
        pass
    for part in ("sweeping [web.t]", "a step of it", "1 of 3 files", "━━━"):
        assert part in terminal.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_shown_or_counted_elsewhere(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None) -> None:
    asked: list[Counted] = []

    def counted() -> Counted:
        asked.append(Counted(1, 3, "file"))
        return asked[-1]

    monkeypatch.setattr(sys, "stderr", stream)
    with progress("sweeping", counted):
        pass
    assert asked == []
    assert stream is None or stream.getvalue() == ""


def test_a_count_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    answers = iter([Counted(1, 2, "file")])

    def counted() -> Counted:
        raise RuntimeError(next(answers))  # and then StopIteration

    with progress("compacting", counted), progress("a step of it", lambda: Counted(2, 2, "file")):
        done = "done"
    assert done == "done"
    assert "compacting" in terminal.getvalue()
    assert "2 of 2 files" in terminal.getvalue()
    assert "Error" not in terminal.getvalue()


def test_an_error_of_the_work_comes_out_and_the_next_work_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with pytest.raises(KeyError), progress("the first"), progress("a step of it"):
        raise KeyError
    before = len(terminal.getvalue())
    with progress("the second"):
        pass
    assert "the second" in terminal.getvalue()[before:]
    assert "the first" not in terminal.getvalue()[before:]


def test_work_of_another_thread_may_end_later(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    begun, go_on = Event(), Event()
    failed: list[BaseException] = []

    def other() -> None:
        try:
            with progress("the other thread", lambda: Counted(1, 1, "file") if go_on.is_set() else None):
                begun.set()
                go_on.wait(PATIENCE)
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=other)
    with progress("this thread"):
        thread.start()
        assert begun.wait(PATIENCE)
    before = len(terminal.getvalue())
    go_on.set()
    thread.join(PATIENCE)
    assert failed == []
    assert "1 of 1 file" in terminal.getvalue()[before:]
    assert "this thread" not in terminal.getvalue()[before:]


def test_what_a_program_prints_meanwhile_stays_on_its_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with progress("compacting"):
        print("a line of the program")
    assert sys.stdout.getvalue() == "a line of the program\n"  # type: ignore[attr-defined]
    assert "a line" not in terminal.getvalue()


def test_a_terminal_that_is_gone_does_not_fail_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)

    def gone(_: str) -> int:
        raise OSError(5, "Input/output error")

    with progress("compacting"):
        monkeypatch.setattr(terminal, "write", gone)
    assert sys.stderr is terminal
    another = on_terminal(monkeypatch)
    with progress("sweeping"):
        pass
    assert "sweeping" in another.getvalue()
    assert "compacting" not in another.getvalue()


def test_spark_is_asked_for_its_tasks_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    classic = SimpleNamespace(_jsparkSession=object())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_of_tasks("writing", classic):
        pass
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(AttributeError, match="sparkContext"), progress_of_tasks("writing", classic):
        pass
    with progress_of_tasks("writing", SimpleNamespace()):  # Spark Connect has no context
        pass
    assert "writing" in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_writes_deletes_and_removals_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = on_terminal(monkeypatch)

    def told() -> str:
        text = terminal.getvalue()
        terminal.seek(0)
        terminal.truncate()
        return text

    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    rows = pa.table({"app": ["a", "a", "b"], "n": [1, 2, 3]})
    table.append(rows)
    assert "writing 3 rows" in told()
    table.append(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=2)))
    assert "reading and writing 3 rows" in " ".join(told().split())
    table.delete("n = 1")
    assert "2 of 2 files" in told()
    table.delete("app = 'b'")
    assert "rewriting" not in told()
    table.compact()
    assert "2 of 2 files" in told()
    removed = table.expire(older_than="0 seconds").files
    assert removed > 10
    assert f"{removed} of {removed} files" in told()
    left = Path(local(table.table.metadata.location)) / "data" / "left.parquet"
    left.write_bytes(b"left")
    os.utime(left, (0, 0))
    table.sweep()
    text = told()
    assert "listing" in text
    assert "1 of 1 file" in text
