"""Ages as people write them: `timedelta(days=7)`, a moment, "7 days", "12 hours", "2026-05-17 10:00"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.errors import LakeError

Age = timedelta | datetime | str
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WORDS = {
    **_UNITS, "sec": "seconds", "min": "minutes", "second": "seconds", "minute": "minutes", "hour": "hours",
    "day": "days", "week": "weeks", **{word: word for word in _UNITS.values()},
}  # fmt: skip
_HINT = "write a number and a unit, such as 7 days or 12 hours, or a moment, such as 2026-05-17 10:00"


def moment(age: Age, now: datetime) -> datetime:
    """The moment before which something is older; UTC where no zone is named.

    >>> moment("36 hours", datetime(2026, 5, 17, tzinfo=UTC)).isoformat()
    '2026-05-15T12:00:00+00:00'
    """
    if isinstance(age, str):
        age = _read(age)
    try:
        found = now - age if isinstance(age, timedelta) else age
    except OverflowError:
        raise LakeError(f"{age} is further back than dates go", hint=_HINT) from None
    if not isinstance(found, datetime):
        raise LakeError(f"{age!r} is no age", hint=_HINT)
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    if found > now:
        raise LakeError(f"{found.isoformat()} is in the future", hint=_HINT)
    return found


def _read(text: str) -> timedelta | datetime:
    found = _TEXT.fullmatch(text)
    unit = None if found is None else _WORDS.get(found[2].lower())
    try:
        if found is not None and unit is not None:
            return timedelta(**{unit: float(found[1])})
        return datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise LakeError(f"{text!r} is no age", hint=_HINT) from None
