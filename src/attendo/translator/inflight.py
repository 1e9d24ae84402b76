"""Translates texts that come one after another, each joining the search at its next step.

`add` and `step` do together what `Translator.translate` does with a list of texts, for options
without constraints, traces and sampling: the same translations, whatever else is translated at the
same time. One thread at a time may use it.

A text with a sentence that is too long for a slot fails with `TooLongForSlotError`: its search
would stop all others for its whole length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import AttendoError
from attendo.decoding.options import DecodingOptions
from attendo.text.labels import label_source
from attendo.text.tokenizer import END_ID, UNK_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.copying import widen_n_best
from attendo.translator.translation import copy_source, merge_segments, to_translation

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.inflight.decoder import InflightDecoder, WarmUp
    from attendo.text.sentences import SegmentedText
    from attendo.translator.confidence import Confidence
    from attendo.translator.copying import SpanCopier
    from attendo.translator.failed_output import Retry
    from attendo.translator.translation import Translation
    from attendo.translator.translator import Translator

    Outcomes = dict[Hashable, Translation | Exception]
    FoundSegment = tuple["TextJob", int, SearchResult]

PROBE_LENGTHS = (3, 9, 1, 14, 5)
"""Source lengths of the searches that check the slots."""
PROBE_TOLERANCE = 0.05
"""The relative difference of scores that TF32 and bfloat16 may make."""
UNSUPPORTED = ("prefix", "glossary", "required", "forbidden", "trace", "progress", "options")
"""Arguments of `Translator.translate` that need a search of their own."""


class TooLongForSlotError(ValueError):
    """A sentence, or the translation that it may have, does not fit the buffers of any slot."""


class Settings(NamedTuple):
    """The arguments of one request."""

    options: DecodingOptions
    confidence: bool = False
    copy_spans: Any = "auto"
    retry: bool = False
    label: str | None = None

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Settings:
        """Return the settings of arguments of `Translator.translate`."""
        others = {"split", "confidence", "copy_spans", "retry", "label", *UNSUPPORTED}
        options = {name: value for name, value in arguments.items() if name not in others}
        return cls(
            DecodingOptions(**options),
            bool(arguments.get("confidence")),
            arguments.get("copy_spans", "auto"),
            bool(arguments.get("retry")),
            arguments.get("label"),
        )


@dataclass(eq=False, slots=True)
class TextJob:
    """One text, with the translations of its segments so far."""

    ticket: Hashable
    text: str
    settings: Settings
    document: SegmentedText
    copier: SpanCopier | None
    translations: dict[int, Translation] = field(default_factory=dict)
    items: dict[int, TranslationItem] = field(default_factory=dict)
    first_results: dict[int, SearchResult] = field(default_factory=dict)
    """Of segments that are searched for hypotheses with the right spans."""


class InflightTranslator:
    """A translator whose texts join and leave at any step.

    Args:
        translator: tokenizes, copies spans and completes the translations.
        decoder: searches.

    """

    def __init__(self, translator: Translator, decoder: InflightDecoder) -> None:
        self.translator, self.decoder = translator, decoder
        self._jobs: dict[Hashable, TextJob] = {}
        self._added: list[tuple[Hashable, str, Mapping[str, Any]]] = []
        self._touched: set[TextJob] = set()
        """Texts that may be complete."""

    @classmethod
    def for_translator(
        cls, translator: Translator, *, widths: Sequence[int], num_slots: int | None = None
    ) -> InflightTranslator | None:
        """Return an in-flight translator with the model of a translator; None if it has none."""
        decoder = translator.backend.make_inflight(
            widths=widths, max_src_length=translator.max_src_tokens + 1, num_slots=num_slots
        )
        return None if decoder is None else cls(translator, decoder)

    def __len__(self) -> int:
        """Return the number of texts that were added and not returned."""
        return len(self._jobs) + len(self._added)

    @property
    def num_slots(self) -> int:
        """Sentences that are searched at a time."""
        return self.decoder.num_slots

    def warm_up(self) -> WarmUp:
        """Run, and capture, every shape of a step."""
        return self.decoder.warm_up()

    def agrees_with_search(self) -> bool:
        """Return whether some searches in slots find what the usual search finds.

        On a GPU this checks the captured graphs before anybody relies on them.
        """
        size = self.translator.tokenizer.src_vocab_size - UNK_ID - 1
        sources = [
            [*(UNK_ID + 1 + (7 * n + 13 * index) % size for n in range(length)), END_ID]
            for index, length in enumerate(PROBE_LENGTHS)
            if length < self.translator.max_src_tokens
        ]
        items = [TranslationItem("", ids) for ids in sources]
        for width in sorted(self.decoder.widths):
            options = DecodingOptions(beam_size=width, max_extra_tokens=8)
            found: dict[Hashable, SearchResult | Exception] = {}
            for ticket, ids in enumerate(sources):
                self.decoder.add(ticket, ids, options)
                found |= dict(self.decoder.step())
            while len(self.decoder):
                found |= dict(self.decoder.step())
            for ticket, expected in enumerate(self.translator.backend.search(items, options)):
                result = found[ticket]
                if isinstance(result, Exception):
                    return False
                wanted = expected.hypotheses[0].score
                if abs(result.hypotheses[0].score - wanted) > PROBE_TOLERANCE * max(1, -wanted):
                    return False
        return True

    def supports(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether texts with these arguments of `Translator.translate` can be added.

        Invalid arguments are not supported: `Translator.translate` explains what is wrong.
        """
        if any(arguments.get(name) for name in UNSUPPORTED):
            return False
        try:
            settings = Settings.from_arguments(arguments)
            self.translator.check_label(settings.label)
            self.translator.make_copier(settings.copy_spans)
        except AttendoError:
            return False
        return self.decoder.supports(settings.options)

    def add(self, ticket: Hashable, text: str, arguments: Mapping[str, Any]) -> None:
        """Add a text with supported arguments; it joins at the next step."""
        self._added.append((ticket, text, arguments))

    def cancel(self, ticket: Hashable) -> None:
        """Forget a text, if it is still translated."""
        self._added = [one for one in self._added if one[0] != ticket]
        job = self._jobs.pop(ticket, None)
        for index in range(len(job.document.segments) if job is not None else 0):
            self.decoder.cancel((ticket, index))

    def step(self) -> list[tuple[Hashable, Translation | Exception]]:
        """Advance every text by one token, and return those that are complete, or failed."""
        done: Outcomes = {}
        self._begin_added(done)
        self._complete(self._receive(done), done)
        touched, self._touched = self._touched, set()
        for job in touched:
            if job.ticket not in done and len(job.translations) == len(job.document.segments):
                done[job.ticket] = self._merge(job)
        for ticket, result in done.items():
            if isinstance(result, Exception):
                self.cancel(ticket)  # its other segments
            self._jobs.pop(ticket, None)
        return list(done.items())

    def _begin_added(self, done: Outcomes) -> None:
        added, self._added = self._added, []
        for ticket, text, arguments in added:
            try:
                self._begin(ticket, text, Settings.from_arguments(arguments))
            except Exception as error:  # noqa: BLE001 - reported to the caller
                done[ticket] = error

    def _receive(self, done: Outcomes) -> list[FoundSegment]:
        """Advance the searches, and return the segments whose searches are over."""
        searched = []
        for key, result in self.decoder.step():
            ticket, index = self._split_key(key)
            job = self._jobs.get(ticket)
            if job is None:
                continue
            if isinstance(result, Exception):
                done[ticket] = result
            else:
                searched.append((job, index, result))
        return searched

    def _split_key(self, key: Hashable) -> tuple[Hashable, int]:
        if not isinstance(key, tuple):
            raise TypeError("not a key of a segment")
        ticket, index = key
        return ticket, int(index)

    def _begin(self, ticket: Hashable, text: str, settings: Settings) -> None:
        """Tokenize a text and queue its segments."""
        translator = self.translator
        copier = translator.make_copier(settings.copy_spans)
        document = translator.split_text(text, "never", keep_spans=copier is not None)
        job = TextJob(ticket, text, settings, document, copier)
        sources = list(document.segments)
        if settings.label is not None:
            sources = [label_source(source, settings.label) for source in sources]
        all_ids = translator.tokenizer.encode_src(sources)
        self._jobs[ticket] = job
        for index, (source, ids) in enumerate(zip(sources, all_ids, strict=True)):
            item = TranslationItem(source, ids)
            if copier is not None:
                item = copier.prepare(item)
            if len(item.ids) > 1:  # not only END
                self._search(job, index, item)
            else:
                job.translations[index] = copy_source(
                    translator, item, confidence=settings.confidence
                )
        self._touched.add(job)

    def _search(
        self,
        job: TextJob,
        index: int,
        item: TranslationItem,
        options: DecodingOptions | None = None,
    ) -> None:
        job.items[index] = item
        options = options or job.settings.options
        if not self.decoder.add((job.ticket, index), item.ids, options):
            raise TooLongForSlotError(f"{len(item.ids)} tokens do not fit a slot")

    def _complete(self, searched: Sequence[FoundSegment], done: Outcomes) -> None:
        """Complete segments, or search them again; compute all confidences together."""
        complete = []
        for job, index, result in searched:
            try:
                final = self._search_again(job, index, result)
                if final is not None:
                    complete.append((job, index, final))
            except Exception as error:  # noqa: BLE001 - reported to the caller
                done[job.ticket] = error
        complete, retries = self._retry_failed(complete, done)
        confidences = self._score([one for one in complete if one[0].settings.confidence], done)
        for job, index, result in complete:
            try:
                job.translations[index] = to_translation(
                    self.translator,
                    job.items[index],
                    result,
                    job.settings.options,
                    _judge(confidences.get((job, index)), retries.get((job, index))),
                )
                if (retry := retries.get((job, index))) is not None:
                    job.translations[index].notes += retry.notes
            except Exception as error:  # noqa: BLE001 - reported to the caller
                done[job.ticket] = error
            self._touched.add(job)

    def _retry_failed(
        self, segments: Sequence[FoundSegment], done: Outcomes
    ) -> tuple[list[FoundSegment], dict[tuple[TextJob, int], Retry]]:
        """Search segments whose outputs are not translations once more.

        This is rare, and needs a search of its own: all others wait for it.
        """
        replaced: list[FoundSegment] = []
        retries: dict[tuple[TextJob, int], Retry] = {}
        for job, index, result in segments:
            if not job.settings.retry:
                replaced.append((job, index, result))
                continue
            try:
                retry = self._retry_one(job, index, result)
            except Exception as error:  # noqa: BLE001 - reported to the caller
                done[job.ticket] = error
                continue
            if retry is not None:
                retries[job, index] = retry
                result = retry.result
            replaced.append((job, index, result))
        return replaced, retries

    def _retry_one(self, job: TextJob, index: int, result: SearchResult) -> Retry | None:
        from attendo.translator.failed_output import retry_failed

        items, options = [job.items[index]], job.settings.options
        search = self.translator.backend.search
        return retry_failed(self.translator, items, [result], options, search).get(0)

    def _score(
        self, segments: Sequence[FoundSegment], done: Outcomes
    ) -> dict[tuple[TextJob, int], list[Confidence]]:
        if not segments:
            return {}
        from attendo.translator.confidence import score_hypotheses

        items = [job.items[index] for job, index, _ in segments]
        try:
            scored = score_hypotheses(self.translator, items, [one[2] for one in segments])
        except Exception as error:  # noqa: BLE001 - reported to those who wait for these texts
            done.update((job.ticket, error) for job, _, _ in segments)
            return {}
        return {
            (job, index): found for (job, index, _), found in zip(segments, scored, strict=True)
        }

    def _search_again(self, job: TextJob, index: int, result: SearchResult) -> SearchResult | None:
        """Return the result of a segment; None if it is searched again because of its spans."""
        item, copier, options = job.items[index], job.copier, job.settings.options
        if copier is None or not copier.may_retry(item):
            return result
        first = job.first_results.pop(index, None)
        if first is not None:  # this was the search for other hypotheses
            chosen = copier.choose(item, result, options)
            if chosen is not None:
                return chosen
            result = first
        elif copier.is_complete(item, result):
            return result
        elif copier.may_have_others(item, options, result):
            job.first_results[index] = result
            self._search(job, index, item, widen_n_best(options))
            return None
        text = self.translator.tokenizer.decode_tgt([result.hypotheses[0].ids])[0]
        reduced = copier.retry(item, text)
        if reduced is None:
            return result
        self._search(job, index, reduced)
        return None

    def _merge(self, job: TextJob) -> Translation | Exception:
        translations = [job.translations[index] for index in range(len(job.document.segments))]
        try:
            return merge_segments(
                job.text, job.document, translations, confidence=job.settings.confidence
            )
        except Exception as error:  # noqa: BLE001 - reported to the caller
            return error


def _judge(confidences: list[Confidence] | None, retry: Retry | None) -> list[Confidence] | None:
    """Return the confidences of a segment, lower if its output is not a translation."""
    return retry.judge(confidences) if confidences and retry is not None else confidences
