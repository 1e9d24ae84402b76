"""The end of every lesson: the same picture for the learner's own model and sentence.

The model is the one that is named, else the quickstart's if it lies where the quickstart leaves it.
Pictures are drawn into a folder, or given as bytes for a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import AttendoError, InputError
from attendo.core.run_folder import RunFolder
from attendo.lessons.blocks import LANGUAGES, Block, LocalizedText, ModelPlot, Note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.inspection.record import Record
    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson
    from attendo.translator import Translator

QUICKSTART_RUNS = ("runs/quickstart/ko-en", "runs/quickstart/en-ko")
DEFAULT_SENTENCES = {"ko": "나는 학생이다.", "en": "I am a student."}


class OwnModelSection(NamedTuple):
    """What a lesson shows of a model, and the record that its pictures are drawn from."""

    blocks: list[Block]
    record: Record
    translator: Translator


def find_model_dir(requested: Path | None) -> Path:
    """Give the model's folder: the one that is named, or the quickstart's."""
    if requested is not None:
        return requested
    for path in map(Path, QUICKSTART_RUNS):
        if RunFolder(path).model.path.is_dir():
            return path
    raise InputError(
        "no model of your own yet",
        hint="run attendo quickstart (two minutes), or name a model folder with --model",
    )


def choose_sentence(translator: Translator, text: str | None) -> str:
    """Give the sentence that is named, or a short one in the model's source language."""
    return text or DEFAULT_SENTENCES.get(
        str(translator.about.get("src_lang")), DEFAULT_SENTENCES["ko"]
    )


def build_section(
    lesson: Lesson, translator: Translator, text: str | None = None
) -> OwnModelSection:
    """Compute the last part of a lesson; what this model does not have is told in its place."""
    from attendo.inspection.inspect_sentence import inspect_sentence

    sentence = choose_sentence(translator, text)
    record = inspect_sentence(translator, sentence, attribution=False, ablation=False)
    blocks = lesson.own_model_blocks(translator, sentence)
    missing = [
        one
        for one in blocks
        if isinstance(one, ModelPlot) and not _can_plot(one, record, translator)
    ]
    available = [one for one in blocks if one not in missing]
    if missing and not any(
        isinstance(one, Note) for one in available
    ):  # else the lesson has said why
        available.append(_missing_note(missing))
    return OwnModelSection(available, record, translator)


def _can_plot(plot: ModelPlot, record: Record, translator: Translator) -> bool:
    from attendo.inspection.plots.registry import available_plots

    return plot.name in available_plots(record, translator)


def _missing_note(plots: list[ModelPlot]) -> Note:
    english, korean = (", ".join(one.caption.localize(lang) for one in plots) for lang in LANGUAGES)
    return Note(
        LocalizedText(
            f"Not shown: {english}. This model does not have what would be drawn.",
            f"보여 주지 못한 그림: {korean}. 이 모델에는 그릴 것이 없습니다.",
        )
    )


def render_plot(
    section: OwnModelSection, plot: ModelPlot, lang: Lang, suffix: str = ".png"
) -> bytes:
    """Draw one picture of the part; give its bytes."""
    from attendo.inspection.plots.registry import make_figure
    from attendo.inspection.plots.style import render_figure as render_figure

    figure = make_figure(plot.name, section.record, section.translator, language=lang, **plot.focus)
    return render_figure(figure, suffix)


def save_plot(section: OwnModelSection, plot: ModelPlot, path: Path, lang: Lang) -> Path:
    """Draw one picture of the part into a file."""
    from attendo.inspection.plots.registry import save_plot as draw_file

    return draw_file(
        plot.name, path, section.record, section.translator, language=lang, **plot.focus
    )


def save_all_plots(section: OwnModelSection, folder: Path, lang: Lang) -> Iterable[Path]:
    """Draw every picture of the part, and what moves once more as a GIF.

    One that cannot be drawn is left out.
    """
    from attendo.inspection.plots.registry import PLOTS

    for number, plot in enumerate((one for one in section.blocks if isinstance(one, ModelPlot)), 1):
        for suffix in (".png", ".gif") if PLOTS[plot.name].animate else (".png",):
            try:
                yield save_plot(section, plot, folder / f"{number}-{plot.name}{suffix}", lang)
            except AttendoError:
                continue
