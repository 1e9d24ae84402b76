"""Beam search in place. It finds what `attendo.decoding.beam` finds, by the same rules.

What a step chose from is written down; who descends from whom is followed up once, on the host, at
the end. Scores that are compared with each other are float64, as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from attendo.decoding.beam_state import NEG_INF
from attendo.decoding.hypothesis import Hypothesis, SearchResult, length_penalty
from attendo.decoding.static.state import NextTokenScorer
from attendo.decoding.token_filters import check_finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.decoding.beam_state import Floats, Ints
    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.contract import StaticDecoderProtocol


class StaticBeam:
    """`width` hypotheses a sentence, the best first; of `2 * width` candidates a step they come."""

    def __init__(
        self,
        decoder: StaticDecoderProtocol,
        special_ids: SpecialIds,
        options: DecodingOptions,
        *,
        vocab_size: int,
    ) -> None:
        self.decoder, self.special_ids, self.options = decoder, special_ids, options
        self.vocab_size, self.width = vocab_size, decoder.width
        self.next_token = NextTokenScorer(decoder, special_ids, options)
        rows, length, width = decoder.num_sentences, decoder.max_length, decoder.width
        num = 2 * width

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=decoder.position.device)

        self.ranks = torch.arange(num, device=decoder.position.device)
        self.limits = zeros(rows)
        self.length_penalties = zeros(length, dtype=torch.float64)
        """What the total of a hypothesis that ends at a position is divided by."""
        self.bound_penalties = zeros(rows, length, dtype=torch.float64)
        """And the best total after a position, to tell what can still become of it."""
        self.last = zeros(rows, width)
        self.totals = zeros(rows, width, dtype=torch.float32)
        self.is_done = zeros(rows, dtype=torch.bool)
        self.best_scores = zeros(rows, options.n_best, dtype=torch.float64)
        self.best_candidates = zeros(rows, options.n_best)
        """Of what has ended: the position times 2 * width, and the rank among the candidates."""
        self.candidates = zeros(length, rows, num)
        """Slot of the parent times V, and the token."""
        self.log_probs = zeros(length, rows, num, dtype=torch.float32)
        self.sums = zeros(length, rows, num, dtype=torch.float32)
        self.kept_ranks = zeros(length, rows, width)
        """The ranks of those that go on."""

    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Lay down what this search is told; rows that are left over are done after a step."""
        self.decoder.set_sources(src_ids)
        self.options = options
        num_idle = self.decoder.num_sentences - len(limits)
        padded_limits = [*limits, *[1] * num_idle]
        length = self.decoder.max_length
        penalties = [
            length_penalty(num_tokens, options.alpha, options.length_norm)
            for num_tokens in range(1, length + 2)
        ]
        self.limits.copy_(torch.tensor(padded_limits))
        self.length_penalties.copy_(torch.tensor(penalties[:-1], dtype=torch.float64))
        if options.alpha > 0:  # the penalty grows with the length
            limit_penalties = torch.tensor(
                [penalties[limit - 1] for limit in padded_limits], dtype=torch.float64
            )
            self.bound_penalties.copy_(limit_penalties[:, None].expand_as(self.bound_penalties))
        else:
            next_penalties = torch.tensor(penalties[1:], dtype=torch.float64)
            self.bound_penalties.copy_(next_penalties.expand_as(self.bound_penalties))

    def start(self) -> None:
        """Begin with what was put down: one hypothesis, nothing said yet."""
        self.decoder.start()
        self.last.fill_(self.special_ids.start_id)
        self.totals.fill_(NEG_INF)
        self.totals[:, 0].zero_()
        self.is_done.zero_()
        self.best_scores.fill_(NEG_INF)

    def step(self, *, window: int, allow_end: bool) -> None:
        """Choose the hypotheses that are one token longer."""
        x = self.decoder.step(self.last.view(-1), window=window)
        num = min(self.ranks.size(0), self.vocab_size)
        best = self.next_token(x, num, allow_end=allow_end)  # (N, num) each
        log_probs, tokens = (one.view(len(self.last), self.width * num) for one in best)
        totals = log_probs.unflatten(1, (self.width, num)) + self.totals[:, :, None]
        sums, flat = totals.flatten(1).topk(self.ranks.size(0))  # (B, 2 * width)
        chosen_tokens, parents = tokens.gather(1, flat), flat // num
        is_end = chosen_tokens.eq(self.special_ids.end_id)
        self._finish(is_end, sums)
        # Each hypothesis ends in one way only, so that `width` of twice as many go on.
        kept_ranks = (self.ranks + is_end * self.ranks.size(0)).sort(1).values[:, : self.width]
        self._record(
            parents * self.vocab_size + chosen_tokens, log_probs.gather(1, flat), sums, kept_ranks
        )
        torch.gather(sums, 1, kept_ranks, out=self.totals)
        torch.gather(chosen_tokens, 1, kept_ranks, out=self.last)
        self.decoder.reorder_beams(parents.gather(1, kept_ranks))
        self._update_done()
        self.decoder.position.add_(1)

    def _finish(self, is_end: Tensor, sums: Tensor) -> None:
        """Take in what ends among the best `width` candidates, where it is good enough."""
        width, position = self.width, self.decoder.position
        ends = is_end[:, :width] & ~self.is_done[:, None]
        scores = sums[:, :width].double() / self.length_penalties.index_select(0, position)
        candidate_indices = (position * self.ranks.size(0) + self.ranks[:width]).expand(
            len(ends), width
        )
        scores = torch.cat((self.best_scores, scores.masked_fill(~ends, NEG_INF)), dim=1)
        ordered, index = scores.sort(dim=1, descending=True, stable=True)  # the earlier wins a tie
        num = self.best_scores.size(1)
        self.best_scores.copy_(ordered[:, :num])
        all_candidates = torch.cat((self.best_candidates, candidate_indices), dim=1)
        torch.gather(all_candidates, 1, index[:, :num], out=self.best_candidates)

    def _record(
        self, candidates: Tensor, log_probs: Tensor, sums: Tensor, kept_ranks: Tensor
    ) -> None:
        position = self.decoder.position
        self.candidates.index_copy_(0, position, candidates[None])
        self.log_probs.index_copy_(0, position, log_probs[None])
        self.sums.index_copy_(0, position, sums[None])
        self.kept_ranks.index_copy_(0, position, kept_ranks[None])

    def _update_done(self) -> None:
        """Stop where nothing alive can become better than what is finished, and at the limit."""
        position = self.decoder.position
        bound = self.totals[:, :1].double() / self.bound_penalties.index_select(1, position)
        is_beaten = self.best_scores[:, -1:] >= bound
        is_truncated = self.limits <= position + 1
        self.is_done.logical_or_(is_beaten.squeeze(1) | is_truncated)

    def resume_from(self, other: StaticBeam, rows: Tensor, *, num_steps: int) -> None:
        """Go on with some sentences of another desk."""
        self.decoder.copy_rows_from(other.decoder, rows, num_steps=num_steps)
        self.options = other.options
        self.length_penalties.copy_(other.length_penalties)
        for name in (
            "limits",
            "bound_penalties",
            "last",
            "totals",
            "is_done",
            "best_scores",
            "best_candidates",
        ):
            torch.index_select(getattr(other, name), 0, rows, out=getattr(self, name))
        for name in ("candidates", "log_probs", "sums", "kept_ranks"):
            buffer, other_buffer = getattr(self, name), getattr(other, name)
            buffer[:num_steps] = other_buffer[:num_steps].index_select(1, rows)

    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Tell what was found for `rows` in so many steps."""
        buffers = (self.candidates, self.log_probs, self.sums, self.kept_ranks)
        history = SearchHistory(
            self.vocab_size, *(one[:num_steps].cpu().numpy() for one in buffers)
        )
        check_finite(bool(np.isnan(history.log_probs).any()))
        row_index = np.array(rows, dtype=np.int64)
        finished = history.finished(
            row_index,
            self.best_scores.cpu().numpy()[row_index],
            self.best_candidates.cpu().numpy()[row_index],
        )
        num_missing = self.best_scores.size(1) - np.bincount(
            finished.result_indices, minlength=len(row_index)
        )
        truncated = history.truncated(row_index, self.limits.cpu().numpy()[row_index], num_missing)
        results = [SearchResult([]) for _ in rows]
        for backpointers in (finished, truncated):
            for index, hypothesis in zip(
                backpointers.result_indices.tolist(),
                self._make_hypotheses(backpointers, history),
                strict=True,
            ):
                results[index].hypotheses.append(hypothesis)
        return results

    def _make_hypotheses(
        self, backpointers: Backpointers, history: SearchHistory
    ) -> Iterator[Hypothesis]:
        alpha, length_norm = self.options.alpha, self.options.length_norm
        ids, log_probs = history.trace_back(backpointers)
        for index, length in enumerate(backpointers.lengths.tolist()):
            token_log_probs = log_probs[index, :length].tolist()
            total = float(backpointers.totals[index])
            if backpointers.end_log_probs is not None:
                token_log_probs.append(float(backpointers.end_log_probs[index]))
            score = total / length_penalty(len(token_log_probs), alpha, length_norm)
            output_ids = ids[index, :length].tolist()
            yield Hypothesis(
                output_ids,
                total,
                score,
                token_log_probs,
                is_finished=backpointers.end_log_probs is not None,
            )


class Backpointers(NamedTuple):
    """Where hypotheses stood when the search was over, those of a sentence best first."""

    result_indices: Ints
    """Of their sentences among those that are asked for."""
    rows: Ints
    """Of their sentences."""
    lengths: Ints
    """Their tokens, the end symbol not counted."""
    slots: Ints
    totals: NDArray[np.float32]
    end_log_probs: NDArray[np.float32] | None
    """The log-probabilities of the end symbols, where these have come."""


class SearchHistory(NamedTuple):
    """What was written down at each step."""

    vocab_size: int
    candidates: Ints  # (T, B, 2 * width)
    log_probs: NDArray[np.float32]  # (T, B, 2 * width)
    sums: NDArray[np.float32]  # (T, B, 2 * width)
    kept_ranks: Ints  # (T, B, width)

    def finished(self, rows: Ints, scores: Floats, best_candidates: Ints) -> Backpointers:
        """Give what has ended of `rows` (R,), by scores and places (R, n_best)."""
        result_indices, ranks = np.nonzero(scores > NEG_INF)
        positions, ranks = np.divmod(
            best_candidates[result_indices, ranks], self.candidates.shape[2]
        )
        index = (positions, rows[result_indices], ranks)
        slots = self.candidates[index] // self.vocab_size
        totals_and_log_probs = (self.sums[index], self.log_probs[index])
        return Backpointers(
            result_indices, rows[result_indices], positions, slots, *totals_and_log_probs
        )

    def truncated(self, rows: Ints, limits: Ints, num_wanted: Ints) -> Backpointers:
        """Give the best `num_wanted` (R,) of `rows` (R,) that had not ended at their limits.

        Only a sentence of which too little had ended went on to its limit.
        """
        (incomplete,) = np.nonzero(num_wanted)
        last, incomplete_rows = (
            np.minimum(limits[incomplete], len(self.kept_ranks)) - 1,
            rows[incomplete],
        )
        ranks = self.kept_ranks[last, incomplete_rows]  # (R', width)
        totals = self.sums[last[:, None], incomplete_rows[:, None], ranks]
        alive = totals > NEG_INF
        wanted, slots = np.nonzero(alive & (alive.cumsum(1) <= num_wanted[incomplete, None]))
        result_indices = incomplete[wanted]
        return Backpointers(
            result_indices,
            rows[result_indices],
            limits[result_indices],
            slots,
            totals[wanted, slots],
            None,
        )

    def trace_back(self, backpointers: Backpointers) -> tuple[Ints, Floats]:
        """Give the ids and log-probabilities (H, T) of each, from its first token on."""
        shape = (len(backpointers.rows), int(backpointers.lengths.max(initial=0)))
        ids: Ints = np.zeros(shape, dtype=np.int64)
        log_probs: Floats = np.zeros(shape)
        slots = backpointers.slots.copy()
        for position in reversed(range(shape[1])):
            (active,) = np.nonzero(backpointers.lengths > position)
            rows = backpointers.rows[active]
            index = (position, rows, self.kept_ranks[position, rows, slots[active]])
            slots[active], ids[active, position] = np.divmod(
                self.candidates[index], self.vocab_size
            )
            log_probs[active, position] = self.log_probs[index]
        return ids, log_probs
