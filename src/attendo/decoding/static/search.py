"""Greedy and beam search on static buffers, without host synchronization.

It serves models that can make static decoders (`attendo.core.protocols`), and searches
without a trace, constraints, beam groups and n-gram blocking. The reference is
`attendo.decoding.greedy` and `attendo.decoding.beam`, which support all of these; tests compare
the two.

`ATTENDO_FAST_DECODING=0` switches it off.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attendo.core.checkpoints import checkpoint
from attendo.core.protocols import SupportsStaticDecoding
from attendo.decoding.limits import suppressed_ids, target_limits
from attendo.decoding.static.pool import BufferPool
from attendo.decoding.static.state import SearchShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import StaticDecoderProtocol
    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds
    from attendo.decoding.static.state import StaticState

ENABLE_VARIABLE = "ATTENDO_FAST_DECODING"
MAX_STATIC_BEAM = 16
"""Above this beam size, masking the other hypotheses costs more than reordering the cache."""
SDPA_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All but cuDNN's, which builds a plan for every new shape."""


def search_static(
    model: object,
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions,
    constraints: Sequence[Constraints | None] | None = None,
    *,
    shrink: bool = True,
    reuse_buffers: bool | None = None,
) -> list[SearchResult] | None:
    """Search a padded batch (B, S), or return None where only the reference search can.

    `reuse_buffers` keeps buffers and CUDA graphs with the model for the next search; the default is
    to do so on a GPU.
    """
    if not isinstance(model, SupportsStaticDecoding) or not supports_options(options, constraints):
        return None
    host_ids = src_ids.cpu()
    src_lengths = host_ids.ne(special_ids.pad_id).sum(1).tolist()
    limits = target_limits(src_lengths, options)
    has_candidates = model.tgt_vocab_size > len(suppressed_ids(special_ids, options)) + 1
    if not (all(src_lengths) and has_candidates and model.supports_static_decoding(max(limits))):
        return None
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if src_ids.is_cuda:
            stack.enter_context(torch.cuda.device(src_ids.device))
            stack.enter_context(sdpa_kernel(SDPA_BACKENDS))
        reuse = src_ids.is_cuda if reuse_buffers is None else reuse_buffers
        pool = BufferPool.for_model(model) if reuse else BufferPool(model, reuse=False)
        stack.enter_context(pool.lock)
        try:
            return StaticSearch(pool, special_ids, options, limits).run(host_ids, shrink=shrink)
        except torch.OutOfMemoryError:
            model.decoding_cache.clear()
            raise


def supports_options(
    options: DecodingOptions, constraints: Sequence[Constraints | None] | None
) -> bool:
    """Return whether a search needs nothing that only the reference search supports."""
    if os.environ.get(ENABLE_VARIABLE, "1") == "0":
        return False
    if options.do_sample or options.no_repeat_ngram or options.num_groups > 1:
        return False
    return options.beam_size <= MAX_STATIC_BEAM and not any(constraints or ())


class StaticSearch:
    """The search of one batch; it moves to smaller buffers as sentences are done.

    Args:
        pool: allocates the buffers.
        special_ids: start, end, padding and unknown.
        options: a beam of 1 is greedy search.
        limits: the maximum length of each translation.

    """

    def __init__(
        self,
        pool: BufferPool,
        special_ids: SpecialIds,
        options: DecodingOptions,
        limits: Sequence[int],
    ) -> None:
        self.pool, self.special_ids, self.options = pool, special_ids, options
        # Whatever a state or a captured graph depends on, apart from shapes and loaded tensors.
        precision = torch.backends.cuda.matmul.fp32_precision  # of the products in a CUDA graph
        self.state_key = (special_ids, options.unk, options.n_best, precision)
        self.limits = torch.tensor(limits)
        self.sentences = torch.arange(len(limits))
        """The index of the sentence in each row of the buffers."""
        self.min_steps = min(options.min_length + 1, *limits)
        """No sentence is done after fewer steps."""
        self.results: dict[int, SearchResult] = {}

    def run(self, src_ids: Tensor, *, shrink: bool = True) -> list[SearchResult]:
        """Return the result of each row of `src_ids` (B, S)."""
        max_length = int(self.limits.max())
        shape = SearchShape(len(src_ids), self.options.beam_size, src_ids.size(1), max_length)
        state = self.pool.acquire(shape, self.state_key, self._make_state)
        state.load(src_ids, self.limits.tolist(), self.options)
        state.prepare("start", state.start)()
        if not self.pool.reuse:
            state.decoder.prepack_weights(state.decoder.src_length)  # about as many steps
        poller = CompletionPoller(state.is_done)
        num_steps = 0
        while num_steps < max_length:
            if not self.pool.reuse:  # else a paused search would keep the buffers of the others
                checkpoint()
            self._step(state, num_steps)
            num_steps += 1
            is_done = poller.poll() if num_steps >= self.min_steps else None
            if is_done is None:
                continue
            is_open = ~is_done[: len(self.sentences)] & (self.limits > num_steps)
            num_open = int(is_open.sum())
            if not num_open:
                break
            smaller_shape = self.pool.shrink(state.shape, num_open) if shrink else None
            if smaller_shape is not None:
                state = self._move_to_smaller(state, smaller_shape, is_open, num_steps)
                poller = CompletionPoller(state.is_done)
        self._collect_results(state, torch.arange(len(self.sentences)), num_steps)
        return [self.results[sentence] for sentence in range(len(src_ids))]

    def _make_state(self, decoder: StaticDecoderProtocol) -> StaticState:
        if self.options.beam_size == 1:
            from attendo.decoding.static.greedy import StaticGreedy

            return StaticGreedy(decoder, self.special_ids, self.options)
        from attendo.decoding.static.beam import StaticBeam

        vocab_size = self.pool.model.tgt_vocab_size
        return StaticBeam(decoder, self.special_ids, self.options, vocab_size=vocab_size)

    def _step(self, state: StaticState, position: int) -> None:
        allow_end = position >= self.options.min_length
        window = self.pool.window(position, state.shape.max_length)
        step = partial(state.step, window=window, allow_end=allow_end)
        state.prepare((window, allow_end), step)()

    def _move_to_smaller(
        self, state: StaticState, shape: SearchShape, is_open: Tensor, num_steps: int
    ) -> StaticState:
        """Return a smaller state with the open sentences; its surplus rows repeat the last one."""
        smaller = self.pool.acquire(shape, self.state_key, self._make_state)
        self._collect_results(state, (~is_open).nonzero().squeeze(1), num_steps)
        open_rows = is_open.nonzero().squeeze(1)
        num_idle = smaller.shape.num_sentences - len(open_rows)
        rows = torch.cat((open_rows, open_rows[-1:].expand(num_idle)))
        smaller.resume_from(state, rows.to(state.device), num_steps=num_steps)
        self.sentences, self.limits = self.sentences[open_rows], self.limits[open_rows]
        return smaller

    def _collect_results(self, state: StaticState, rows: Tensor, num_steps: int) -> None:
        results = state.results(rows.tolist(), num_steps)
        self.results |= dict(zip(self.sentences[rows].tolist(), results, strict=True))


class CompletionPoller:
    """Reads the flags `is_done` (B,) back after each step, on a GPU asynchronously.

    On a GPU each poll returns the flags of the previous poll: the next step is already queued by
    then, so that the GPU never waits for the host. This costs one surplus step at the end.
    """

    def __init__(self, is_done: Tensor) -> None:
        self.is_done, self.num_polls = is_done, 0
        self.is_async = is_done.is_cuda
        if self.is_async:
            self.host_flags = torch.zeros(2, *is_done.shape, dtype=torch.bool, pin_memory=True)
            self.events = (torch.cuda.Event(), torch.cuda.Event())

    def poll(self) -> Tensor | None:
        """Return the flags on the host, or None at the first poll on a GPU."""
        if not self.is_async:
            return self.is_done
        current, previous = self.num_polls % 2, (self.num_polls + 1) % 2
        self.host_flags[current].copy_(self.is_done, non_blocking=True)
        self.events[current].record()
        self.num_polls += 1
        if self.num_polls == 1:
            return None
        self.events[previous].synchronize()
        return self.host_flags[previous]
