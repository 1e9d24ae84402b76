"""Converts results of models to responses of /v1; runs in the thread of the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.inspection.token_surfaces import target_surfaces
from attendo.memory.unit import format_time
from attendo.serving.has_attention import has_attention
from attendo.serving.routes.v1_schemas import (
    AlignmentResponse,
    AlternativeResponse,
    BandResponse,
    ConfidenceResponse,
    MemoryMatchResponse,
    ModelResponse,
    NoteResponse,
    QualityResponse,
    ScoreResponse,
    SentenceResponse,
    SeriesResponse,
    TokenScore,
    TrainingResponse,
    TranslationResponse,
    UnfamiliarResponse,
    WordResponse,
    round_finite,
)
from attendo.serving.served_model import SeriesModelHandle
from attendo.serving.unloaded_model import UnloadedTextModel
from attendo.translator.notes import (
    NO_ATTENTION,
    NO_PYTORCH,
    NOT_ALIGNED,
    PIVOT_NOT_ALIGNED,
    Note,
)
from attendo.translator.prefixes import translate_with_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attendo.inspection.word_alignment import WordAlignment
    from attendo.memory.store import Match
    from attendo.serving.config import ServeConfig
    from attendo.serving.served_model import ModelHandle, TextModelHandle
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator import Confidence, Translation, Translator
    from attendo.translator.quality import QualityTable

MAX_ALIGNED_CHARACTERS = 2000
"""Maximum characters of a request that are aligned: each sentence takes a forward pass."""
MAX_STREAMED_CHARACTERS = 1000
"""Maximum characters of a text that is streamed; for longer ones a batch is much faster."""
MAX_SCORED_TOKENS = 512
"""Maximum tokens per side of a scored batch: 200 MB with a vocabulary of 37,000."""
PROBABILITY_DIGITS = 4
NOT_ALIGNED_NOTE = Note(NOT_ALIGNED, count=MAX_ALIGNED_CHARACTERS)
NO_PIVOT_ALIGNMENT_NOTE = Note(PIVOT_NOT_ALIGNED)
NO_ATTENTION_NOTE = Note(NO_ATTENTION)
NO_PYTORCH_NOTE = Note(NO_PYTORCH)
NATIVE_ENGINE = "attendo"


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
    from attendo.translator.backends.pytorch import PyTorchBackend

    model, codec = served.forecaster.model, served.forecaster.codec
    return ModelResponse(
        name=served.name,
        task=served.task,
        source=None,
        target=None,
        kind=model.kind,
        num_parameters=sum(weight.numel() for weight in model.parameters()),
        memory_bytes=PyTorchBackend(model).num_bytes,
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
    tokenizer = served.translator.tokenizer
    return ModelResponse(
        name=served.name,
        task=served.task,
        source=served.src,
        target=served.tgt,
        kind=str(getattr(model, "kind", type(model).__name__)).lower(),
        num_parameters=engine.num_parameters,
        memory_bytes=engine.num_bytes,
        has_attention=has_attention(served.translator),
        loaded=not isinstance(served, UnloadedTextModel),
        default=is_default,
        max_characters=max_characters,
        dev=_present_dev_scores(served.about.get("dev")),
        quality=_present_quality(served.translator.quality),
        labels=list(served.translator.labels),
        vocab_sizes=[tokenizer.src_vocab_size, tokenizer.tgt_vocab_size],
        training=_present_training(served.about.get("training")),
    )


def _present_training(facts: Any) -> TrainingResponse | None:
    if not isinstance(facts, dict):
        return None
    try:
        return TrainingResponse.model_validate(facts)
    except ValidationError:  # a model folder that another program wrote
        return None


def _present_quality(table: QualityTable | None) -> QualityResponse | None:
    if table is None:
        return None
    bands = {
        band: BandResponse(count=counts.count, num_right=counts.num_right)
        for band, counts in table.bands.items()
    }
    return QualityResponse(
        num_sentences=table.num_sentences,
        min_chrf=table.min_chrf,
        min_quality=table.min_quality,
        bands=bands,
    )


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
    """Describe a translation; the alignment takes a forward pass per sentence."""
    return present_translations(translator, [translation], alignment=alignment)[0]


def present_translations(
    translator: Translator,
    translations: Sequence[Translation],
    *,
    alignment: bool,
    min_confidence: float | None = None,
) -> list[TranslationResponse]:
    """Describe several translations."""
    aligner = Aligner(translator) if alignment else None
    responses = []
    for one in translations:
        checkpoint()
        responses.append(_present_translation(one, aligner, min_confidence))
    return responses


def _present_translation(
    translation: Translation, aligner: Aligner | None, min_confidence: float | None = None
) -> TranslationResponse:
    alignments: list[AlignmentResponse | None] = [None] * len(translation.segments)
    notes = translation.notes
    if aligner is not None:
        alignments, why_not = aligner.align(translation)
        notes = [*notes, *why_not]
    return TranslationResponse(
        **_present_alternative(translation).model_dump(),
        source_text=translation.source,
        accepted=_is_accepted(translation.confidence, min_confidence),
        words=translation.split(),
        alternatives=[_present_alternative(one) for one in translation.alternatives],
        alignment=alignments[0] if len(alignments) == 1 else None,
        sentences=[
            SentenceResponse(
                source_start=one.source_start,
                source_end=one.source_end,
                start=one.start,
                end=one.end,
                alignment=aligned,
                band=one.confidence.band if one.confidence else None,
                quality=_round_quality(one.confidence),
                accepted=_is_accepted(one.confidence, min_confidence),
            )
            for one, aligned in zip(translation.segments, alignments, strict=True)
        ],
        notes=notes,
        note_details=[
            NoteResponse.model_validate(note.to_dict()) for note in notes if isinstance(note, Note)
        ],
    )


def add_matches(
    texts: Sequence[str],
    matches: Sequence[Sequence[Match]],
    responses: Sequence[TranslationResponse],
    *,
    min_confidence: float | None,
    repaired: Sequence[str | None] = (),
) -> list[TranslationResponse]:
    """Return a response per text: what the memory has, or the next one with the similar units."""
    remaining = iter(responses)
    repaired = repaired or [None] * len(texts)
    complete = []
    for text, found, repaired_text in zip(texts, matches, repaired, strict=True):
        if found and found[0].is_exact:
            known = _present_known(text, found)
            known.accepted = None if min_confidence is None else True  # a person wrote it
            complete.append(known)
        else:
            response = next(remaining)
            response.memory = _present_matches(found)
            if repaired_text is not None:
                response.memory[0].repaired_text = repaired_text
            complete.append(response)
    return complete


def stream_known(text: str, matches: Sequence[Match]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the event of a text that the memory has."""
    yield "done", _present_known(text, matches).model_dump()


def _present_known(text: str, matches: Sequence[Match]) -> TranslationResponse:
    """Describe a translation that a person wrote: it has no scores."""
    target = matches[0].unit.target
    whole = SentenceResponse(source_start=0, source_end=len(text), start=0, end=len(target))
    return TranslationResponse(
        text=target,
        score=None,
        log_prob=None,
        is_finished=True,
        source_text=text,
        words=target.split(),
        sentences=[whole],
        memory=_present_matches(matches),
    )


def _present_matches(matches: Sequence[Match]) -> list[MemoryMatchResponse]:
    return [
        MemoryMatchResponse(
            kind="exact" if one.is_exact else "fuzzy",
            score=round(one.score, PROBABILITY_DIGITS),
            source_text=one.unit.source,
            target_text=one.unit.target,
            id=one.unit.id,
            author=one.unit.author,
            time=format_time(one.unit.time),
        )
        for one in matches
    ]


def _present_alternative(translation: Translation) -> AlternativeResponse:
    return AlternativeResponse(
        text=str(translation),
        score=round_finite(translation.score),
        log_prob=round_finite(translation.log_prob),
        is_finished=translation.is_finished,
        confidence=_present_confidence(translation.confidence) if translation.confidence else None,
    )


def _is_accepted(confidence: Confidence | None, min_confidence: float | None) -> bool | None:
    if min_confidence is None or confidence is None or confidence.quality is None:
        return None
    return confidence.quality >= min_confidence


def _round_quality(confidence: Confidence | None) -> float | None:
    if confidence is None or confidence.quality is None:
        return None
    return round(confidence.quality, PROBABILITY_DIGITS)


def _present_confidence(confidence: Confidence) -> ConfidenceResponse:
    return ConfidenceResponse(
        probability=round_finite(confidence.probability) or 0.0,
        mean_token_probability=round(confidence.mean_token_probability, PROBABILITY_DIGITS),
        quality=_round_quality(confidence),
        band=confidence.band,
        is_calibrated=confidence.is_calibrated,
        unfamiliar=(
            None
            if confidence.unfamiliar is None
            else UnfamiliarResponse(**confidence.unfamiliar.to_dict())
        ),
        words=[
            WordResponse(text=word.text, probability=round(word.probability, PROBABILITY_DIGITS))
            for word in confidence.words
        ],
    )


class Aligner:
    """Aligns the sentences of translations with their sources, up to a number of characters."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self._num_left = MAX_ALIGNED_CHARACTERS

    def align(self, translation: Translation) -> tuple[list[AlignmentResponse | None], list[str]]:
        """Return the alignment of each sentence, None where there is none, and why."""
        if not self.translator.backend.has_native:
            return [None] * len(translation.segments), [NO_PYTORCH_NOTE]
        from attendo.inspection.copy_alignment import align_with_copies
        from attendo.inspection.word_alignment import align_words

        alignments: list[AlignmentResponse | None] = []
        for segment in translation.segments:
            source = translation.source[segment.source_start : segment.source_end]
            self._num_left -= len(source)
            if self._num_left < 0:
                missing = len(translation.segments) - len(alignments)
                return [*alignments, *[None] * missing], [NOT_ALIGNED_NOTE]
            text = translation[segment.start : segment.end]
            aligned = (
                align_with_copies(self.translator, source, text, segment.ids, segment.copied)
                if segment.copied
                else align_words(self.translator, source, segment.ids)
            )
            if aligned is None:
                # Decoder-only models have attention, but no cross-attention.
                why: list[str] = [] if has_attention(self.translator) else [NO_ATTENTION_NOTE]
                return [None] * len(translation.segments), why
            alignments.append(_present_alignment(aligned))
        return alignments, []


def _present_alignment(aligned: WordAlignment) -> AlignmentResponse:
    return AlignmentResponse(
        source_words=aligned.source_words,
        target_words=aligned.target_words,
        weights=[[round(weight, PROBABILITY_DIGITS) for weight in row] for row in aligned.weights],
    )


def stream_events(
    translator: Translator, text: str, options: dict[str, Any], *, alignment: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a stream: ("token", ...) for each token, then ("done", ...).

    Long texts, searches other than greedy, and engines that do not decode step by step, yield only
    ("done", ...).
    """
    needs_search = any(
        options.get(key) for key in ("glossary", "required", "forbidden", "do_sample")
    )
    is_stepwise = translator.backend.name == NATIVE_ENGINE
    if not is_stepwise or needs_search or len(text) > MAX_STREAMED_CHARACTERS:
        translation = translate_with_prefix(translator, text, **{"prefix": "", **options})
        yield "done", present_translation(translator, translation, alignment=alignment).model_dump()
        return
    from attendo.translator.streaming import PartialTranslation, stream_translation

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
