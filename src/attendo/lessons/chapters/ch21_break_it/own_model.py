"""The learner's own model without a part, not trained again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.lessons.blocks import Block, ModelPlot, Note, Paragraph, Table
from attendo.lessons.chapters.ch21_break_it.reversal import OPTIONS
from attendo.lessons.prose import Prose
from attendo.model.initialization import no_init_weights
from attendo.model.transformer import Transformer
from attendo.translator import Translator

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.model.config import TransformerConfig

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch21_break_it")

MAX_LENGTH = 72
"""Characters of a translation in the table: a broken model repeats words without end."""


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return what the learner's own model translates without each of its parts."""
    if not isinstance(translator.model, Transformer):
        return [Note(prose("own-not-transformer"))]
    rows: Rows = [[prose("intact"), _translate(translator, text)]]
    for part in OPTIONS:
        broken = Translator(
            switch_off(translator.model, part), translator.tokenizer, about=translator.about
        )
        rows.append([prose(f"without-{part}"), _translate(broken, text)])
    return [
        Paragraph(prose("own-without")),
        Table([prose("model"), prose("own-translation")], rows),
        ModelPlot("all_heads", prose("own-figure")),
    ]


def switch_off(model: Transformer, part: str) -> Transformer:
    """Return a model with the same weights, but without a part."""
    options = {**model.config.model_dump(), **OPTIONS[part]}
    if part == "heads":
        options |= _one_head(model.config)
    with no_init_weights():
        broken = Transformer(**options)
    broken.load_state_dict(model.state_dict(), strict=False, assign=True)  # shares the weights
    return broken.eval()


def _one_head(config: TransformerConfig) -> dict[str, Any]:
    """Return the sizes of one head that is as wide as all heads together."""
    sizes = {name: getattr(config, name) for name in ("d_k", "d_v")}
    widths = {name: size and size * config.num_heads for name, size in sizes.items()}
    return {"num_heads": 1, "num_decoder_heads": None, **widths}


def _translate(translator: Translator, text: str) -> str:
    (translation,) = translator.translate([text], beam_size=1)
    shown = str(translation)
    return shown if len(shown) <= MAX_LENGTH else f"{shown[: MAX_LENGTH - 2]} …"
