"""One world: random rows, tables of them in several layouts, predicates, and the judge's answers.

Everything follows from the seed and the world's number, so that one command repeats a case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.fuzz.cells import Call, Cell, all_cells, law_of, lawful_calls, zoned_cells
from tests.fuzz.coverage import ZONES
from tests.fuzz.file_kinds import STORABLE
from tests.fuzz.hive_case import FLAVOURS
from tests.fuzz.predicates import Generator, Predicate
from tests.fuzz.rows import Rows, draw_rows
from tests.fuzz.values import NESTED_UUIDS, TYPES, UUID

KINDS = ("hive", "iceberg", "managed")
CELLS = 330  # of the registry, asked in one world
TRIES = 8  # for a cell that was missed: Spark refuses some constants
ZONED = 20  # more of those that depend on the zone
LAWFUL = 25  # more of those that let bounds travel
INTRICATE = 25  # and of those whose laws have a slack or follow the clock
OF_CLOCK = 30  # for each column of timestamps
_HIVE_ONLY = frozenset({"tinyint", "smallint"})


@dataclass(frozen=True)
class World:
    """What is drawn for one number: the kinds of tables, the zone, the rows and the predicates."""

    seed: str
    number: int
    kinds: tuple[str, ...]
    zone: str
    rows: Rows
    predicates: tuple[Predicate, ...]
    flavour: str = "hive"  # of its Hive layout
    only: tuple[Cell, ...] = ()

    def rng(self, purpose: str) -> Random:
        """Random numbers of their own for each purpose, so that leaving one out does not change the others."""
        return Random(f"{self.seed}/{self.number}/{purpose}")


def draw_world(
    seed: str, number: int, only: Sequence[Cell] = (), *, cells: int = CELLS, trees: int = 20, together: bool = False
) -> World:
    """The world of a number; `only` are the cells to ask about, several times, instead of those whose turn it is."""
    kinds = KINDS if together else (KINDS[number % len(KINDS)],)
    is_hive = kinds == ("hive",)
    zone = ZONES[(number // len(KINDS)) % len(ZONES)]
    rng = Random(f"{seed}/{number}")
    wanted = [*only] * TRIES or _slice(seed, number, cells)
    types = list(dict.fromkeys([*(cell.type for cell in wanted), *_more_types(rng, is_hive), "timestamp", "date"]))
    share = min(1, cells / CELLS)
    wanted += rng.sample([cell for cell in zoned_cells() if cell.type in types], round(ZONED * share))
    flavour = FLAVOURS[(number // len(KINDS)) % len(FLAVOURS)] if is_hive and not only else "hive"
    storable = STORABLE.get(flavour, frozenset(types)) - (frozenset() if is_hive else _HIVE_ONLY)
    kept = [t for t in types if t in storable] + ["string"] * (flavour == "text")
    with_variants = "managed" in kinds
    rows = draw_rows(rng, kept, zone, rng.randrange(8, 16), with_variants=with_variants, odd_names=flavour != "avro")
    generator = Generator(rng, rows)
    predicates = [generator.of_cell(cell) for cell in wanted if rows.of_type(cell.type)]
    predicates += _of_laws(rng, generator, share)
    predicates += [
        generator.of_clock(c)
        for c, t in rows.types.items()
        if t.startswith("timestamp")
        for _ in range(round(OF_CLOCK * share))
    ]
    predicates += [generator.of_column(column) for column in rows.types for _ in range(2)]
    predicates += [generator.nested() for _ in range(trees // 2)]
    predicates += [generator.tree(rng.choice([1, 2, 3])) for _ in range(trees)]
    return World(seed, number, kinds, zone, rows, tuple(predicates), flavour, tuple(only))


def _of_laws(rng: Random, generator: Generator, share: float) -> list[Predicate]:
    """Comparisons through which bounds travel: every function alike, and those more often whose laws are not plain."""
    known = [(cell, call) for cell, call in lawful_calls() if generator.rows.of_type(cell.type)]
    by_function: dict[str, list[tuple[Cell, Call]]] = {}
    for cell, call in known:
        by_function.setdefault(cell.function, []).append((cell, call))
    intricate = [(cell, call) for cell, call in known if (law := law_of(call)) and (law.slack or law.clock)]
    drawn = [rng.choice(by_function[rng.choice(list(by_function))]) for _ in range(round(LAWFUL * share))]
    return [generator.of_law(*each) for each in [*drawn, *rng.choices(intricate, k=round(INTRICATE * share))]]


def worlds_for_all_cells(cells: int = CELLS) -> int:
    """How many worlds it takes until every cell was asked."""
    left, number = set(all_cells()), 0
    while left:
        left -= set(_slice("any", number, cells))
        number += 1
    return number


def _slice(seed: str, number: int, size: int) -> list[Cell]:
    """The cells whose turn it is: first those that only one kind of table has, then the rest from both ends."""
    small, others = _orders(seed)
    turn, place = divmod(number, len(KINDS))
    if place == 0:
        order: Sequence[Cell] = (*small, *others)
        start = turn * size
    else:
        order = others[::-1]
        start = (2 * turn + place - 1) * size
    return [order[i % len(order)] for i in range(start, start + size)]


@cache
def _orders(seed: str) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    cells = list(all_cells())
    Random(seed).shuffle(cells)
    small = tuple(cell for cell in cells if cell.type in _HIVE_ONLY)
    return small, tuple(cell for cell in cells if cell.type not in _HIVE_ONLY)


def _more_types(rng: Random, is_hive: bool) -> list[str]:
    extra = rng.sample(list(TYPES), 3)
    return extra if is_hive else [*extra, UUID, rng.choice(list(NESTED_UUIDS))]
