"""When a time zone changed its offset, read from the IANA database as TZif files (RFC 9636).

A zone is a sorted array of instants and the offset that holds before, between and after them. Python's
`zoneinfo` answers one value at a time and ends at year 9999, and Arrow's kernels know no rule for local times
that never existed; a table of transitions answers whole arrays with one binary search, and both questions the
same way.

A file lists transitions up to about 2037 and ends with a rule for all later years (`EST5EDT,M3.2.0,M11.1.0`).
The Gregorian calendar repeats every 400 years, weekdays included (146,097 days are 20,871 weeks), so the rule
is written out up to 2500 and later instants are folded back by whole cycles. That is exact, not an
approximation.

Java has its own copy of the database. Since 2022 it treats zones that agree since 1970 as one (Stockholm is
Berlin), as the `tzdata` package does; the files of a Linux distribution may keep each zone's older history.
So the package is read first, and instants before 1970 are not vouched for (`known_from`) when there is only
the system's file.

A Java with older data than the package may answer differently for the years that changed in between; nothing
read here can tell.
"""

from __future__ import annotations

import importlib.resources
import re
import struct
import zoneinfo
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np

from penstock.expr.kernels.civil import DAY, SECOND, Int64s

CYCLE = 146_097 * DAY
FOLD_FROM = (date(2500, 1, 1) - date(1970, 1, 1)).days * DAY

_EPOCH = date(1970, 1, 1)
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_RULE = rf"M(\d+)\.(\d+)\.(\d+)(?:/({_TIME}))?"
_FOOTER = re.compile(rf"{_NAME}({_TIME})(?:{_NAME}({_TIME})?,{_RULE},{_RULE})?")


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """`offsets[i]` holds before `instants[i]`, `offsets[i + 1]` from it on; all in microseconds.

    Before `known_from` Java may have other transitions.
    """

    instants: Int64s
    offsets: Int64s
    known_from: int


@lru_cache(maxsize=64)
def rules_of(name: str) -> ZoneRules:
    """The rules of a zone of the IANA database; ValueError when it has no such zone.

    >>> int(rules_of("America/New_York").offsets[0] // SECOND)  # local mean time, until 1883
    -17762
    """
    raw, packaged = _read(name)
    instants, offsets, footer = _parse(raw, name)
    later, later_offsets = _written_out(footer, name, instants[-1] if instants else None)
    return ZoneRules(
        np.array(instants + later, np.int64) * SECOND,
        np.array(offsets + later_offsets, np.int64) * SECOND,
        -(2**63) if packaged else 0,
    )


@lru_cache(maxsize=1)
def region_names() -> frozenset[str]:
    """The names with a region (`Europe/Paris`): short ones mean other things to Java than to the database."""
    return frozenset(name for name in zoneinfo.available_timezones() if "/" in name)


def _read(name: str) -> tuple[bytes, bool]:
    """The zone's file, and whether it comes from the `tzdata` package."""
    if name not in region_names():
        raise ValueError(f"unknown time zone {name!r}: give a region (Europe/Paris) or an offset (+02:00)")
    try:
        return importlib.resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes(), True
    except (ModuleNotFoundError, FileNotFoundError):
        paths = (Path(folder, *name.split("/")) for folder in zoneinfo.TZPATH)
        return next(path for path in paths if path.is_file()).read_bytes(), False


def _parse(raw: bytes, name: str) -> tuple[list[int], list[int], str]:
    """Transitions, offsets (one more) and the rule for later years, of the file's 64-bit part."""
    if raw[:4] != b"TZif" or raw[4:5] < b"2":
        raise ValueError(f"time zone {name!r}: its file is not TZif of version 2 or later")
    utc, std, leap, times, types, chars = struct.unpack(">6l", raw[20:44])
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + std + utc
    utc, std, leap, times, types, chars = struct.unpack(">6l", raw[at + 20 : at + 44])
    at += 44
    instants = list(struct.unpack(f">{times}q", raw[at : at + 8 * times]))
    at += 8 * times
    indices = raw[at : at + times]
    at += times
    kinds = [struct.unpack(">lBB", raw[at + 6 * i : at + 6 * i + 6])[0] for i in range(types)]
    at += types * 6 + chars + leap * 12 + std + utc
    footer = raw[at:].strip(b"\n").decode("ascii")
    return instants, [kinds[0]] + [kinds[i] for i in indices], footer


def _written_out(footer: str, name: str, last: int | None) -> tuple[list[int], list[int]]:
    """The transitions after `last` up to the year of folding, by the rule at the file's end."""
    match = _FOOTER.fullmatch(footer)
    if match is None:
        if footer == "":
            return [], []
        raise ValueError(f"time zone {name!r}: cannot read its rule {footer!r}")
    standard, summer, *rules = match.groups()
    if rules[0] is None:
        return [], []
    base = -_seconds(standard)
    saved = -_seconds(summer) if summer else base + 3600
    changes: list[tuple[int, int]] = []
    for year in range(1970 if last is None else (_EPOCH + timedelta(seconds=last)).year, 2502):
        changes.append((_change(year, rules[:4]) - base, saved))
        changes.append((_change(year, rules[4:]) - saved, base))
    changes = sorted(change for change in changes if last is None or change[0] > last)
    return [instant for instant, _ in changes], [offset for _, offset in changes]


def _change(year: int, rule: list[str]) -> int:
    """Seconds since the epoch, in local time, of `Mm.w.d/time` in a year; week 5 is the month's last."""
    month, week, weekday = (int(part) for part in rule[:3])
    first = date(year, month, 1)
    day = first + timedelta((weekday - first.isoweekday()) % 7 + 7 * (week - 1))
    if day.month != month:
        day -= timedelta(7)
    return (day - _EPOCH).days * 86_400 + (_seconds(rule[3]) if rule[3] else 7_200)


def _seconds(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    total = parts[0] * 3600 + parts[1] * 60 + parts[2]
    return -total if text.startswith("-") else total
