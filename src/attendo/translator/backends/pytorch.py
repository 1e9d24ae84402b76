"""The PyTorch backend: runs a model over any number of id sequences, in batches of similar length.

A batch that does not fit the memory of a GPU is split in half and tried again. The model's training
mode (dropout on or off) is restored afterwards.

On a GPU, searches multiply in TF32 (`attendo.kernels.tf32`) unless `is_exact` is set. Traces and
scores are always computed at full precision.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import nn

from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search
from attendo.kernels.tf32 import supports_tf32, use_tf32
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import SearchResult
    from attendo.translator.constraints import ConstraintRequest

    Progress = Callable[[int, int], None]

NativePrecision = Literal["auto", "float32", "bfloat16"]
"""The precisions of the PyTorch backend; "auto" is float32, with TF32 products on a GPU."""
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


class PyTorchBackend:
    """Decodes with a PyTorch model, or with an ensemble.

    Args:
        model: in any mode and on any device.
        is_exact: compute float32 products at full precision on a GPU, instead of in TF32.

    """

    name: ClassVar[str] = "attendo"

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
    def num_parameters(self) -> int:
        """The number of weights of all models."""
        return sum(weight.numel() for part in self.modules for weight in part.parameters())

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
        is_tf32_allowed = supports_tf32(self.device) and not (self.is_exact or trace)
        with self.eval_mode(), use_tf32() if is_tf32_allowed else nullcontext():
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

    @property
    def batch_tokens(self) -> int:
        """The most tokens, of all hypotheses together, in a batch on this device."""
        return BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])

    def pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return rows of any length as one padded tensor (B, S)."""
        longest = max(len(row) for row in rows)
        padded = [[*row, *[PAD_ID] * (longest - len(row))] for row in rows]
        return torch.tensor(padded, device=self.device)

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
    def native(self) -> PyTorchBackend:
        """The backend of the original model."""
        return self._native

    def score(
        self, src: Sequence[list[int]], tgt: Sequence[list[int]], *, temperature: float = 1.0
    ) -> list[list[float]]:
        """Return the log-probabilities of given targets under the original model."""
        return self._native.score(src, tgt, temperature=temperature)


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
                torch.cuda.empty_cache()
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


def _widen_beam_for_constraints(options: DecodingOptions) -> DecodingOptions:
    """Return options whose beam is large enough for required phrases."""
    if options.do_sample:
        return options
    groups = options.num_groups
    beam_size = -(-max(options.beam_size, MIN_CONSTRAINED_BEAM) // groups) * groups
    return options.replace(beam_size=beam_size)
