"""Every example in a docstring runs."""

import doctest
import importlib
import pkgutil

import pytest

import penstock

MODULES = [m.name for m in pkgutil.walk_packages(penstock.__path__, "penstock.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
