"""Texts and documents of requests: translated in the queues of their models, then put together."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.message import message
from attendo.documents.alignment import link_all
from attendo.serving.limits import check_limits
from attendo.serving.memory import translate_or_recall
from attendo.serving.pivot import PivotRoute
from attendo.serving.served_model import TextModelHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.documents import DocumentPlan, TranslatedDocument
    from attendo.documents.word_links import WordLinks
    from attendo.serving.service import Service
    from attendo.translator import Translation

    Route = TextModelHandle | PivotRoute | None
    Progress = Callable[[int, int], None]

CHUNK_TEXTS, CHUNK_CHARACTERS = 64, 8_000
"""What of a file is translated before the progress is reported."""
MIN_SECONDS = 0.01
NO_ALIGNMENT = "tags are placed by position: the text is translated in two steps"


class Job(NamedTuple):
    """A text, or the plan of a document, and the models for its language (None: left as it is)."""

    text: str
    plan: DocumentPlan | None
    route: Route

    @property
    def texts(self) -> list[str]:
        """What is translated."""
        return [self.text] if self.plan is None else self.plan.texts


async def translate_jobs(
    service: Service, jobs: Sequence[Job], *, n_best: int, timeout: float
) -> list[list[str]]:
    """Translate texts and pages; return the n-best list of each."""
    found: list[list[list[Translation]]] = [[] for _ in jobs]
    options = {"n_best": n_best, "beam_size": max(n_best, service.config.beam_size)}
    deadline = monotonic() + timeout
    for route in dict.fromkeys(job.route for job in jobs if job.route is not None):
        indices = [index for index, job in enumerate(jobs) if job.route == route]
        flat = [text for index in indices for text in jobs[index].texts]
        seconds = max(deadline - monotonic(), MIN_SECONDS)
        results = iter(await translate_or_recall(service, route, flat, options, timeout=seconds))
        for index in indices:
            found[index] = [
                [best, *best.alternatives] for best in (next(results) for _ in jobs[index].texts)
            ]
    return [
        await _rank(service, job, ranked, deadline) for job, ranked in zip(jobs, found, strict=True)
    ]


async def _rank(
    service: Service, job: Job, found: list[list[Translation]], deadline: float
) -> list[str]:
    """Return the translations of a job: all the best segments, then all the second best."""
    if job.route is None:
        return [job.text]
    if job.plan is None:
        return list(map(str, found[0]))
    made = []
    for rank in range(max(map(len, found), default=1)):
        ranked = [one[min(rank, len(one) - 1)] for one in found]
        links = await _link(service, job, ranked, max(deadline - monotonic(), MIN_SECONDS))
        page = await asyncio.to_thread(job.plan.complete, ranked, links)
        made.append(page.content.decode())
    return made


async def translate_file_job(
    service: Service, job: Job, *, timeout: float, progress: Progress | None = None
) -> TranslatedDocument:
    """Translate the document of a job in parts, and report the progress after each."""
    if job.plan is None:
        raise ValueError("the job has no document")
    texts = job.texts
    check_limits({"characters": (sum(map(len, texts)), service.config.max_file_bytes)})
    if job.route is None:
        return await asyncio.to_thread(job.plan.complete, texts)
    deadline = monotonic() + timeout
    options: dict[str, Any] = {"beam_size": service.config.beam_size}
    found: list[Translation] = []
    if progress is not None:
        progress(0, len(texts))
    for part in split_parts(texts):
        seconds = max(deadline - monotonic(), MIN_SECONDS)
        found += await translate_or_recall(service, job.route, part, options, timeout=seconds)
        if progress is not None:
            progress(len(found), len(texts))
    links = await _link(service, job, found, max(deadline - monotonic(), MIN_SECONDS))
    made = await asyncio.to_thread(job.plan.complete, found, links)
    if job.plan.aligned and isinstance(job.route, PivotRoute):
        made.notes.append(message(NO_ALIGNMENT))
    return made


def split_parts(texts: Sequence[str]) -> list[list[str]]:
    """Split texts into parts that are translated one after another.

    >>> [len(part) for part in split_parts(["a"] * 100)]
    [64, 36]
    """
    parts: list[list[str]] = []
    size = 0
    for text in texts:
        if not parts or len(parts[-1]) >= CHUNK_TEXTS or size + len(text) > CHUNK_CHARACTERS:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += len(text)
    return parts


async def _link(
    service: Service, job: Job, translations: Sequence[Translation], seconds: float
) -> dict[int, WordLinks]:
    """Align the texts with tags, by the attention of the model."""
    numbers = job.plan.aligned if job.plan is not None else []
    if not numbers or not isinstance(job.route, TextModelHandle):
        return {}
    chosen = [translations[number] for number in numbers]
    links = await service.call(job.route, job.route.call_richest, link_all, chosen, timeout=seconds)
    return dict(zip(numbers, links, strict=True))
