"""The numbers that the drawing of the whole machine unfolds into, of a model and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.inspection import capture
from attendo.inspection.heads import require_transformer
from attendo.inspection.stage_values import describe_stages
from attendo.inspection.teacher_forcing import teacher_force
from attendo.lessons.blocks import LANGUAGES
from attendo.lessons.chapters.ch00_overview.tiny_translation import PAIRS, translate
from attendo.lessons.diagrams.machine import describe_page, draw_machine
from attendo.lessons.own_model import DEFAULT_SENTENCES, choose_sentence
from attendo.lessons.tiny_model import START

if TYPE_CHECKING:
    from attendo.translator import Translator

MAX_TOKENS = 40
"""Longer sentences are cut: the drawing is for those that one can look at."""


def model_values(
    translator: Translator, text: str | None, *, layer: int | None = None
) -> dict[str, Any]:
    """Return the numbers of a trained model, of a layer from 1, by default the last.

    Raises:
        InputError: the model is not a Transformer, or has no such layer.

    """
    model = require_transformer(translator.model, feature="the drawing of the whole machine")
    sentence = choose_sentence(translator, text)
    record = capture(translator, sentence, window=MAX_TOKENS, positions=False, neighbors=False)
    forced_pass = teacher_force(translator, record)
    src, tgt = ([token["piece"] for token in side["tokens"]] for side in (record.src, record.tgt))
    last = max(len(model.encoder.layers), len(model.decoder.layers))
    values = describe_stages(
        model, forced_pass, layer=layer or last, name_tokens=translator.tokenizer.tgt_pieces
    )
    return {
        "text": record.src["text"],
        "src": src,
        "tgt": tgt,
        "start": START,
        **values,
    }


def tiny_values(sentence: str) -> dict[str, Any]:
    """Return the numbers of the tiny model that learns two sentences."""
    src = sentence if sentence in dict(PAIRS) else PAIRS[0][0]
    translation = translate(src)
    words = translation.tiny.tgt_words
    values = describe_stages(
        translation.tiny.model,
        translation.forced_pass,
        layer=1,
        name_tokens=lambda ids: [words[one] for one in ids],
    )
    return {"text": src, "src": translation.src, "tgt": translation.tgt, "start": START, **values}


def page_drawing(translator: Translator, text: str | None) -> dict[str, Any] | None:
    """Return the drawing with the numbers of a model, for a page that has no server.

    The numbers of the lessons are left out: such a page has none. Without a sentence in a language
    that the lessons do not have, there is no drawing.
    """
    if text is None and translator.about.get("src_lang") not in DEFAULT_SENTENCES:
        return None
    values = model_values(translator, text)
    name = str(translator.about.get("name") or "")
    drawings = {lang: describe_page(draw_machine(), lang) for lang in LANGUAGES}
    return {"drawings": drawings, "values": {"model": name, **values}}
