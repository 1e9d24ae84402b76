"""Translation in two steps through a language that both models know, where no model is direct.

The source is translated segment by segment, so that the answer has the offsets of its sentences.
Prefix, forbidden phrases, sampling and n-best lists belong to the second step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.serving.model_registry import ANY_LANGUAGE, match_language
from attendo.serving.scheduling.clients import one_time_limit
from attendo.text.sentences import SegmentedText
from attendo.translator.prefixes import PrefixedDocument, distribute_prefix
from attendo.translator.quality import BANDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.serving.model_registry import ModelRegistry
    from attendo.serving.served_model import TextModelHandle
    from attendo.serving.service import Service
    from attendo.translator import Confidence, Translation

NUM_STEPS = 2
FIRST_STEP_OPTIONS = ("confidence", "split", "copy_spans", "retry")
UNSUPPORTED_OPTIONS = ("glossary", "required")
"""They name phrases of the source text, or belong to its first sentence."""
MAX_RANK = 1
"""A model whose languages are unknown is not part of a pivot."""


class PivotRoute(NamedTuple):
    """Two models: the target language of the first is the source language of the second."""

    first: TextModelHandle
    second: TextModelHandle

    @property
    def via(self) -> str:
        """The language in between."""
        return self.first.tgt


def find_route(
    registry: ModelRegistry, source: str | None, target: str | None, *, pivot: bool
) -> TextModelHandle | PivotRoute:
    """Return the model for a pair of languages; if there is none, two models.

    Raises:
        InputError: neither exists, or there is no pivot for "auto".

    """
    try:
        return registry.find_for_languages(source, target)
    except InputError:
        route = find_pivot(registry, source, target) if pivot else None
        if route is None:
            raise
        return route


def find_pivot(
    registry: ModelRegistry, source: str | None, target: str | None
) -> PivotRoute | None:
    """Return the best pair of models for a pair of languages, in the order of the models."""
    if ANY_LANGUAGE in (source or ANY_LANGUAGE, target or ANY_LANGUAGE):
        return None
    best: tuple[int, PivotRoute] | None = None
    for route in list_pivots(registry):
        ranks = (match_language(source, route.first.src), match_language(target, route.second.tgt))
        if None in ranks:
            continue
        rank = max(rank for rank in ranks if rank is not None)
        if rank <= MAX_RANK and (best is None or rank < best[0]):
            best = rank, route
    return best[1] if best else None


def list_pivots(registry: ModelRegistry) -> list[PivotRoute]:
    """Return every pair of models that translates between two languages without a direct model."""
    models = [
        one
        for one in registry.list_text_models("translation")
        if ANY_LANGUAGE not in (one.src, one.tgt)
    ]
    return [
        PivotRoute(first, second)
        for first in models
        for second in models
        if _matches(first.tgt, second.src)
        and not _matches(first.src, second.tgt)
        and not _matches(first.src, first.tgt)
        and not any(_matches(first.src, one.src) and _matches(second.tgt, one.tgt)
                    for one in models)
    ]  # fmt: skip


def pivot_targets(registry: ModelRegistry) -> dict[str, dict[str, str]]:
    """Return the targets that are reached in two steps by source, each with the language between.

    The same first choice as `find_pivot` makes.
    """
    targets: dict[str, dict[str, str]] = {}
    for route in list_pivots(registry):
        targets.setdefault(route.first.src, {}).setdefault(route.second.tgt, route.via)
    return targets


async def translate_route(
    service: Service,
    route: TextModelHandle | PivotRoute,
    texts: Sequence[str],
    options: Mapping[str, Any],
    *,
    timeout: float | None = None,
) -> list[Translation]:
    """Translate texts as `Service.translate` does, with one model or with two."""
    if not isinstance(route, PivotRoute):
        return await service.translate(route, texts, options, timeout=timeout)
    unsupported = [name for name in UNSUPPORTED_OPTIONS if options.get(name)]
    if unsupported:
        raise InputError(
            "a glossary and required phrases need a model for both languages",
            hint="omit them, or translate in two requests",
        )
    with one_time_limit():
        return await _translate_in_two_steps(service, route, texts, options, timeout=timeout)


async def _translate_in_two_steps(
    service: Service,
    route: PivotRoute,
    texts: Sequence[str],
    options: Mapping[str, Any],
    *,
    timeout: float | None,
) -> list[Translation]:
    first_options = {name: options[name] for name in FIRST_STEP_OPTIONS if name in options}
    intermediate = await service.translate(route.first, texts, first_options, timeout=timeout)
    prefix = options.get("prefix") or ""
    documents = [_document_of(one, prefix) for one in intermediate]
    pieces = [piece for one in intermediate for piece in _pieces_of(one)]
    second_options = {
        **options,
        "prefix": [prefix for document in documents for prefix in document.prefixes],
    }
    if not prefix:
        del second_options["prefix"]
    translated = iter(
        await service.translate(route.second, pieces, second_options, timeout=timeout)
    )
    return [
        _join(document, before, [next(translated) for _ in document.prefixes])
        for document, before in zip(documents, intermediate, strict=True)
    ]


def _pieces_of(translation: Translation) -> list[str]:
    """Return the translations of the segments of a text."""
    if not translation.segments:
        return [str(translation)] if translation.strip() else []
    return [translation[one.start : one.end] for one in translation.segments]


def _document_of(translation: Translation, prefix: str) -> PrefixedDocument:
    """Return the source of a translation, in the segments that were translated one by one."""
    text = translation.source
    spans = [(one.source_start, one.source_end) for one in translation.segments]
    if not spans and translation.strip():
        spans = [(0, len(text))]
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    document = SegmentedText(
        tuple(text[start:end] for start, end in spans),
        tuple(text[end:start] for end, start in zip(ends, starts, strict=True)),
    )
    return PrefixedDocument(text, document, *distribute_prefix(document, prefix))


def _join(
    document: PrefixedDocument, before: Translation, segments: list[Translation]
) -> Translation:
    """Return the translation of a text from those of its segments, with the worse confidence."""
    first = [one.confidence for one in before.segments]
    for segment, confidence in zip(segments, first, strict=False):
        for ranked in (segment, *segment.alternatives):
            if ranked.confidence is not None and confidence is not None:
                ranked.confidence = weaker_confidence(confidence, ranked.confidence)
    joined = document.merge(segments, confidence=before.confidence is not None)
    joined.notes = [*before.notes, *joined.notes]
    joined.is_finished = joined.is_finished and before.is_finished
    return joined


def weaker_confidence(first: Confidence, second: Confidence) -> Confidence:
    """Return the confidence of two steps: the lower value of each kind, the words of the second.

    It is an upper limit: the second step was calibrated on sources without mistakes.
    """
    bands = [one.band for one in (first, second) if one.band is not None]
    qualities = [one.quality for one in (first, second) if one.quality is not None]
    return second._replace(
        probability=min(first.probability, second.probability),
        mean_token_probability=min(first.mean_token_probability, second.mean_token_probability),
        quality=min(qualities) if len(qualities) == NUM_STEPS else None,
        band=max(bands, key=BANDS.index, default=None),
        unfamiliar=first.unfamiliar or second.unfamiliar,
    )


def _matches(one: str, other: str) -> bool:
    rank = match_language(one, other)
    return rank is not None and rank <= MAX_RANK
