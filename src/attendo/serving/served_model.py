"""Handles of served models, for text or time series: the task, and how to decode a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from attendo.core.errors import InputError
from attendo.translator.backends.base import MIN_CONSTRAINED_BEAM

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from attendo.decoding.inflight.decoder import WarmUp
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.translator import Translation, Translator
    from attendo.translator.inflight import InflightTranslator
    from attendo.translator.prefixes import PrefixedDocument
    from attendo.translator.translator import Split

Task = Literal["translation", "classification", "language", "series"]
ResultT = TypeVar("ResultT")
TEXT_OUTPUT_TASKS: tuple[Task, ...] = ("translation", "classification")
"""Tasks of models that map a text to a text, the preferred one first."""


class Segment(NamedTuple):
    """A part of a text that is translated by itself."""

    text: str
    prefix: str = ""
    """The forced beginning of its translation."""
    is_first: bool = True
    """Whether it is the first one of its text, which has the required phrases."""


class SegmentSlots:
    """The slots of a model (`scheduling.slot_runner.SlotEngine`).

    Args:
        translator: translates the segments.
        warm_up: what its warm-up did.

    """

    def __init__(self, translator: InflightTranslator, warm_up: WarmUp) -> None:
        self.translator, self.warm_up = translator, warm_up

    def __len__(self) -> int:
        """Return the number of segments in slots."""
        return len(self.translator)

    @property
    def num_slots(self) -> int:
        """Segments that are translated at a time."""
        return self.translator.num_slots

    @property
    def step_seconds(self) -> float:
        """The processor time that a step should take at most."""
        return self.translator.decoder.step_seconds

    def add(self, ticket: Hashable, key: Any, payload: Segment) -> None:
        """Add a segment, with a key that has its options."""
        self.translator.add(ticket, payload.text, key.options)

    def cancel(self, ticket: Hashable) -> None:
        """Forget a segment, if it is still translated."""
        self.translator.cancel(ticket)

    def step(self) -> list[tuple[Hashable, Translation | Exception]]:
        """Advance every segment by one token, and return those that have finished."""
        return self.translator.step()


@dataclass(frozen=True, eq=False)
class TextModelHandle:
    """A loaded text model; a new handle replaces it when the folder changes."""

    name: str
    src: str
    """Source language code; "auto" if unknown."""
    tgt: str
    translator: Translator
    about: dict[str, Any]
    engine: str = "attendo"
    """Name of the decoding engine."""
    task: Task = "translation"
    slots: SegmentSlots | None = None
    """Translates segments that join and leave at any step."""

    def slots_for(
        self, options: Mapping[str, Any], segments: Sequence[Segment]
    ) -> SegmentSlots | None:
        """Return the slots, if they support the options and all segments."""
        if self.slots is None or any(one.prefix for one in segments):
            return None
        return self.slots if self.slots.translator.supports(options) else None

    @property
    def native(self) -> Translator:
        """The model with the native decoder, which supports inspection; loaded with the other."""
        return self.translator if self.engine == "attendo" else self.translator.native

    def translator_for(self, options: Mapping[str, Any]) -> Translator:
        """Return a translator that supports the options.

        Seeded sampling, constraints and traces need the native decoder.
        """
        is_native = self.engine_for(options) == "attendo"
        return self.native if is_native else self.translator

    def engine_for(self, options: Mapping[str, Any]) -> str:
        """Return the name of the engine that decodes with these options."""
        if self.engine == "attendo" or not self.translator.backend.has_native:
            return self.engine  # which reports what it does not support
        from attendo.translator.backends.ctranslate2.options import can_decode

        is_supported = not options.get("do_sample") and can_decode(options)
        return self.engine if is_supported else "attendo"

    def call_native(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the native translator as first argument."""
        return function(self.native, *args, **kwargs)

    def call_richest(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the native translator, or with the other one if there is none."""
        has_native = self.engine == "attendo" or self.translator.backend.has_native
        return function(self.native if has_native else self.translator, *args, **kwargs)

    def split(
        self,
        text: str,
        prefix: str,
        split: Split,
        *,
        max_characters: int,
        keep_spans: bool = False,
    ) -> PrefixedDocument:
        """Split a text into segments, as `Translator.translate` does, and distribute its prefix."""
        from attendo.translator.prefixes import PrefixedDocument, distribute_prefix

        document = self.translator.split_text(
            text, split, max_characters=max_characters, keep_spans=keep_spans and not prefix
        )
        if prefix and len(document.segments) > 1:
            return PrefixedDocument(text, document, *distribute_prefix(document, prefix))
        return PrefixedDocument(text, document, [prefix] * len(document.segments), 0)

    def decode(self, options: dict[str, Any], payloads: Sequence[Segment]) -> list[Translation]:
        """Translate segments in one batch; required phrases belong to the first one of a text."""
        if not options.get("required"):
            return self._translate(payloads, options)
        first = [one for one in payloads if one.is_first]
        others = [one for one in payloads if not one.is_first]
        found_first = iter(self._translate(first, options))
        found_others = iter(self._translate(others, {**options, "required": ()}))
        return [next(found_first if one.is_first else found_others) for one in payloads]

    def merge(
        self, document: PrefixedDocument, segments: Sequence[Translation], *, confidence: bool
    ) -> Translation:
        """Return the translation of a text from those of its segments."""
        if document.document.segments == (document.text,):
            return segments[0]
        return document.merge(segments, confidence=confidence)

    def _translate(
        self, segments: Sequence[Segment], options: Mapping[str, Any]
    ) -> list[Translation]:
        if not segments:
            return []
        prefixes = [one.prefix for one in segments]
        return self.translator_for(options).translate(
            [one.text for one in segments],
            prefix=prefixes if any(prefixes) else None,
            split="never",
            **options,
        )


@dataclass(frozen=True, eq=False)
class SeriesModelHandle:
    """A loaded time series model."""

    name: str
    forecaster: Forecaster
    about: dict[str, Any]
    task: ClassVar[Task] = "series"

    def engine_for(self, _options: Mapping[str, Any]) -> str:
        """Return the name of the engine that decodes."""
        return "attendo"

    def call_native(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the forecaster as first argument."""
        return function(self.forecaster, *args, **kwargs)

    def decode(self, options: dict[str, Any], payloads: Sequence[Any]) -> list[Any]:
        """Forecast (window, horizon times) pairs in one batch."""
        import numpy as np

        windows = np.stack([window for window, _ in payloads])
        times = [horizon_times for _, horizon_times in payloads]
        return list(self.forecaster.predict(windows, times=times, **options))


ModelHandle = TextModelHandle | SeriesModelHandle


def count_rows(options: Mapping[str, Any]) -> int:
    """Return about how many hypotheses each segment has: the costs of a search grow with them.

    >>> count_rows({"beam_size": 4}), count_rows({"beam_size": 4, "glossary": {"a": "b"}})
    (4, 10)
    >>> count_rows({"do_sample": True, "beam_size": 1, "n_best": 11, "confidence": True})
    22
    """
    n_best = int(options.get("n_best", 1))
    num_rows = n_best if options.get("do_sample") else int(options.get("beam_size", 1))
    if options.get("glossary") or options.get("required"):
        num_rows = max(num_rows, MIN_CONSTRAINED_BEAM)
    return num_rows + (n_best if options.get("confidence") else 0)


def task_of(kind: str, about: Mapping[str, Any]) -> Task:
    """Return the task of a text model: as saved with it, else by its architecture.

    >>> task_of("decoder", {"task": "language"}), task_of("encoder", {}), task_of("rnn", {})
    ('language', 'classification', 'translation')
    """
    if about.get("task") == "mask":
        raise InputError(
            "masked language models cannot be served",
            hint="use attendo fill, or train a classifier with --init-from",
        )
    if about.get("task") == "language":
        return "language"
    is_classifier = kind == "encoder" or about.get("task") == "labels"
    return "classification" if is_classifier else "translation"
