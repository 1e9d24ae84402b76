"""Every script in examples/ runs as its docstring says, and does what it promises."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest


def run_example(repository, name: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, repository / "examples" / name, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    ).stdout


def test_every_example_has_a_test_here(repository):
    names = {path.name for path in (repository / "examples").glob("*.py")}
    assert names == {"attention_by_hand.py", "say_it_backwards.py"}


def test_attention_by_hand(repository):
    printed = run_example(repository, "attention_by_hand.py")
    assert "0.0009    0.9088    0.0903" in printed
    assert "1.9926    7.4796    0.7359" in printed


@pytest.mark.slow
def test_say_it_backwards_is_learnt_and_the_attention_shows_it(repository):
    example = runpy.run_path(str(repository / "examples" / "say_it_backwards.py"))
    model = example["train"](500)
    assert example["accuracy"](model) > 0.9
    rows = [line[8:] for line in example["draw_attention"](model).splitlines()[1:]]
    darkest = [row.index(max(row, key=example["SHADES"].index)) // 3 for row in rows]
    assert sum(place == 7 - row for row, place in enumerate(darkest)) >= 6
