"""All figures by name: `describe_figure` returns one as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.inspection.figure_data import architecture, attention, vectors
from attendo.inspection.figure_data.context import FigureContext
from attendo.inspection.plots.context import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attendo.inspection.figure_data.panels import Panel
    from attendo.inspection.plots.context import Language
    from attendo.inspection.record import Record
    from attendo.translator import Translator

    Figure = tuple[str, str, list[list[Panel]]]
    """The title, what is shown, and rows of panels."""

FIGURES: Mapping[str, Callable[[FigureContext], Figure]] = {
    "positions": vectors.describe_positions,
    "position_toy": vectors.describe_position_toy,
    "input_sum": vectors.describe_input_sum,
    "query_key_value": attention.describe_query_key_value,
    "one_word": attention.describe_one_word,
    "score_matrix": attention.describe_score_matrix,
    "masks": attention.describe_masks,
    "head_lines": attention.describe_head_lines,
    "two_heads": attention.describe_two_heads,
    "all_heads": attention.describe_all_heads,
    "concatenated_heads": attention.describe_concatenated_heads,
    "add_and_norm": vectors.describe_add_and_norm,
    "gradients": architecture.describe_gradients,
    "stack": architecture.describe_stack,
    "decoder_steps": architecture.describe_decoder_steps,
    "logits": vectors.describe_logits,
    "beam_tree": architecture.describe_beam_tree,
}
"""The plots of the lessons, by the names of `attendo.inspection.plots.registry.PLOTS`."""


def describe_figure(
    name: str,
    record: Record,
    translator: Translator,
    *,
    language: Language = "en",
    **selection: Any,
) -> dict[str, Any]:
    """Return a figure as JSON: title, about, and rows of panels.

    Args:
        name: name of the figure, a key of `FIGURES`.
        record: the record to show.
        translator: the translator that made the record.
        language: language of the texts, "en" or "ko".
        **selection: what to show: kind, layer, head, other_head, row.

    """
    if name not in FIGURES:
        raise InputError(message("no plot '{name}'", name=name), hint=suggest(name, FIGURES))
    context = FigureContext(record, translator, Selection(**selection), language)
    with translator.backend.eval_mode():
        title, about, rows = FIGURES[name](context)
    return {"title": title, "about": about, "rows": rows}
