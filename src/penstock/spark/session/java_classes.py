"""The Java classes of the scan, compiled in the driver by the Janino that Spark ships: no jar, no JDK, once a JVM."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

# In the order in which they need each other.
SOURCES = (
    "Filters",
    "Questions",
    "PlannedFiles",
    "NanSafeParquet",
    "PenstockIndex",
    "WholeMap",
    "ShreddedMap",
    "LowerMaps",
    "KeyAccess",
    "Reach",
    "CarryKeys",
    "HotKeys",
    "PlanEarly",
    "Deleted",
    "HiddenMetadata",
)
_lock = threading.Lock()
_compiled: dict[int, tuple[Any, dict[str, Any]]] = {}


def java_class(gateway: Any, name: str) -> Any:
    """A compiled class (`java.lang.Class`) in the JVM of a gateway; `Outer$Inner` for nested ones."""
    with _lock:
        known = _compiled.get(id(gateway))
        if known is None or known[0] is not gateway:
            known = (gateway, _compile(gateway))
            _compiled[id(gateway)] = known
    loader = known[1]["loader"]
    return loader.loadClass(f"io.penstock.{name}")


def _compile(gateway: Any) -> dict[str, Any]:
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in SOURCES:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(files("penstock.spark").joinpath(f"jvm/{name}.java").read_text())
        loader = compiler.getClassLoader()
    return {"loader": loader}


def call(gateway: Any, name: str, method: str, *arguments: Any) -> Any:
    """What a static method of a compiled class returns."""
    candidate = next(m for m in java_class(gateway, name).getMethods() if m.getName() == method)
    return candidate.invoke(None, _objects(gateway, arguments))


def new(gateway: Any, name: str, *arguments: Any) -> Any:
    """An object of a compiled class, made by its public constructor with as many parameters."""
    constructors = java_class(gateway, name).getConstructors()
    fitting = next(c for c in constructors if c.getParameterCount() == len(arguments))
    return fitting.newInstance(_objects(gateway, arguments))


def _objects(gateway: Any, values: Iterable[Any]) -> Any:
    objects = gateway.jvm.java.util.ArrayList()  # py4j puts Python objects into lists, but not into arrays
    for value in values:
        objects.add(value)
    return objects.toArray()
