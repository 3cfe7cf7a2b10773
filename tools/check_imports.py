"""Which package of Penstock may import which, and where the heavy libraries may be imported.

Dependencies point downwards only, so that planning works where neither Spark nor Java is installed, and
every package can be understood with those below it alone. The rules are the tables below; the rest of the
module reads the sources with `ast`, runs nothing of them, and names every import that breaks a rule:

    src/penstock/progress.py:7: progress imports penstock.tables.hive; allowed: errors, deprecation, progress
    src/penstock/report/page.py:9: report imports penstock.lake.lake; allowed: what tables.source.Source provides

An import inside a function or under TYPE_CHECKING is a dependency all the same and obeys the layers; only
the rule on startup time lets it pass. Names that are put together at run time are not seen.

    python tools/check_imports.py [src/penstock]
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# From the bottom: each may import those before it, and itself.
LAYERS = (
    "errors",
    "deprecation",
    "progress",
    "quantities",
    "expr",
    "prune",
    "storage",
    "formats",
    "maps",
    "stream",
    "tables",
    "lake",
    "spark",
    "report",
    "cli",
    "__main__",
)

# What every package may take from `penstock` itself; the public surface lies above them all.
ROOT_NAMES = frozenset({"__version__"})

# Library -> the packages that may import it. A library that is not named here is free.
LIBRARIES = {
    "pyspark": frozenset({"spark", "report", "cli"}),
    "py4j": frozenset({"spark", "report", "cli"}),
    "click": frozenset({"cli"}),
    "rich": frozenset({"progress", "report", "cli"}),
}

# The public surface promises `table.dataframe(spark)`: the one module that keeps it reaches up, inside a function.
BRIDGES = {("tables/bridge.py", "spark")}

# What is known of one kind of table stays in its folder. These packages see tables as `tables.source.Source`: of the
# modules on the right they import nothing but the names in OPENERS. "spark" is its folders that serve every kind.
KINDS = ("tables.hive", "tables.iceberg", "tables.memory", "tables.metastore")
BEHIND_SOURCE = {
    "report": (*KINDS, "lake"),
    "cli": KINDS,
    "spark/session": KINDS,
    "spark/stream": KINDS,
    "spark/scan/dataframe": KINDS,
    "spark/scan/planner": KINDS,
}
OPENERS = frozenset(
    {
        "tables.hive.hive_table.hive",
        "tables.iceberg.metadata.catalogs.iceberg",
        # Not about tables, and still in the folder of one kind:
        "tables.hive.directory_names.is_hidden",
        "tables.iceberg.manifest.manifest_store.cache_folder",
        "tables.iceberg.metadata.catalogs.clear_errors",
    }
)

# Where startup time counts, these are imported inside functions only. "" is penstock/__init__.py.
STARTUP = frozenset({"", "progress", "cli"})
HEAVY = ("pyiceberg", "pyspark", "pyarrow.dataset", "duckdb", "rich")


@dataclass(frozen=True)
class Import:
    """One imported name, written out in full, and whether merely importing its module runs it."""

    name: str
    line: int
    at_startup: bool


def check_tree(root: Path) -> list[str]:
    """Every broken rule in the package whose folder is `root`, as `file:line: what is wrong`."""
    return [problem for path in sorted(root.rglob("*.py")) for problem in check_file(path, root)]


def check_file(path: Path, root: Path) -> list[str]:
    """Every broken rule in one file of the package whose folder is `root`."""
    inside = path.relative_to(root).with_suffix("").parts
    layer = "" if inside == ("__init__",) else inside[0]
    if layer and layer not in LAYERS:
        return [f"{path}:1: {layer} is in no layer; give it a place in LAYERS of tools/check_imports.py"]
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        return [f"{path}:{error.lineno or 1}: cannot be parsed: {error.msg}"]
    # The package that a relative import starts from: the same for a/__init__.py and for a/b.py.
    package = (root.name, *inside[:-1])
    found = sorted(_imports(tree, package), key=lambda item: item.line)
    return [
        f"{path}:{item.line}: {problem}"
        for item in found
        if (problem := _broken_rule(item, layer, root.name) or _broken_seam(item, "/".join(inside), root.name))
        and not _is_bridge(item, "/".join(inside))
    ]


def _is_bridge(item: Import, module: str) -> bool:
    return not item.at_startup and any(
        (f"{module}.py", item.name.split(".")[1]) == bridge for bridge in BRIDGES if "." in item.name
    )


def _broken_rule(item: Import, layer: str, root: str) -> str | None:
    who = layer or f"{root}/__init__.py"
    if item.name == "":
        return f"{who} has a relative import that leaves {root}; allowed: {root} and below"
    if layer in STARTUP and item.at_startup and _is_below(item.name, HEAVY):
        return f"{who} imports {item.name} when it starts; allowed: inside a function"
    if layer == "":
        return None
    if _is_below(item.name, (root,)):
        return _broken_layer(item, layer, root)
    library = item.name.partition(".")[0]
    if library in LIBRARIES and layer not in LIBRARIES[library]:
        allowed = ", ".join(name for name in LAYERS if name in LIBRARIES[library])
        return f"{layer} imports {item.name}; allowed only in: {allowed}"
    return None


def _broken_layer(item: Import, layer: str, root: str) -> str | None:
    target = item.name.removeprefix(root).removeprefix(".").partition(".")[0]
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    if target in allowed or target in ROOT_NAMES:
        return None
    return f"{layer} imports {item.name}; allowed: {', '.join(allowed)}"


def _broken_seam(item: Import, module: str, root: str) -> str | None:
    name = item.name.removeprefix(f"{root}.")
    for package, kinds in BEHIND_SOURCE.items():
        if f"{module}/".startswith(f"{package}/") and _is_below(name, kinds):
            allowed = name in OPENERS and "lake" not in kinds
            return None if allowed else f"{package} imports {item.name}; allowed: what tables.source.Source provides"
    return None


def _is_below(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[Import]:
    todo: list[tuple[ast.AST, bool]] = [(tree, True)]
    while todo:
        node, at_startup = todo.pop()
        for name in _imported_names(node, package):
            yield Import(name, getattr(node, "lineno", 1), at_startup)
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            todo += [(child, False) for child in node.body]
            todo += [(child, at_startup) for child in node.orelse]
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_startup = False
        todo += [(child, at_startup) for child in ast.iter_child_nodes(node)]


def _imported_names(node: ast.AST, package: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.level > len(package):
            return [""]
        base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (base, node.module) if part)
        return [f"{module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call):
        return _dynamic_import(node)
    return []


def _dynamic_import(call: ast.Call) -> list[str]:
    """The name in `import_module("x")` or `__import__("x")`, when it is written out."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function not in ("import_module", "__import__") or not call.args:
        return []
    name = call.args[0]
    return [name.value] if isinstance(name, ast.Constant) and isinstance(name.value, str) else []


def _is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def main(arguments: list[str]) -> int:
    """Check one tree, by default the package beside this folder, and print what is wrong with it."""
    root = Path(arguments[0]) if arguments else Path(__file__).parents[1] / "src" / "penstock"
    if not (root / "__init__.py").is_file():
        print(f"{root}: not a package; expected the folder of penstock", file=sys.stderr)
        return 2
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
