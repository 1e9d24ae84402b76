"""Every picture of the lessons by its name, drawn by one call: `draw("two_heads", "heads.png", translator=...)`.

Most are drawn from the learner's own model and sentence (`attendo.inspection.plots.registry`); five
belong to a lesson alone and need no model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.lessons.blocks import LocalizedText
from attendo.lessons.charts import plot_chart
from attendo.lessons.learning_pictures import (
    learning_rate_curve,
    learnt_distributions,
    smoothed_targets,
    target_distributions,
)
from attendo.lessons.recurrent_memory import bleu_by_length
from attendo.lessons.residual_pictures import list_paths
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
    "unravelled_paths": 9,
    "gradients": 9,
    "stack": 11,
    "decoder_steps": 13,
    "logits": 12,
    "target_and_learnt": 13,
    "smoothed_targets": 13,
    "learning_rate": 13,
    "beam_tree": 14,
    "bleu_by_length": 1,
}
"""Each picture and the lesson that shows it."""
_DESCRIPTIONS = {
    "unravelled_paths": LocalizedText(
        "the paths that residual blocks unravel into", "잔차 블록이 펼쳐진 길"
    ),
    "target_and_learnt": LocalizedText(
        "target and learnt distributions side by side", "목표 분포와 배운 분포"
    ),
    "smoothed_targets": LocalizedText("targets with label smoothing", "레이블 스무딩을 한 목표"),
    "learning_rate": LocalizedText("the learning rate over the steps", "스텝에 따른 학습률"),
    "bleu_by_length": LocalizedText(
        "BLEU by sentence length: RNN, RNN with attention, Transformer",
        "문장 길이에 따른 BLEU: RNN, 어텐션을 단 RNN, 트랜스포머",
    ),
}
"""What those show that need no model."""


def describe(name: str, lang: Lang) -> str:
    """Say in one line what a picture shows."""
    if name not in LESSON_NUMBERS:
        raise InputError(
            message("no picture '{name}'", name=name), hint=suggest(name, LESSON_NUMBERS)
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
    """Draw a picture into a PNG or SVG file.

    Args:
        name: a key of `SHOWN_IN`.
        path: where to; the suffix decides on the form.
        translator: the learner's model, for pictures that are drawn from one.
        text: the sentence; a short one in the model's language when not given.
        lang: of the words in the picture.

    """
    if name not in LESSON_NUMBERS:
        raise InputError(
            message("no picture '{name}'", name=name), hint=suggest(name, LESSON_NUMBERS)
        )
    file = Path(path)
    if name in _STANDALONE_PLOTS:
        check_suffix(file)
        write_atomically(file, _STANDALONE_PLOTS[name](lang, file.suffix))
        return file
    if translator is None:
        reason = f"'{name}' is drawn from a model"
        raise ConfigError(reason, hint="give translator=Translator.load(...)")
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.inspection.plots.registry import save_plot as draw_of_model
    from attendo.lessons.own_model import choose_sentence

    sentence = choose_sentence(translator, text)
    record = inspect_sentence(translator, sentence, attribution=False, ablation=False)
    return draw_of_model(name, file, record, translator, language=lang)


def plot_paths(lang: Lang, suffix: str, *, num_blocks: int = 3) -> bytes:
    """Draw the paths that residual blocks unravel into, one below the other."""
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
    title = LocalizedText(
        f"{num_blocks} residual blocks are 2^{num_blocks} = {len(paths)} paths",
        f"잔차 블록 {num_blocks}개는 2^{num_blocks} = {len(paths)}개의 길입니다",
    )
    set_heading(figure, title.localize(lang))
    set_fonts(figure)
    return render_figure(figure, suffix)


def plot_distributions(lang: Lang, suffix: str, *, smoothing: float = 0.1) -> bytes:
    """Draw what a model shall say at each step beside what it has learnt to say."""
    target, learnt = target_distributions(smoothing), learnt_distributions(smoothing)
    figure = new_figure(9.5, 3.6)
    for axes, values, name in zip(
        figure.subplots(1, 2),
        (target, learnt),
        (LocalizedText("target", "목표"), LocalizedText("learnt", "배운 것")),
        strict=True,
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
    "unravelled_paths": plot_paths,
    "target_and_learnt": plot_distributions,
    "smoothed_targets": lambda lang, suffix: plot_chart(smoothed_targets("i"), lang, suffix),
    "learning_rate": lambda lang, suffix: plot_chart(learning_rate_curve(), lang, suffix),
    "bleu_by_length": lambda lang, suffix: plot_chart(bleu_by_length(), lang, suffix),
}
