"""Lessons in a terminal: rich tables, shaded matrices, and charts made of characters."""

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

from attendo.lessons.answers import LETTERS
from attendo.lessons.blocks import (
    Block,
    Chart,
    Code,
    Formula,
    Lang,
    LocalizedMatrix,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Steps,
    Table,
    localize,
    parse_markup,
)
from attendo.lessons.diagrams.machine import Machine, machine_text
from attendo.lessons.diagrams.shapes import Diagram
from attendo.lessons.excerpts.by_lesson import HEADING
from attendo.lessons.excerpts.source import highlight
from attendo.lessons.prose import Prose
from attendo.lessons.render.column_layout import WidthAware, shrink_columns, split_columns
from attendo.lessons.render.number_format import format_answer, format_cell, format_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.lessons.lesson import Lesson, Question

prose = Prose("attendo.lessons")

SHADES = ("", "on grey15", "on grey23", "on grey30", "on grey37", "on grey46")
BAR_WIDTH, PLOT_WIDTH, PLOT_HEIGHT = 36, 60, 12
MARKERS = "●▲■◆○△□◇"
CODE_STYLES = {
    "": "",
    "keyword": "magenta",
    "string": "green",
    "number": "blue",
    "comment": "dim",
    "definition": "bold cyan",
    "builtin": "cyan",
}
DRAWN_BY_PICTURES = prose("drawn-by-pictures")
COLUMN_PADDING = 3
"""Padding and border of a table column, in characters."""


def render_lesson(lesson: Lesson, blocks: Sequence[Block], lang: Lang) -> RenderableType:
    """Return a whole lesson: title, blocks, the section of the paper and the code."""
    heading = RichText(f"{lesson.number}. {lesson.title.localize(lang)}", style="bold")
    code_locations = ", ".join(
        f"{file}:{line}" for file, line in (one.locate() for one in lesson.code)
    )
    section = prose("paper-section", section=lesson.paper).localize(lang)
    footer = RichText(f"{section} · {code_locations}", style="dim")
    summary = RichText(lesson.summary.localize(lang), style="italic")
    return Group(heading, summary, "", render_blocks(blocks, lang), footer)


def render_blocks(blocks: Sequence[Block], lang: Lang) -> RenderableType:
    """Return blocks one below the other, with a blank line after each."""
    return Group(*(Padding(render_block(block, lang), (0, 0, 1, 2)) for block in blocks))


def render_questions(
    lesson: Lesson, lang: Lang, *, with_answers: bool = False, with_hints: bool = False
) -> RenderableType:
    """Return the questions, on request with their hints and their computed answers."""
    lines: list[RenderableType] = []
    for number, question in enumerate(lesson.questions, 1):
        prompt = f"{number}) {question.prompt.localize(lang)}"
        if question.choices:
            labels = (localize(label, lang) for _, label in question.choices)
            listed = (f"{letter}) {label}" for letter, label in zip(LETTERS, labels, strict=False))
            prompt += "  [" + " / ".join(listed) + "]"
        lines.append(render_markup(prompt))
        if with_hints:
            lines += [_indent(hint.localize(lang)) for hint in number_hints(question)]
        if with_answers:
            answer = question.answer()
            answer_text = answer if isinstance(answer, str) else format_answer(float(answer))
            answer_label = dict(question.choices).get(answer_text, answer_text)
            why = question.explanation.localize(lang)
            lines.append(_indent(f"**{localize(answer_label, lang)}**. {why}"))
    return Group(*lines)


def number_hints(question: Question) -> list[LocalizedText]:
    """Return the hints of a question with their numbers, from the vaguest to the clearest."""
    return [prose("numbered-hint", number=n, hint=one) for n, one in enumerate(question.hints, 1)]


def _indent(text: str) -> RenderableType:
    return Padding(render_markup(text), (0, 0, 0, 3))


def render_markup(text: str) -> RichText:
    """Return a text with its bold and code parts."""
    styles = {"": "", "bold": "bold", "code": "cyan"}
    return RichText.assemble(*((part, styles[style]) for style, part in parse_markup(text)))


@singledispatch
def render_block(block: Block, lang: Lang) -> RenderableType:
    """Return one block."""
    raise TypeError(f"no way to show {type(block).__name__} in a terminal")


@render_block.register
def _(block: Paragraph, lang: Lang) -> RenderableType:
    return render_markup(block.words.localize(lang))


@render_block.register
def _(block: Formula, lang: Lang) -> RenderableType:
    return WidthAware(lambda width: _render_formula(block.text, width))


def _render_formula(text: str, width: int) -> RenderableType:
    """Return formulas on one line, or one per line if they do not fit."""
    lines = [text] if cell_len(text) + 4 <= width else re.split(r" {3,}", text)
    return Group(*(RichText(f"    {line}", style="bold cyan") for line in lines))


@render_block.register
def _(block: Note, lang: Lang) -> RenderableType:
    return Panel(
        render_markup(block.words.localize(lang)), box=SIMPLE, border_style="yellow", padding=(0, 1)
    )


@render_block.register
def _(block: Matrix, lang: Lang) -> RenderableType:
    title = RichText(f"{localize(block.title, lang)} =", style="bold")
    matrix = block.localize(lang)
    return Group(title, WidthAware(lambda width: Group(*_render_matrix(matrix, width))))


def _render_matrix(block: LocalizedMatrix, max_width: int) -> Iterator[RichText]:
    """Yield the rows; rows that are too long come in parts, one below the other."""
    widths = _column_widths(block, max_width - _margin(block) - 1)
    parts = split_columns(widths, max_width - _margin(block) - 1)
    largest = max((abs(number) for row in block.values for number in row), default=0.0) or 1.0
    names = block.columns or [str(index + 1) for index in range(len(widths))]
    for part in parts:
        if block.columns or len(parts) > 1:
            head = " ".join(_align_right(names[column], widths[column]) for column in part)
            yield RichText(" " * (_margin(block) + 1) + head, style="dim")
        for index, row in enumerate(block.values):
            label = block.rows[index] if block.rows else ""
            line = RichText(f"{_align_right(label, _margin(block))} ", style="dim")
            for column in part:
                fraction = abs(row[column]) / largest
                style = SHADES[round(fraction * (len(SHADES) - 1))] if block.shade else ""
                cell = format_number(row[column], block.digits)
                line.append(_align_right(cell, widths[column]), style=style)
                line.append(" ")
            yield line


def _column_widths(block: LocalizedMatrix, max_width: int) -> list[int]:
    """Return equal widths for all columns, or each its own if that is too much."""
    natural_widths = [
        max(cell_len(format_number(number, block.digits)) for number in column)
        for column in zip(*block.values, strict=True)
    ]
    if block.columns:
        natural_widths = [
            max(width, cell_len(name))
            for width, name in zip(natural_widths, block.columns, strict=True)
        ]
    widest = max(natural_widths, default=0)
    return (
        natural_widths
        if (widest + 1) * len(natural_widths) > max_width
        else [widest] * len(natural_widths)
    )


def _margin(block: LocalizedMatrix) -> int:
    return max((cell_len(label) for label in block.rows or [""]), default=0)


def _align_right(text: str, width: int) -> str:
    """Return a text padded on the left; a Hangul letter is two columns wide."""
    return " " * (width - cell_len(text)) + text


@render_block.register
def _(block: Table, lang: Lang) -> RenderableType:
    return WidthAware(lambda width: _render_table(block, lang, width))


def _render_table(block: Table, lang: Lang, max_width: int) -> RichTable:
    """Return a table; columns shrink before words break."""
    rows = [[format_cell(value, block.digits, lang) for value in row] for row in block.rows]
    headers = [localize(header, lang) for header in block.headers]
    columns = list(zip(headers, *rows, strict=True))
    widths = shrink_columns(
        [max(map(cell_len, column)) for column in columns],
        [
            max(cell_len(word) for cell in column for word in [*cell.split(), ""])
            for column in columns
        ],
        max_width - COLUMN_PADDING * len(columns) - 1,
    )
    table = RichTable(
        box=SIMPLE_HEAD, title=localize(block.title, lang) or None, title_justify="left"
    )
    for index, (header, width) in enumerate(zip(headers, widths, strict=True)):
        table.add_column(header, justify="left" if index == 0 else "right", width=width)
    for row in rows:
        table.add_row(*map(RichText, row))
    return table


@render_block.register
def _(block: Chart, lang: Lang) -> RenderableType:
    title = RichText(localize(block.title, lang), style="bold")
    body = _render_bars(block, lang) if block.form == "bars" else _render_lines(block, lang)
    return Group(title, *body)


def _render_bars(block: Chart, lang: Lang) -> list[RenderableType]:
    numbers = [n for one in block.series for n in one.values if n is not None]
    largest = max((abs(number) for number in numbers), default=0.0) or 1.0
    margin = max(cell_len(str(name)) for name in block.x)
    lines: list[RenderableType] = []
    for index, name in enumerate(block.x):
        for mark, one in zip(MARKERS, block.series, strict=False):
            number = one.values[index]
            bar = "█" * round(BAR_WIDTH * abs(number or 0.0) / largest)
            value_text = "" if number is None else format_number(number, _digits(numbers))
            key = f" {mark}" if len(block.series) > 1 else ""
            lines.append(RichText(f"{_align_right(str(name), margin)}{key} {bar} {value_text}"))
    return [*lines, *_legend(block, lang)]


def _digits(numbers: Sequence[float]) -> int:
    """Return the number of decimals: none for large numbers, four for fractions."""
    largest = max(map(abs, numbers), default=0.0)
    return 4 if largest <= 1 else 2 if largest < 10 else 1


def _render_lines(block: Chart, lang: Lang) -> list[RenderableType]:
    """Return lines as points in a grid of characters."""
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
    for mark, one in zip(MARKERS, series, strict=False):
        for x, number in zip(xs, one, strict=True):
            if number is not None:
                column = round((x - xs[0]) / ((xs[-1] - xs[0]) or 1.0) * (PLOT_WIDTH - 1))
                row = round((number - low) / ((high - low) or 1.0) * (PLOT_HEIGHT - 1))
                grid[PLOT_HEIGHT - 1 - row][column] = mark
    top, bottom = (10**high, 10**low) if block.log_y else (high, low)
    labels = [format_number(top, 3), *[""] * (PLOT_HEIGHT - 2), format_number(bottom, 3)]
    margin = max(map(len, labels))
    lines: list[RenderableType] = [
        RichText(f"{label:>{margin}} │{''.join(row)}")
        for label, row in zip(labels, grid, strict=True)
    ]
    first, last = (format_number(float(x), 3) for x in (block.x[0], block.x[-1]))
    ends = f"{first} … {last}  {localize(block.x_label, lang)}"
    lines += [RichText(" " * margin + " └" + "─" * PLOT_WIDTH), RichText(" " * (margin + 2) + ends)]
    return [*lines, *_legend(block, lang)]


def _legend(block: Chart, lang: Lang) -> list[RenderableType]:
    if len(block.series) < 2:
        return []
    names = (
        f"{mark} {localize(one.label, lang)}"
        for mark, one in zip(MARKERS, block.series, strict=False)
    )
    return [RichText("   ".join(names), style="dim")]


@render_block.register
def _(block: Steps, lang: Lang) -> RenderableType:
    parts: list[RenderableType] = [RichText(localize(block.title, lang), style="bold")]
    for number, frame in enumerate(block.frames, 1):
        parts.append(
            RichText(f"{number}/{len(block.frames)}  {localize(frame.title, lang)}", style="cyan")
        )
        parts += [Padding(render_block(one, lang), (0, 0, 0, 2)) for one in frame.blocks]
    return Group(*parts)


@render_block.register
def _(block: Code, lang: Lang) -> RenderableType:
    parts: list[RenderableType] = [RichText(HEADING.localize(lang), style="bold")]
    for one in block.listings:
        parts.append(RichText(f"{one.name} · {one.file}:{one.line}", style="dim"))
        for line in highlight(one.text):
            styled = RichText.assemble(*((text, CODE_STYLES[style]) for style, text in line))
            indent = len(styled.plain) - len(styled.plain.lstrip())
            parts.append(Padding(styled[indent:], (0, 0, 0, 2 + indent)))
    return Group(*parts, "", render_markup(block.words.localize(lang)))


@render_block.register
def _(block: ModelPlot, lang: Lang) -> RenderableType:
    return RichText(f"[{block.caption.localize(lang)} · {DRAWN_BY_PICTURES.localize(lang)}]", "dim")


@render_block.register
def _(block: Machine, lang: Lang) -> RenderableType:
    return RichText(machine_text().localize(lang), no_wrap=True)


@render_block.register
def _(block: Diagram, lang: Lang) -> RenderableType:
    if block.text is None:
        how = DRAWN_BY_PICTURES.localize(lang)
        return RichText(f"[{localize(block.title, lang)} · {how}]", "dim")
    return RichText(block.text.localize(lang), no_wrap=True)
