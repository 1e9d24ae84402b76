"""The PyTorch backend: runs a model over any number of id sequences, in batches of similar length.

A batch that does not fit the memory of a GPU is split in half and tried again. The model's training
mode (dropout on or off) is restored afterwards.

On a GPU, searches multiply in TF32 (`attendo.kernels.tf32`) unless `is_exact` is set. Traces and
scores are always computed at full precision.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.text.tokenizer import END_ID, UNK_ID
from attendo.translator.backends.base import (
    MIN_CONSTRAINED_BEAM,
    SPECIAL_IDS,
    Backend,
    LengthBatches,
    TranslationItem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.inflight.decoder import InflightDecoder
    from attendo.decoding.static.cuda_graphs import GraphCaptures
    from attendo.translator.backends.base import Progress
    from attendo.translator.constraints import ConstraintRequest


def fast_products(device: torch.device) -> AbstractContextManager[None]:
    """Return a context with TF32 products, if the device has them."""
    if device.type != "cuda":
        return nullcontext()
    from attendo.kernels.tf32 import supports_tf32, use_tf32

    return use_tf32() if supports_tf32(device) else nullcontext()


class PyTorchBackend(Backend):
    """Decodes with a PyTorch model, or with an ensemble.

    Args:
        model: in any mode and on any device.
        is_exact: compute float32 products at full precision on a GPU, instead of in TF32.

    """

    name: str = "attendo"

    def __init__(self, model: Seq2SeqModel[Any], *, is_exact: bool = False) -> None:
        self.model, self.is_exact = model, is_exact
        self.modules: list[nn.Module] = [
            part for part in getattr(model, "models", (model,)) if isinstance(part, nn.Module)
        ]

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        weights = (weight for part in self.modules for weight in part.parameters())
        first = next(weights, None)
        return torch.device("cpu") if first is None else first.device

    @property
    def device_type(self) -> str:
        """The kind of the device of the model."""
        return self.device.type

    @property
    def num_parameters(self) -> int:
        """The number of weights of all models."""
        return sum(weight.numel() for part in self.modules for weight in part.parameters())

    @property
    def num_bytes(self) -> int:
        """The memory of all weights, in bytes."""
        weights = (weight for part in self.modules for weight in part.parameters())
        return sum(weight.numel() * weight.element_size() for weight in weights)

    @property
    def native(self) -> PyTorchBackend:
        """The PyTorch backend of the same model: this one, unless another library decodes."""
        return self

    def warm_up(self) -> None:
        """Compile the kernels of a GPU before the first request."""
        if self.device.type == "cuda":
            item = TranslationItem("", [UNK_ID, END_ID])
            for count, beam_size in ((1, 1), (1, 4), (2, 4)):
                self.search(
                    [item] * count, DecodingOptions(beam_size=beam_size, max_extra_tokens=2)
                )

    def make_inflight(
        self,
        *,
        widths: Sequence[int],
        max_src_length: int,
        num_slots: int | None = None,
        captures: GraphCaptures | None = None,
    ) -> InflightDecoder | None:
        """Return searches that sentences join at any step; None if the model has none.

        The model is put into evaluation mode. For the arguments see `InflightDecoder.for_model`.
        """
        from attendo.decoding.inflight.decoder import InflightDecoder

        for part in self.modules:
            part.eval()
        device = self.device
        return InflightDecoder.for_model(
            self.model,
            SPECIAL_IDS,
            widths=widths,
            max_src_length=max_src_length,
            num_slots=num_slots,
            captures=captures,
            context=nullcontext if self.is_exact else lambda: fast_products(device),
        )

    def open_stream(
        self, options: DecodingOptions, max_src_length: int
    ) -> AbstractContextManager[InflightDecoder | None]:
        """Return a context with a decoder for any number of sentences (see `.stream`)."""
        from attendo.translator.backends.stream import open_stream

        return open_stream(self, options, max_src_length)

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest | None, *, trace: bool
    ) -> None:
        """Raise an error for what this backend does not support; PyTorch supports everything."""

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Return the result of each item, in order."""
        required = {
            i for i, item in enumerate(items) if item.constraints and item.constraints.required
        }
        groups = [(options, [i for i in range(len(items)) if i not in required])]
        if required:
            groups.append((_widen_beam_for_constraints(options), sorted(required)))
        results: dict[int, SearchResult] = {}
        is_exact = self.is_exact or trace
        with self.eval_mode(), nullcontext() if is_exact else fast_products(self.device):
            for chosen, indices in groups:
                num_rows = chosen.n_best if chosen.do_sample else chosen.beam_size
                sizes = {index: len(items[index].ids) * num_rows for index in indices}
                batches = LengthBatches(sizes, self.batch_tokens)
                for batch in batches:
                    src_ids = self.pad([items[index].ids for index in batch])
                    constraints = [items[index].constraints for index in batch]
                    try:
                        found = search(
                            self.model, src_ids, SPECIAL_IDS, chosen, constraints, trace=trace
                        )
                    except torch.OutOfMemoryError:
                        if len(batch) == 1:
                            raise
                        batches.split(batch)
                        continue
                    results |= dict(zip(batch, found, strict=True))
                    if progress is not None:
                        progress(len(results), len(items))
        return [results[index] for index in range(len(items))]

    def score(
        self,
        src: Sequence[list[int]],
        tgt: Sequence[list[int]],
        *,
        temperature: float = 1.0,
    ) -> list[list[float]]:
        """Return the log-probabilities of given targets (see `attendo.decoding.scoring`)."""
        from attendo.decoding.scoring import score

        sizes = {
            index: max(len(source), len(target) + 1)
            for index, (source, target) in enumerate(zip(src, tgt, strict=True))
        }
        log_probs: dict[int, list[float]] = {}
        batches = LengthBatches(sizes, self.batch_tokens)
        with self.eval_mode():
            for batch in batches:
                src_ids = self.pad([src[index] for index in batch])
                targets = [tgt[index] for index in batch]
                try:
                    scored = score(
                        self.model, src_ids, targets, SPECIAL_IDS, temperature=temperature
                    )
                except torch.OutOfMemoryError:
                    if len(batch) == 1:
                        raise
                    batches.split(batch)
                    continue
                log_probs |= dict(zip(batch, scored, strict=True))
        return [log_probs[index] for index in range(len(src))]

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Disable dropout in this context."""
        modes = [part.training for part in self.modules]
        for part in self.modules:
            part.eval()
        try:
            yield
        finally:
            for part, mode in zip(self.modules, modes, strict=True):
                part.train(mode)


class BFloat16Backend(PyTorchBackend):
    """Decodes with a copy of the model in bfloat16; the original model computes scores."""

    def __init__(self, model: Seq2SeqModel[Any]) -> None:
        super().__init__(deepcopy(model))
        for part in self.modules:
            part.bfloat16()
        self._native = PyTorchBackend(model)

    @property
    def num_bytes(self) -> int:
        """The memory of all weights, in bytes, with those of the original model."""
        return super().num_bytes + self._native.num_bytes

    @property
    def native(self) -> PyTorchBackend:
        """The backend of the original model."""
        return self._native

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probabilities of given targets under the original model."""
        return self._native.score(src, tgt, temperature=temperature)


def _widen_beam_for_constraints(options: DecodingOptions) -> DecodingOptions:
    """Return options whose beam is large enough for required phrases."""
    if options.do_sample:
        return options
    groups = options.num_groups
    beam_size = -(-max(options.beam_size, MIN_CONSTRAINED_BEAM) // groups) * groups
    return options.replace(beam_size=beam_size)
