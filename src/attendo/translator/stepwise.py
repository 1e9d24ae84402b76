"""One text, translated greedily and told token by token; the last thing told is the translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.data.sentences import join
from attendo.decoding.hypothesis import Found
from attendo.decoding.options import DecodingOptions
from attendo.decoding.stepwise import Stepwise
from attendo.translator.beginnings import Begun
from attendo.translator.engine import SYMBOLS, Job
from attendo.translator.translate import _part_words
from attendo.translator.translation import Confidence, Translation
from attendo.translator.wishes import Granter, Wishes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from attendo.translator.translate import Split, Translator


class Spoken(NamedTuple):
    """What has been said after one more token."""

    text: str
    """Everything so far."""
    token: str
    """The piece that has come, as SentencePiece writes it."""
    probability: float
    """By the calibrated model, as in `Translation.confidence`."""


def translate_stepwise(
    translator: Translator,
    text: str,
    *,
    prefix: str = "",
    confidence: bool = False,
    split: Split = "auto",
    **options: Any,
) -> Iterator[Spoken | Translation]:
    """Tell a translation as it comes; the last item equals `translate([text], beam_size=1)[0]`.

    `prefix` may reach over several sentences: each piece of the text gets its part. Whoever stops
    asking stops the work. Phrases and sampling cannot be told so.
    """
    chosen = DecodingOptions(**{**options, "beam_size": 1})
    begun = Begun.cut(translator, text, prefix, split=split)
    document = begun.document
    granter = Granter(translator.view, Wishes(begun.prefixes), num_texts=len(document.pieces))
    made: list[Translation] = []
    for number, piece in enumerate(document.pieces):
        ids = translator.tokenizer.encode_src([piece])[0]
        job = Job(piece, ids, granter.demands(number, 0, piece))
        if len(job.ids) == 1:  # the end symbol alone
            silent = Confidence(1.0, 1.0, []) if confidence else None
            made.append(Translation("", source=piece, confidence=silent))
            continue
        told = _tell(translator, job, chosen, confidence)
        try:
            while True:
                said = next(told)
                unsaid = [""] * (len(document.pieces) - len(made) - 1)
                texts = _part_words(document, [*made, said.text, *unsaid])
                yield said._replace(text=join(document, texts).strip())
        except StopIteration as end:
            made.append(end.value)
    yield begun.join(translator, made, confidence=confidence)


def _tell(
    translator: Translator, job: Job, options: DecodingOptions, confidence: bool
) -> Generator[Spoken, None, Translation]:
    """Tell one piece, and give its translation."""
    engine = translator.engine
    with engine.evaluating():
        steps = Stepwise(
            translator.model,
            engine.pad([job.ids]),
            SYMBOLS,
            options,
            job.demands,
            temperature=translator.temperature,
        )
        for said in steps:
            text = translator.view.read_unfinished(tuple(steps.ids)).text.strip()
            (piece,) = translator.tokenizer.tgt_pieces([said.id])
            yield Spoken(text, piece, said.probability)
    found = Found([steps.result])
    sure = translator._measure([job], [found])[0] if confidence else None
    return translator._word(job, found, options, sure)
