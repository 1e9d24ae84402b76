"""The last section of every lesson: the same topic on the learner's own model and sentence.

The model is the given one, or that of the quickstart. Figures are saved to a folder, returned as
bytes, or as numbers for a page that draws them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.run_folder import RunFolder
from attendo.lessons.blocks import LANGUAGES, Block, LocalizedText, ModelPlot, Note, Paragraph
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.inspection.record import Record
    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson
    from attendo.translator import Translator

prose = Prose("attendo.lessons")

QUICKSTART_RUNS = ("runs/quickstart/ko-en", "runs/quickstart/en-ko")
DEFAULT_SENTENCES = {
    "ko": "어제 카페 갔었어 거기 사람 많더라",
    "en": "I went to the cafe there were many people there",
}
"""A sentence and its translation in the corpus of the quickstart."""


REFERENCE_SEPARATOR = "|||"
"""Between a sentence and a reference, as in Moses."""


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
    references: list[str | None] = []
    if lesson.takes_reference:
        sentence, reference = split_reference(sentence)
        references = [reference]
    record = inspect_sentence(translator, sentence, attribution=False, ablation=False)
    blocks: list[Block] = [
        Paragraph(prose("own-translation", text=sentence, translation=record.tgt["text"])),
        *lesson.own_model_blocks(translator, sentence, *references),
    ]
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


def split_reference(text: str) -> tuple[str, str | None]:
    """Return the sentence and the reference of a text; the reference may be missing.

    >>> split_reference("나는 학생이다. ||| I am a student."), split_reference("나는 학생이다.")
    (('나는 학생이다.', 'I am a student.'), ('나는 학생이다.', None))
    """
    sentence, _, reference = (part.strip() for part in text.partition(REFERENCE_SEPARATOR))
    if not sentence:
        return text, None
    return sentence, reference or None


def build_task_blocks(lesson: Lesson, folder: Path, text: str | None = None) -> list[Block] | None:
    """Return the section of a lesson for a model that does not translate.

    It is None for a translator, and if the lesson shows nothing of models of this task.
    """
    from attendo.bundle import read_about, read_input_type

    task = "series" if read_input_type(folder) == "series" else read_about(folder).get("task")
    build = lesson.task_blocks.get(str(task))
    return None if build is None else build(_load_task_model(str(task), folder), text)


def _load_task_model(task: str, folder: Path) -> Any:
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.tasks.language_model.generator import TextGenerator
    from attendo.tasks.masked_lm.fill_mask import MaskFiller

    loaders = {
        "mask": MaskFiller.load,
        "language": TextGenerator.load,
        "series": Forecaster.load,
    }
    return loaders[task](folder)


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


def describe_plot(section: OwnModelSection, plot: ModelPlot, lang: Lang) -> dict[str, Any]:
    """Return one figure of the section as numbers, for a page that draws it."""
    from attendo.inspection.figure_data import describe_figure

    return describe_figure(
        plot.name, section.record, section.translator, language=lang, **plot.focus
    )


def save_plot(section: OwnModelSection, plot: ModelPlot, path: Path, lang: Lang) -> Path:
    """Save one figure of the section to a file."""
    from attendo.inspection.plots.registry import save_plot as save_model_plot

    return save_model_plot(
        plot.name, path, section.record, section.translator, language=lang, **plot.focus
    )


def save_all_plots(section: OwnModelSection, folder: Path, lang: Lang) -> Iterable[Path]:
    """Save every figure of the section, and animated ones also as GIF.

    Figures that this sentence or model does not have are left out.
    """
    from attendo.inspection.plots.registry import PLOTS

    for number, plot in enumerate((one for one in section.blocks if isinstance(one, ModelPlot)), 1):
        for suffix in (".png", ".gif") if PLOTS[plot.name].animate else (".png",):
            try:
                yield save_plot(section, plot, folder / f"{number}-{plot.name}{suffix}", lang)
            except InputError:
                continue
