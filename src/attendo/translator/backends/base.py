"""What every decoding engine behind `Translator` has. This module loads no tensor library.

A backend decodes id sequences in batches of similar length. `PyTorchBackend` exposes the internals
of a model; the backends of CTranslate2 and ONNX Runtime need neither PyTorch nor its model, and
load it only for what they cannot compute themselves (`native`), if it is there.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.device import has_torch, require_torch
from attendo.core.errors import InputError, MissingTorchError
from attendo.core.message import message
from attendo.decoding.options import Constraints, SpecialIds
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch
    from torch import Tensor

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.inflight.decoder import InflightDecoder
    from attendo.decoding.options import DecodingOptions
    from attendo.decoding.static.cuda_graphs import GraphCaptures
    from attendo.translator.backends.pytorch import PyTorchBackend
    from attendo.translator.constraints import ConstraintRequest
    from attendo.translator.copying import RemovedSpan

    Progress = Callable[[int, int], None]

EngineName = Literal["attendo", "ctranslate2", "onnx", "auto"]
NativePrecision = Literal["auto", "float32", "bfloat16"]
"""The precisions of the PyTorch backend; "auto" is float32, with TF32 products on a GPU."""
USE_NATIVE_HINT = message('use engine="attendo" (--engine attendo)')
"""The hint of errors about what only the PyTorch backend supports."""
SPECIAL_IDS = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)
BATCH_TOKENS = {"cpu": 8192, "cuda": 131_072}
"""Source tokens times hypotheses in a batch."""
MIN_CONSTRAINED_BEAM = 10
"""The smallest beam with required phrases: each number of matched phrase tokens needs a slot."""


class TranslationItem(NamedTuple):
    """One segment to translate."""

    source: str
    ids: list[int]
    constraints: Constraints | None = None
    reduced: str = ""
    """The source without the spans that are copied, if there are any."""
    removed: tuple[RemovedSpan, ...] = ()
    keeps_spans: bool = False
    """Whether its translation must have the placeholders and addresses of the source."""

    @property
    def prefix(self) -> tuple[int, ...]:
        """The first ids of its translation."""
        return self.constraints.prefix if self.constraints is not None else ()


class Backend:
    """Decodes with some engine; a subclass implements `search` and what else it supports."""

    name: str
    """Of the engine."""
    model: Any
    """The model, or an `OpaqueModel`."""
    modules: list[Any]
    """The PyTorch modules that compute, if there are any."""
    max_batch_tokens: int | None = None
    """Replaces the default of `batch_tokens`."""

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        import torch

        return torch.device(self.device_type)

    @property
    def device_type(self) -> str:
        """The kind of the device: cpu, cuda, mps ..."""
        return "cpu"

    @property
    def num_parameters(self) -> int:
        """The number of weights."""
        raise NotImplementedError

    @property
    def num_bytes(self) -> int:
        """The memory of all weights, in bytes, as far as they are loaded."""
        raise NotImplementedError

    @property
    def native(self) -> PyTorchBackend:
        """The PyTorch backend of the same model, which may be loaded now.

        Raises:
            InputError: there is only the exported model.
            MissingExtraError: PyTorch is not installed.

        """
        raise NotImplementedError

    @property
    def has_native(self) -> bool:
        """Whether `native` works: PyTorch is installed, and the model's own weights are there."""
        return True

    @property
    def has_calibrated_scores(self) -> bool:
        """Whether `score` can apply the temperature of the calibration."""
        return True

    def warm_up(self) -> None:
        """Prepare for the first request."""

    def make_inflight(
        self,
        *,
        widths: Sequence[int],  # noqa: ARG002 - of the PyTorch backend
        max_src_length: int,  # noqa: ARG002
        num_slots: int | None = None,  # noqa: ARG002
        captures: GraphCaptures | None = None,  # noqa: ARG002
    ) -> InflightDecoder | None:
        """Return searches that sentences join at any step; None if the engine has none."""
        return None

    def open_stream(
        self,
        options: DecodingOptions,  # noqa: ARG002 - of the PyTorch backend
        max_src_length: int,  # noqa: ARG002
    ) -> AbstractContextManager[InflightDecoder | None]:
        """Return a context with a decoder for any number of sentences, if the engine has one."""
        return nullcontext()

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
    ) -> None:
        """Raise one error with everything that this engine does not support."""

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Return the result of each item, in order."""
        raise NotImplementedError

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probability of each id of each target, and of the end after it."""
        raise NotImplementedError

    @property
    def batch_tokens(self) -> int:
        """The most tokens, of all hypotheses together, in a batch on this device."""
        default = BATCH_TOKENS.get(self.device_type, BATCH_TOKENS["cpu"])
        return self.max_batch_tokens or default

    def pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return rows of any length as one padded tensor (B, S)."""
        import torch

        longest = max(len(row) for row in rows)
        padded = [[*row, *[PAD_ID] * (longest - len(row))] for row in rows]
        return torch.tensor(padded, device=self.device)

    def eval_mode(self) -> AbstractContextManager[None]:
        """Disable dropout in this context."""
        return nullcontext()


class OpaqueModel:
    """Replaces the model of an engine that does not expose the model's internals."""

    kind = "transformer"

    def __init__(self, engine: str) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reason = message(
            "{engine} does not expose the internals of a model ('{name}')",
            engine=self._engine,
            name=name,
        )
        raise InputError(
            reason,
            hint=message("{native}, or translator.native", native=USE_NATIVE_HINT),
        )


class ConvertedBackend(Backend):
    """Decodes with a converted model; the PyTorch backend of the same model may be there too.

    Args:
        engine: the name of the library, for messages.
        load_native: loads the PyTorch backend when it is first needed; None for an export, which
            does not contain the model's own weights.

    """

    def __init__(self, engine: str, load_native: Callable[[], PyTorchBackend] | None) -> None:
        self.model, self.modules = OpaqueModel(engine), []
        self.engine = engine
        self._load_native, self._lock = load_native, threading.Lock()
        self._native: PyTorchBackend | None = None

    @property
    def has_native(self) -> bool:
        """Whether PyTorch is installed, and the model's own weights are there."""
        return self._load_native is not None and has_torch()

    @property
    def native_hint(self) -> str:
        """What to do about something that only the PyTorch backend supports."""
        if self._load_native is None:
            return message("load the model folder that was exported, with PyTorch")
        if not has_torch():
            return MissingTorchError().hint or ""
        return USE_NATIVE_HINT

    @property
    def native(self) -> PyTorchBackend:
        """The PyTorch backend of the same weights."""
        if self._load_native is None:
            reason = message(
                "an export for {engine} does not contain the model's own weights",
                engine=self.engine,
            )
            raise InputError(reason, hint=self.native_hint)
        require_torch()
        with self._lock:
            if self._native is None:
                self._native = self._load_native()
            return self._native

    @property
    def native_bytes(self) -> int:
        """The memory of the PyTorch model, in bytes, if it is loaded."""
        return self._native.num_bytes if self._native is not None else 0


class LengthBatches:
    """Iterates over batches of indices with similar sizes, the largest first.

    A batch that does not fit the memory is thus met early; `split` queues its halves.

    >>> list(LengthBatches({0: 3, 1: 9, 2: 4}, budget=9))
    [[1], [0, 2]]
    """

    def __init__(self, sizes: dict[int, int], budget: int) -> None:
        self.sizes, self.budget = sizes, budget
        self._remaining = sorted(sizes, key=lambda index: sizes[index])
        self._halves: list[list[int]] = []
        self._has_split = False

    def __iter__(self) -> Iterator[list[int]]:
        """Return the next batch until no index is left."""
        while self._halves or self._remaining:
            if self._has_split:  # By now the exception, and the tensors it refers to, are gone.
                self._free_memory()
                self._has_split = False
            if self._halves:
                yield self._halves.pop()
                continue
            largest = self.sizes[self._remaining[-1]]
            count = max(1, self.budget // max(largest, 1))
            batch, self._remaining = self._remaining[-count:], self._remaining[:-count]
            yield batch

    def split(self, batch: list[int]) -> None:
        """Queue the two halves of a batch that ran out of memory."""
        half = len(batch) // 2
        self._halves += [batch[half:], batch[:half]]
        self._has_split = True

    @staticmethod
    def _free_memory() -> None:
        from attendo.core.device import empty_device_cache

        empty_device_cache()
