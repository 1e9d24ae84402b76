"""The bar of `attendo.train`: on a terminal, in a notebook, and nowhere."""

from __future__ import annotations

import io
import sys
from types import ModuleType

import pytest
import rich.console
from rich.console import Console

from attendo.training import show_progress
from attendo.training.progress import NullReporter, ProgressReporter


class Handle:
    """What IPython returns for an output that can be rewritten."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, content, *, raw) -> None:
        assert raw
        self.shown.append(content["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """Pretend to be in a notebook; give the lines that its output has shown."""
    shown: list[str] = []
    module = ModuleType("IPython.display")

    def display(content, *, raw, display_id) -> Handle:
        assert raw
        assert display_id
        shown.append(content["text/plain"])
        return Handle(shown)

    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    return shown


def test_a_notebook_rewrites_one_line_and_prints_messages(notebook, capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(show_progress.time, "monotonic", lambda: now[0])
    with show_progress.show_progress("auto") as reporter:
        for step in range(1, 5):
            now[0] += 0.1
            reporter.step(step, 8, {"loss": f"{step}.0"})
        reporter.message("[bold] dev")
        now[0] += 10
        reporter.step(6, 8, {"loss": "6.0"})
        reporter.stage("averaging", 0, None)
    assert [line.split()[0] for line in notebook] == [
        "training", "training", "training", "averaging", "done"
    ]  # fmt: skip
    assert notebook[0].endswith("1/8  loss 1.0")
    assert notebook[2].endswith("6/8  loss 6.0  0:00:04 left")
    assert "━" in notebook[0]
    assert capsys.readouterr().out == "[bold] dev\n"


def test_an_interrupted_cell_keeps_its_last_line(notebook):
    def interrupted_cell() -> None:
        with show_progress.show_progress("auto") as reporter:
            reporter.step(1, 8, {})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_cell()
    assert len(notebook) == 1


def test_a_terminal_has_the_bar_of_the_command_line(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(rich.console, "Console", lambda: console)
    with show_progress.show_progress("auto") as reporter:
        assert isinstance(reporter, ProgressReporter)
        assert reporter.is_interactive


def test_elsewhere_and_on_request_nothing_is_shown(notebook, monkeypatch):
    with show_progress.show_progress(None) as reporter:
        assert isinstance(reporter, NullReporter)
        reporter.step(1, 2, {})
    mine = NullReporter()
    with show_progress.show_progress(mine) as reporter:
        assert reporter is mine
    assert notebook == []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: False)
    with show_progress.show_progress("auto") as reporter:
        assert isinstance(reporter, NullReporter)
