"""Runs a model over any number of rows of ids: sorted by length, in batches that fit, in order.

The mode of the model (dropout on or off) is as before afterwards. A batch that does not fit into
the memory of a GPU is cut in half and tried again.

A search on a GPU multiplies in TF32 (`attendo.kernels.tf32`) unless it is told to be exact. Whoever
looks inside or scores what is given gets products of all bits.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

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

ResultT = TypeVar("ResultT")
SPECIAL_IDS = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)
BATCH_TOKENS = {"cpu": 8192, "cuda": 131_072}
"""Tokens, of all hypotheses together, that are searched at once."""
MIN_CONSTRAINED_BEAM = 10
"""Hypotheses that required phrases get at least: each number of phrase tokens met needs its own."""


class TranslationItem(NamedTuple):
    """A piece of text on its way: what is read, and what the translation has to keep."""

    source: str
    ids: list[int]
    constraints: Constraints


class PyTorchBackend:
    """A model, or several as one, with the room that it has."""

    name: ClassVar[str] = "attendo"

    def __init__(self, model: Seq2SeqModel[Any], *, is_exact: bool = False) -> None:
        self.model, self.is_exact = model, is_exact
        self.modules: list[nn.Module] = [
            part for part in getattr(model, "models", (model,)) if isinstance(part, nn.Module)
        ]

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        weights = (weight for part in self.modules for weight in part.parameters())
        first = next(weights, None)
        return torch.device("cpu") if first is None else first.device

    @property
    def num_parameters(self) -> int:
        """Count the weights of every model."""
        return sum(weight.numel() for part in self.modules for weight in part.parameters())

    @property
    def native(self) -> PyTorchBackend:
        """The engine of ours over the same model: this one, unless another library decodes."""
        return self

    def warm_up(self) -> None:
        """Let a GPU build its kernels before anybody waits for them."""
        if self.device.type == "cuda":
            item = TranslationItem("", [UNK_ID, END_ID], Constraints())
            for count, beam_size in ((1, 1), (1, 4), (2, 4)):
                self.search(
                    [item] * count, DecodingOptions(beam_size=beam_size, max_extra_tokens=2)
                )

    def check_supported(
        self, options: DecodingOptions, request: ConstraintRequest, *, trace: bool
    ) -> None:
        """Refuse what this engine cannot do; our own can do it all."""

    def search(
        self,
        items: Sequence[TranslationItem],
        options: DecodingOptions,
        *,
        trace: bool = False,
        progress: Progress | None = None,
    ) -> list[SearchResult]:
        """Find the translations of every job, in order."""
        results_by_index: dict[int, SearchResult] = {}
        is_tf32_allowed = supports_tf32(self.device) and not (self.is_exact or trace)
        for is_constrained in (False, True):
            chosen = _widen_beam_for_constraints(options) if is_constrained else options
            indices = [
                p
                for p, item in enumerate(items)
                if bool(item.constraints.required) is is_constrained
            ]
            num_rows = chosen.n_best if chosen.do_sample else chosen.beam_size

            def run(batch: list[int], chosen: DecodingOptions = chosen) -> list[SearchResult]:
                rows = self.pad([items[index].ids for index in batch])
                constraints = [items[index].constraints for index in batch]
                return search(self.model, rows, SPECIAL_IDS, chosen, constraints, trace=trace)

            sizes = {index: len(items[index].ids) * num_rows for index in indices}
            with use_tf32() if is_tf32_allowed else nullcontext():
                for batch, results in self._run_batches(sizes, run):
                    results_by_index |= dict(zip(batch, results, strict=True))
                    if progress is not None:
                        progress(len(results_by_index), len(items))
        return [results_by_index[place] for place in range(len(items))]

    def score(
        self,
        src: Sequence[list[int]],
        tgt: Sequence[list[int]],
        *,
        temperature: float = 1.0,
    ) -> list[list[float]]:
        """Give the log-probabilities of given targets (see `attendo.decoding.scoring`)."""

        def run(batch: list[int]) -> list[list[float]]:
            rows = self.pad([src[index] for index in batch])
            targets = [tgt[place] for place in batch]
            return score(self.model, rows, targets, SPECIAL_IDS, temperature=temperature)

        sizes = {
            index: max(len(a), len(b) + 1)
            for index, (a, b) in enumerate(zip(src, tgt, strict=True))
        }
        log_probs: dict[int, list[float]] = {}
        for batch, results in self._run_batches(sizes, run):
            log_probs |= dict(zip(batch, results, strict=True))
        return [log_probs[place] for place in range(len(src))]

    def pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Make one tensor (B, S) of rows of any length."""
        longest = max(len(row) for row in rows)
        padded = [[*row, *[PAD_ID] * (longest - len(row))] for row in rows]
        return torch.tensor(padded, device=self.device)

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Switch dropout off for a while."""
        modes = [part.training for part in self.modules]
        for part in self.modules:
            part.eval()
        try:
            yield
        finally:
            for part, mode in zip(self.modules, modes, strict=True):
                part.train(mode)

    def _run_batches(
        self, sizes: dict[int, int], run: Callable[[list[int]], list[ResultT]]
    ) -> Iterator[tuple[list[int], list[ResultT]]]:
        """Run batches of equal length, longest first: what does not fit shows at once."""
        budget = BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cpu"])
        order = sorted(sizes, key=lambda place: sizes[place])
        with self.eval_mode():
            while order:
                count = max(1, budget // max(sizes[order[-1]], 1))
                batch, order = order[-count:], order[:-count]
                yield from self._run_with_oom_retry(batch, run)

    def _run_with_oom_retry(
        self, batch: list[int], run: Callable[[list[int]], list[ResultT]]
    ) -> Iterator[tuple[list[int], list[ResultT]]]:
        try:
            results = run(batch)
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
        else:
            yield batch, results
            return
        torch.cuda.empty_cache()
        half = len(batch) // 2
        yield from self._run_with_oom_retry(batch[:half], run)
        yield from self._run_with_oom_retry(batch[half:], run)


def _widen_beam_for_constraints(options: DecodingOptions) -> DecodingOptions:
    """Give required phrases the room that they need."""
    if options.do_sample:
        return options
    groups = options.num_groups
    needed = -(-max(options.beam_size, MIN_CONSTRAINED_BEAM) // groups) * groups
    return options.replace(beam_size=needed)
