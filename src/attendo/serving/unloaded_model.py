"""What stays of a text model that was unloaded because nobody used it.

The tokenizer and the description stay, so that texts can be split and `/v1/models` can answer
without the weights. Whatever needs these loads the model again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attendo.serving.served_model import TextModelHandle
from attendo.translator import Translator
from attendo.translator.backends.base import Backend, OpaqueModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attendo.serving.served_model import ResultT, Segment
    from attendo.translator import Translation


class UnloadedBackend(Backend):
    """Describes a backend without its weights."""

    def __init__(self, backend: Backend, *, has_attention: bool) -> None:
        self.name, self.modules = backend.name, []
        self.model = OpaqueModel("an unloaded model")
        self.has_attention = has_attention
        self._num_parameters = backend.num_parameters
        self._has_native = backend.has_native
        self._has_calibrated_scores = backend.has_calibrated_scores

    @property
    def num_parameters(self) -> int:
        """The number of weights when they are loaded."""
        return self._num_parameters

    @property
    def num_bytes(self) -> int:
        """Nothing is loaded."""
        return 0

    @property
    def has_native(self) -> bool:
        """Whether the loaded model has a PyTorch backend."""
        return self._has_native

    @property
    def has_calibrated_scores(self) -> bool:
        """Whether the loaded model has calibrated scores."""
        return self._has_calibrated_scores


@dataclass(frozen=True, eq=False)
class UnloadedTextModel(TextModelHandle):
    """A text model without its weights; each use of these loads the model again."""

    load: Callable[[], TextModelHandle] = NotImplemented
    """Loads the model, if no other thread has, and returns its handle."""

    @classmethod
    def of(
        cls, served: TextModelHandle, load: Callable[[], TextModelHandle], *, has_attention: bool
    ) -> UnloadedTextModel:
        """Return what stays of a loaded model."""
        old = served.translator
        model: Any = OpaqueModel("an unloaded model")
        model.kind = getattr(old.model, "kind", "")
        backend = UnloadedBackend(old.backend, has_attention=has_attention)
        translator = Translator(model, old.tokenizer, about=old.about, backend=backend)
        names = (served.name, served.src, served.tgt)
        return cls(
            *names, translator, served.about, served.engine, served.task, slots=None, load=load
        )

    @property
    def native(self) -> Translator:
        """The PyTorch translator of the model, which is loaded."""
        return self.load().native

    def translator_for(self, options: Mapping[str, Any]) -> Translator:
        """Load the model, and return a translator that supports the options."""
        return self.load().translator_for(options)

    def call_richest(self, function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
        """Load the model, and call a function with its best translator."""
        return self.load().call_richest(function, *args, **kwargs)

    def decode(self, options: dict[str, Any], payloads: Sequence[Segment]) -> list[Translation]:
        """Load the model, and translate segments in one batch."""
        return self.load().decode(options, payloads)
