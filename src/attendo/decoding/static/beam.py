"""Beam search on static buffers, equal to `attendo.decoding.beam`.

Each step stores its candidates; back-pointers are resolved once, on the host, at the end. As in the
reference, scores that are compared with each other are float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch

from attendo.decoding.hypothesis import Hypothesis, SearchResult, length_penalty
from attendo.decoding.limits import NEG_INF, check_finite
from attendo.decoding.static.state import StaticState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import StaticDecoderProtocol
    from attendo.decoding.beam_state import Floats, Ints
    from attendo.decoding.options import DecodingOptions, SpecialIds


class StaticBeam(StaticState):
    """Keeps `width` hypotheses per sentence, chosen from `2 * width` candidates at each step."""

    row_buffers: ClassVar[tuple[str, ...]] = (
        "limits",
        "bound_penalties",
        "last",
        "totals",
        "is_done",
        "best_scores",
        "best_candidates",
    )
    step_buffers = ("candidates", "log_probs", "sums", "kept_ranks")

    def __init__(
        self,
        decoder: StaticDecoderProtocol,
        special_ids: SpecialIds,
        options: DecodingOptions,
        *,
        vocab_size: int,
    ) -> None:
        super().__init__(decoder, special_ids, options)
        self.vocab_size, self.width = vocab_size, decoder.width
        rows, length, width = decoder.num_sentences, decoder.max_length, decoder.width
        num = 2 * width

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=self.device)

        self.ranks = torch.arange(num, device=self.device)
        self.limits = zeros(rows)
        self.length_penalties = zeros(length, dtype=torch.float64)
        """The divisor of the total of a hypothesis that ends at a position."""
        self.bound_penalties = zeros(rows, length, dtype=torch.float64)
        """The divisor that bounds the score of any hypothesis still alive after a position."""
        self.last = zeros(rows, width)
        self.totals = zeros(rows, width, dtype=torch.float32)
        self.best_scores = zeros(rows, options.n_best, dtype=torch.float64)
        """The scores of the best finished hypotheses."""
        self.best_candidates = zeros(rows, options.n_best)
        """Where these ended: position * 2 * width + rank among the candidates."""
        self.candidates = zeros(length, rows, num)
        """Slot of the parent * V + token."""
        self.log_probs = zeros(length, rows, num, dtype=torch.float32)
        self.sums = zeros(length, rows, num, dtype=torch.float32)
        self.kept_ranks = zeros(length, rows, width)
        """The ranks of the candidates that continue."""

    def load(self, src_ids: Tensor, limits: Sequence[int], options: DecodingOptions) -> None:
        """Store the sources and settings of a search; unused rows are done after one step."""
        self.decoder.set_sources(src_ids)
        self.options = options
        num_idle = self.decoder.num_sentences - len(limits)
        padded_limits = [*limits, *[1] * num_idle]
        penalties = [
            length_penalty(num_tokens, options.alpha, options.length_norm)
            for num_tokens in range(1, self.decoder.max_length + 2)
        ]
        self.limits.copy_(torch.tensor(padded_limits))
        self.length_penalties.copy_(torch.tensor(penalties[:-1], dtype=torch.float64))
        if options.alpha > 0:  # The penalty grows with the length: it is largest at the limit.
            limit_penalties = torch.tensor(
                [penalties[limit - 1] for limit in padded_limits], dtype=torch.float64
            )
            self.bound_penalties.copy_(limit_penalties[:, None].expand_as(self.bound_penalties))
        else:
            next_penalties = torch.tensor(penalties[1:], dtype=torch.float64)
            self.bound_penalties.copy_(next_penalties.expand_as(self.bound_penalties))

    def start(self) -> None:
        """Encode the sources; each sentence has one hypothesis, which is empty."""
        self.decoder.start()
        self.last.fill_(self.special_ids.start_id)
        self.totals.fill_(NEG_INF)
        self.totals[:, 0].zero_()
        self.is_done.zero_()
        self.best_scores.fill_(NEG_INF)

    def step(self, *, window: int, allow_end: bool) -> None:
        """Choose the hypotheses that are one token longer."""
        x = self.decoder.step(self.last.view(-1), window=window)
        num_candidates = self.ranks.size(0)
        num = min(num_candidates, self.vocab_size)
        best = self.top_tokens(x, num, allow_end=allow_end)  # (N, num) each
        log_probs, tokens = (one.view(len(self.last), self.width * num) for one in best)
        totals = log_probs.unflatten(1, (self.width, num)) + self.totals[:, :, None]
        sums, flat = totals.flatten(1).topk(num_candidates)  # (B, 2 * width)
        chosen_tokens, parents = tokens.gather(1, flat), flat // num
        is_end = chosen_tokens.eq(self.special_ids.end_id)
        self._finish(is_end, sums)
        # A hypothesis has one candidate that ends it, so at least half of the candidates continue.
        kept_ranks = (self.ranks + is_end * num_candidates).sort(1).values[:, : self.width]
        self._record(
            parents * self.vocab_size + chosen_tokens, log_probs.gather(1, flat), sums, kept_ranks
        )
        torch.gather(sums, 1, kept_ranks, out=self.totals)
        torch.gather(chosen_tokens, 1, kept_ranks, out=self.last)
        self.decoder.reorder_beams(parents.gather(1, kept_ranks))
        self._update_done()

    def _finish(self, is_end: Tensor, sums: Tensor) -> None:
        """Merge what ends among the best `width` candidates into the best finished hypotheses."""
        width, position = self.width, self.decoder.position
        ends = is_end[:, :width] & ~self.is_done[:, None]
        scores = sums[:, :width].double() / self._length_penalty()
        first_indices = position[:, None] * self.ranks.size(0)
        candidate_indices = (first_indices + self.ranks[:width]).expand(len(ends), width)
        scores = torch.cat((self.best_scores, scores.masked_fill(~ends, NEG_INF)), dim=1)
        ordered, index = scores.sort(dim=1, descending=True, stable=True)  # the earlier wins a tie
        num = self.best_scores.size(1)
        self.best_scores.copy_(ordered[:, :num])
        all_candidates = torch.cat((self.best_candidates, candidate_indices), dim=1)
        torch.gather(all_candidates, 1, index[:, :num], out=self.best_candidates)

    def _record(
        self, candidates: Tensor, log_probs: Tensor, sums: Tensor, kept_ranks: Tensor
    ) -> None:
        self.store(self.candidates, candidates)
        self.store(self.log_probs, log_probs)
        self.store(self.sums, sums)
        self.store(self.kept_ranks, kept_ranks)

    def _length_penalty(self) -> Tensor:
        """Return the penalty (B, 1), or one for all, of a hypothesis that ends here."""
        return self.length_penalties.index_select(0, self.decoder.position)

    def _update_done(self) -> None:
        """Mark sentences whose finished hypotheses cannot be beaten, or that reached the limit.

        Then go to the next position.
        """
        position = self.decoder.position
        bound = self.totals[:, :1].double() / self.bound_penalties.index_select(1, position)
        is_beaten = self.best_scores[:, -1:] >= bound
        is_truncated = self.limits <= position + 1
        self.is_done.logical_or_(is_beaten.squeeze(1) | is_truncated)
        position.add_(1)

    def resume_from(self, other: StaticBeam, rows: Tensor, *, num_steps: int) -> None:
        """Continue the sentences `rows` (B,) of another state after `num_steps` steps."""
        super().resume_from(other, rows, num_steps=num_steps)
        self.length_penalties.copy_(other.length_penalties)

    def results(self, rows: Sequence[int], num_steps: int) -> list[SearchResult]:
        """Return the results of the sentences `rows` after `num_steps` steps."""
        candidates, log_probs, sums, kept_ranks = (
            buffer[:num_steps].cpu().numpy()
            for buffer in (self.candidates, self.log_probs, self.sums, self.kept_ranks)
        )
        history = SearchHistory(self.vocab_size, candidates, log_probs, sums, kept_ranks)
        check_finite(bool(np.isnan(log_probs).any()))
        row_index = np.array(rows, dtype=np.int64)
        return history.results(
            row_index,
            self.best_scores.cpu().numpy()[row_index],
            self.best_candidates.cpu().numpy()[row_index],
            self.limits.cpu().numpy()[row_index],
            [self.options] * len(row_index),
        )


class Endpoints(NamedTuple):
    """The last position of each of H hypotheses, those of a sentence best first."""

    result_indices: Ints
    """The index of the sentence among the requested rows."""
    rows: Ints
    """The row of the sentence in the buffers."""
    lengths: Ints
    """The number of tokens without the end symbol."""
    slots: Ints
    """The slot of the last token, or the parent slot of the end symbol."""
    totals: NDArray[np.float32]
    end_log_probs: NDArray[np.float32] | None
    """The log-probabilities of the end symbols; None for hypotheses that were truncated."""


class SearchHistory(NamedTuple):
    """What each step stored, on the host."""

    vocab_size: int
    candidates: Ints  # (T, B, 2 * width)
    log_probs: NDArray[np.float32]  # (T, B, 2 * width)
    sums: NDArray[np.float32]  # (T, B, 2 * width)
    kept_ranks: Ints  # (T, B, width)

    def results(
        self,
        rows: Ints,
        scores: Floats,
        best_candidates: Ints,
        limits: Ints,
        options: Sequence[DecodingOptions],
        *,
        reached_limit: NDArray[np.bool_] | None = None,
    ) -> list[SearchResult]:
        """Return the results of `rows` (R,).

        Args:
            rows: of the buffers.
            scores: of the best finished hypotheses (R, n), -inf where there is none.
            best_candidates: where these ended.
            limits: the maximum lengths (R,).
            options: of each sentence.
            reached_limit: which sentences may have truncated hypotheses (R,); by default all.

        """
        finished = self.finished(rows, scores, best_candidates)
        num_wanted = np.array([one.n_best for one in options])
        num_missing = num_wanted - np.bincount(finished.result_indices, minlength=len(rows))
        if reached_limit is not None:
            num_missing[~reached_limit] = 0
        truncated = self.truncated(rows, limits, num_missing)
        results = [SearchResult([]) for _ in rows]
        for endpoints in (finished, truncated):
            hypotheses = self._make_hypotheses(endpoints, options)
            for index, hypothesis in zip(endpoints.result_indices, hypotheses, strict=True):
                results[index].hypotheses.append(hypothesis)
        return results

    def _make_hypotheses(
        self, endpoints: Endpoints, options: Sequence[DecodingOptions]
    ) -> Iterator[Hypothesis]:
        ids, log_probs = self.trace_back(endpoints)
        for index, length in enumerate(endpoints.lengths.tolist()):
            chosen = options[endpoints.result_indices[index]]
            token_log_probs = log_probs[index, :length].tolist()
            total = float(endpoints.totals[index])
            if endpoints.end_log_probs is not None:
                token_log_probs.append(float(endpoints.end_log_probs[index]))
            penalty = length_penalty(len(token_log_probs), chosen.alpha, chosen.length_norm)
            yield Hypothesis(
                ids=ids[index, :length].tolist(),
                log_prob=total,
                score=total / penalty,
                token_log_probs=token_log_probs,
                is_finished=endpoints.end_log_probs is not None,
            )

    def finished(self, rows: Ints, scores: Floats, best_candidates: Ints) -> Endpoints:
        """Return the finished hypotheses of `rows` (R,), given their scores (R, n_best)."""
        result_indices, ranks = np.nonzero(scores > NEG_INF)
        positions, ranks = np.divmod(
            best_candidates[result_indices, ranks], self.candidates.shape[2]
        )
        index = (positions, rows[result_indices], ranks)
        return Endpoints(
            result_indices=result_indices,
            rows=rows[result_indices],
            lengths=positions,
            slots=self.candidates[index] // self.vocab_size,
            totals=self.sums[index],
            end_log_probs=self.log_probs[index],
        )

    def truncated(self, rows: Ints, limits: Ints, num_wanted: Ints) -> Endpoints:
        """Return the best `num_wanted` (R,) hypotheses of `rows` (R,) that reached their limits.

        Only sentences with too few finished hypotheses are searched up to their limits.
        """
        (incomplete,) = np.nonzero(num_wanted)
        last = np.minimum(limits[incomplete], len(self.kept_ranks)) - 1
        incomplete_rows = rows[incomplete]
        ranks = self.kept_ranks[last, incomplete_rows]  # (R', width)
        totals = self.sums[last[:, None], incomplete_rows[:, None], ranks]
        alive = totals > NEG_INF
        wanted, slots = np.nonzero(alive & (alive.cumsum(1) <= num_wanted[incomplete, None]))
        result_indices = incomplete[wanted]
        return Endpoints(
            result_indices=result_indices,
            rows=rows[result_indices],
            lengths=limits[result_indices],
            slots=slots,
            totals=totals[wanted, slots],
            end_log_probs=None,
        )

    def trace_back(self, endpoints: Endpoints) -> tuple[Ints, Floats]:
        """Follow the back-pointers; return the ids and log-probabilities (H, T)."""
        shape = (len(endpoints.rows), int(endpoints.lengths.max(initial=0)))
        ids: Ints = np.zeros(shape, dtype=np.int64)
        log_probs: Floats = np.zeros(shape)
        slots = endpoints.slots.copy()
        for position in reversed(range(shape[1])):
            (active,) = np.nonzero(endpoints.lengths > position)
            rows = endpoints.rows[active]
            index = (position, rows, self.kept_ranks[position, rows, slots[active]])
            slots[active], ids[active, position] = np.divmod(
                self.candidates[index], self.vocab_size
            )
            log_probs[active, position] = self.log_probs[index]
        return ids, log_probs
