"""The page of the documentation on the track `attendo lessons build`."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

from attendo.lessons.prose import Prose
from attendo.lessons.render.markdown import render_markup
from attendo.lessons.track.folder import FILE_NAME, write_usage
from attendo.lessons.track.steps import STEPS, imports

if TYPE_CHECKING:
    from attendo.lessons.blocks import Lang, LocalizedText
    from attendo.lessons.track.steps import Step

prose = Prose("attendo.lessons.track")


def write_track_page(lang: Lang) -> str:
    """Return the page: how to begin, and each step with its stub, hints and solution."""
    command = f"attendo lessons build my_transformer{' --lang ko' if lang == 'ko' else ''}"
    parts = [
        f"# {prose('page-title').localize(lang)}",
        render_markup(prose("page-introduction").localize(lang)),
        f"```sh\n{command}\n```",
        render_markup(prose("how-to-work", file=FILE_NAME).localize(lang)),
        f"```sh\n{write_usage(lang)}\n```",
        render_markup(prose("when-finished").localize(lang)),
        f"```python\n{imports()}\n```",
    ]
    for step in STEPS:
        parts += _write_step(step, lang)
    return "\n\n".join(parts) + "\n"


def _write_step(step: Step, lang: Lang) -> list[str]:
    title = prose("page-step", number=step.number, title=step.title)
    links = " · ".join(f"[{number}](lesson-{number:02d}.md)" for number in step.lessons)
    hints = [
        _fold(
            prose("page-hint", number=number), render_markup(step.hint(number).localize(lang)), lang
        )
        for number in range(1, step.num_hints + 1)
    ]
    return [
        f"## {title.localize(lang)}",
        render_markup(step.explanation.localize(lang)),
        f"{prose('lessons-of-step').localize(lang)} {links}",
        f"```python\n{step.stub}\n```",
        *hints,
        _fold(prose("page-solution"), f"```python\n{step.solution}\n```", lang),
    ]


def _fold(title: LocalizedText, text: str, lang: Lang) -> str:
    return f'??? question "{title.localize(lang)}"\n\n{indent(text, "    ")}'
