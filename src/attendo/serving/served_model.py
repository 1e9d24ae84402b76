"""Handles of served models, for text or time series: the task, and how to decode a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.translator import Translator

Task = Literal["translation", "classification", "language", "series"]
ResultT = TypeVar("ResultT")
TEXT_OUTPUT_TASKS: tuple[Task, ...] = ("translation", "classification")
"""Tasks of models that map a text to a text, the preferred one first."""


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

    @property
    def native(self) -> Translator:
        """The model with the native decoder, which supports inspection; loaded on first use."""
        return self.translator if self.engine == "attendo" else self.translator.native

    def translator_for(self, options: Mapping[str, Any]) -> Translator:
        """Return a translator that supports the options.

        Seeded sampling, constraints and traces need the native decoder.
        """
        if self.engine == "attendo":
            return self.translator
        from attendo.translator.backends.ctranslate2.options import can_decode

        is_supported = not options.get("do_sample") and can_decode(options)
        return self.translator if is_supported else self.native

    def call_native(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the native translator as first argument."""
        return function(self.native, *args, **kwargs)

    def decode(self, options: dict[str, Any], payloads: Sequence[Any]) -> list[Any]:
        """Translate (text, prefix) pairs in one batch."""
        texts = [text for text, _ in payloads]
        prefixes = [prefix for _, prefix in payloads]
        return list(
            self.translator_for(options).translate(
                texts, prefix=prefixes if any(prefixes) else None, **options
            )
        )


@dataclass(frozen=True, eq=False)
class SeriesModelHandle:
    """A loaded time series model."""

    name: str
    forecaster: Forecaster
    about: dict[str, Any]
    task: ClassVar[Task] = "series"

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
