"""The run: world after world, until the time is over; wrong answers are written down and do not stop it."""

from __future__ import annotations

import contextlib
import shutil
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import DataFrame

from penstock.errors import PenstockWarning
from tests.fuzz import checks, oracle
from tests.fuzz.cells import Cell
from tests.fuzz.checks import Checked, Outcome, compare_content, guarded
from tests.fuzz.coverage import Coverage
from tests.fuzz.hive_case import FLAVOURS, hive_layout
from tests.fuzz.iceberg_case import iceberg_layout
from tests.fuzz.layout import Layout
from tests.fuzz.managed_case import managed_layout
from tests.fuzz.memory_case import memory_layout
from tests.fuzz.oracle import Answer
from tests.fuzz.predicates import Predicate
from tests.fuzz.session import SETTINGS, Sessions
from tests.fuzz.spark_checks import check_join, check_rows, check_sql, check_stream, check_where
from tests.fuzz.world import CELLS, KINDS, World, draw_world

SPARK_QUESTIONS = 12  # of one layout, by SQL and DataFrames in turn
_SPARK_PATHS = (("sql", check_sql), ("where", check_where))
_IN_MEMORY = 0.3  # of the questions are asked of a table in memory too


@dataclass(frozen=True)
class Failure:
    """A wrong answer, and the command that repeats it."""

    case: str
    path: str
    predicate: str
    message: str
    layout: str
    seed: str

    def __str__(self) -> str:
        return "\n".join(
            [
                f"WRONG {self.path}: {self.message}",
                f"  predicate: {self.predicate}",
                f"  table: {self.layout}",
                f"  repeat: python -m tests.fuzz --seed {self.seed} --case {self.case}",
            ]
        )


@dataclass
class Prepared:
    """A world with its flat copy, the judge's answers and the table under test."""

    world: World
    flat: DataFrame
    answers: dict[str, Answer | str]
    layouts: tuple[Layout, ...]
    memory: Layout | None = None


@dataclass
class Run:
    """A number of worlds, what they covered and what went wrong."""

    seed: str
    root: Path
    sessions: Sessions
    coverage: Coverage = field(default_factory=Coverage)
    failures: list[Failure] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    worlds: int = 0
    size: int = CELLS  # of a world, in cells
    together: bool = False  # whether a world has a table of each kind
    known: frozenset[tuple[str, str]] = frozenset()  # wrong answers that do not count: their paths and cases

    def run(
        self,
        numbers: Iterable[int],
        seconds: float = float("inf"),
        only: int | None = None,
        cells: Sequence[Cell] = (),
    ) -> None:
        """Worlds of these numbers, as long as there is time; `only` is the number of one predicate."""
        end = time.monotonic() + seconds
        for number in numbers:
            if time.monotonic() >= end:
                return
            try:
                with self.prepared(
                    draw_world(self.seed, number, cells, cells=self.size, together=self.together)
                ) as prepared:
                    self._second_opinion(prepared)
                    self.ask_core(prepared, only, end)
                    for layout in prepared.layouts:
                        self._ask_spark(prepared, layout, only, end)
            except Exception:
                self.broken.append(f"world {number}{self._option(cells)}:\n{traceback.format_exc()}")
            self.worlds += 1

    def live(self, numbers: Iterable[int]) -> None:
        """Only the lives of managed tables, without questions after them."""
        for number in numbers:
            world = draw_world(self.seed, len(KINDS) * number + KINDS.index("managed"), cells=self.size)
            try:
                with self.prepared(world):
                    self.worlds += 1
            except Exception:
                self.broken.append(f"life of world {world.number}:\n{traceback.format_exc()}")

    @contextlib.contextmanager
    def prepared(self, world: World) -> Iterator[Prepared]:
        """Everything that the questions of a world need; removed afterwards."""
        place = self.root / f"world{world.number}"
        self.sessions.set_up(world.zone)
        with contextlib.ExitStack() as ending, warnings.catch_warnings():
            ending.callback(shutil.rmtree, place, ignore_errors=True)
            warnings.simplefilter("ignore", PenstockWarning)
            layouts: list[Layout] = []
            if "hive" in world.kinds:  # first: what its files hold may be other rows than were drawn
                world, *layouts = self._hive(world, place)
            flat = oracle.flat_copy(self.sessions.judge, world.rows.table, place / "flat.parquet")
            ending.callback(flat.unpersist)
            answers = oracle.ask(flat, world.predicates)
            layouts += [self.layout(world, kind, place, answers) for kind in world.kinds if kind != "hive"]
            memory = memory_layout(world.rng("memory"), world.rows, world.zone)
            yield Prepared(world, flat, answers, tuple(layouts), memory)

    def ask_core(
        self, prepared: Prepared, only: int | None = None, end: float = float("inf"), stop: bool = False
    ) -> None:
        """All predicates without Spark, or those until the first wrong answer."""
        for number, predicate in enumerate(prepared.world.predicates):
            if stop and self.failures:
                return
            if time.monotonic() < end and only in (None, number):
                in_memory = prepared.world.rng(f"memory of {number}").random() < _IN_MEMORY
                memory = (prepared.memory,) if prepared.memory is not None and in_memory else ()
                for layout in (*prepared.layouts, *memory):
                    self._ask(prepared.world, layout, number, predicate, prepared.answers[predicate.text])

    def _hive(self, world: World, place: Path) -> tuple[World, Layout]:
        """A Hive layout, and the world with the rows that plain Spark reads in its files."""
        rng = world.rng("layout hive")
        layout, rows = hive_layout(rng, world.rows, place / "hive", world.zone, self.sessions, world.flavour)
        return replace(world, rows=rows), replace(layout, catalog=self.sessions.attach(layout.lake))

    def layout(self, world: World, kind: str, place: Path, answers: dict[str, Answer | str]) -> Layout:
        """An Iceberg or a managed table under test, which Spark knows by a name too."""
        rng = world.rng(f"layout {kind}")
        if kind == "iceberg":
            plain = iceberg_layout(rng, world.rows, place / kind, world.zone)
            return plain if plain.lake is None else replace(plain, catalog=self.sessions.attach(plain.lake))
        steps: list[tuple[str, str, Checked, Sequence[str]]] = []
        layout = managed_layout(
            rng,
            world.rows,
            place / kind,
            world.zone,
            world.predicates,
            answers,
            lambda *step: steps.append(step),
            self.sessions,
        )
        for path, text, checked, varieties in steps:
            self.note(path, world, layout, str(world.number), text, checked)
            if checked[0] is Outcome.RIGHT:
                self.coverage.steps.update((variety, path) for variety in varieties)
        return layout

    def _second_opinion(self, prepared: Prepared) -> None:
        """Where DuckDB means the same, it must agree with Spark: else the judge itself is in doubt."""
        world = prepared.world
        for text, ids in oracle.ask_duckdb(world.rows.table, world.predicates).items():
            answer = prepared.answers[text]
            if isinstance(answer, Answer) and not answer.raised.any():
                self.coverage.outcomes["agreed by DuckDB" if ids == answer.ids else "doubted by DuckDB"] += 1
                if ids != answer.ids:
                    self.doubts.append(text)

    def _ask_spark(self, prepared: Prepared, layout: Layout, only: int | None, end: float) -> None:
        """Some of the predicates through Spark, under settings of this world; joins, and all rows."""
        world, flat = prepared.world, prepared.flat
        rng = world.rng(f"spark {layout.kind}")
        setting = rng.choice(list(SETTINGS))
        self.sessions.set_up(world.zone, setting)
        chosen = rng.sample(range(len(world.predicates)), min(SPARK_QUESTIONS, len(world.predicates)))
        chosen = [number for number in chosen if only in (None, number)]
        answers = oracle.ask(flat, [world.predicates[number] for number in chosen])
        for place, number in enumerate(chosen):
            path, check = _SPARK_PATHS[place % len(_SPARK_PATHS)]
            if place == 0 and self._streams(world, layout):
                path, check = "stream", check_stream
            text = world.predicates[number].text
            answer = answers[text]
            if isinstance(answer, Answer) and time.monotonic() < end:
                checked = check(self.sessions, flat, layout, text, answer)
                self.coverage.settings[setting] += 1
                self.note(path, world, layout, f"{world.number}.{number}", f"{text} [{setting}]", checked)
        for path in ("join", "sql join"):
            if only is None and time.monotonic() < end:
                text, checked = check_join(self.sessions, flat, layout, world.rows, rng, by_name=path == "sql join")
                self.note(path, world, layout, str(world.number), f"{text} [{setting}]", checked)
        if only is None and time.monotonic() < end:
            rows = guarded(lambda *_: compare_content(layout.table.arrow(), world.rows.table, layout.live), layout)
            self.note("rows", world, layout, str(world.number), "", rows)
            rows = guarded(lambda *_: check_rows(self.sessions, layout, world.rows), layout)
            self.note("sql rows", world, layout, str(world.number), f"[{setting}]", rows)

    def _streams(self, world: World, layout: Layout) -> bool:
        """Whether a layout is streamed: each takes many seconds, so only one of a world is, in every other world."""
        place = world.number // len(KINDS)
        if layout.flavour == "metastore":
            return False  # a stream's process has no session to ask
        turn = place + place // len(FLAVOURS)  # each flavour, too
        return layout.kind == world.kinds[place % len(world.kinds)] and turn % 2 == 0

    def _ask(self, world: World, layout: Layout, number: int, predicate: Predicate, answer: Answer | str) -> None:
        if isinstance(answer, str):
            self.coverage.outcomes[f"Spark: {answer}"] += 1
            self.refusals[f"Spark, {answer}: {predicate.text[:150]}"] += 1
            return
        rng = world.rng(f"{layout.kind} paths of {number}")
        outcome = self._check("plan", checks.check_plan, world, layout, number, predicate, answer)
        if outcome is Outcome.RIGHT:
            self.coverage.cells.update(predicate.cells)
            self.coverage.zoned.update((world.zone, cell) for cell in predicate.cells)
            self.coverage.forms.update(predicate.forms)
        paths = {"arrow": checks.check_arrow}
        if layout.kind in ("iceberg", "managed"):
            paths |= {"count": checks.check_count, "extremes": checks.check_extremes}
        for path, check in paths.items():
            if rng.random() < (0.3 if path == "arrow" else 0.1):
                self._check(path, check, world, layout, number, predicate, answer)

    def _check(
        self,
        path: str,
        check: checks.Check,
        world: World,
        layout: Layout,
        number: int,
        predicate: Predicate,
        answer: Answer,
    ) -> Outcome:
        outcome, message = guarded(check, layout, predicate.text, answer)
        self.note(path, world, layout, f"{world.number}.{number}", predicate.text, (outcome, message))
        return outcome

    def note(self, path: str, world: World, layout: Layout, case: str, text: str, checked: Checked) -> None:
        """Count what came of a question."""
        outcome, message = checked
        self.coverage.outcomes[outcome.value] += 1
        if outcome is Outcome.RIGHT:
            self.coverage.paths[layout.label, path] += 1
            self.coverage.operations.update((layout.label, operation, path) for operation in layout.operations)
        elif outcome is Outcome.REFUSED:
            self.refusals[f"{path}: {message[:70]}"] += 1
        elif (path, case) not in self.known:
            description = f"{layout.description}, {world.zone}"
            case += self._option(world.only)
            self.failures.append(Failure(case, f"{layout.label} {path}", text, message, description, self.seed))

    def _option(self, cells: Sequence[Cell]) -> str:
        size = f" --size {self.size}" if self.size != CELLS else ""
        size += " --together" * self.together
        return f"{size} --cells '{';'.join(map(str, cells))}'" if cells else size
