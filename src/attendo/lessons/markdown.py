"""Lessons for the documentation: the same blocks as Markdown with pictures beside it."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING

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
from attendo.lessons.charts import draw_chart
from attendo.lessons.numbers import write_answer, write_cell, write_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.lesson import Lesson


class Page:
    """A page that is being written: its text, and the pictures that belong to it."""

    def __init__(self, name: str, lang: Lang) -> None:
        self.name, self.lang = name, lang
        self.parts: list[str] = []
        self.pictures: dict[str, bytes] = {}

    def add(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(text)

    def add_picture(self, data: bytes, caption: str) -> None:
        """Add a picture in a file of its own."""
        file = f"{self.name}-{len(self.pictures) + 1}.{self.lang}.svg"
        self.pictures[file] = data
        self.add(f"![{caption}]({file})")

    @property
    def text(self) -> str:
        """Give all of it."""
        return "\n\n".join(self.parts) + "\n"


def write_page(lesson: Lesson, blocks: Sequence[Block], lang: Lang) -> Page:
    """Write a whole lesson."""
    page = Page(f"lesson-{lesson.number:02d}", lang)
    page.add(f"# {lesson.number}. {lesson.title.say(lang)}")
    page.add(lesson.summary.say(lang))
    for block in blocks:
        write(block, page)
    page.add(f"## {'Questions' if lang == 'en' else '문제'}")
    for number, question in enumerate(lesson.questions, 1):
        answer = question.answer()
        told = answer if isinstance(answer, str) else write_answer(float(answer))
        named = say(dict(question.choices).get(told, told), lang)
        page.add(f"{number}. {set_words(question.prompt.say(lang))}")
        head = "answer" if lang == "en" else "답"
        why = set_words(question.why.say(lang))
        page.add(f'    ??? question "{head}"\n        <strong>{named}</strong>. {why}')
    command = f"`attendo lessons {lesson.number}{' --lang ko' if lang == 'ko' else ''}`"
    places = ", ".join(f"`{file}:{line}`" for file, line in (one.find() for one in lesson.code))
    section = "the paper's section" if lang == "en" else "논문"
    page.add(f"{command} · {section} {lesson.paper} · {places}")
    return page


def set_words(text: str) -> str:
    """Set a text for Markdown; bold by tags, which end before a Korean particle too."""
    tags = {"": "{}", "bold": "<strong>{}</strong>", "code": "<code>{}</code>"}
    return "".join(
        tags[style].format(escape(part, quote=False)) for style, part in parse_marks(text)
    )


@singledispatch
def write(block: Block, page: Page) -> None:
    """Write one block."""
    raise TypeError(f"no way to write {type(block).__name__} as Markdown")


@write.register
def _(block: Say, page: Page) -> None:
    page.add(set_words(block.words.say(page.lang)))


@write.register
def _(block: Formula, page: Page) -> None:
    page.add(f"    {block.text}")


@write.register
def _(block: Note, page: Page) -> None:
    page.add(f'!!! note ""\n    {set_words(block.words.say(page.lang))}')


@write.register
def _(block: Matrix, page: Page) -> None:
    columns = block.columns or [""] * len(block.values[0])
    rows = block.rows or [""] * len(block.values)
    cells = [[write_number(number, block.digits) for number in row] for row in block.values]
    _write_rows(
        page,
        [say(block.title, page.lang), *columns],
        [[label, *row] for label, row in zip(rows, cells, strict=True)],
    )


@write.register
def _(block: Table, page: Page) -> None:
    title = say(block.title, page.lang)
    if title:
        page.add(f"<strong>{escape(title)}</strong>")
    _write_rows(
        page,
        [say(header, page.lang) for header in block.headers],
        [[write_cell(value, block.digits, page.lang) for value in row] for row in block.rows],
    )


def _write_rows(page: Page, headers: list[str], rows: list[list[str]]) -> None:
    rule = [":--", *["--:"] * (len(headers) - 1)]
    lines = [[escape(cell).replace("|", "\\|") for cell in row] for row in (headers, *rows)]
    lines.insert(1, rule)
    page.add("\n".join("| " + " | ".join(line) + " |" for line in lines))


@write.register
def _(block: Chart, page: Page) -> None:
    page.add_picture(draw_chart(block, page.lang), say(block.title, page.lang))


@write.register
def _(block: Frames, page: Page) -> None:
    page.add(f"<strong>{escape(say(block.title, page.lang))}</strong>")
    for number, frame in enumerate(block.frames, 1):
        page.add(f"{number}/{len(block.frames)} {set_words(say(frame.title, page.lang))}")
        for one in frame.blocks:
            write(one, page)


@write.register
def _(block: Drawing, page: Page) -> None:
    page.add(set_words(block.caption.say(page.lang)))
