"""Sizes and ages as people write them: "32MB", "1.5 KiB"; `timedelta(days=7)`, "12 hours", "2026-05-17 10:00"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError

Age = timedelta | datetime | str
Size = int | str
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_AGE = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(?:(?P<seconds>s|sec|seconds?)|(?P<minutes>m|min|minutes?)|(?P<hours>h|hours?)|"
    r"(?P<days>d|days?)|(?P<weeks>w|weeks?))\s*",
    re.IGNORECASE,
)
_HINT = "write a number and a unit, such as 7 days or 12 hours, or a moment, such as 2026-05-17 10:00"


def parse_size(size: Size) -> int:
    """A number of bytes.

    >>> parse_size("32MB"), parse_size("1.5 KiB"), parse_size(7)
    (33554432, 1536, 7)
    """
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if match is not None:
        return int(float(match[1]) * _FACTORS[match[2].lower()])
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise LakeError(f"{size!r} is no size", hint="write a number of bytes, or 32MB")
    return size


def moment(age: Age, now: datetime) -> datetime:
    """The moment before which something is older; UTC where no zone is named.

    >>> moment("36 hours", datetime(2026, 5, 17, tzinfo=UTC)).isoformat()
    '2026-05-15T12:00:00+00:00'
    """
    if isinstance(age, str):
        age = _read(age)
    try:
        cutoff = now - age if isinstance(age, timedelta) else age
    except OverflowError:
        raise LakeError(f"{age} is further back than dates go", hint=_HINT) from None
    if not isinstance(cutoff, datetime):
        raise LakeError(f"{age!r} is no age", hint=_HINT)
    cutoff = cutoff if cutoff.tzinfo is not None else cutoff.replace(tzinfo=UTC)
    if cutoff > now:
        raise LakeError(f"{cutoff.isoformat()} is in the future", hint=_HINT)
    return cutoff


def _read(text: str) -> timedelta | datetime:
    match = _AGE.fullmatch(text)
    try:
        if match is not None:
            return timedelta(**{str(match.lastgroup): float(match[1])})
        return datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise LakeError(f"{text!r} is no age", hint=_HINT) from None
