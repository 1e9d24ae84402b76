"""From what a model gives to the answers of /v1; runs in the model's own thread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.data.sentences import find_sentences
from attendo.data.tokenizer import END_ID, START_ID
from attendo.inspection.record import KINDS
from attendo.inspection.sides import show_tgt
from attendo.inspection.word_alignment import align_words
from attendo.serving.schemas import (
    AlignmentAnswer,
    AlternativeAnswer,
    ConfidenceAnswer,
    ModelAnswer,
    ScoreAnswer,
    SeriesAnswer,
    TokenScore,
    TranslationAnswer,
    WordAnswer,
    finite,
)
from attendo.serving.served import ServedSeries
from attendo.translator.beginnings import translate_from
from attendo.translator.ctranslate2_engine import CTranslate2Engine
from attendo.translator.stepwise import Spoken, translate_stepwise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.data.tokenizer import Tokenizer
    from attendo.serving.config import ServeConfig
    from attendo.serving.served import AnyServed, Served
    from attendo.translator import Confidence, Translation, Translator

MOST_ALIGNED = 400
"""Characters of a sentence up to which it is aligned."""
MOST_STREAMED = 1000
"""Characters up to which tokens are told one by one: a whole batch of sentences is far quicker."""
MOST_SCORED = 512
"""Tokens of each side that are scored at once: with a vocabulary of 37,000 they take 200 MB."""
DIGITS = 4
UNALIGNED = f"no alignment: only for one sentence of up to {MOST_ALIGNED} characters"
BLIND = "no alignment: the model has no attention"


def describe_models(models: Sequence[AnyServed], config: ServeConfig) -> list[ModelAnswer]:
    """Tell what each model is; the first of its task is the default one."""
    tasks = [served.task for served in models]
    return [
        _describe_series(served, is_default=is_default, max_rows=config.max_rows)
        if isinstance(served, ServedSeries)
        else _describe_text(served, is_default=is_default, max_characters=config.max_characters)
        for place, served in enumerate(models)
        for is_default in [tasks.index(served.task) == place]
    ]


def _describe_series(served: ServedSeries, *, is_default: bool, max_rows: int) -> ModelAnswer:
    model, codec = served.forecaster.model, served.forecaster.codec
    return ModelAnswer(
        name=served.name,
        task=served.task,
        source=None,
        target=None,
        kind=model.kind,
        num_parameters=sum(weight.numel() for weight in model.parameters()),
        has_attention=True,
        default=is_default,
        max_characters=None,
        dev=_tell_dev(served.about.get("dev")),
        series=SeriesAnswer(
            columns=list(codec.features),
            time=codec.time,
            window=codec.window,
            horizon=codec.horizon,
            targets=list(codec.targets),
            kind=codec.kind,
            labels=list(codec.labels) if codec.kind == "labels" else None,
            max_rows=max_rows,
        ),
    )


def _describe_text(served: Served, *, is_default: bool, max_characters: int) -> ModelAnswer:
    engine, model = served.translator.engine, served.translator.model
    is_closed = isinstance(engine, CTranslate2Engine)  # a Transformer, which stays on the disk
    return ModelAnswer(
        name=served.name,
        task=served.task,
        source=served.src,
        target=served.tgt,
        kind=str(getattr(model, "kind", type(model).__name__)).lower(),
        num_parameters=engine.num_parameters,
        has_attention=is_closed or has_attention(served.translator),
        default=is_default,
        max_characters=max_characters,
        dev=_tell_dev(served.about.get("dev")),
    )


@torch.inference_mode()
def has_attention(translator: Translator) -> bool:
    """Try it on the shortest sentence that there is: any kind of attention can be looked at."""
    pad = translator.engine.pad
    found = translator.model.explain(pad([[END_ID]]), pad([[START_ID]]))
    return any(found[kind] for kind in KINDS)


def _tell_dev(dev: Any) -> dict[str, Any] | None:
    if not isinstance(dev, dict):
        return None
    return {
        str(key): finite(value) if isinstance(value, float) else value
        for key, value in dev.items()
        if isinstance(value, (str, int, float))
    }


def describe(
    translator: Translator, made: Translation, *, alignment: bool = False
) -> TranslationAnswer:
    """Tell everything of a translation; the alignment takes one pass more."""
    found, notes = _align(translator, made) if alignment else (None, [])
    return TranslationAnswer(
        **_describe_plainly(made).model_dump(),
        source_text=made.source,
        words=made.split(),
        alternatives=[_describe_plainly(one) for one in made.alternatives],
        alignment=found,
        notes=[*made.notes, *notes],
    )


def describe_all(
    translator: Translator, made: Sequence[Translation], *, alignment: bool
) -> list[TranslationAnswer]:
    """Tell everything of several translations."""
    return [describe(translator, one, alignment=alignment) for one in made]


def _describe_plainly(made: Translation) -> AlternativeAnswer:
    return AlternativeAnswer(
        text=str(made),
        score=finite(made.score),
        log_prob=finite(made.log_prob),
        is_finished=made.is_finished,
        confidence=_describe_confidence(made.confidence) if made.confidence else None,
    )


def _describe_confidence(sure: Confidence) -> ConfidenceAnswer:
    return ConfidenceAnswer(
        probability=finite(sure.probability) or 0.0,
        mean=round(sure.mean, DIGITS),
        words=[
            WordAnswer(text=word.text, probability=round(word.probability, DIGITS))
            for word in sure.words
        ],
    )


def _align(translator: Translator, made: Translation) -> tuple[AlignmentAnswer | None, list[str]]:
    text = made.source.strip()
    is_short = len(text) <= MOST_ALIGNED and "\n" not in text and len(find_sentences(text)) <= 1
    if not is_short or len(translator.tokenizer.encode_src([text])[0]) > translator.max_src_tokens:
        return None, [UNALIGNED]
    found = align_words(translator, text, made.ids)
    if found is None:
        # half a model has attention, but none from what it says to the source
        return None, [] if has_attention(translator) else [BLIND]
    weights = [[round(weight, DIGITS) for weight in row] for row in found.weights]
    answer = AlignmentAnswer(
        source_words=found.source_words, target_words=found.target_words, weights=weights
    )
    return answer, []


def tell_stepwise(
    translator: Translator, text: str, options: dict[str, Any], *, alignment: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the events of a stream: ("token", ...) as they come, and ("done", ...).

    What is long, or found by another search than the greedy one, comes whole.
    """
    needs_search = any(options.get(key) for key in ("glossary", "must", "must_not", "sample"))
    if needs_search or len(text) > MOST_STREAMED:
        made = translate_from(translator, text, **{"prefix": "", **options})
        yield "done", describe(translator, made, alignment=alignment).model_dump()
        return
    for said in translate_stepwise(translator, text, **options):
        if isinstance(said, Spoken):
            yield "token", {**said._asdict(), "probability": round(said.probability, DIGITS)}
        else:
            yield "done", describe(translator, said, alignment=alignment).model_dump()


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ScoreAnswer]:
    """Tell how likely the model, as it searches, finds given translations."""
    tokenizer = translator.tokenizer
    src = tokenizer.encode_src([source for source, _ in pairs])
    tgt = [row[:-1] for row in tokenizer.encode_tgt([target for _, target in pairs])]
    sizes = [max(len(one), len(other) + 1) for one, other in zip(src, tgt, strict=True)]
    if max(sizes) > MOST_SCORED:
        reason = f"pair {sizes.index(max(sizes))}: {max(sizes)} tokens, and {MOST_SCORED} at most"
        raise InputError(reason, remedy="score it sentence by sentence")
    scored: list[list[float]] = []
    while len(scored) < len(pairs):
        begin = len(scored)
        count = _count_fitting(sizes[begin:])
        part = slice(begin, begin + count)
        scored += translator.engine.score(src[part], tgt[part])
    return [
        _describe_score(tokenizer, ids, figures) for ids, figures in zip(tgt, scored, strict=True)
    ]


def _count_fitting(sizes: Sequence[int]) -> int:
    """Count how many of the first fit, padded to the longest of them."""
    longest = 0
    for count, size in enumerate(sizes):
        longest = max(longest, size)
        if longest * (count + 1) > MOST_SCORED:
            return max(count, 1)
    return len(sizes)


def _describe_score(tokenizer: Tokenizer, ids: list[int], log_probs: list[float]) -> ScoreAnswer:
    shown = [*(show_tgt(tokenizer, ids) if ids else ()), ""]
    total = sum(log_probs)
    mean = -total / len(log_probs)
    return ScoreAnswer(
        log_prob=finite(total),
        num_tokens=len(log_probs),
        perplexity=finite(math.exp(mean)) if mean < math.log(1e300) else None,
        tokens=[
            TokenScore(text=text, log_prob=finite(one))
            for text, one in zip(shown, log_probs, strict=True)
        ],
    )
