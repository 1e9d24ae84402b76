"""The last section of every lesson: the same topic on the learner's own model and sentence.

The model is the given one, or that of the quickstart. Figures are saved to a folder, or returned as
bytes for a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import AttendoError, InputError
from attendo.core.run_folder import RunFolder
from attendo.lessons.blocks import LANGUAGES, Block, LocalizedText, ModelPlot, Note
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.inspection.record import Record
    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson
    from attendo.translator import Translator

prose = Prose("attendo.lessons")

QUICKSTART_RUNS = ("runs/quickstart/ko-en", "runs/quickstart/en-ko")
DEFAULT_SENTENCES = {"ko": "나는 학생이다.", "en": "I am a student."}


class OwnModelSection(NamedTuple):
    """The blocks that a lesson shows of a model, and the record that its figures are drawn from."""

    blocks: list[Block]
    record: Record
    translator: Translator


def find_model_dir(requested: Path | None) -> Path:
    """Return the given model folder, or that of the quickstart."""
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
    """Return the given sentence, or a short one in the model's source language."""
    return text or DEFAULT_SENTENCES.get(
        str(translator.about.get("src_lang")), DEFAULT_SENTENCES["ko"]
    )


def build_section(
    lesson: Lesson, translator: Translator, text: str | None = None
) -> OwnModelSection:
    """Return the section of a lesson; a note names the figures that this model cannot show."""
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
    is_explained = any(isinstance(one, Note) for one in available)
    if missing and not is_explained:
        available.append(_missing_note(missing))
    return OwnModelSection(available, record, translator)


def _can_plot(plot: ModelPlot, record: Record, translator: Translator) -> bool:
    from attendo.inspection.plots.registry import available_plots

    return plot.name in available_plots(record, translator)


def _missing_note(plots: list[ModelPlot]) -> Note:
    english, korean = (", ".join(one.caption.localize(lang) for one in plots) for lang in LANGUAGES)
    return Note(prose("plots-unavailable", captions=LocalizedText(english, korean)))


def render_plot(
    section: OwnModelSection, plot: ModelPlot, lang: Lang, suffix: str = ".png"
) -> bytes:
    """Return one figure of the section as bytes."""
    from attendo.inspection.plots.registry import make_figure
    from attendo.plotting.style import render_figure

    figure = make_figure(plot.name, section.record, section.translator, language=lang, **plot.focus)
    return render_figure(figure, suffix)


def save_plot(section: OwnModelSection, plot: ModelPlot, path: Path, lang: Lang) -> Path:
    """Save one figure of the section to a file."""
    from attendo.inspection.plots.registry import save_plot as save_model_plot

    return save_model_plot(
        plot.name, path, section.record, section.translator, language=lang, **plot.focus
    )


def save_all_plots(section: OwnModelSection, folder: Path, lang: Lang) -> Iterable[Path]:
    """Save every figure of the section, and animated ones also as GIF.

    Figures that cannot be drawn are left out.
    """
    from attendo.inspection.plots.registry import PLOTS

    for number, plot in enumerate((one for one in section.blocks if isinstance(one, ModelPlot)), 1):
        for suffix in (".png", ".gif") if PLOTS[plot.name].animate else (".png",):
            try:
                yield save_plot(section, plot, folder / f"{number}-{plot.name}{suffix}", lang)
            except AttendoError:
                continue
