"""What Spark's filters on a relation mean in the columns of the Iceberg table behind it.

A filter arrives in the relation's names and in terms of the projection above it: the text of a uuid is an expression on
bytes, a column with several names in files is the first of them that is not null, a field of a renamed struct lies
behind a cast, a hot key of a map is its sidecar. These forms are known and turned back into the column. Anything else
says nothing, which keeps files. What is left of a shredded map answers for its other keys, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

UUID_PATTERN, UUID_PARTS = "(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5"


class MapKey(NamedTuple):
    """A key of a map."""

    path: tuple[str, ...]
    key: str


@dataclass(frozen=True)
class Meanings:
    """The relation's columns, in lower case, by what a filter on them means."""

    columns: Mapping[str, tuple[str, int]]  # with the number of casts, of one whose fields are renamed by a cast
    uuids: Mapping[str, str]
    several: Mapping[tuple[str, ...], str]  # read as the first that is not null
    keys: Mapping[str, MapKey] = field(default_factory=dict)  # sidecars that say all of their key
    hot: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)  # keys that a map may lack, by its path

    def restore(self, filters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Filters over the table's columns instead of the relation's; what has no meaning there says nothing."""
        return [self._restore(node) for node in filters]

    def _restore(self, node: dict[str, Any]) -> dict[str, Any]:
        if "column" in node:
            return self._sidecar(node) or self._whole(self._column(node))
        if "call" not in node:
            return node
        if node["call"] in ("GetMapValue", "ElementAt") and self._is_cold(node["children"]):
            return {**node, "children": [self._column(node["children"][0]), node["children"][1]]}
        name = self._uuid(node) or self._first(node)
        if name is not None:
            return {"column": [name], "type": node["type"]}
        if node["call"] in ("IsNull", "IsNotNull") and _name(node["children"][0]) in self.uuids:
            column = {"column": [self.uuids[_name(node["children"][0])]], "type": "string"}
            return {**node, "children": [column]}
        return {**node, "children": [self._restore(child) for child in node["children"]]}

    def _column(self, node: dict[str, Any]) -> dict[str, Any]:
        first, *rest = node["column"]
        if first == "_metadata" and rest:
            return node
        name, casts = self.columns.get(first.lower(), ("", -1))
        is_known = node.get("casts", 0) == casts and (rest or not casts)
        return {"column": [name, *rest], "type": node["type"]} if is_known else _opaque(node)

    def _sidecar(self, node: dict[str, Any]) -> dict[str, Any] | None:
        """The key of a map that a sidecar stands for."""
        lookup = self.keys.get(_name(node))
        if lookup is None:
            return None
        kind = node["type"]
        of_map = {"column": list(lookup.path), "type": f"map<string,{kind}>"}
        children = [of_map, {"value": lookup.key, "type": "string"}]
        return {"call": "GetMapValue", "deterministic": True, "children": children, "type": kind}

    def _whole(self, node: dict[str, Any]) -> dict[str, Any]:
        """A column; nothing where it is, or holds, a map that lacks keys here."""
        path = tuple(node.get("column", ()))
        lacking = any(path == own[: len(path)] for own in self.hot) if path else False
        return _opaque(node) if lacking else node

    def _is_cold(self, children: Sequence[dict[str, Any]]) -> bool:
        """Whether a map is asked for a key that it has, wherever others lie."""
        path = tuple(self._column(children[0]).get("column", ())) if "column" in children[0] else ()
        return path in self.hot and "value" in children[1] and children[1]["value"] not in self.hot[path]

    def _uuid(self, node: dict[str, Any]) -> str | None:
        """The column behind the text of a uuid."""
        try:
            replaced = node["children"][0]
            text, pattern, parts = replaced["children"][:3]
            calls = (node["call"], replaced["call"], text["call"], pattern["value"], parts["value"])
            if calls == ("Lower", "RegExpReplace", "Hex", UUID_PATTERN, UUID_PARTS):
                return self.uuids.get(_name(text["children"][0]))
        except (KeyError, IndexError, ValueError):
            pass
        return None

    def _first(self, node: dict[str, Any]) -> str | None:
        if node["call"] != "Coalesce":
            return None
        return self.several.get(tuple(_name(child) for child in node["children"]))


def _opaque(node: dict[str, Any]) -> dict[str, Any]:
    return {"call": "Opaque", "deterministic": True, "children": [], "type": node["type"]}


def _name(node: dict[str, Any]) -> str:
    path = node.get("column", ())
    return str(path[0]).lower() if len(path) == 1 and not node.get("casts") else ""
