"""All plots of a model and a sentence by name: list them, make one, save them to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.errors import AttendoError, ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.i18n.messages import translate_message
from attendo.inspection.plots import (
    analyses,
    architecture,
    attention,
    beam_tree,
    decoding,
    embeddings,
    heads,
)
from attendo.inspection.plots.context import PlotContext, Selection
from attendo.model.transformer import Transformer
from attendo.plotting.fonts import set_fonts
from attendo.plotting.style import SUFFIXES, check_suffix, render_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.context import Language
    from attendo.inspection.record import Record
    from attendo.translator import Translator


class PlotSpec(NamedTuple):
    """One plot: how it is made and what it needs."""

    make: Callable[[PlotContext], Figure]
    needs: Literal["model", "transformer"] | None = None
    """What is needed besides the record: any model, or a Transformer's layers."""
    kind: AttentionKind | None = None
    """The kind of attention that the record must have."""
    num_heads: int = 1
    """The smallest number of heads of that kind per layer."""
    section: str | None = None
    """The section that the record must have."""
    animate: Callable[[PlotContext], bytes] | None = None
    """Renders the plot as a GIF."""

    @property
    def about(self) -> str:
        """What the plot shows, in one line."""
        return self.describe("en")

    def describe(self, language: Language) -> str:
        """Return what the plot shows, in one line."""
        first = (self.make.__doc__ or "").splitlines()[0]
        english = first.removeprefix("Plot ").rstrip(".")
        return translate_message(english, language)

    @property
    def needs_model(self) -> bool:
        """Whether the plot needs the model besides the record."""
        return self.needs is not None

    def is_possible(self, record: Record, model: object | None = None) -> bool:
        """Return whether the record, and the model if given, have the data for the plot."""
        if self.needs == "transformer" and not isinstance(model, Transformer):
            return False
        if self.needs == "model" and model is None:
            return False
        if self.section is not None and getattr(record, self.section) is None:
            return False
        if self.kind is None:
            return True
        return self.kind in record.kinds and record.attention(self.kind).shape[1] >= self.num_heads

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The supported file suffixes."""
        return SUFFIXES if self.animate is None else (*SUFFIXES, ".gif")


PLOTS: dict[str, PlotSpec] = {
    "positions": PlotSpec(embeddings.plot_positions, section="positions"),
    "position_toy": PlotSpec(embeddings.plot_position_toy),
    "input_sum": PlotSpec(embeddings.plot_input_sum, needs="transformer"),
    "query_key_value": PlotSpec(attention.plot_query_key_value, needs="transformer"),
    "one_word": PlotSpec(attention.plot_one_word, needs="transformer"),
    "score_matrix": PlotSpec(attention.plot_score_matrix, needs="transformer"),
    "masks": PlotSpec(attention.plot_masks, kind="cross"),
    "head_lines": PlotSpec(heads.plot_head_lines, kind="cross"),
    "two_heads": PlotSpec(heads.plot_two_heads, kind="cross", num_heads=2),
    "all_heads": PlotSpec(heads.plot_all_heads, kind="cross"),
    "concatenated_heads": PlotSpec(heads.plot_concatenated_heads, needs="transformer"),
    "add_and_norm": PlotSpec(embeddings.plot_add_and_norm, needs="transformer"),
    "gradients": PlotSpec(architecture.plot_gradients, needs="transformer"),
    "stack": PlotSpec(architecture.plot_stack, needs="transformer"),
    "decoder_steps": PlotSpec(
        decoding.plot_decoder_steps, kind="cross", animate=decoding.animate_decoder_steps
    ),
    "logits": PlotSpec(decoding.plot_logits, needs="model"),
    "beam_tree": PlotSpec(beam_tree.plot_beam_tree, section="beam"),
    "attribution": PlotSpec(analyses.plot_attribution, section="attribution"),
    "ablation": PlotSpec(analyses.plot_ablation, section="ablation"),
    "logit_lens": PlotSpec(analyses.plot_logit_lens, section="logit_lens"),
}


def make_figure(
    name: str,
    record: Record,
    translator: Translator | None = None,
    *,
    language: Language = "en",
    **selection: Any,
) -> Figure:
    """Make a plot as a matplotlib figure, e.g. for a notebook.

    Args:
        name: name of the plot, a key of `PLOTS`.
        record: the record to plot.
        translator: the translator that made the record, for plots that need the model.
        language: language of the texts, "en" or "ko".
        **selection: what to show: kind, layer, head, other_head, row (`Selection`).

    """
    return _make_figure(get_plot(name), _make_context(record, translator, language, selection))


def save_plot(
    name: str,
    path: str | Path,
    record: Record,
    translator: Translator | None = None,
    *,
    language: Language = "en",
    **selection: Any,
) -> Path:
    """Save a plot as a PNG or SVG file; the decoder's steps also as a GIF."""
    plot, file = get_plot(name), Path(path)
    check_suffix(file, plot.suffixes)
    context = _make_context(record, translator, language, selection)
    if plot.animate is not None and file.suffix.lower() == ".gif":
        content = plot.animate(context)
    else:
        content = render_figure(_make_figure(plot, context), file.suffix)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    except OSError as error:
        reason = message(
            "{path} could not be written: {detail}", path=file, detail=error.strerror or error
        )
        raise AttendoError(reason, hint="choose another path, or free disk space") from None
    return file


def save_all_plots(
    directory: str | Path,
    record: Record,
    translator: Translator | None = None,
    *,
    suffix: str = ".png",
    language: Language = "en",
    **selection: Any,
) -> list[Path]:
    """Save every plot for which the record, and the model if given, has the data."""
    return [
        save_plot(
            name,
            Path(directory) / f"{name}{suffix}",
            record,
            translator,
            language=language,
            **selection,
        )
        for name in available_plots(record, translator)
    ]


def available_plots(record: Record, translator: Translator | None = None) -> list[str]:
    """Return the names of the plots that can be made from this record."""
    model = None if translator is None else translator.model
    return [name for name, plot in PLOTS.items() if plot.is_possible(record, model)]


def get_plot(name: str) -> PlotSpec:
    """Return the plot with this name."""
    if name not in PLOTS:
        raise InputError(message("no plot '{name}'", name=name), hint=suggest(name, PLOTS))
    return PLOTS[name]


def _make_context(
    record: Record, translator: Translator | None, language: Language, selection: dict[str, Any]
) -> PlotContext:
    known = Selection.__dataclass_fields__
    unknown = [key for key in selection if key not in known]
    if unknown:
        reasons = [
            message("unknown key '{key}': {detail}", key=key, detail=suggest(key, known))
            for key in unknown
        ]
        raise ConfigError.from_reasons("picture", reasons)
    return PlotContext(record, translator, Selection(**selection), language)


def _make_figure(plot: PlotSpec, context: PlotContext) -> Figure:
    if plot.needs == "transformer":
        context.check_transformer()
    if plot.needs_model and context.translator is not None:
        with context.translator.backend.eval_mode():
            figure = plot.make(context)
    else:
        figure = plot.make(context)
    set_fonts(figure)
    return figure
