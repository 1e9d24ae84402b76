"""BertViz, for the tests that let it draw."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from types import ModuleType

import pytest


class Shown:
    """What IPython's HTML and Javascript are to BertViz: a text and its `data`."""

    def __init__(self, data):
        self.data = data


@pytest.fixture
def bertviz(monkeypatch):
    """The real BertViz; where IPython is missing, its two holders of text are stood in for."""
    if importlib.util.find_spec("IPython") is None:
        display = ModuleType("IPython.display")
        display.HTML = display.Javascript = Shown
        display.display = pytest.fail  # nothing is shown: the page is returned
        monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
        monkeypatch.setitem(sys.modules, "IPython.display", display)
    for name in [name for name in sys.modules if name.split(".")[0] == "bertviz"]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module("bertviz")


@pytest.fixture
def read_page():
    """Read back what a page of BertViz hands to its script."""

    def read(page: str) -> dict:
        begin = re.search(r"const params = (?=\{)", page).end()
        return json.JSONDecoder().raw_decode(page, begin)[0]

    return read
