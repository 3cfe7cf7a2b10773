"""Random histories of streams against a model of plain rows: what matches comes once, and nothing else comes at all.

A history adds files, some of them late or at the time of others, takes files away, looks for new ones with a random
limit, and crashes: before a batch is known to the checkpoint, or after that and before it was read, with more files in
between. The judge is a filter in Python over what was written.

With room for few names, a file may be passed over, but only when as many newer ones as are remembered had been read.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockWarning
from penstock.stream.feed import Limit
from penstock.stream.position import Position
from tests.unit.stream.conftest import (
    HiveSource,
    IcebergSource,
    ManagedSource,
    Stream,
    ids_of,
    paths_of,
    rows_of,
    stored,
)

HOURS: list[int | None] = [9, 10, 100, None]
APPS: list[str | None] = ["A", "B", "US/CA", None]


@dataclass(frozen=True)
class Asked:
    """A predicate, whether a partition may hold a row for which it is true, and whether it is true of a row."""

    sql: str | None
    partition: Callable[[int | None, str | None], bool]
    row: Callable[[int], bool] = lambda i: True


PREDICATES = [
    Asked(None, lambda hr, app: True),
    Asked("app = 'A'", lambda hr, app: app == "A"),
    Asked("app != 'A'", lambda hr, app: app is not None and app != "A"),
    Asked("app IS NULL OR hr = 10", lambda hr, app: app is None or hr == 10),
    Asked("NOT (app IN ('A', 'B')) AND hr >= 10", lambda hr, app: app == "US/CA" and hr is not None and hr >= 10),
    Asked("hr < 100 AND id % 2 = 0", lambda hr, app: hr is not None and hr < 100, lambda i: i % 2 == 0),
    Asked("app <=> NULL AND id >= 5", lambda hr, app: app is None, lambda i: i >= 5),
    Asked("hr > 1000", lambda hr, app: False),
]
places = st.tuples(st.sampled_from(HOURS), st.sampled_from(APPS))
limits = st.one_of(st.just(Limit()), st.builds(Limit, st.integers(1, 3)), st.builds(Limit, bytes=st.integers(1, 1_500)))
operations = st.one_of(
    st.tuples(st.just("add"), places, st.integers(0, 8)),
    st.tuples(st.just("add"), places, st.integers(0, 8)),
    st.tuples(st.just("remove"), st.integers(0, 20)),
    st.tuples(st.just("poll"), limits),
    st.tuples(st.just("plan"), limits),
    st.tuples(st.just("forget"), limits),
    st.tuples(st.just("restart")),
)


@dataclass
class Written:
    """A file of one row."""

    id: int
    hr: int | None
    app: str | None
    time: int
    path: Path

    @property
    def key(self) -> tuple[int, str]:
        return self.time, "/".join(self.path.parts[-3:])


@dataclass
class LayoutHistory:
    """A layout, a stream over it, and what is expected of it."""

    root: Path
    asked: Asked
    order: str
    remember: int
    files: list[Written] = field(default_factory=list)
    got: list[int] = field(default_factory=list)
    planned: tuple[Position, list[int]] | None = None

    def __post_init__(self) -> None:
        self.source = HiveSource(self.root, "hr int, app string")
        options = {"order": self.order, "remember_files": self.remember}
        self.stream = Stream(self.source, self.asked.sql, **options)

    def run(self, history: list[tuple[Any, ...]]) -> None:
        for name, *details in history:
            getattr(self, name)(*details)
        self.replay()
        for _ in range(100):
            before = self.stream.position
            self.poll(Limit(2))
            if self.stream.position == before:
                break
        assert Counter(self.got) <= Counter({file.id: 1 for file in self.files if self.matches(file)})
        missing = [file for file in self.files if self.matches(file) and file.id not in self.got and file.path.exists()]
        times = {file.id: file.key for file in self.files}
        for file in missing:
            assert sum(times[i] > file.key for i in self.got) >= self.remember, f"{file} is lost"

    def matches(self, file: Written) -> bool:
        return self.asked.partition(file.hr, file.app) and self.asked.row(file.id)

    def add(self, place: tuple[int | None, str | None], time: int) -> None:
        hr, app = place
        names = ["__HIVE_DEFAULT_PARTITION__" if v is None else str(v).replace("/", "%2F") for v in place]
        number = len(self.files)
        name = f"{number * 7 % 10}{number}.parquet"  # names are not in the order in which files come
        path = self.source.add(f"hr={names[0]}/app={names[1]}", [number], at=time, name=name)
        self.files.append(Written(number, hr, app, time, path))

    def remove(self, number: int) -> None:
        if self.planned is None and number < len(self.files):
            self.files[number].path.unlink(missing_ok=True)

    def poll(self, limit: Limit) -> None:
        self.plan(limit)
        self.replay()

    def plan(self, limit: Limit) -> None:
        """A batch is in the checkpoint and not yet read."""
        self.replay()
        step = self.stream.feed.step(self.stream.position, limit)
        self.check(paths_of(step.work), limit)
        self.planned = (stored(step.end), ids_of(self.stream.feed, step.work))

    def forget(self, limit: Limit) -> None:
        """A batch is found, and its process dies before the checkpoint has it."""
        self.replay()
        self.stream.feed.step(self.stream.position, limit)
        self.stream.restart()

    def restart(self) -> None:
        self.stream.restart()

    def replay(self) -> None:
        """What was planned is read, by this process or by the next one."""
        if self.planned is None:
            return
        (end, expected), self.planned = self.planned, None
        if end != self.stream.position:
            work = self.stream.feed.again(self.stream.position, end)
            self.check(paths_of(work), Limit())
            found = ids_of(self.stream.feed, work)
            assert found == expected or (self.remember < 100 and set(expected) <= set(found))
            self.got += found
        self.stream.position = end

    def check(self, paths: list[str], limit: Limit) -> None:
        known = {f"file://{file.path}": file for file in self.files}
        assert all(self.asked.partition(known[path].hr, known[path].app) for path in paths), "a file of another one"
        assert len(paths) <= (limit.files or len(paths))


@given(
    st.lists(operations, min_size=4, max_size=25),
    st.sampled_from(PREDICATES),
    st.sampled_from(["create-time", "partition-name"]),
    st.sampled_from([1_000, 1_000, 3, 1]),
)
@example(
    [("add", (9, "A"), 5), ("add", (9, "A"), 5), ("plan", Limit(1)), ("add", (9, "A"), 0), ("restart",)],
    PREDICATES[0],
    "create-time",
    1_000,
)
def test_every_file_of_a_layout_that_matches_comes_once(
    history: list[tuple[Any, ...]], asked: Asked, order: str, remember: int
) -> None:
    with tempfile.TemporaryDirectory() as root, warnings.catch_warnings():
        if remember < 100:  # what came below the edge before a batch was read again is read with it, and said
            warnings.filterwarnings("ignore", "(?s).*files came late", PenstockWarning)
        LayoutHistory(Path(root).resolve(), asked, order, remember).run(history)


@dataclass
class TableHistory:
    """An Iceberg table, a stream of its changes or of what is appended, and what is expected."""

    root: Path
    rng: Random
    on_change: str
    managed: bool
    steps: list[str] = field(default_factory=list)
    next_id: int = 0
    rows: list[tuple[int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source: Any = self._source()
        self.sql, self.is_true = self.rng.choice(
            [
                (None, lambda i, app: True),
                ("app = 'A'", lambda i, app: app == "A"),
                ("app != 'A' AND id % 3 != 0", lambda i, app: app is not None and app != "A" and i % 3 != 0),
                ("app IS NULL OR id < 10", lambda i, app: app is None or i < 10),
            ]
        )
        if self.rng.random() < 0.5:
            self.append()
        self.appended = [row for row in self.rows if self.is_true(*row)]
        self.stream = Stream(self.source, self.sql, on_change=self.on_change)
        self.got: Counter[tuple[int, str | None]] = Counter()

    def _source(self) -> Any:
        if not self.managed:
            return IcebergSource(self.root)
        merged = {"commit.manifest.min-count-to-merge": self.rng.choice(["2", "100"])}
        rule = self.rng.choice([None, "app"])
        return ManagedSource(self.root, {"coalesce": rule, "properties": merged})

    def run(self, steps: int) -> None:
        choices = [self.append, self.append, self.poll, self.poll, self.delete]
        choices += [self.compact, self.overwrite] if self.managed and self.on_change == "changes" else []
        choices += [self.compact] if self.managed else []
        for _ in range(steps):
            self.rng.choice(choices)()
        for _ in range(50):
            if not self.poll():
                break
        if self.on_change == "changes":
            assert +self.got == Counter(row for row in self.rows if self.is_true(*row))
        else:
            assert self.got == Counter(self.appended)

    def append(self) -> None:
        parts = [(self._id(), self.rng.choice(["A", "B", None])) for _ in range(self.rng.randrange(1, 4))]
        parts += parts[:1] if self.rng.random() < 0.3 else []
        self.steps.append(f"append {parts}")
        self.source.append(pa.concat_tables([rows_of(app, [i]) for i, app in parts]))
        self.rows += parts
        if hasattr(self, "appended"):
            self.appended += [row for row in parts if self.is_true(*row)]

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def delete(self) -> None:
        gone = self.rng.choice(self.rows)[0] if self.rows else 0
        self.steps.append(f"delete {gone}")
        if any(i == gone for i, _ in self.rows):
            self.source.delete(f"id = {gone}")
        self.rows = [row for row in self.rows if row[0] != gone]

    def compact(self) -> None:
        self.steps.append("compact")
        self.source.written.compact()

    def overwrite(self) -> None:
        kept = [row for row in self.rows if row[1] == "A"]
        new = [*self.rng.sample(kept, len(kept) // 2), (self._id(), "A")]
        self.steps.append(f"overwrite app A with {new}")
        self.source.written.overwrite(pa.concat_tables([rows_of("A", [i]) for i, _ in new]), "app = 'A'")
        self.rows = [row for row in self.rows if row[1] != "A"] + new

    def poll(self) -> bool:
        """One batch, by this process or after a crash by the next; whether there was one."""
        limit = self.rng.choice([Limit(), Limit(1), Limit(2), Limit(bytes=2_000)])
        position = self.stream.position
        step = self.stream.feed.step(position, limit)
        end, work = stored(step.end), step.work
        self.steps.append(f"poll {limit}: {len(work)}")
        if self.rng.random() < 0.5:
            self.stream.restart()
            work = self.stream.feed.again(position, end) if end != position else []
            assert paths_of(work) == paths_of(step.work)
        for each in work:
            for rows in self.stream.feed.rows().read(each):
                self._take(rows.to_pylist())
        self.stream.position = end
        return bool(end != position)

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            key = (row["id"], row["app"])
            assert self.is_true(*key), f"{row} does not match"
            self.got[key] += -1 if row.get("_change_type") == "delete" else 1
            assert self.got[key] >= 0, f"{row} went before it came"


# A history takes half a second: one for each 15 examples of the profile.
@settings(max_examples=max(1, settings().max_examples // 15), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@pytest.mark.parametrize("managed", [False, True], ids=["catalog", "managed"])
@pytest.mark.parametrize("on_change", ["skip", "changes"])
@given(seed=st.integers(0, 2**32))
def test_every_row_of_a_table_that_matches_comes_once(seed: int, on_change: str, managed: bool) -> None:
    with tempfile.TemporaryDirectory() as root:
        history = TableHistory(Path(root).resolve(), Random(seed), on_change, managed)
        try:
            history.run(steps=9)
        except Exception as error:
            told = "\n  ".join(history.steps)
            raise AssertionError(f"seed {seed}, where {history.sql}: {error!r} after\n  {told}") from error
