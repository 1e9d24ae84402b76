"""The examples in docstrings: only modules that have some are imported."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"


def list_modules() -> list[str]:
    """Return the names of modules with a prompt in them."""
    names = []
    for path in sorted(SOURCES.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCES).with_suffix("").parts
            names.append(".".join(part for part in parts if part != "__init__"))
    return names


@pytest.mark.parametrize("name", list_modules())
def test_examples_in_docstrings(name):
    module = import_module(name)
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    examples = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    for test in examples:
        runner.run(test, out=failures.append)
    assert examples
    assert not runner.failures, "".join(failures)
