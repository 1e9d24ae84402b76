"""The end of every lesson: the same picture for the learner's own model and sentence.

The model is the one that is named, else the quickstart's if it lies where the quickstart leaves it.
Pictures are drawn into a folder, or given as bytes for a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import AttendoError, InputError
from attendo.lessons.blocks import LANGUAGES, Block, Drawing, Note, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.inspection.record import Record
    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson
    from attendo.translator import Translator

QUICKSTART = ("runs/quickstart/ko-en", "runs/quickstart/en-ko")
SENTENCES = {"ko": "나는 학생이다.", "en": "I am a student."}


class OwnPart(NamedTuple):
    """What a lesson shows of a model, and the record that its pictures are drawn from."""

    blocks: list[Block]
    record: Record
    translator: Translator


def find_model(given: Path | None) -> Path:
    """Give the model's folder: the one that is named, or the quickstart's."""
    if given is not None:
        return given
    for place in map(Path, QUICKSTART):
        if (place / "model").is_dir():
            return place
    raise InputError(
        "no model of your own yet",
        remedy="run attendo quickstart (two minutes), or name a model folder with --model",
    )


def choose_sentence(translator: Translator, text: str | None) -> str:
    """Give the sentence that is named, or a short one in the model's source language."""
    return text or SENTENCES.get(str(translator.about.get("src_lang")), SENTENCES["ko"])


def look(lesson: Lesson, translator: Translator, text: str | None = None) -> OwnPart:
    """Compute the last part of a lesson; what this model does not have is told in its place."""
    from attendo.inspection.look import look_inside

    sentence = choose_sentence(translator, text)
    record = look_inside(translator, sentence, attribution=False, ablation=False)
    blocks = lesson.on_your_model(translator, sentence)
    missing = [
        one
        for one in blocks
        if isinstance(one, Drawing) and not _is_possible(one, record, translator)
    ]
    left = [one for one in blocks if one not in missing]
    if missing and not any(isinstance(one, Note) for one in left):  # else the lesson has said why
        left.append(_say_missing(missing))
    return OwnPart(left, record, translator)


def _is_possible(drawing: Drawing, record: Record, translator: Translator) -> bool:
    from attendo.inspection.plots.gallery import list_possible

    return drawing.name in list_possible(record, translator)


def _say_missing(drawings: list[Drawing]) -> Note:
    english, korean = (", ".join(one.caption.say(lang) for one in drawings) for lang in LANGUAGES)
    return Note(
        Words(
            f"Not shown: {english}. This model does not have what would be drawn.",
            f"보여 주지 못한 그림: {korean}. 이 모델에는 그릴 것이 없습니다.",
        )
    )


def render(part: OwnPart, drawing: Drawing, lang: Lang, suffix: str = ".png") -> bytes:
    """Draw one picture of the part; give its bytes."""
    from attendo.inspection.plots.canvas import render as render_figure
    from attendo.inspection.plots.gallery import make_figure

    figure = make_figure(drawing.name, part.record, part.translator, language=lang, **drawing.focus)
    return render_figure(figure, suffix)


def draw(part: OwnPart, drawing: Drawing, path: Path, lang: Lang) -> Path:
    """Draw one picture of the part into a file."""
    from attendo.inspection.plots.gallery import draw as draw_file

    return draw_file(
        drawing.name, path, part.record, part.translator, language=lang, **drawing.focus
    )


def draw_all(part: OwnPart, folder: Path, lang: Lang) -> Iterable[Path]:
    """Draw every picture of the part, and what moves once more as a GIF.

    One that cannot be drawn is left out.
    """
    from attendo.inspection.plots.gallery import PICTURES

    for number, drawing in enumerate((one for one in part.blocks if isinstance(one, Drawing)), 1):
        for suffix in (".png", ".gif") if PICTURES[drawing.name].animate else (".png",):
            try:
                yield draw(part, drawing, folder / f"{number}-{drawing.name}{suffix}", lang)
            except AttendoError:
                continue
