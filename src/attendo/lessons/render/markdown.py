"""Lessons as Markdown pages of the documentation, with their images."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING

from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    Lang,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Steps,
    Table,
    localize,
    parse_markup,
)
from attendo.lessons.own_model import render_plot
from attendo.lessons.prose import Prose
from attendo.lessons.render.charts import plot_chart
from attendo.lessons.render.number_format import format_answer, format_cell, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.lesson import Lesson
    from attendo.lessons.own_model import OwnModelSection

prose = Prose("attendo.lessons")


class MarkdownPage:
    """A page under construction: its text and its images."""

    def __init__(self, name: str, lang: Lang) -> None:
        self.name, self.lang = name, lang
        self.paragraphs: list[str] = []
        self.images: dict[str, bytes] = {}

    def add(self, text: str) -> None:
        """Add a paragraph."""
        self.paragraphs.append(text)

    def add_image(self, data: bytes, caption: str, suffix: str = ".svg") -> None:
        """Add an image in its own file."""
        file = f"{self.name}-{len(self.images) + 1}.{self.lang}{suffix}"
        self.images[file] = data
        self.add(f"![{caption}]({file})")

    @property
    def text(self) -> str:
        """Return the whole text."""
        return "\n\n".join(self.paragraphs) + "\n"


def write_lesson(
    lesson: Lesson, blocks: Sequence[Block], lang: Lang, own_section: OwnModelSection | None = None
) -> MarkdownPage:
    """Return the page of a lesson, with the section on a model or a notice how to get one."""
    page = MarkdownPage(f"lesson-{lesson.number:02d}", lang)
    page.add(f"# {lesson.number}. {lesson.title.localize(lang)}")
    page.add(lesson.summary.localize(lang))
    for block in blocks:
        write_block(block, page)
    page.add(f"## {prose('questions').localize(lang)}")
    for number, question in enumerate(lesson.questions, 1):
        answer = question.answer()
        answer_text = answer if isinstance(answer, str) else format_answer(float(answer))
        answer_label = localize(dict(question.choices).get(answer_text, answer_text), lang)
        page.add(f"{number}. {render_markup(question.prompt.localize(lang))}")
        heading = prose("answer").localize(lang)
        why = render_markup(question.explanation.localize(lang))
        page.add(f'    ??? question "{heading}"\n        <strong>{answer_label}</strong>. {why}')
    command = f"attendo lessons {lesson.number}{' --lang ko' if lang == 'ko' else ''}"
    _write_own_section(own_section, page, command)
    code_locations = ", ".join(
        f"`{file}:{line}`" for file, line in (one.locate() for one in lesson.code)
    )
    section = prose("paper-section", section=lesson.paper).localize(lang)
    page.add(f"`{command}` · {section} · {code_locations}")
    return page


def _write_own_section(
    own_section: OwnModelSection | None, page: MarkdownPage, command: str
) -> None:
    page.add(f"## {prose('own-model').localize(page.lang)}")
    if own_section is None:
        notice = prose("no-model", command=command).localize(page.lang)
        page.add(f'!!! tip ""\n    {render_markup(notice)}')
        return
    for block in own_section.blocks:
        if isinstance(block, ModelPlot):
            page.add_image(
                render_plot(own_section, block, page.lang),
                block.caption.localize(page.lang),
                ".png",
            )
        write_block(block, page)


def render_markup(text: str) -> str:
    """Return a text for Markdown; bold by tags, which also end before a Korean particle."""
    tags = {"": "{}", "bold": "<strong>{}</strong>", "code": "<code>{}</code>"}
    return "".join(
        tags[style].format(escape(part, quote=False)) for style, part in parse_markup(text)
    )


@singledispatch
def write_block(block: Block, page: MarkdownPage) -> None:
    """Add one block to a page."""
    raise TypeError(f"no way to write {type(block).__name__} as Markdown")


@write_block.register
def _(block: Paragraph, page: MarkdownPage) -> None:
    page.add(render_markup(block.words.localize(page.lang)))


@write_block.register
def _(block: Formula, page: MarkdownPage) -> None:
    page.add(f"    {block.text}")


@write_block.register
def _(block: Note, page: MarkdownPage) -> None:
    page.add(f'!!! note ""\n    {render_markup(block.words.localize(page.lang))}')


@write_block.register
def _(block: Matrix, page: MarkdownPage) -> None:
    columns = block.columns or [""] * len(block.values[0])
    rows = block.rows or [""] * len(block.values)
    cells = [[format_number(number, block.digits) for number in row] for row in block.values]
    _write_rows(
        page,
        [localize(block.title, page.lang), *columns],
        [[label, *row] for label, row in zip(rows, cells, strict=True)],
    )


@write_block.register
def _(block: Table, page: MarkdownPage) -> None:
    title = localize(block.title, page.lang)
    if title:
        page.add(f"<strong>{escape(title)}</strong>")
    _write_rows(
        page,
        [localize(header, page.lang) for header in block.headers],
        [[format_cell(value, block.digits, page.lang) for value in row] for row in block.rows],
    )


def _write_rows(page: MarkdownPage, headers: list[str], rows: list[list[str]]) -> None:
    rule = [":--", *["--:"] * (len(headers) - 1)]
    lines = [[escape(cell).replace("|", "\\|") for cell in row] for row in (headers, *rows)]
    lines.insert(1, rule)
    page.add("\n".join("| " + " | ".join(line) + " |" for line in lines))


@write_block.register
def _(block: Chart, page: MarkdownPage) -> None:
    page.add_image(plot_chart(block, page.lang), localize(block.title, page.lang))


@write_block.register
def _(block: Steps, page: MarkdownPage) -> None:
    page.add(f"<strong>{escape(localize(block.title, page.lang))}</strong>")
    charts = [one for frame in block.frames for one in frame.blocks if isinstance(one, Chart)]
    if _is_one_table(block, charts):
        _write_steps(block, charts, page)
        return
    for number, frame in enumerate(block.frames, 1):
        page.add(f"{number}/{len(block.frames)} {render_markup(localize(frame.title, page.lang))}")
        for one in frame.blocks:
            write_block(one, page)


def _is_one_table(block: Steps, charts: list[Chart]) -> bool:
    """Return whether every frame is one series over the same names, so that a table can show it."""
    is_alike = all(one.x == charts[0].x and len(one.series) == 1 for one in charts)
    has_more = any(len(frame.blocks) != 1 for frame in block.frames)
    return is_alike and not has_more and len(charts) == len(block.frames)


def _write_steps(block: Steps, charts: list[Chart], page: MarkdownPage) -> None:
    page.add(escape(localize(charts[0].title, page.lang)))
    rows = [
        [
            localize(frame.title, page.lang),
            *(format_cell(n, 3, page.lang) for n in one.series[0].values),
        ]
        for frame, one in zip(block.frames, charts, strict=True)
    ]
    _write_rows(page, ["", *map(str, charts[0].x)], rows)


@write_block.register
def _(block: ModelPlot, page: MarkdownPage) -> None:
    page.add(f"<small>{render_markup(block.caption.localize(page.lang))}</small>")
