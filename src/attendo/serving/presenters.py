"""Converts results of models to responses of /v1; runs in the thread of the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.inspection.record import KINDS
from attendo.inspection.token_surfaces import target_surfaces
from attendo.inspection.word_alignment import align_words
from attendo.serving.routes.v1_schemas import (
    AlignmentResponse,
    AlternativeResponse,
    ConfidenceResponse,
    ModelResponse,
    ScoreResponse,
    SeriesResponse,
    TokenScore,
    TranslationResponse,
    WordResponse,
    round_finite,
)
from attendo.serving.served_model import SeriesModelHandle
from attendo.text.sentences import split_sentences
from attendo.text.tokenizer import END_ID, START_ID
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.prefixes import translate_with_prefix
from attendo.translator.streaming import PartialTranslation, stream_translation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.serving.config import ServeConfig
    from attendo.serving.served_model import ModelHandle, TextModelHandle
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator import Confidence, Translation, Translator

MAX_ALIGNED_CHARACTERS = 400
"""Maximum characters of a sentence that is aligned."""
MAX_STREAMED_CHARACTERS = 1000
"""Maximum characters of a text that is streamed; for longer ones a batch is much faster."""
MAX_SCORED_TOKENS = 512
"""Maximum tokens per side of a scored batch: 200 MB with a vocabulary of 37,000."""
PROBABILITY_DIGITS = 4
NOT_ALIGNED_NOTE = (
    f"no alignment: only available for one sentence of up to {MAX_ALIGNED_CHARACTERS} characters"
)
NO_ATTENTION_NOTE = "no alignment: the model has no attention"


def present_models(models: Sequence[ModelHandle], config: ServeConfig) -> list[ModelResponse]:
    """Describe each model; the first one of each task is the default."""
    tasks = [served.task for served in models]
    return [
        _present_series_model(served, is_default=is_default, max_rows=config.max_rows)
        if isinstance(served, SeriesModelHandle)
        else _present_text_model(
            served, is_default=is_default, max_characters=config.max_characters
        )
        for index, served in enumerate(models)
        for is_default in [tasks.index(served.task) == index]
    ]


def _present_series_model(
    served: SeriesModelHandle, *, is_default: bool, max_rows: int
) -> ModelResponse:
    model, codec = served.forecaster.model, served.forecaster.codec
    return ModelResponse(
        name=served.name,
        task=served.task,
        source=None,
        target=None,
        kind=model.kind,
        num_parameters=sum(weight.numel() for weight in model.parameters()),
        has_attention=True,
        default=is_default,
        max_characters=None,
        dev=_present_dev_scores(served.about.get("dev")),
        series=SeriesResponse(
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


def _present_text_model(
    served: TextModelHandle, *, is_default: bool, max_characters: int
) -> ModelResponse:
    engine, model = served.translator.backend, served.translator.model
    is_opaque = isinstance(engine, CTranslate2Backend)  # a converted Transformer
    return ModelResponse(
        name=served.name,
        task=served.task,
        source=served.src,
        target=served.tgt,
        kind=str(getattr(model, "kind", type(model).__name__)).lower(),
        num_parameters=engine.num_parameters,
        has_attention=is_opaque or has_attention(served.translator),
        default=is_default,
        max_characters=max_characters,
        dev=_present_dev_scores(served.about.get("dev")),
    )


@torch.inference_mode()
def has_attention(translator: Translator) -> bool:
    """Return whether the model has any attention weights, by running the shortest input."""
    pad = translator.backend.pad
    explanation = translator.model.explain(pad([[END_ID]]), pad([[START_ID]]))
    return any(explanation[kind] for kind in KINDS)


def _present_dev_scores(dev: Any) -> dict[str, Any] | None:
    if not isinstance(dev, dict):
        return None
    return {
        str(key): round_finite(value) if isinstance(value, float) else value
        for key, value in dev.items()
        if isinstance(value, (str, int, float))
    }


def present_translation(
    translator: Translator, translation: Translation, *, alignment: bool = False
) -> TranslationResponse:
    """Describe a translation; the alignment takes an additional forward pass."""
    aligned, notes = _present_alignment(translator, translation) if alignment else (None, [])
    return TranslationResponse(
        **_present_alternative(translation).model_dump(),
        source_text=translation.source,
        words=translation.split(),
        alternatives=[_present_alternative(one) for one in translation.alternatives],
        alignment=aligned,
        notes=[*translation.notes, *notes],
    )


def present_translations(
    translator: Translator, translations: Sequence[Translation], *, alignment: bool
) -> list[TranslationResponse]:
    """Describe several translations."""
    return [present_translation(translator, one, alignment=alignment) for one in translations]


def _present_alternative(translation: Translation) -> AlternativeResponse:
    return AlternativeResponse(
        text=str(translation),
        score=round_finite(translation.score),
        log_prob=round_finite(translation.log_prob),
        is_finished=translation.is_finished,
        confidence=_present_confidence(translation.confidence) if translation.confidence else None,
    )


def _present_confidence(confidence: Confidence) -> ConfidenceResponse:
    return ConfidenceResponse(
        probability=round_finite(confidence.probability) or 0.0,
        mean=round(confidence.mean, PROBABILITY_DIGITS),
        words=[
            WordResponse(text=word.text, probability=round(word.probability, PROBABILITY_DIGITS))
            for word in confidence.words
        ],
    )


def _present_alignment(
    translator: Translator, translation: Translation
) -> tuple[AlignmentResponse | None, list[str]]:
    text = translation.source.strip()
    is_short = (
        len(text) <= MAX_ALIGNED_CHARACTERS and "\n" not in text and len(split_sentences(text)) <= 1
    )
    if not is_short or len(translator.tokenizer.encode_src([text])[0]) > translator.max_src_tokens:
        return None, [NOT_ALIGNED_NOTE]
    aligned = align_words(translator, text, translation.ids)
    if aligned is None:
        # Decoder-only models have attention, but no cross-attention.
        return None, [] if has_attention(translator) else [NO_ATTENTION_NOTE]
    weights = [[round(weight, PROBABILITY_DIGITS) for weight in row] for row in aligned.weights]
    response = AlignmentResponse(
        source_words=aligned.source_words, target_words=aligned.target_words, weights=weights
    )
    return response, []


def stream_events(
    translator: Translator, text: str, options: dict[str, Any], *, alignment: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a stream: ("token", ...) for each token, then ("done", ...).

    Long texts, and searches other than greedy, yield only ("done", ...).
    """
    needs_search = any(
        options.get(key) for key in ("glossary", "required", "forbidden", "do_sample")
    )
    if needs_search or len(text) > MAX_STREAMED_CHARACTERS:
        translation = translate_with_prefix(translator, text, **{"prefix": "", **options})
        yield "done", present_translation(translator, translation, alignment=alignment).model_dump()
        return
    for update in stream_translation(translator, text, **options):
        if isinstance(update, PartialTranslation):
            yield (
                "token",
                {**update._asdict(), "probability": round(update.probability, PROBABILITY_DIGITS)},
            )
        else:
            yield "done", present_translation(translator, update, alignment=alignment).model_dump()


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ScoreResponse]:
    """Return the log-probabilities of given translations, as used in the search."""
    tokenizer = translator.tokenizer
    src = tokenizer.encode_src([source for source, _ in pairs])
    tgt = [row[:-1] for row in tokenizer.encode_tgt([target for _, target in pairs])]
    sizes = [max(len(src_ids), len(tgt_ids) + 1) for src_ids, tgt_ids in zip(src, tgt, strict=True)]
    if max(sizes) > MAX_SCORED_TOKENS:
        reason = message(
            "pair {number}: {count} tokens, at most {most} allowed",
            number=sizes.index(max(sizes)),
            count=max(sizes),
            most=MAX_SCORED_TOKENS,
        )
        raise InputError(reason, hint="score one sentence at a time")
    scored: list[list[float]] = []
    while len(scored) < len(pairs):
        start = len(scored)
        count = _num_fitting(sizes[start:])
        part = slice(start, start + count)
        scored += translator.backend.score(src[part], tgt[part])
    return [
        _present_score(tokenizer, ids, log_probs)
        for ids, log_probs in zip(tgt, scored, strict=True)
    ]


def _num_fitting(sizes: Sequence[int]) -> int:
    """Return how many of the first pairs fit in one batch, padded to the longest."""
    longest = 0
    for count, size in enumerate(sizes):
        longest = max(longest, size)
        if longest * (count + 1) > MAX_SCORED_TOKENS:
            return max(count, 1)
    return len(sizes)


def _present_score(tokenizer: Tokenizer, ids: list[int], log_probs: list[float]) -> ScoreResponse:
    surfaces = [*(target_surfaces(tokenizer, ids) if ids else ()), ""]
    total = sum(log_probs)
    mean = -total / len(log_probs)
    return ScoreResponse(
        log_prob=round_finite(total),
        num_tokens=len(log_probs),
        perplexity=round_finite(math.exp(mean)) if mean < math.log(1e300) else None,
        tokens=[
            TokenScore(text=text, log_prob=round_finite(one))
            for text, one in zip(surfaces, log_probs, strict=True)
        ],
    )
