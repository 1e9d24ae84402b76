"""What lesson 19 shows of the learner's own model: of a translator, and of its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import Block, ModelPlot, Note, Paragraph, Table
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer
from attendo.tasks.masked_lm.fill_mask import MASK_TEXT

if TYPE_CHECKING:
    from attendo.tasks.language_model.generator import TextGenerator
    from attendo.tasks.masked_lm.fill_mask import MaskFiller
    from attendo.translator import Translator

prose = Prose("attendo.lessons.chapters.ch19_relatives")

NUM_GUESSES, NUM_TEXTS, MAX_TOKENS = 5, 3, 40
EXAMPLES = {
    "ko": ("나는 ___ 학생이다.", "나는"),
    "en": ("I went to the ___.", "I went"),
}
"""A text with a gap and the beginning of a text, by language."""


def translator_blocks(translator: Translator, text: str) -> list[Block]:
    """Return which parts of a translator its relatives would use, and what they need besides."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    encoder = sum(size for name, size in sizes.items() if name.startswith("encoder."))
    cross = sum(size for name, size in sizes.items() if ".cross_" in name)
    decoder = sum(size for name, size in sizes.items() if name.startswith("decoder.")) - cross
    return [
        Paragraph(prose("own-translator")),
        Table(
            [prose("relative"), prose("own-parts"), prose("parameters"), prose("own-lacks")],
            [
                ["BERT", prose("own-encoder"), encoder, prose("own-lacks-bert")],
                ["GPT", prose("own-decoder"), decoder, prose("own-lacks-gpt")],
                ["T5", prose("own-both"), encoder + decoder + cross, prose("own-lacks-t5")],
            ],
        ),
        ModelPlot("masks", prose("own-masks")),
    ]


def filler_blocks(filler: MaskFiller, text: str | None) -> list[Block]:
    """Return what the learner's own masked language model puts into a gap."""
    example, _ = EXAMPLES.get(str(filler.about.get("src_lang")), EXAMPLES["en"])
    chosen = _add_gap(text or example)
    filled = filler.fill(chosen, top=NUM_GUESSES)
    return [
        Paragraph(prose("own-fill", text=chosen, filled=filled.text)),
        *(
            Table(
                [prose("word"), prose("probability")],
                [[one.text, one.probability] for one in guesses],
                digits=4,
            )
            for guesses in filled.guesses
        ),
    ]


def generator_blocks(generator: TextGenerator, text: str | None) -> list[Block]:
    """Return how the learner's own language model continues a text."""
    prompt = text or EXAMPLES.get(str(generator.about.get("tgt_lang")), ("", ""))[1]
    texts = generator.generate(prompt, count=NUM_TEXTS, max_tokens=MAX_TOKENS, top_p=0.9, seed=1)
    scores = generator.score(texts)
    return [
        Paragraph(prose("own-continue", prompt=prompt) if prompt else prose("own-begin")),
        Table(
            [prose("text"), prose("bits-per-character")],
            [[one, score.bits_per_character] for one, score in zip(texts, scores, strict=True)],
        ),
    ]


def _add_gap(text: str) -> str:
    """Return a text with a gap: its last word is hidden if it has none.

    >>> _add_gap("I went home")
    'I went ___'
    """
    return text if MASK_TEXT in text else " ".join([*text.split()[:-1], MASK_TEXT])
