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
from attendo.lessons.own_model import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.lesson import Lesson
    from attendo.lessons.own_model import OwnPart

NO_MODEL = {
    "en": "Here the lesson goes on with a model that you have trained yourself. These pages were "
    "built without one: `make quickstart` trains one in two minutes, and `make docs` then shows "
    "its pictures here. `{command} --pictures folder` draws them at once.",
    "ko": "여기서부터는 직접 학습한 모델로 같은 것을 봅니다. 이 페이지는 모델 없이 만들어졌습니다. `make quickstart`로 "
    "2분이면 모델이 생기고, 그다음 `make docs`를 하면 그 모델의 그림이 여기에 들어갑니다. "
    "`{command} --pictures 폴더`로 바로 그려 볼 수도 있습니다.",
}
"""What stands in place of the pictures where there is no model yet."""


class Page:
    """A page that is being written: its text, and the pictures that belong to it."""

    def __init__(self, name: str, lang: Lang) -> None:
        self.name, self.lang = name, lang
        self.parts: list[str] = []
        self.pictures: dict[str, bytes] = {}

    def add(self, text: str) -> None:
        """Add a paragraph."""
        self.parts.append(text)

    def add_picture(self, data: bytes, caption: str, suffix: str = ".svg") -> None:
        """Add a picture in a file of its own."""
        file = f"{self.name}-{len(self.pictures) + 1}.{self.lang}{suffix}"
        self.pictures[file] = data
        self.add(f"![{caption}]({file})")

    @property
    def text(self) -> str:
        """Give all of it."""
        return "\n\n".join(self.parts) + "\n"


def write_page(
    lesson: Lesson, blocks: Sequence[Block], lang: Lang, own: OwnPart | None = None
) -> Page:
    """Write a whole lesson; its last part on a model, or how to get one."""
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
    command = f"attendo lessons {lesson.number}{' --lang ko' if lang == 'ko' else ''}"
    _write_own(own, page, command)
    places = ", ".join(f"`{file}:{line}`" for file, line in (one.find() for one in lesson.code))
    section = "the paper's section" if lang == "en" else "논문"
    page.add(f"`{command}` · {section} {lesson.paper} · {places}")
    return page


def _write_own(own: OwnPart | None, page: Page, command: str) -> None:
    page.add(f"## {'On your own model' if page.lang == 'en' else '여러분의 모델에서'}")
    if own is None:
        words = NO_MODEL[page.lang].format(command=command)
        page.add(f'!!! tip ""\n    {set_words(words)}')
        return
    for block in own.blocks:
        if isinstance(block, Drawing):
            page.add_picture(render(own, block, page.lang), block.caption.say(page.lang), ".png")
        write(block, page)


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
    charts = [one for frame in block.frames for one in frame.blocks if isinstance(one, Chart)]
    if _is_one_table(block, charts):
        _write_steps(block, charts, page)
        return
    for number, frame in enumerate(block.frames, 1):
        page.add(f"{number}/{len(block.frames)} {set_words(say(frame.title, page.lang))}")
        for one in frame.blocks:
            write(one, page)


def _is_one_table(block: Frames, charts: list[Chart]) -> bool:
    """Tell whether every frame is one series over the same names: on paper that is a table."""
    is_alike = all(one.x == charts[0].x and len(one.series) == 1 for one in charts)
    has_more = any(len(frame.blocks) != 1 for frame in block.frames)
    return is_alike and not has_more and len(charts) == len(block.frames)


def _write_steps(block: Frames, charts: list[Chart], page: Page) -> None:
    page.add(escape(say(charts[0].title, page.lang)))
    rows = [
        [say(frame.title, page.lang), *(write_cell(n, 3, page.lang) for n in one.series[0].values)]
        for frame, one in zip(block.frames, charts, strict=True)
    ]
    _write_rows(page, ["", *map(str, charts[0].x)], rows)


@write.register
def _(block: Drawing, page: Page) -> None:
    page.add(f"<small>{set_words(block.caption.say(page.lang))}</small>")
