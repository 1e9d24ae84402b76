"""Lessons in a terminal: rich tables, shaded matrices, small drawings made of characters."""

from __future__ import annotations

import re
from functools import singledispatch
from typing import TYPE_CHECKING

from rich.box import SIMPLE, SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text as RichText

from attendo.lessons.blocks import (
    Block,
    Chart,
    Drawing,
    Formula,
    Frames,
    Lang,
    Matrix,
    Note,
    Say,
    Table,
    parse_marks,
    say,
)
from attendo.lessons.fitting import Fitted, narrow, share_out
from attendo.lessons.numbers import write_answer, write_cell, write_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.lessons.lesson import Lesson

SHADES = ("", "on grey15", "on grey23", "on grey30", "on grey37", "on grey46")
BAR_WIDTH, PLOT_WIDTH, PLOT_HEIGHT = 36, 60, 12
MARKS = "●▲■◆○△□◇"
BESIDE = 3
"""Characters beside what stands in a column of a table."""


def show_lesson(lesson: Lesson, blocks: Sequence[Block], lang: Lang) -> RenderableType:
    """Set a whole lesson: title, blocks, the code and the paper's section."""
    head = RichText(f"{lesson.number}. {lesson.title.say(lang)}", style="bold")
    places = ", ".join(f"{file}:{line}" for file, line in (one.find() for one in lesson.code))
    section = "paper, section" if lang == "en" else "논문"
    foot = RichText(f"{section} {lesson.paper} · {places}", style="dim")
    shown = [Padding(show(block, lang), (0, 0, 1, 2)) for block in blocks]
    return Group(head, RichText(lesson.summary.say(lang), style="italic"), "", *shown, foot)


def show_questions(lesson: Lesson, lang: Lang, *, with_answers: bool = False) -> RenderableType:
    """Set the questions, and if asked their answers, computed now."""
    lines: list[RenderableType] = []
    for number, question in enumerate(lesson.questions, 1):
        prompt = f"{number}) {question.prompt.say(lang)}"
        if question.choices:
            prompt += "  [" + " / ".join(say(label, lang) for _, label in question.choices) + "]"
        lines.append(set_words(prompt))
        if with_answers:
            answer = question.answer()
            told = answer if isinstance(answer, str) else write_answer(float(answer))
            named = dict(question.choices).get(told, told)
            lines.append(
                Padding(
                    set_words(f"**{say(named, lang)}**. {question.why.say(lang)}"), (0, 0, 0, 3)
                )
            )
    return Group(*lines)


def set_words(text: str) -> RichText:
    """Set a text with its bold and code parts."""
    styles = {"": "", "bold": "bold", "code": "cyan"}
    return RichText.assemble(*((part, styles[style]) for style, part in parse_marks(text)))


@singledispatch
def show(block: Block, lang: Lang) -> RenderableType:
    """Set one block."""
    raise TypeError(f"no way to show {type(block).__name__} in a terminal")


@show.register
def _(block: Say, lang: Lang) -> RenderableType:
    return set_words(block.words.say(lang))


@show.register
def _(block: Formula, lang: Lang) -> RenderableType:
    return Fitted(lambda room: _set_formula(block.text, room))


def _set_formula(text: str, room: int) -> RenderableType:
    """Set formulas beside each other, or one below the other where they do not fit."""
    lines = [text] if cell_len(text) + 4 <= room else re.split(r" {3,}", text)
    return Group(*(RichText(f"    {line}", style="bold cyan") for line in lines))


@show.register
def _(block: Note, lang: Lang) -> RenderableType:
    return Panel(
        set_words(block.words.say(lang)), box=SIMPLE, border_style="yellow", padding=(0, 1)
    )


@show.register
def _(block: Matrix, lang: Lang) -> RenderableType:
    title = RichText(f"{say(block.title, lang)} =", style="bold")
    return Group(title, Fitted(lambda room: Group(*_set_matrix(block, room))))


def _set_matrix(block: Matrix, room: int) -> Iterator[RichText]:
    """Set the rows; those that are too long in parts, one below the other."""
    widths = _column_widths(block, room - _margin(block) - 1)
    parts = share_out(widths, room - _margin(block) - 1)
    largest = max((abs(number) for row in block.values for number in row), default=0.0) or 1.0
    names = block.columns or [str(place + 1) for place in range(len(widths))]
    for part in parts:
        if block.columns or len(parts) > 1:
            head = " ".join(_set_right(names[place], widths[place]) for place in part)
            yield RichText(" " * (_margin(block) + 1) + head, style="dim")
        for place, row in enumerate(block.values):
            label = block.rows[place] if block.rows else ""
            line = RichText(f"{_set_right(label, _margin(block))} ", style="dim")
            for column in part:
                share = abs(row[column]) / largest
                style = SHADES[round(share * (len(SHADES) - 1))] if block.shade else ""
                told = write_number(row[column], block.digits)
                line.append(_set_right(told, widths[column]), style=style)
                line.append(" ")
            yield line


def _column_widths(block: Matrix, room: int) -> list[int]:
    """Give every column the same width, or where that is too much its own."""
    own = [
        max(cell_len(write_number(number, block.digits)) for number in column)
        for column in zip(*block.values, strict=True)
    ]
    if block.columns:
        own = [max(width, cell_len(name)) for width, name in zip(own, block.columns, strict=True)]
    widest = max(own, default=0)
    return own if (widest + 1) * len(own) > room else [widest] * len(own)


def _margin(block: Matrix) -> int:
    return max((cell_len(label) for label in block.rows or [""]), default=0)


def _set_right(text: str, width: int) -> str:
    """Fill up from the left; Hangul takes two places a letter."""
    return " " * (width - cell_len(text)) + text


@show.register
def _(block: Table, lang: Lang) -> RenderableType:
    return Fitted(lambda room: _set_table(block, lang, room))


def _set_table(block: Table, lang: Lang, room: int) -> RichTable:
    """Set a table; columns become narrow before words are broken."""
    rows = [[write_cell(value, block.digits, lang) for value in row] for row in block.rows]
    headers = [say(header, lang) for header in block.headers]
    columns = list(zip(headers, *rows, strict=True))
    widths = narrow(
        [max(map(cell_len, column)) for column in columns],
        [
            max(cell_len(word) for cell in column for word in [*cell.split(), ""])
            for column in columns
        ],
        room - BESIDE * len(columns) - 1,
    )
    table = RichTable(box=SIMPLE_HEAD, title=say(block.title, lang) or None, title_justify="left")
    for place, (header, width) in enumerate(zip(headers, widths, strict=True)):
        table.add_column(header, justify="left" if place == 0 else "right", width=width)
    for row in rows:
        table.add_row(*map(RichText, row))
    return table


@show.register
def _(block: Chart, lang: Lang) -> RenderableType:
    title = RichText(say(block.title, lang), style="bold")
    body = _bars(block, lang) if block.form == "bars" else _lines(block, lang)
    return Group(title, *body)


def _bars(block: Chart, lang: Lang) -> list[RenderableType]:
    numbers = [n for one in block.series for n in one.values if n is not None]
    largest = max((abs(number) for number in numbers), default=0.0) or 1.0
    margin = max(cell_len(str(name)) for name in block.x)
    lines: list[RenderableType] = []
    for place, name in enumerate(block.x):
        for mark, one in zip(MARKS, block.series, strict=False):
            number = one.values[place]
            bar = "█" * round(BAR_WIDTH * abs(number or 0.0) / largest)
            told = "" if number is None else write_number(number, _digits(numbers))
            key = f" {mark}" if len(block.series) > 1 else ""
            lines.append(RichText(f"{_set_right(str(name), margin)}{key} {bar} {told}"))
    return [*lines, *_legend(block, lang)]


def _digits(numbers: Sequence[float]) -> int:
    """Give the decimals that tell these numbers apart: none for large ones, four for shares."""
    largest = max(map(abs, numbers), default=0.0)
    return 4 if largest <= 1 else 2 if largest < 10 else 1


def _lines(block: Chart, lang: Lang) -> list[RenderableType]:
    """Plot points into a grid of characters."""
    from math import log10

    xs = [log10(float(x)) if block.log_x else float(x) for x in block.x]
    series = [
        [
            None if n is None or (block.log_y and n <= 0) else log10(n) if block.log_y else n
            for n in one.values
        ]
        for one in block.series
    ]
    known = [number for one in series for number in one if number is not None]
    if not known or len(xs) < 2:
        return []
    low, high = min(known), max(known)
    grid = [[" "] * PLOT_WIDTH for _ in range(PLOT_HEIGHT)]
    for mark, one in zip(MARKS, series, strict=False):
        for x, number in zip(xs, one, strict=True):
            if number is not None:
                column = round((x - xs[0]) / ((xs[-1] - xs[0]) or 1.0) * (PLOT_WIDTH - 1))
                row = round((number - low) / ((high - low) or 1.0) * (PLOT_HEIGHT - 1))
                grid[PLOT_HEIGHT - 1 - row][column] = mark
    top, bottom = (10**high, 10**low) if block.log_y else (high, low)
    labels = [write_number(top, 3), *[""] * (PLOT_HEIGHT - 2), write_number(bottom, 3)]
    margin = max(map(len, labels))
    lines: list[RenderableType] = [
        RichText(f"{label:>{margin}} │{''.join(row)}")
        for label, row in zip(labels, grid, strict=True)
    ]
    ends = f"{write_number(float(block.x[0]), 3)} … {write_number(float(block.x[-1]), 3)}  {say(block.x_label, lang)}"
    lines += [RichText(" " * margin + " └" + "─" * PLOT_WIDTH), RichText(" " * (margin + 2) + ends)]
    return [*lines, *_legend(block, lang)]


def _legend(block: Chart, lang: Lang) -> list[RenderableType]:
    if len(block.series) < 2:
        return []
    names = (
        f"{mark} {say(one.label, lang)}" for mark, one in zip(MARKS, block.series, strict=False)
    )
    return [RichText("   ".join(names), style="dim")]


@show.register
def _(block: Frames, lang: Lang) -> RenderableType:
    parts: list[RenderableType] = [RichText(say(block.title, lang), style="bold")]
    for number, frame in enumerate(block.frames, 1):
        parts.append(
            RichText(f"{number}/{len(block.frames)}  {say(frame.title, lang)}", style="cyan")
        )
        parts += [Padding(show(one, lang), (0, 0, 0, 2)) for one in frame.blocks]
    return Group(*parts)


@show.register
def _(block: Drawing, lang: Lang) -> RenderableType:
    how = "--pictures draws it" if lang == "en" else "--pictures로 그립니다"
    return RichText(f"[{block.caption.say(lang)} · {how}]", style="dim")
