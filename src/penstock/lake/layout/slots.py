"""Which rows go to which file: logical partitions by size, small ones put together by range.

A slot is one file to be, or a few when it turns out larger than expected. A logical partition of its own has as many
slots as its size asks for. Small ones of the same coarse partition are laid side by side in the order of their values
and cut into files near the target size, so that each value lies in one file and each file holds a range of values. A
file ends earlier where its record of logical partitions would become too long for a manifest entry.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from penstock.formats.manifest_record import record_size
from penstock.lake.layout.table_layout import Layout, Tuple

# A partition is cut into more files than its size asks for, to keep all cores busy, down to this part of the target.
_LEAST_PART = 8


@dataclass(frozen=True)
class Slot:
    """Where rows are to lie."""

    spec_id: int
    partition: Tuple
    is_shared: bool


class Assigned(NamedTuple):
    """What one logical partition got: its first slot, how many, and where it stands in the order of all."""

    slot: int
    slots: int
    rank: int


class Slots(NamedTuple):
    """All slots with their expected bytes, and what each logical partition got of them."""

    slots: list[Slot]
    bytes: list[float]
    assigned: list[Assigned]


def assign(
    layout: Layout,
    tuples: Sequence[Tuple],
    sizes: Sequence[float],
    totals: Sequence[float],
    target: int,
    at_once: int = 1,
) -> Slots:
    """Slots for rows of these sizes; `totals` is what each logical partition will hold in the whole table."""
    own, small = [], defaultdict[Any, list[int]](list)
    for i, (fine, total) in enumerate(zip(tuples, totals, strict=True)):
        if layout.shares(fine, total):
            small[partition_key(layout.coarse_tuple(fine))].append(i)
        else:
            own.append(i)
    slots: list[Slot] = []
    expected: list[float] = []
    assigned: dict[int, Assigned] = {}
    for i in own:
        parts = _parts(sizes[i], target, at_once if len(own) + len(small) < at_once else 1)
        assigned[i] = Assigned(len(slots), parts, len(assigned))
        slots += [Slot(layout.fine.spec_id, tuples[i], False) for _ in range(parts)]
        expected += [sizes[i] / parts] * parts
    for members in small.values():
        coarse = layout.coarse_tuple(tuples[members[0]])
        assert layout.coarse is not None  # without it nothing is shared
        members.sort(key=lambda i: nulls_first(layout.logical_tuple(tuples[i])))
        records = [record_size(layout.logical_tuple(tuples[i])) for i in members]
        cuts = _cuts([sizes[i] for i in members], records, target, layout.record_bytes)
        for start, end in pairwise([*cuts, len(members)]):
            for i in members[start:end]:
                assigned[i] = Assigned(len(slots), 1, len(assigned))
            slots.append(Slot(layout.coarse.spec_id, coarse, True))
            expected.append(sum(sizes[i] for i in members[start:end]))
    return Slots(slots, expected, [assigned[i] for i in range(len(tuples))])


def _cuts(sizes: Sequence[float], records: Sequence[int], target: int, most: int) -> Iterator[int]:
    """Where files begin: evenly by bytes of rows, and evenly by bytes of records where these ask for more files."""
    total, recorded = sum(sizes), sum(records)
    files = max(1, round(total / target))
    most = min(most, recorded // math.ceil(recorded / most) + max(records))
    before, number, start, held = 0.0, 0, 0, 0
    yield 0
    for i, (size, record) in enumerate(zip(sizes, records, strict=True)):
        at = min(files - 1, int(before * files / total)) if total else 0
        if i > start and (at > number or held + record > most):
            yield i
            start, held = i, 0
        number, before, held = at, before + size, held + record


def _parts(size: float, target: int, at_once: int) -> int:
    least = max(1, target // _LEAST_PART)
    return max(1, math.ceil(size / target), min(at_once, int(size // least)))


def partition_key(partition: Tuple) -> Tuple:
    """What two tuples have in common that are one partition: readers take its values from it, and -0.0 is not 0.0.

    >>> partition_key((0.0, "a")) == partition_key((-0.0, "a"))
    False
    """
    return tuple((value, str(value)) if value == 0 else value for value in partition)


def nulls_first(values: Sequence[Any]) -> Tuple:
    """What tuples are sorted by: null before all values."""
    return tuple((value is not None, value) for value in values)
