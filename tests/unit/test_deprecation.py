"""Deprecated names warn at the caller's line, and are removed in the version that their warning names."""

import ast
from pathlib import Path

import pytest

import penstock

SOURCES = sorted(Path(penstock.__file__).parent.rglob("*.py"))


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def calls() -> list[tuple[str, dict[str, str]]]:
    """Where `deprecated(…)` is called, with its keyword arguments."""
    return [
        (f"{path.name}:{node.lineno}", {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg})
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "deprecated"
    ]


def test_a_deprecated_option_warns_at_the_line_that_uses_it() -> None:
    expected = r"Coalesce\(tuples_per_file=…\) is deprecated since 0\.2 and will be removed in 0\.4; use record_bytes="
    with pytest.warns(DeprecationWarning, match=expected) as caught:
        assert penstock.Coalesce("app", tuples_per_file=7) == penstock.Coalesce("app")
    assert [warning.filename for warning in caught] == [__file__]


def test_what_is_deprecated_is_removed_in_the_version_that_the_warning_names() -> None:
    assert calls()
    overdue = [where for where, words in calls() if version(words["removed_in"]) <= version(penstock.__version__)]
    assert overdue == []


def test_what_is_deprecated_works_for_two_minor_versions() -> None:
    for where, words in calls():
        since, removed_in = version(words["since"]), version(words["removed_in"])
        assert removed_in[0] > since[0] or removed_in[1] >= since[1] + 2, where


def test_every_deprecation_warning_comes_from_the_helper() -> None:
    others = [path.name for path in SOURCES if "DeprecationWarning" in path.read_text(encoding="utf-8")]
    assert others == ["deprecation.py"]
