"""Lessons as Markdown pages of the documentation, with their images."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING

from attendo.lessons.blocks import (
    Block,
    Chart,
    Code,
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
from attendo.lessons.diagrams.machine import Machine
from attendo.lessons.diagrams.shapes import Diagram
from attendo.lessons.excerpts.by_lesson import (
    EXCERPTS,
    HEADING,
    PAGE_INTRODUCTION,
    PAGE_TITLE,
)
from attendo.lessons.glossary import other_language, terms_of
from attendo.lessons.own_model import render_plot
from attendo.lessons.prose import Prose
from attendo.lessons.render.charts import plot_chart
from attendo.lessons.render.number_format import format_answer, format_cell, format_number
from attendo.lessons.render.svg import render_diagram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.lessons.lesson import Lesson, Question
    from attendo.lessons.own_model import OwnModelSection

prose = Prose("attendo.lessons")
LESSONS_ON_DRAWING = prose("lessons-on-drawing")


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
    _write_terms(lesson.number, page)
    page.add(f"## {prose('questions').localize(lang)}")
    for paragraph in write_questions(lesson, lang):
        page.add(paragraph)
    command = f"attendo lessons {lesson.number}{' --lang ko' if lang == 'ko' else ''}"
    _write_own_section(own_section, page, command)
    code_locations = ", ".join(
        f"`{file}:{line}`" for file, line in (one.locate() for one in lesson.code)
    )
    section = prose("paper-section", section=lesson.paper).localize(lang)
    page.add(f"`{command}` · {section} · {code_locations}")
    return page


def _write_terms(lesson: int, page: MarkdownPage) -> None:
    """Add the terms that a lesson explains, in both languages, with a link to the glossary."""
    terms = terms_of(lesson, page.lang)
    if not terms:
        return
    other = other_language(page.lang)
    page.add(f"## [{prose('terms').localize(page.lang)}](../glossary.md)")
    lines = [
        f"- <strong>{escape(term.name.localize(page.lang))}</strong> "
        f"({escape(term.name.localize(other))}): {render_markup(term.meaning.localize(page.lang))}"
        for term in terms
    ]
    page.add("\n".join(lines))


def write_questions(lesson: Lesson, lang: Lang) -> Iterator[str]:
    """Yield the questions of a lesson, each with its choices, hints and answer to unfold."""
    for number, question in enumerate(lesson.questions, 1):
        yield f"{number}. {render_markup(question.prompt.localize(lang))}"
        if question.choices:
            yield "\n".join(
                f"    - {render_markup(localize(label, lang))}" for _, label in question.choices
            )
        for n, hint in enumerate(question.hints, 1):
            heading = prose("hint", number=n).localize(lang)
            yield _fold("tip", heading, render_markup(hint.localize(lang)))
        answer, why = render_answer(question, lang)
        yield _fold("question", prose("answer").localize(lang), f"<strong>{answer}</strong>. {why}")


def render_answer(question: Question, lang: Lang) -> tuple[str, str]:
    """Return the answer of a question and its explanation."""
    answer = question.answer()
    answer_text = answer if isinstance(answer, str) else format_answer(float(answer))
    label = localize(dict(question.choices).get(answer_text, answer_text), lang)
    return render_markup(label), render_markup(question.explanation.localize(lang))


def _fold(kind: str, heading: str, text: str) -> str:
    return f'    ??? {kind} "{heading}"\n        {text}'


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
    matrix = block.localize(page.lang)
    columns = matrix.columns or [""] * len(block.values[0])
    rows = matrix.rows or [""] * len(block.values)
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
    lines = [[_escape_cell(cell) for cell in row] for row in (headers, *rows)]
    lines.insert(1, rule)
    page.add("\n".join("| " + " | ".join(line) + " |" for line in lines))


def _escape_cell(text: str) -> str:
    """Return a text for a cell: `|` does not end it, and `[MASK]` is not a link."""
    return escape(text).replace("|", "\\|").replace("[", "&#91;")


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


@write_block.register
def _(block: Machine, page: MarkdownPage) -> None:
    page.add_image(render_diagram(block.wide, page.lang), block.title.localize(page.lang))
    links = (
        f"[{number}](lesson-{number:02d}.md)"
        for number in sorted({one for stage in block.stages for one in stage.lessons})
    )
    page.add(f"{LESSONS_ON_DRAWING.localize(page.lang)} {' · '.join(links)}")


@write_block.register
def _(block: Diagram, page: MarkdownPage) -> None:
    page.add_image(render_diagram(block, page.lang), localize(block.title, page.lang))


@write_block.register
def _(block: Code, page: MarkdownPage) -> None:
    page.add(f"<strong>{HEADING.localize(page.lang)}</strong>")
    for one in block.listings:
        anchor = f"{one.module}.{one.name.partition('.')[0]}"
        page.add(f"[`{one.name}`](code.md#{anchor}) · `{one.file}:{one.line}`")
        page.add(f"```python\n{one.text}\n```")
    page.add(render_markup(block.words.localize(page.lang)))


def write_code_page(lang: Lang) -> str:
    """Return the page with the whole source of what the lessons show."""
    names = {
        f"{one.module}.{one.name.partition('.')[0]}": None
        for excerpts in EXCERPTS.values()
        for one in excerpts
    }
    options = "    options:\n      show_source: true\n      members: false"
    parts = [f"# {PAGE_TITLE.localize(lang)}"]
    parts.append(render_markup(PAGE_INTRODUCTION.localize(lang)))
    return "\n\n".join([*parts, *(f"::: {name}\n{options}" for name in names)]) + "\n"
