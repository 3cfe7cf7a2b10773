"""What a Parquet file says of its own sidecars in its footer, by which files outside of Iceberg tables are read.

    penstock.map.shredding.version          1
    penstock.map.shredding.headers.keys     ["content-type", null, "user-agent"]
    penstock.map.shredding.headers.mode     move

The key at place i of the list lies in the column `__map_shred_headers_i`; null is a number that is not used. Of a map
in a struct, the column is the path with dots, and so is the name here; in the column's name dots are underscores.
Where sidecars are called otherwise, because their map was renamed, `headers.columns` lists the names of their columns.
The names of Paimon's proposal (`paimon.map.shredding.…`, `__paimon_map_shred_…`) mean the same; its list may also be
separated by commas.

| the footer | the file |
|---|---|
| has none of this | holds plain maps |
| names a column that the file does not have | is an error: values are missing |
| cannot be read, or is of a later version | is an error |
| leaves out a column that is called like a sidecar of a map in the file | is an error: it holds values of that map |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.errors import LakeError
from penstock.maps.name_lists import read_names
from penstock.maps.shred_rule import MIRROR, MOVE
from penstock.maps.sidecar_columns import STEM

_VERSION = "1"
_KINDS = (("penstock.map.shredding.", STEM), ("paimon.map.shredding.", "__paimon_map_shred_"))


@dataclass(frozen=True)
class Shredded:
    """One map of a file: its path, and the column of each hot key."""

    column: str
    mode: str
    sidecars: tuple[tuple[str, str], ...]  # key, column


def to_footer(columns: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, str]:
    """The pairs for a file: of each map its path, its mode and its sidecars' columns by key."""
    prefix = _KINDS[0][0]
    properties = {f"{prefix}version": _VERSION}
    for column, mode, sidecars in columns:
        stem = f"{STEM}{column.replace('.', '_')}_"
        keys: list[str | None] = list(sidecars)
        if all(name.startswith(stem) and name[len(stem) :].isdecimal() for name in sidecars.values()):
            places = {int(name[len(stem) :]): key for key, name in sidecars.items()}
            keys = [places.get(i) for i in range(max(places) + 1)]
        else:
            properties[f"{prefix}{column}.columns"] = json.dumps(list(sidecars.values()), ensure_ascii=False)
        properties[f"{prefix}{column}.keys"] = json.dumps(keys, ensure_ascii=False)
        properties[f"{prefix}{column}.mode"] = mode
    return properties


def read_footer(pairs: Mapping[bytes, bytes] | None, names: Sequence[str], path: str) -> tuple[Shredded, ...]:
    """The shredded maps of a file with these pairs in its footer and these columns; none where it is a plain one."""
    try:
        maps = [each for prefix, stem in _KINDS for each in _maps(pairs or {}, prefix, stem, names)]
        _check_all_known(maps, names)
    except _Damaged as problem:
        hint = "write the file again from its source, or leave it out"
        raise LakeError(f"{path}: the footer says of shredded maps what cannot be: {problem}", hint=hint) from None
    return tuple(maps)


class _Damaged(Exception):
    """What is wrong with a footer."""


def _maps(pairs: Mapping[bytes, bytes], prefix: str, stem: str, names: Sequence[str]) -> Iterator[Shredded]:
    """The maps that pairs of one kind are about."""
    try:
        own = {k.decode().removeprefix(prefix): v.decode() for k, v in pairs.items() if k.startswith(prefix.encode())}
    except UnicodeDecodeError:
        raise _Damaged("it is no text") from None
    version = own.pop("version", _VERSION)
    if version != _VERSION:
        raise _Damaged(f"{prefix}version is {version!r}, and only {_VERSION} is known")
    by_column: dict[str, dict[str, str]] = {}
    for name, text in own.items():
        column, _, what = name.rpartition(".")
        if what not in ("keys", "mode", "columns"):
            raise _Damaged(f"{prefix}{name} is not known")
        by_column.setdefault(column, {})[what] = text
    for column, texts in by_column.items():
        yield _shredded(column, texts, stem, names)


def _shredded(column: str, texts: Mapping[str, str], stem: str, names: Sequence[str]) -> Shredded:
    if "keys" not in texts:
        raise _Damaged(f"the keys of {column} are missing")
    keys, mode = _keys(column, texts["keys"]), texts.get("mode", MOVE)
    if mode not in (MOVE, MIRROR):
        raise _Damaged(f"the mode of {column} is {mode!r}")
    if column not in names and column.partition(".")[0] not in names:
        raise _Damaged(f"it names the map {column}, which the file does not have")
    called = [f"{stem}{column.replace('.', '_')}_{i}" for i in range(len(keys))]
    if "columns" in texts:
        called = [name or "" for name in _keys(column, texts["columns"])]
        if len(called) != len(keys):
            raise _Damaged(f"{column} has {len(keys)} keys and {len(called)} columns of them")
    sidecars = [(key, name) for key, name in zip(keys, called, strict=True) if key is not None]
    lost = next((name for _, name in sidecars if name not in names), None)
    if lost is not None:
        raise _Damaged(f"the sidecar {lost} of {column} is missing")
    return Shredded(column, mode, tuple(sidecars))


def _keys(column: str, text: str) -> list[str | None]:
    if not text.lstrip().startswith("["):
        return list(read_names(text))
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, list) or not all(key is None or isinstance(key, str) for key in keys):
        raise _Damaged(f"the keys of {column} are no JSON array of texts")
    named = [key for key in keys if key is not None]
    if len(set(named)) < len(named):
        raise _Damaged(f"the keys of {column} name one twice")
    return keys


def _check_all_known(maps: Sequence[Shredded], names: Sequence[str]) -> None:
    """A sidecar that nothing is said of is values that would be lost; without its map it is a column like others."""
    known = {name for shredded in maps for _, name in shredded.sidecars}
    stems = [f"{stem}{column.replace('.', '_')}_" for _, stem in _KINDS for column in names]
    for name in names:
        if name not in known and any(name.startswith(stem) and name[len(stem) :].isdigit() for stem in stems):
            raise _Damaged(f"it does not say which key the column {name} holds")
