"""Our own decoder over a copy of the model in bfloat16: half the memory, on a GPU faster yet.

Whoever looks inside, or scores what is given, gets the model as it is.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.core.protocols import Seq2SeqModel

NativePrecision = Literal["auto", "float32", "bfloat16"]
"""What our own decoder computes in; "auto" is float32, multiplied in TF32 on a GPU."""


class BFloat16Backend(PyTorchBackend):
    """Decodes by the copy."""

    def __init__(self, model: Seq2SeqModel[Any]) -> None:
        super().__init__(deepcopy(model))
        for part in self.modules:
            part.bfloat16()
        self._native = PyTorchBackend(model)

    @property
    def native(self) -> PyTorchBackend:
        """The engine over the model as it is."""
        return self._native

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Give the log-probabilities of given targets, by the model as it is."""
        return self._native.score(src, tgt, temperature=temperature)
