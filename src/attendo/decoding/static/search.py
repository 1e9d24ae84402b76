"""The quick way to what greedy and beam search find: in place, without waiting for the host.

It is for models whose steps can be fixed (`attendo.decoding.static.contract`) and for searches without
a trace, phrases, a forced beginning, groups, and rules about what was said before. The reference is
`attendo.decoding.beam` and `walk`, which know all of that; tests hold the two equal.

`ATTENDO_FAST_DECODING=0` switches it off.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attendo.decoding.options import Constraints
from attendo.decoding.static.beam import StaticBeam
from attendo.decoding.static.completion import CompletionPoller
from attendo.decoding.static.contract import SupportsStaticDecoding
from attendo.decoding.static.greedy import StaticGreedy
from attendo.decoding.static.pool import EagerPool, ReusingPool
from attendo.decoding.static.state import SearchShape
from attendo.decoding.token_filters import max_lengths, suppressed_ids
from attendo.kernels import tf32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.contract import StaticDecoderProtocol
    from attendo.decoding.static.pool import SearchPool, SearchRunner
    from attendo.decoding.static.state import StaticSearchState

ENABLE_VARIABLE = "ATTENDO_FAST_DECODING"
MAX_STATIC_BEAM = 16
"""Hypotheses of a sentence, above which looking past each other costs more than moving them."""
SDPA_BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Not cuDNN's, which makes a plan for every new shape."""


def search_static(
    model: object,
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions,
    constraints: Sequence[Constraints] | None = None,
    *,
    shrink: bool = True,
    reuse_buffers: bool | None = None,
) -> list[SearchResult] | None:
    """Search a padded batch (B, S), or give None where that has to be done the plain way.

    `keep` leaves desks and graphs with the model for the next search, as a GPU does by itself.
    """
    if not isinstance(model, SupportsStaticDecoding) or not supports_static_search(
        options, constraints
    ):
        return None
    host_ids = src_ids.cpu()
    limits = max_lengths(host_ids, options, special_ids, [Constraints()] * len(host_ids))
    has_source_tokens = bool(
        host_ids.ne(special_ids.pad_id).any(1).all()
    )  # no source of padding alone
    has_candidates = model.tgt_vocab_size > len(suppressed_ids(special_ids, options)) + 1
    if not (has_source_tokens and has_candidates and model.supports_static_decoding(max(limits))):
        return None

    def make_state(decoder: StaticDecoderProtocol) -> StaticSearchState:
        if options.beam_size == 1:
            return StaticGreedy(decoder, special_ids, options)
        return StaticBeam(decoder, special_ids, options, vocab_size=model.tgt_vocab_size)

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if src_ids.is_cuda:
            stack.enter_context(torch.cuda.device(src_ids.device))
            stack.enter_context(sdpa_kernel(SDPA_BACKENDS))
        pool: SearchPool = EagerPool(model, make_state)
        if src_ids.is_cuda if reuse_buffers is None else reuse_buffers:
            reusing_pool = ReusingPool(
                model,
                make_state,
                (special_ids, options.unk, options.n_best, tf32.is_tf32_enabled()),
            )
            stack.enter_context(reusing_pool.buffer_pool.lock)
            pool = reusing_pool
        try:
            return StaticSearch(pool, limits, options).run(host_ids, shrink=shrink)
        except torch.OutOfMemoryError:
            model.decoding_cache.clear()
            raise


def supports_static_search(
    options: DecodingOptions, constraints: Sequence[Constraints] | None
) -> bool:
    """Tell whether a search asks for nothing that only the reference knows."""
    if os.environ.get(ENABLE_VARIABLE, "1") == "0":
        return False
    if options.do_sample or options.no_repeat_ngram or options.num_groups > 1:
        return False
    if options.beam_size > MAX_STATIC_BEAM:
        return False
    return not any(constraint.prefix or constraint.has_phrases for constraint in constraints or ())


class StaticSearch:
    """One batch, from desk to smaller desk."""

    def __init__(self, pool: SearchPool, limits: Sequence[int], options: DecodingOptions) -> None:
        self.pool, self.options = pool, options
        self.limits = torch.tensor(limits)
        self.sentences = torch.arange(len(limits))
        """Which one lies in each row of the desk."""
        self.min_steps = min(options.min_length + 1, *limits)
        """No search is over before so many steps."""
        self.results: dict[int, SearchResult] = {}

    def run(self, src_ids: Tensor, *, shrink: bool = True) -> list[SearchResult]:
        """Search to the end."""
        max_length = int(self.limits.max())
        shape = SearchShape(len(src_ids), self.options.beam_size, src_ids.size(1), max_length)
        runner = self.pool.acquire(shape)
        runner.search_state.load(src_ids, self.limits.tolist(), self.options)
        runner.start()
        poller = CompletionPoller(runner.search_state.is_done)
        num_steps = 0
        while num_steps < max_length:
            runner.step(num_steps, allow_end=num_steps >= self.options.min_length)
            num_steps += 1
            is_done = poller.poll() if num_steps >= self.min_steps else None
            if is_done is None:
                continue
            is_open = ~is_done[: len(self.sentences)] & (self.limits > num_steps)
            num_open = int(is_open.sum())
            if not num_open:
                break
            smaller = self.pool.shrink(runner.search_state, num_open) if shrink else None
            if smaller is not None:
                self._move_to_smaller(runner, smaller, is_open, num_steps)
                runner, poller = smaller, CompletionPoller(smaller.search_state.is_done)
        self._collect_results(runner, torch.arange(len(self.sentences)), num_steps)
        return [self.results[number] for number in range(len(src_ids))]

    def _move_to_smaller(
        self, runner: SearchRunner, smaller: SearchRunner, is_open: Tensor, num_steps: int
    ) -> None:
        """Go on with the open sentences at a smaller desk, whose other rows repeat the last."""
        self._collect_results(runner, (~is_open).nonzero().squeeze(1), num_steps)
        open_rows = is_open.nonzero().squeeze(1)
        num_idle = smaller.search_state.decoder.num_sentences - len(open_rows)
        rows = torch.cat((open_rows, open_rows[-1:].expand(num_idle)))
        smaller.search_state.resume_from(
            runner.search_state, rows.to(runner.search_state.is_done.device), num_steps=num_steps
        )
        self.sentences, self.limits = self.sentences[open_rows], self.limits[open_rows]

    def _collect_results(self, runner: SearchRunner, rows: Tensor, num_steps: int) -> None:
        results = runner.search_state.results(rows.tolist(), num_steps)
        self.results |= dict(zip(self.sentences[rows].tolist(), results, strict=True))
