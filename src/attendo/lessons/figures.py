"""Every figure of the lessons by its name: `plot("two_heads", "heads.png", translator=...)`.

Most are drawn from the learner's own model and sentence (`attendo.inspection.plots.registry`); five
belong to a lesson and need no model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.lessons.chapters.ch01_rnn_to_attention.memory import bleu_chart
from attendo.lessons.chapters.ch09_residuals.gradient_paths import list_paths
from attendo.lessons.chapters.ch13_training.teacher_forcing import (
    learned_distributions,
    learning_rate_chart,
    smoothed_target_chart,
    target_distributions,
)
from attendo.lessons.prose import Prose
from attendo.lessons.render.charts import plot_chart
from attendo.lessons.tiny_model import TARGET_VOCABULARY
from attendo.plotting.fonts import set_fonts
from attendo.plotting.style import (
    BLUE,
    GRAY,
    check_suffix,
    hide_axes,
    new_figure,
    plot_matrix,
    render_figure,
    set_heading,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.lessons.blocks import Lang
    from attendo.translator import Translator

prose = Prose("attendo.lessons")

LESSON_NUMBERS = {
    "positions": 3,
    "position_toy": 3,
    "input_sum": 3,
    "query_key_value": 4,
    "one_word": 4,
    "score_matrix": 4,
    "masks": 7,
    "head_lines": 6,
    "two_heads": 6,
    "all_heads": 6,
    "concatenated_heads": 6,
    "add_and_norm": 8,
    "unrolled_paths": 9,
    "gradients": 9,
    "stack": 11,
    "decoder_steps": 13,
    "logits": 12,
    "target_and_learned": 13,
    "smoothed_targets": 13,
    "learning_rate": 13,
    "beam_tree": 14,
    "bleu_by_length": 1,
}
"""Each figure and the lesson that shows it."""
_DESCRIPTIONS = {
    "unrolled_paths": prose("figure-unrolled-paths"),
    "target_and_learned": prose("figure-target-and-learned"),
    "smoothed_targets": prose("figure-smoothed-targets"),
    "learning_rate": prose("figure-learning-rate"),
    "bleu_by_length": prose("figure-bleu-by-length"),
}
"""The figures that need no model, and what they show."""


def describe(name: str, lang: Lang) -> str:
    """Return in one line what a figure shows."""
    if name not in LESSON_NUMBERS:
        raise InputError(
            message("no figure '{name}'", name=name), hint=suggest(name, LESSON_NUMBERS)
        )
    if name in _DESCRIPTIONS:
        return _DESCRIPTIONS[name].localize(lang)
    from attendo.inspection.plots.registry import get_plot

    return get_plot(name).describe(lang)


def plot(
    name: str,
    path: str | Path,
    *,
    translator: Translator | None = None,
    text: str | None = None,
    lang: Lang = "en",
) -> Path:
    """Draw a figure into a file and return its path.

    Args:
        name: a key of `LESSON_NUMBERS`.
        path: the file to write; its suffix decides on the format (PNG, SVG, or GIF if animated).
        translator: the learner's model, for figures that show one.
        text: the sentence; by default a short one in the model's language.
        lang: the language of the labels.

    """
    if name not in LESSON_NUMBERS:
        raise InputError(
            message("no figure '{name}'", name=name), hint=suggest(name, LESSON_NUMBERS)
        )
    file = Path(path)
    if name in _STANDALONE_PLOTS:
        check_suffix(file)
        write_atomically(file, _STANDALONE_PLOTS[name](lang, file.suffix))
        return file
    if translator is None:
        reason = f"the figure '{name}' needs a model"
        raise ConfigError(reason, hint="pass translator=Translator.load(...)")
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.inspection.plots.registry import save_plot as save_model_plot
    from attendo.lessons.own_model import choose_sentence

    sentence = choose_sentence(translator, text)
    record = inspect_sentence(translator, sentence, attribution=False, ablation=False)
    return save_model_plot(name, file, record, translator, language=lang)


def plot_paths(lang: Lang, suffix: str, *, num_blocks: int = 3) -> bytes:
    """Return a figure of the paths that residual blocks unroll into."""
    paths = list_paths(num_blocks)
    figure = new_figure(7.0, 0.45 * len(paths) + 0.9)
    axes = figure.subplots()
    for row, path in enumerate(paths):
        height = len(paths) - row
        axes.plot([0, num_blocks + 1], [height, height], color=GRAY, lw=1.2, zorder=1)
        for index, is_used in enumerate(path, 1):
            if is_used:
                box = {"boxstyle": "round,pad=0.35", "fc": BLUE, "ec": "none"}
                label = f"f{'₀₁₂₃₄₅₆₇₈₉'[index]}"
                axes.text(index, height, label, ha="center", va="center", color="white", bbox=box)
        axes.text(-0.08, height, "x", ha="right", va="center")
        axes.text(num_blocks + 1.08, height, "y", ha="left", va="center")
    axes.set_xlim(-0.4, num_blocks + 1.4)
    axes.set_ylim(0.4, len(paths) + 0.6)
    hide_axes(axes)
    title = prose("paths-title", num_blocks=num_blocks, num_paths=len(paths))
    set_heading(figure, title.localize(lang))
    set_fonts(figure)
    return render_figure(figure, suffix)


def plot_distributions(lang: Lang, suffix: str, *, smoothing: float = 0.1) -> bytes:
    """Return a figure of the targets at each step and of the learned distributions."""
    target, learned = target_distributions(smoothing), learned_distributions(smoothing)
    figure = new_figure(9.5, 3.6)
    for axes, values, name in zip(
        figure.subplots(1, 2), (target, learned), (prose("target"), prose("learned")), strict=True
    ):
        plot_matrix(
            axes,
            values.detach().float().numpy(),
            rows=["i", "am", "a", "student", "<eos>"],
            columns=list(TARGET_VOCABULARY),
            digits=2,
        )
        axes.set_title(name.localize(lang), loc="left", fontsize=11)
    set_fonts(figure)
    return render_figure(figure, suffix)


_STANDALONE_PLOTS: dict[str, Callable[[Lang, str], bytes]] = {
    "unrolled_paths": plot_paths,
    "target_and_learned": plot_distributions,
    "smoothed_targets": lambda lang, suffix: plot_chart(smoothed_target_chart("i"), lang, suffix),
    "learning_rate": lambda lang, suffix: plot_chart(learning_rate_chart(), lang, suffix),
    "bleu_by_length": lambda lang, suffix: plot_chart(bleu_chart(), lang, suffix),
}
