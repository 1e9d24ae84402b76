"""The translation memory of a server: what it knows of the texts of a request.

A text that is in the memory is not translated: the answer is what a person wrote. Similar texts are
returned together with the translation. Nothing is looked up where the request forces the output.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from attendo.memory.store import Match, TranslationMemory
from attendo.serving.pivot import PivotRoute, translate_route
from attendo.translator import Translation
from attendo.translator.match_repair import repair_match

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.serving.served_model import TextModelHandle
    from attendo.serving.service import Service

MAX_FUZZY_TEXTS, MAX_FUZZY_CHARACTERS = 32, 1000
"""Texts of a request for which similar ones are sought, and their length at most."""
FORCING_OPTIONS = ("prefix", "do_sample", "required", "forbidden", "glossary", "label")
"""Options that say what the translation must be: it is not taken from the memory."""


def get_memory(service: Service) -> TranslationMemory:
    """Return the memory; raise an error with status 404 if the server has none."""
    if service.memory is None:
        raise HTTPException(404, "this server has no translation memory: attendo serve --memory")
    return service.memory


async def find_matches(
    service: Service,
    texts: Sequence[str],
    languages: tuple[str, str],
    options: Mapping[str, Any],
    *,
    fuzzy: bool = True,
) -> list[list[Match]]:
    """Return what the memory has for each text, best first; a list begins with an exact match."""
    if service.memory is None or any(options.get(name) for name in FORCING_OPTIONS):
        return [[] for _ in texts]
    return await asyncio.to_thread(_find_matches, service.memory, texts, languages, fuzzy=fuzzy)


def _find_matches(
    memory: TranslationMemory, texts: Sequence[str], languages: tuple[str, str], *, fuzzy: bool
) -> list[list[Match]]:
    matches = []
    for index, text in enumerate(texts):
        unit = memory.find_exact(text, *languages)
        if unit is not None:
            matches.append([Match(unit, 1.0)])
        elif fuzzy and index < MAX_FUZZY_TEXTS and len(text) <= MAX_FUZZY_CHARACTERS:
            matches.append(memory.find_fuzzy(text, *languages))
        else:
            matches.append([])
    return matches


def exact_target(matches: Sequence[Match]) -> str | None:
    """Return the translation that is in the memory, None if the text is not."""
    return matches[0].unit.target if matches and matches[0].is_exact else None


async def translate_unknown(
    service: Service,
    route: TextModelHandle | PivotRoute,
    texts: Sequence[str],
    matches: Sequence[Sequence[Match]],
    options: Mapping[str, Any],
    *,
    timeout: float | None = None,
) -> list[Translation | None]:
    """Translate the texts that are not in the memory; the others are None."""
    unknown = [text for text, one in zip(texts, matches, strict=True) if exact_target(one) is None]
    translated = iter(
        await translate_route(service, route, unknown, options, timeout=timeout) if unknown else ()
    )
    return [None if exact_target(one) is not None else next(translated) for one in matches]


async def repair_best(
    service: Service,
    served: TextModelHandle,
    matches: Sequence[Sequence[Match]],
    translated: Sequence[Translation | None],
) -> list[str | None]:
    """Return the best similar unit of each text with the words that differ translated anew."""
    repaired: list[str | None] = [None] * len(matches)
    for index, (found, own) in enumerate(zip(matches, translated, strict=True)):
        if own is not None and found:
            unit = found[0].unit
            repaired[index] = await service.call(
                served, served.call_richest, repair_match, own, unit.source, unit.target
            )
    return repaired


async def translate_or_recall(
    service: Service,
    route: TextModelHandle | PivotRoute,
    texts: Sequence[str],
    options: Mapping[str, Any],
    *,
    timeout: float | None = None,
) -> list[Translation]:
    """Translate texts, or return what the memory has for them."""
    first, last = (route.first, route.second) if isinstance(route, PivotRoute) else (route, route)
    languages = (first.src, last.tgt)
    matches = await find_matches(service, texts, languages, options, fuzzy=False)
    translated = await translate_unknown(service, route, texts, matches, options, timeout=timeout)
    return [
        one if one is not None else Translation(exact_target(found) or "", source=text)
        for text, found, one in zip(texts, matches, translated, strict=True)
    ]
