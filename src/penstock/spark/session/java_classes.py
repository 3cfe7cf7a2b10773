"""The Java classes of Penstock, compiled in the driver by the Janino that Spark ships: no jar to install, no JDK.

The compiled classes go into a small jar, which is kept in the user's cache folder, and that goes on the class path of
the running driver: Spark loads a catalog by the name of its class.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from penstock.tables.iceberg.manifest.manifest_store import cache_folder

_RESOURCE = "org.codehaus.commons.compiler.util.resource.Resource"
_OPTIONAL = re.compile(r"^ *// if (\w+)\.(\w+)\n.*?^ *// end\n", re.MULTILINE | re.DOTALL)
_URL_LOADER = "org.apache.spark.util.MutableURLClassLoader"
_lock = threading.Lock()


@dataclass(frozen=True)
class _Known:
    """What was found in the JVM of a gateway: to look for it again is several messages each time."""

    gateway: Any
    loader: Any
    lists: Any  # java.util.ArrayList
    constructors: dict[tuple[str, int], Any] = field(default_factory=dict)


_known: dict[int, _Known] = {}


def _known_of(gateway: Any) -> _Known:
    with _lock:
        known = _known.get(id(gateway))
        if known is None or known.gateway is not gateway:
            known = _known[id(gateway)] = _Known(gateway, _loaded(gateway.jvm), gateway.jvm.java.util.ArrayList)
    return known


def java_class(gateway: Any, name: str) -> Any:
    """A compiled class (`java.lang.Class`) in the JVM of a gateway; `Outer$Inner` for nested ones."""
    return _known_of(gateway).loader.loadClass(f"io.penstock.{name}")


def _loaded(jvm: Any) -> Any:
    """A class loader that has the classes: the driver's own where it takes more of them, else one below it."""
    context = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    jar = _jar(jvm, context)
    url = jvm.java.io.File(str(jar)).toURI().toURL()
    if context.getClass().getName() == _URL_LOADER:
        loader = context
        loader.addURL(url)
    else:
        urls = jvm.java.lang.reflect.Array.newInstance(url.getClass(), 1)
        urls[0] = url
        loader = jvm.org.apache.spark.util.MutableURLClassLoader(urls, context)
    # All of them now: when a client of the Thrift server leaves, Hive closes the loader, which then finds no new ones.
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            loader.loadClass(name.removesuffix(".class").replace("/", "."))
    return loader


def _jar(jvm: Any, loader: Any) -> Path:
    """A jar with the classes, kept for later sessions under a name that says what it was made from."""
    texts = files("penstock.spark").joinpath("jvm").iterdir()
    sources = {file.name: _of_this_version(jvm, file.read_text()) for file in texts if file.name.endswith(".java")}
    made_from = [jvm.org.apache.spark.package.SPARK_VERSION(), *(sources[name] for name in sorted(sources))]
    folder = _folder()
    jar = folder / f"{sha256(chr(0).join(made_from).encode()).hexdigest()[:32]}.jar"
    if not _is_own(jar):
        place, unfinished = tempfile.mkstemp(suffix=".tmp", dir=folder)
        with os.fdopen(place, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for name, code in _compiled(jvm, loader, sources).items():
                archive.writestr(name, code)
        os.replace(unfinished, jar)
    return jar


def _of_this_version(jvm: Any, text: str) -> str:
    """The text of a class, without what is between `// if TableCatalog.method` and `// end` where Spark lacks it."""

    def known(part: re.Match[str]) -> str:
        methods = jvm.java.lang.Class.forName(f"org.apache.spark.sql.connector.catalog.{part[1]}").getMethods()
        return part[0] if part[2] in {method.getName() for method in methods} else ""

    return _OPTIONAL.sub(known, text)


def _folder() -> Path:
    """A folder in the user's cache; one of its own for this process where there is none that can be written."""
    base = cache_folder()
    with suppress(OSError):
        if base is not None:
            folder = base / "classes"
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="penstock-"))


def _is_own(jar: Path) -> bool:
    """Whether this user made the jar, and nobody else may change it."""
    try:
        status = jar.stat()
    except OSError:
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _compiled(jvm: Any, loader: Any, sources: Mapping[str, str]) -> dict[str, bytes]:
    """The files of the classes, by name."""
    resource = jvm.org.codehaus.commons.compiler.util.resource
    units = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName(_RESOURCE), len(sources))
    for i, (name, text) in enumerate(sources.items()):
        units[i] = resource.StringResource(f"io/penstock/{name}", text)
    codes = jvm.java.util.HashMap()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(resource.MapResourceCreator(codes))
    compiler.setSourceVersion(8)  # interfaces may have static methods
    compiler.setTargetVersion(8)
    compiler.compile(units)
    return {name: bytes(codes.get(name)) for name in codes.keySet().toArray()}


def call(gateway: Any, name: str, method: str, *arguments: Any) -> Any:
    """What a static method of a compiled class returns."""
    candidate = next(m for m in java_class(gateway, name).getMethods() if m.getName() == method)
    return candidate.invoke(None, _objects(gateway, arguments))


def new(gateway: Any, name: str, *arguments: Any) -> Any:
    """An object of a compiled class, made by its public constructor with as many parameters."""
    known, key = _known_of(gateway).constructors, (name, len(arguments))
    if key not in known:
        constructors = java_class(gateway, name).getConstructors()
        known[key] = next(c for c in constructors if c.getParameterCount() == len(arguments))
    return known[key].newInstance(_objects(gateway, arguments))


def _objects(gateway: Any, values: Iterable[Any]) -> Any:
    objects = _known_of(gateway).lists()  # py4j puts Python objects into lists, but not into arrays
    for value in values:
        objects.add(value)
    return objects.toArray()
