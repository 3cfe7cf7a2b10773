"""What is public, read from the sources: exported names, what they return, and the members of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import griffe

import penstock

# Members of public classes that only other packages of Penstock call, and `Expr`, which users only print.
INTERNAL = {
    *("Expr", "data_files", "declarations", "describe", "feed", "key", "read", "relations", "root_url", "shares"),
    *("planned", "version", "walk", "writable_table"),
}


def public_names(sources: Path) -> set[str]:
    """Every exported name, every class that a public function, method or property returns, and their members."""
    package = griffe.load("penstock", search_paths=[sources])
    exported = {package[name].canonical_path: f"penstock.{name}" for name in penstock.__all__ if name[0] != "_"}
    names: set[str] = set()
    waiting = list(exported)
    while waiting:
        path = waiting.pop()
        target = package[path.removeprefix("penstock.")]
        name = exported.get(path, path)
        if name in names or target.name in INTERNAL or target.is_attribute:  # an attribute here is an alias of a type
            continue
        members = list(public_members(target))
        names |= {name, *(f"{name}.{member.name}" for member in members)}
        waiting += [path for function in (target, *members) for path in returned_classes(function)]
    return names


def public_members(target: griffe.Object | griffe.Alias) -> Iterator[griffe.Object | griffe.Alias]:
    """The methods and properties of a class; fields stand in its signature."""
    for member in target.members.values() if target.is_class else ():
        is_callable = member.is_function or "property" in member.labels
        if is_callable and not member.name.startswith("_") and member.name not in INTERNAL:
            yield member


def returned_classes(function: griffe.Object | griffe.Alias) -> Iterator[str]:
    """The paths of Penstock's own types in the return type of a function or property."""
    returned = function.returns if function.is_function else function.annotation if function.is_attribute else None
    for part in returned.iterate(flat=True) if isinstance(returned, griffe.Expr) else ():
        if isinstance(part, griffe.ExprName) and part.canonical_path.startswith("penstock."):
            yield part.canonical_path
