"""The predicates of `predicate_corpus.sql`, by what may go wrong with them.

A group starts with a line `--- name`; every other line is a predicate. `[open] ` before one marks a bug that is known
and not fixed yet: the test fails when it is fixed and still marked. Predicates that hold a line break are here.
"""

from __future__ import annotations

from pathlib import Path

_WITH_LINE_BREAKS = {
    "LIKE": ["s LIKE '%\n%'"],
    "logic": ["-- comment\n b"],
    "text literals": ["s = 'x\ny'", "s = 'a' \n 'bc'", "'a\\\nb' = 'a\nb'", "'\\Z' = '\x1a'", "s = 'x\r\ny'"],
}
_OPEN = "[open] "


def _read() -> dict[str, dict[str, bool]]:
    groups: dict[str, dict[str, bool]] = {}
    name = ""
    for line in Path(__file__).with_suffix(".sql").read_text("utf-8").split("\n")[1:]:
        if line.startswith("--- "):
            name = line.removeprefix("--- ")
            groups[name] = dict.fromkeys(_WITH_LINE_BREAKS.get(name, ()), False)
        elif line:
            groups[name][line.removeprefix(_OPEN)] = line.startswith(_OPEN)
    return groups


# For each group its predicates, and whether a bug with them is open.
CORPUS = _read()
