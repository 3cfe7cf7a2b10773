"""What Penstock records of a data file in its manifest entry: the fields, their texts, and how they are read.

The fields are optional strings on Iceberg's `data_file`. Readers that do not know them skip them; a writer that
rewrites manifests drops them, which makes pruning coarser and nothing wrong. Each holds JSON:

    logical_partition_values   {"complete": true, "columns": [2, 7], "tuples": [["shop", "2026-05-17"], ["blog", null]],
                                "rows": [20, 3]}
    map_shredding              {"value": [11, 12], "exact": [12]}

All numbers in `columns`, `value` and `exact` are field ids.

* Logical values are written as Iceberg's specification writes single values in JSON. The tuples are all combinations
  that occur in the file's rows if `complete` says so; otherwise there may be others. `rows`, which may be missing,
  counts the rows of each tuple.
* `value` names the sidecars that have a key's value wherever the key has one, so the map need not be read for it.
  `exact`: moreover no row has the key without a value, and none has no map: then a null sidecar says that the key is
  not there. A sidecar that a text does not name is not in the file; its key is in the map alone.

A text that is missing, damaged or of a newer version says nothing: such a file is kept, and its maps are read. Version
1 is not written. Members that are not known are left alone, so only a change of meaning needs a new version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

VERSION = 1
_COUNT, _QUOTED, _OTHER = 10, 4, 20  # bytes of a count, of what is around a text, of any other value


class ManifestRecord(NamedTuple):
    """The texts of one file, by the names that the fields have in manifests."""

    logical_partition_values: str | None = None
    map_shredding: str | None = None


LOGICAL, SHREDDING = ManifestRecord._fields
FIELD_IDS = {LOGICAL: 100_001, SHREDDING: 100_002}


class LogicalTuples(NamedTuple):
    """One text that is complete: the columns, the tuples, and the rows of each, where it says them."""

    ids: tuple[int, ...]
    tuples: list[list[Any]]
    rows: list[int] | None


@dataclass(frozen=True)
class SidecarRecord:
    """The sidecars of one file, by their field ids."""

    value: frozenset[int]
    exact: frozenset[int]

    def text(self) -> str:
        """What the manifest entry carries."""
        return json.dumps({"value": sorted(self.value), "exact": sorted(self.exact)})


def encode_logical(
    ids: Sequence[int],
    kinds: Sequence[Any],
    tuples: Iterable[Sequence[Any]],
    complete: bool = True,
    rows: Sequence[int] | None = None,
) -> str:
    """The text for a file; values are Python's, of Iceberg's types `kinds`; `rows` counts those of each tuple."""
    from pyiceberg.conversions import to_json

    written = [[None if v is None else to_json(k, v) for k, v in zip(kinds, t, strict=True)] for t in tuples]
    members: dict[str, Any] = {"complete": complete, "columns": list(ids), "tuples": written}
    if rows is not None:
        members["rows"] = list(rows)
    return json.dumps(members, ensure_ascii=False)


def record_size(values: Sequence[Any]) -> int:
    """About how many bytes one tuple, with its count of rows, takes in a text."""
    return _COUNT + sum(_size(value) for value in values)


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value.encode()) + _QUOTED
        case bytes():
            return 2 * len(value) + _QUOTED
        case _:
            return _OTHER


def read_tuples(text: str | None) -> LogicalTuples | None:
    """The logical tuples of a file; None where the text does not say all of them."""
    if text is None:
        return None
    try:
        members = _members(text)
        ids, tuples = tuple(members["columns"]), members["tuples"]
        whole = members["complete"] is True and ids and all(len(t) == len(ids) for t in tuples)
        if not whole or not all(isinstance(i, int) for i in ids):
            return None
        return LogicalTuples(ids, tuples, _counts(members.get("rows"), len(tuples)))
    except (ValueError, KeyError, TypeError):
        return None


def _counts(rows: Any, tuples: int) -> list[int] | None:
    """The rows of each tuple; None where they are not told, or not as counts."""
    if not isinstance(rows, list) or len(rows) != tuples:
        return None
    return rows if all(type(count) is int and 0 <= count < 1 << 62 for count in rows) else None


def read_sidecar_record(text: str | None) -> SidecarRecord | None:
    """The sidecars of a file; None where the text says nothing that can be read."""
    try:
        members = _members(text)
        value, exact = members["value"], members["exact"]
        if not all(type(i) is int for i in (*value, *exact)):
            return None
        return SidecarRecord(frozenset(value), frozenset(exact) & frozenset(value))
    except (ValueError, KeyError, TypeError):
        return None


def _members(text: str | None) -> dict[str, Any]:
    members = json.loads(text or "null")
    if not isinstance(members, dict) or members.get("version", VERSION) != VERSION:
        raise ValueError("no record of this version")
    return members
