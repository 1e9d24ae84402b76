"""What the pages of the lessons must show in a browser, computed by the lessons themselves.

A page must show every line of its lesson, every figure that the terminal output is checked for,
the new lines when an input is changed, and the plots of a trained model.
`frontend/e2e/lessons-live.spec.ts` reads the plan and checks the pages of a real server.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import TYPE_CHECKING

from attendo.lessons import own_model
from attendo.lessons.blocks import (
    LANGUAGES,
    Chart,
    Formula,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Steps,
    Table,
    localize,
    parse_markup,
)
from attendo.lessons.contents import load_lesson
from attendo.lessons.inputs import Grid, Number
from attendo.lessons.render.number_format import format_cell, format_number
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

QUIET = {15: {"measure": False}}
"""What a lesson measures with a clock is another number each time: it is left out."""
CHANGES = {
    0: [],
    1: [{"annotations": (1, 0, 3)}, {"keep": 0.9}],
    2: [{"sentence": "I am a teacher"}, {"d_model": 6}],
    3: [{"position": 10}, {"d_model": 8}, {"layout": "halves"}],
    4: [{"x": (0, 0, 3)}, {"w_q": (0, 0, -2)}, {"scale": False}],
    5: [{"d_k": 16}, {"temperature": "most"}],
    6: [{"num_heads": "4"}, {"sharpness": 2}],
    7: [{"scores": (0, 0, 5)}, {"look_ahead": True}, {"padding": False}],
    8: [{"x": (0, 0, 9)}, {"gamma": 2}, {"residual": False}],
    9: [{"skip": 0.2}, {"num_blocks": 4}],
    10: [{"x": (2, 1, 5)}, {"d_ff": 1024}],
    11: [{"source_length": 7}, {"vocab_size": 40745}],
    12: [{"temperature": 5}],
    13: [{"smoothing": 0.2}, {"warmup": 8000}, {"steps": 40}],
    14: [{"beam_size": 3}, {"alpha": 0}],
    15: [{"n": 128}, {"k": 5}],
    16: [{"merges": 3}, {"new_word": "newer"}],
    17: [{"rate": 0.2}, {"gradients": (0, 1, -1)}, {"dropout": 0.2}, {"pairs": 24}],
    18: [{"hypothesis": "the prince saved the princess"}, {"num_sentences": 50}],
    19: [{"seed": 2}, {"gap": "the bird ___ seeds"}, {"number": 7}],
    20: [{"temperatures": (8, 2, 25)}, {"missing": 5}, {"p": 0.5}],
    21: [{"example": 2}, {"steps": 25}, {"part": "mask"}],
    22: [{"x": (0, 0, 3)}, {"query_position": 9}, {"context": 8192}],
}
"""What is changed, one after the other; of a matrix a row, a column and a number. "most": a slider
is pushed to its end."""


def normalize(text: str) -> str:
    """One kind of minus, one kind of space."""
    return " ".join(text.replace("\N{MINUS SIGN}", "-").split())


def plain(text: str) -> str:
    return "".join(part for _, part in parse_markup(text))


def chart_lines(chart: Chart, lang: str) -> list[str]:
    """The table below a chart, with the digits that the page chooses."""
    most = max((abs(v) for one in chart.series for v in one.values if v is not None), default=0)
    digits = max(4, 2 + math.ceil(-math.log10(most))) if most else 4
    rows = zip(chart.x, *(one.values for one in chart.series), strict=True)
    return [" ".join(format_cell(cell, digits, lang) for cell in row) for row in rows]


def list_lines(blocks, lang: str, *, deep: bool = True) -> list[str]:
    """Return every line of some blocks as shown; with `deep`, also what is collapsed."""
    lines = [line for block in blocks for line in lines_of(block, lang, deep=deep)]
    return [normalize(line) for line in lines if line.strip()]


def lines_of(block, lang: str, *, deep: bool) -> list[str]:
    match block:
        case Paragraph() | Note():
            return [plain(block.words.localize(lang))]
        case Formula():
            return re.split(r" {3,}", block.text)
        case Matrix():
            names = block.localize(lang).rows or [""] * len(block.values)
            rows = zip(names, block.values, strict=True)
            return [
                " ".join([label, *(format_number(n, block.digits) for n in row)])
                for label, row in rows
            ]
        case Table():
            return [" ".join(format_cell(c, block.digits, lang) for c in row) for row in block.rows]
        case Chart() if deep:
            return [localize(block.title, lang), *chart_lines(block, lang)]
        case Steps() if deep:
            parts = (
                [localize(one.title, lang), *list_lines(one.blocks, lang)] for one in block.frames
            )
            return [line for part in parts for line in part]
    return []


def read_change(lesson, name: str, option, given: dict) -> tuple[dict, dict]:
    """Return what the browser does, and the inputs after it."""
    (one,) = (field for field in lesson.inputs if field.name == name)
    what = {"name": name, "kind": one.kind, "value": str(option), "at": ""}
    if isinstance(one, Grid):
        row, column, number = option
        value = [list(cells) for cells in given.get(name, one.default)]
        value[row][column] = number
        what |= {"at": f"{row}-{column}", "value": str(number)}
    elif isinstance(one, Number) and option == "most":
        value, what["kind"] = one.high, "slider"
    else:
        value = option
    return what, {**given, name: value}


def plan_lesson(number: int, lang: str, figures: list[str]) -> dict:
    lesson = load_lesson(number)
    given = dict(QUIET.get(number, {}))
    first = lesson.blocks(given)
    before = list_lines(first, lang)
    changes = []
    for change in CHANGES[number]:
        ((name, option),) = change.items()
        what, given = read_change(lesson, name, option, given)
        blocks = lesson.blocks(given)
        after = list_lines(blocks, lang)
        seen = [block for block in blocks if not isinstance(block, Steps)]  # charts are open now
        fresh = [
            line
            for line in list_lines(seen, lang)
            if line not in before and any(letter.isdigit() for letter in line)
        ]
        assert fresh, f"lesson {number}: {change} shows no new number"
        changes.append({**what, "fresh": fresh, "lines": after})
        before = after
    return {
        "number": number,
        "title": plain(lesson.title.localize(lang)),
        "quiet": sorted(QUIET.get(number, {})),
        "ready": list_lines(first, lang, deep=False),
        "lines": list_lines(first, lang),
        "figures": figures,
        "changes": changes,
    }


def count_pictures(number: int, translator: Translator) -> int:
    """How many pictures of the model a lesson must show."""
    blocks = own_model.build_section(load_lesson(number), translator).blocks
    return sum(isinstance(block, ModelPlot) for block in blocks)


def write_plan(
    path: Path, address: str, lang: str, numbers: Iterable[int], model: Path, repository: Path
) -> None:
    """Write what the pages of these lessons must show at this address."""
    toml = (repository / "tests/unit/lessons/figures.toml").read_text(encoding="utf-8")
    figures = tomllib.loads(toml)["figure"]
    translator = Translator.load(model)
    lessons = []
    for number in numbers:
        shown = [
            one["shown"] if isinstance(one["shown"], str) else one["shown"][lang]
            for one in figures
            if one["lesson"] == number
        ]
        assert shown, number
        # The model draws for some seconds: half of the lessons in each language.
        is_drawn = number % 2 == LANGUAGES.index(lang)
        pictures = count_pictures(number, translator) if is_drawn else None
        lessons.append({**plan_lesson(number, lang, shown), "pictures": pictures})
    plan = {"url": address, "lang": lang, "lessons": lessons}
    path.write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")
