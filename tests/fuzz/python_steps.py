"""Changes of a managed table by Python that add, replace and remove rows, compact, and change rules."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import penstock
from tests.fuzz.iceberg_file import UNWRITTEN
from tests.fuzz.situation import Situation, Step
from tests.fuzz.values import KEYS


def _append_part(now: Situation) -> Step:
    """Rows without the columns that are NULL in them."""
    free = range(now.rows.keys, 2 * now.rows.keys)
    ids = now.some(free, now.rng.choice([0.3, 0.8]), now.live)
    rows = now.rows.take(ids).drop_columns(list(now.rows.changing))
    return Step(str(ids), {*now.live, *ids}, lambda: now.table.append(rows))


def _delete(now: Situation) -> Step:
    how = now.in_tasks()
    return Step(now.where + how, {*(now.live - now.matching)}, now.doing(how, lambda: now.table.delete(now.where)))


def _overwrite(now: Situation) -> Step:
    staying = now.live - now.matching
    ids = now.some(now.matching, 0.5, staying)
    rows = now.rows.take(ids)
    return Step(now.where, {*staying, *ids}, lambda: now.table.overwrite(rows, now.where))


def dynamic_change(now: Situation) -> tuple[list[int], set[int]]:
    """Rows to be put in the place of their partitions, and the rows that the table has afterwards."""
    known = [i for i in now.all_rows if UNWRITTEN not in now.keys[i]]
    ids = now.one_per_key(known)[:4]
    while True:
        replaced = {now.keys[i] for i in ids}
        staying = {i for i in now.live if now.keys[i] not in replaced}
        fitting = now.one_per_key(ids, staying)
        if len(fitting) == len(ids):
            return ids, {*staying, *ids}
        ids = fitting


def _dynamic(now: Situation) -> Step:
    ids, expected = dynamic_change(now)
    rows = now.rows.take(ids)
    return Step(str(ids), expected, lambda: now.table.overwrite(rows, dynamic=True))


def _compact(now: Situation) -> Step:
    return Step("", {*now.live}, now.table.compact)


def _expire(now: Situation) -> Step:
    keep = now.rng.randrange(2, 8)
    return Step(f"all but {keep}", {*now.live}, lambda: now.table.expire("0 s", keep_last=keep))


def _sweep(now: Situation) -> Step:
    return Step("", {*now.live}, lambda: now.table.sweep("0 s", force=True))


def _set_coalesce(now: Situation) -> Step:
    plain = [c for c in now.by if "(" not in c]
    rule = now.rng.choice([None, plain[:1]]) if plain else None
    return Step(str(rule), {*now.live}, lambda: now.table.set_coalesce(rule or None))


def _set_shred(now: Situation) -> Step:
    maps = [c for c, t in now.rows.types.items() if t == "map"]
    rules = {c: now.rng.choice([None, some_keys(now.rng)]) for c in maps}
    return Step(str(rules), {*now.live}, lambda: now.table.set_shred(rules))


def some_keys(rng: Random) -> Any:
    """A rule for the hot keys of a map."""
    keys = rng.sample(KEYS, rng.randrange(1, len(KEYS) + 1))
    return penstock.Shred(*keys, mode="mirror") if rng.random() < 0.3 else keys


STEPS: dict[str, Callable[[Situation], Step]] = {
    "append part": _append_part,
    "delete": _delete,
    "overwrite": _overwrite,
    "dynamic": _dynamic,
    "compact": _compact,
    "expire": _expire,
    "sweep": _sweep,
    "set_coalesce": _set_coalesce,
    "set_shred": _set_shred,
}
