"""Which keys of which maps get columns of their own, as people say it and as a table's properties keep it.

    shred={"headers": ["content-type", "user-agent"]}     these keys
    shred={"headers": "auto"}                             those that a sample of the data shows to be worth it
    shred={"headers": Shred("a", "b", mode="mirror")}     these, and the map stays complete for other engines
    shred={"headers": Shred(auto=True, most=8)}

| property | holds |
|---|---|
| `parquet.map.shredding.columns` | the map columns, in a struct by their path: `headers,request.params` |
| `parquet.map.shredding.<column>.keys` | their hot keys, or `auto` |
| `parquet.map.shredding.<column>.mode` | `move` (the default) or `mirror` |
| `parquet.map.shredding.<column>.most` | how many keys `auto` may choose |
| `parquet.map.shredding.duplicates` | what a row with a hot key twice gets: `reject` (the default) or `last-wins` |

Lists are separated by commas, or JSON arrays where a name has a comma. A rule decides about files that are written from
then on; a file that exists is read by what was recorded of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.maps.name_lists import read_names, write_names

PREFIX = "parquet.map.shredding."
COLUMNS, DUPLICATES, NOTE = f"{PREFIX}columns", f"{PREFIX}duplicates", "penstock.map.shredding.note"
FIELD_IDS = "penstock.map.shredding.field-ids"
MOVE, MIRROR = "move", "mirror"
REJECT, LAST_WINS = "reject", "last-wins"
_AUTO, _MOST = "auto", 16
_RESIDUAL_ONLY = (
    "the hot keys of {columns} lie in the columns __map_shred_*: readers other than Penstock see a map without them; "
    "mode=mirror keeps it complete"
)


@dataclass(frozen=True, init=False)
class Shred:
    """A rule: the hot keys of one map column, which get columns of their own.

    `auto=True` chooses up to `most` (16) keys by a sample of the rows. With `mode="move"` hot values leave the map;
    with `mode="mirror"` the map stays complete for other engines, and the columns are copies.
    """

    keys: tuple[str, ...]
    auto: bool
    mode: str
    most: int

    def __init__(self, *keys: str, auto: bool = False, mode: str = MOVE, most: int = _MOST) -> None:
        if auto == bool(keys):
            raise LakeError("a rule for a map names its hot keys, or says auto", hint='write Shred("a", "b")')
        wrong = [key for key in keys if not isinstance(key, str)]
        if wrong:
            raise LakeError(f"{wrong[0]!r} is no key", hint="keys are texts")
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise LakeError(f"the key {twice!r} is given twice", hint="name each once")
        if mode not in (MOVE, MIRROR):
            raise LakeError(f"there is no mode {mode!r}", hint=f"{MOVE} or {MIRROR}")
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise LakeError(f"most is {most!r}", hint="give 1 or more")
        vars(self).update(keys=tuple(keys), auto=auto, mode=mode, most=most)


ShredRules = Mapping[str, "Shred | str | Sequence[str]"]


def as_rules(requested: ShredRules | None) -> dict[str, Shred]:
    """Rules by their column, as people write them; an empty list is an error."""
    check_is_mapping(requested)
    rules: dict[str, Shred] = {}
    for column, keys in (requested or {}).items():
        if not isinstance(column, str) or not column:
            raise LakeError(f"{column!r} is no map column", hint='write shred={"headers": ["a", "b"]}')
        if any(column.lower() == known.lower() for known in rules):
            raise LakeError(f"the map column {column!r} is given twice", hint="name it once")
        rules[column] = _as_rule(column, keys)
    return rules


def check_is_mapping(requested: object) -> None:
    """An error when rules are no mapping."""
    if requested is not None and not isinstance(requested, Mapping):
        raise LakeError(f"shred is {requested!r}", hint='write {"headers": ["a", "b"]}')


def _as_rule(column: str, keys: Shred | str | Sequence[str]) -> Shred:
    if isinstance(keys, Shred):
        return keys
    if isinstance(keys, str):
        return Shred(auto=True) if keys == _AUTO else Shred(keys)
    if keys is not None and not isinstance(keys, Iterable):
        raise LakeError(f"the keys of {column!r} are {keys!r}", hint=f'name keys, or "{_AUTO}"')
    if not keys:
        raise LakeError(f"no key of {column!r} is named", hint=f'name keys, or "{_AUTO}"')
    return Shred(*keys)


def parse_rules(texts: Sequence[str]) -> dict[str, Shred]:
    """Rules as the command line has them: `headers=a,b`, `headers=auto`, `headers=["a,b"]`."""
    rules: dict[str, Shred] = {}
    for text in texts:
        column, equals, keys = text.partition("=")
        if not equals or not column.strip() or not keys.strip():
            raise LakeError(f"{text!r} names no keys", hint="write headers=a,b or headers=auto")
        if column.strip() in rules:
            raise LakeError(f"the map column {column.strip()!r} is given twice", hint="name it once")
        rules[column.strip()] = _read_keys(column.strip(), keys.strip(), MOVE, _MOST)
    return rules


def to_properties(rules: Mapping[str, Shred]) -> dict[str, str]:
    """Rules as properties of a table."""
    if not rules:
        return {}
    properties = {COLUMNS: write_names(list(rules))}
    for column, rule in rules.items():
        keys = list(rule.keys)
        written = json.dumps(keys) if keys == [_AUTO] else write_names(keys)
        properties[f"{PREFIX}{column}.keys"] = _AUTO if rule.auto else written
        properties[f"{PREFIX}{column}.mode"] = rule.mode
        if rule.auto:
            properties[f"{PREFIX}{column}.most"] = str(rule.most)
    moved = [column for column, rule in rules.items() if rule.mode == MOVE]
    if moved:
        properties[NOTE] = _RESIDUAL_ONLY.format(columns=", ".join(moved))
    return properties


def from_properties(properties: Mapping[str, str]) -> dict[str, Shred]:
    """The rules in a table's properties; an error that names the property for one that cannot be read."""
    rules: dict[str, Shred] = {}
    for column in read_names(properties.get(COLUMNS, "")):
        keys = properties.get(f"{PREFIX}{column}.keys")
        if keys is None or not keys.strip():
            message = f"{COLUMNS} names {column!r}, and {PREFIX}{column}.keys is missing"
            raise LakeError(message, hint=f"set it to keys separated by commas, or to {_AUTO}")
        mode = properties.get(f"{PREFIX}{column}.mode", MOVE).strip().lower()
        most = properties.get(f"{PREFIX}{column}.most", str(_MOST)).strip()
        if not most.isdecimal():
            raise LakeError(f"{PREFIX}{column}.most is {most!r}", hint="give 1 or more")
        rules[column] = _read_keys(column, keys, mode, int(most))
    return rules


def is_property(name: str) -> bool:
    """Whether a property of a table belongs to rules."""
    return name.startswith(PREFIX) or name in (NOTE, FIELD_IDS)


def _read_keys(column: str, text: str, mode: str, most: int) -> Shred:
    if text.strip() == _AUTO:
        return Shred(auto=True, mode=mode, most=most)
    try:
        return Shred(*read_names(text), mode=mode, most=most)
    except LakeError as error:
        raise LakeError(f"the keys of {column!r}: {error.message}", hint=error.hint) from None
