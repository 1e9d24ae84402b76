"""A model that is served, of text or of series: its task, and how a batch of it is decoded."""

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
"""Tasks of models that say something of a text; the first is asked before the others."""


@dataclass(frozen=True, eq=False)
class TextModelHandle:
    """A model that is ready; another object takes its place when the folder changes."""

    name: str
    src: str
    """The code of its source language; "auto" where nobody told."""
    tgt: str
    translator: Translator
    about: dict[str, Any]
    engine: str = "attendo"
    """What decodes."""
    task: Task = "translation"

    @property
    def native(self) -> Translator:
        """The model behind our own decoder, which shows its inside; loaded when it is needed."""
        return self.translator if self.engine == "attendo" else self.translator.native

    def translator_for(self, options: Mapping[str, Any]) -> Translator:
        """Give the translator that can do what is asked.

        Draws that can be repeated, phrases and traces are our own decoder's.
        """
        if self.engine == "attendo":
            return self.translator
        from attendo.translator.backends.ctranslate2.options import can_decode

        is_supported = not options.get("do_sample") and can_decode(options)
        return self.translator if is_supported else self.native

    def call_native(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the model behind our own decoder."""
        return function(self.native, *args, **kwargs)

    def decode(self, options: dict[str, Any], payloads: Sequence[Any]) -> list[Any]:
        """Translate texts, each with its prefix, in one batch."""
        texts = [text for text, _ in payloads]
        prefixes = [prefix for _, prefix in payloads]
        return list(
            self.translator_for(options).translate(
                texts, prefix=prefixes if any(prefixes) else None, **options
            )
        )


@dataclass(frozen=True, eq=False)
class SeriesModelHandle:
    """A series model that is ready."""

    name: str
    forecaster: Forecaster
    about: dict[str, Any]
    task: ClassVar[Task] = "series"

    def call_native(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Call a function with the model."""
        return function(self.forecaster, *args, **kwargs)

    def decode(self, options: dict[str, Any], payloads: Sequence[Any]) -> list[Any]:
        """Foretell behind windows, each with the times of its horizon, in one batch."""
        import numpy as np

        windows = np.stack([window for window, _ in payloads])
        times = [horizon_times for _, horizon_times in payloads]
        return list(self.forecaster.predict(windows, times=times, **options))


ModelHandle = TextModelHandle | SeriesModelHandle


def task_of(kind: str, about: Mapping[str, Any]) -> Task:
    """Tell what a model of text does: what was saved with it, else what its kind is made for.

    >>> find_task("decoder", {"task": "language"}), find_task("encoder", {}), find_task("rnn", {})
    ('language', 'classification', 'translation')
    """
    if about.get("task") == "mask":
        raise InputError(
            "a model of hidden words is not served",
            hint="try it with attendo fill, or train a classifier with --init-from",
        )
    if about.get("task") == "language":
        return "language"
    is_classifier = kind == "encoder" or about.get("task") == "labels"
    return "classification" if is_classifier else "translation"
