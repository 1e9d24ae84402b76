"""Greedy search, sampling and beam search in NumPy, for engines that return logits. No PyTorch.

The rules are those of `attendo.decoding.greedy` and `attendo.decoding.beam`, which are the
reference: the same hypotheses come out, except that samples use another random generator. Phrases,
beam groups and traces need the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from attendo.core.checkpoints import checkpoint
from attendo.core.seeding import derive_seed
from attendo.decoding.beam_state import BeamUpdate, SentenceBeam, TopCandidates
from attendo.decoding.hypothesis import (
    Hypothesis,
    SearchResult,
    length_penalty,
    truncate_hypothesis,
)
from attendo.decoding.limits import NEG_INF, check_finite, suppressed_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.decoding.beam_state import Ints
    from attendo.decoding.options import DecodingOptions, SpecialIds

    Floats = NDArray[np.floating[Any]]
    Bools = NDArray[np.bool_]


class StepModel(Protocol):
    """A model that decodes one target position of each row at a time."""

    def start(self, sources: Sequence[Sequence[int]]) -> Any:
        """Encode the sources; return the state before the first target position."""
        ...

    def step(self, ids: Ints, state: Any) -> tuple[Floats, Any]:
        """Feed one token per row, ids (N,); return the next logits (N, V) and the new state."""
        ...

    def reorder(self, state: Any, index: Ints) -> Any:
        """Return the state whose row i is row `index[i]` of the given one."""
        ...


class NumpySearch:
    """The search of one batch.

    Args:
        model: computes the logits.
        sources: ids with the end symbol.
        special_ids: start, end, padding and unknown.
        options: without beam groups.
        limits: the maximum number of tokens of each translation.
        prefixes: the first ids of each translation.

    """

    def __init__(
        self,
        model: StepModel,
        sources: Sequence[Sequence[int]],
        special_ids: SpecialIds,
        options: DecodingOptions,
        limits: Sequence[int],
        prefixes: Sequence[Sequence[int]],
    ) -> None:
        self.model, self.sources = model, sources
        self.special_ids, self.options, self.limits = special_ids, options, limits
        self.suppressed = suppressed_ids(special_ids, options)
        longest = max(map(len, prefixes), default=0)
        rows = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        self.prefixes: Ints = np.array(rows, dtype=np.int64).reshape(len(prefixes), longest)

    def run(self) -> list[SearchResult]:
        """Return one result per source."""
        if self.options.do_sample or self.options.beam_size == 1:
            return self._run_rows(self.options.n_best if self.options.do_sample else 1)
        return self._run_beams()

    # One hypothesis per row

    def _run_rows(self, num_samples: int) -> list[SearchResult]:
        sentences = np.repeat(np.arange(len(self.sources)), num_samples)  # (N,)
        limits = np.array(self.limits)[sentences]
        uniforms = self._uniforms(num_samples, limits) if self.options.do_sample else None
        ids = np.full((len(sentences), limits.max()), self.special_ids.end_id)  # (N, T)
        log_probs = np.zeros(ids.shape, dtype=np.float32)
        state = self.model.start(self.sources)
        if num_samples > 1:
            state = self.model.reorder(state, sentences)
        rows = np.arange(len(sentences))  # the unfinished ones
        last = np.full(len(rows), self.special_ids.start_id)
        for position in range(ids.shape[1]):
            checkpoint()
            filtered, state = self._step(last, state, position, sentences[rows], ids[rows])
            last = (
                filtered.argmax(-1)
                if uniforms is None
                else sample_tokens(filtered, uniforms[rows, position], self.options)
            )
            ids[rows, position] = last
            log_probs[rows, position] = np.take_along_axis(filtered, last[:, None], 1)[:, 0]
            kept = np.flatnonzero((last != self.special_ids.end_id) & (limits[rows] > position + 1))
            if not len(kept):
                break
            if len(kept) < len(rows):
                state, rows, last = self.model.reorder(state, kept), rows[kept], last[kept]
        end_id = self.special_ids.end_id
        hypotheses = [
            truncate_hypothesis(row, scores, limit, end_id, self.options)
            for row, scores, limit in zip(
                ids.tolist(), log_probs.astype(float).tolist(), limits.tolist(), strict=True
            )
        ]
        return [
            SearchResult(hypotheses[first : first + num_samples])
            for first in range(0, len(hypotheses), num_samples)
        ]

    def _uniforms(self, num_samples: int, limits: Ints) -> Floats:
        """Return random numbers that depend on nothing but the seed, the source and the sample."""
        uniforms = np.zeros((len(limits), limits.max()))
        for row, limit in enumerate(limits.tolist()):
            sentence, sample = divmod(row, num_samples)
            seed = derive_seed(self.options.seed, sample, *self.sources[sentence])
            uniforms[row, :limit] = np.random.default_rng(seed).random(limit)
        return uniforms

    # Beam search

    def _run_beams(self) -> list[SearchResult]:
        width, options = self.options.beam_size, self.options
        all_beams = [
            SentenceBeam(index, 0, limit, None, min(options.n_best, width))
            for index, limit in enumerate(self.limits)
        ]
        beams = np.arange(len(all_beams))  # the open ones
        ids = np.zeros((len(beams), width, 0), dtype=np.int64)  # (L, K, t)
        token_log_probs = np.zeros((len(beams), width, 0))
        totals = np.full((len(beams), width), NEG_INF)
        totals[:, 0] = 0.0  # at first there is one hypothesis, which is empty
        state = self.model.reorder(self.model.start(self.sources), np.repeat(beams, width))
        last = np.full(len(beams) * width, self.special_ids.start_id)
        position = 0
        while len(beams):
            checkpoint()
            rows = np.repeat(beams, width)
            flat_ids = ids.reshape(len(rows), position)
            log_probs, state = self._step(last, state, position, rows, flat_ids)
            update = BeamUpdate.empty((len(beams), width), self.special_ids.end_id)
            candidates = _top_candidates(log_probs.reshape(len(beams), width, -1), totals)
            ends, order = candidates.split_finished(self.special_ids.end_id, width)
            for name in ("parents", "tokens", "log_probs", "totals"):
                kept = np.take_along_axis(getattr(candidates, name), order, axis=1)
                getattr(update, name)[:, : order.shape[1]] = kept
            penalty = self._penalty(position + 1)
            for row, rank in np.argwhere(ends):
                parent, total = candidates.parents[row, rank], float(candidates.totals[row, rank])
                scores = [*token_log_probs[row, parent].tolist()]
                scores.append(float(candidates.log_probs[row, rank]))
                found = Hypothesis(ids[row, parent].tolist(), total, total / penalty, scores, True)
                all_beams[beams[row]].add_finished(found)
            parents = update.parents[:, :, None]
            is_stuck = update.totals.max(1) == NEG_INF
            for row in np.flatnonzero(is_stuck):
                if not all_beams[beams[row]].finished:
                    self._truncate(
                        all_beams[beams[row]], ids[row], token_log_probs[row], totals[row]
                    )
            ids = np.take_along_axis(ids, parents, axis=1)
            ids = np.concatenate([ids, update.tokens[:, :, None]], axis=2)
            token_log_probs = np.take_along_axis(token_log_probs, parents, axis=1)
            token_log_probs = np.concatenate([token_log_probs, update.log_probs[..., None]], axis=2)
            totals, position = update.totals, position + 1
            is_open = self._find_open(all_beams, beams, ids, token_log_probs, totals)
            index = is_open[:, None] * width + update.parents[is_open]
            beams, ids, totals = beams[is_open], ids[is_open], totals[is_open]
            token_log_probs = token_log_probs[is_open]
            last = update.tokens[is_open].reshape(-1)
            if len(beams):
                state = self.model.reorder(state, index.reshape(-1))
        return [
            SearchResult([*beam.finished, *beam.fallback][: options.n_best]) for beam in all_beams
        ]

    def _find_open(
        self,
        all_beams: list[SentenceBeam],
        beams: Ints,
        ids: Ints,
        token_log_probs: Floats,
        totals: Floats,
    ) -> Ints:
        """Return the rows of the beams that go on; store what those at their limits have."""
        position, is_open = ids.shape[2], []
        for row, beam in enumerate(all_beams[index] for index in beams):
            limit = beam.limit if self.options.alpha > 0 else position + 1
            if beam.threshold >= totals[row].max() / self._penalty(limit):
                continue
            if position >= beam.limit:
                self._truncate(beam, ids[row], token_log_probs[row], totals[row])
            else:
                is_open.append(row)
        return np.array(is_open, dtype=np.int64)

    def _truncate(
        self, beam: SentenceBeam, ids: Ints, token_log_probs: Floats, totals: Floats
    ) -> None:
        penalty = self._penalty(max(ids.shape[1], 1))
        for slot in np.flatnonzero(totals > NEG_INF):
            total, scores = float(totals[slot]), token_log_probs[slot].tolist()
            beam.truncated.append(
                Hypothesis(ids[slot].tolist(), total, total / penalty, scores, False)
            )
        beam.truncated.sort(key=lambda one: -one.score)

    def _penalty(self, length: int) -> float:
        return length_penalty(length, self.options.alpha, self.options.length_norm)

    # Both

    def _step(
        self, last: Ints, state: Any, position: int, sentences: Ints, ids: Ints
    ) -> tuple[Floats, Any]:
        """Return the filtered log-probabilities (N, V) of the next tokens, and the new state."""
        logits, state = self.model.step(last, state)
        log_probs = log_softmax(logits)
        check_finite(bool(np.isnan(log_probs).any()))
        return self._filter(log_probs, position, sentences, ids), state

    def _filter(self, log_probs: Floats, position: int, sentences: Ints, ids: Ints) -> Floats:
        """Forbid tokens; see `attendo.decoding.token_filters.TokenFilter`."""
        end_id, ngram = self.special_ids.end_id, self.options.no_repeat_ngram
        filtered = log_probs.copy()
        filtered[:, self.suppressed] = NEG_INF
        if position < self.options.min_length:
            filtered[:, end_id] = NEG_INF
        if position >= ngram > 0:
            for row, tokens in enumerate(ids[:, :position]):
                for start in range(position - ngram + 1):
                    if np.array_equal(
                        tokens[start : start + ngram - 1], tokens[position - ngram + 1 :]
                    ):
                        filtered[row, tokens[start + ngram - 1]] = NEG_INF
        if ngram or position < self.options.min_length:
            is_stuck = filtered.max(1) == NEG_INF  # every token is forbidden: the hypothesis ends
            filtered[is_stuck, end_id] = log_probs[is_stuck, end_id]
        if position < self.prefixes.shape[1]:
            for row, token in enumerate(self.prefixes[sentences, position].tolist()):
                if token >= 0:
                    filtered[row] = NEG_INF
                    filtered[row, token] = log_probs[row, token]
        return filtered


def log_softmax(logits: Floats) -> Floats:
    """Return log-probabilities over the last axis, in float32."""
    shifted = logits.astype(np.float32, copy=False) - logits.max(-1, keepdims=True)
    log_probs: Floats = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs


def sample_tokens(log_probs: Floats, uniforms: Floats, options: DecodingOptions) -> Ints:
    """Sample a token per row with temperature, top-k and top-p, as `decoding.sampling` does."""
    tokens = np.argsort(-log_probs, axis=1, kind="stable")
    if options.top_k:
        tokens = tokens[:, : options.top_k]
    scaled = np.take_along_axis(log_probs, tokens, 1).astype(float) / options.temperature
    probs = np.exp(scaled - scaled[:, :1])
    probs /= probs.sum(1, keepdims=True)
    if options.top_p < 1.0:
        probs[probs.cumsum(1) - probs >= options.top_p] = 0.0
    cumulative = probs.cumsum(1)
    rank = (cumulative <= uniforms[:, None] * cumulative[:, -1:]).sum(1)
    rank = np.minimum(rank, (probs > 0).sum(1) - 1).clip(min=0)
    chosen: Ints = np.take_along_axis(tokens, rank[:, None], 1)[:, 0]
    return chosen


def _top_candidates(log_probs: Floats, totals: Floats) -> TopCandidates:
    """Return the best continuations of each beam from log_probs (L, K, V), best first."""
    num_beams, width, vocab_size = log_probs.shape
    sums = (log_probs + totals.astype(np.float32)[:, :, None]).reshape(num_beams, -1)
    count = min(2 * width, width * vocab_size)
    flat = np.argpartition(-sums, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(sums, flat, 1), axis=1, kind="stable")
    flat = np.take_along_axis(flat, order, 1)
    parents, tokens = np.divmod(flat, vocab_size)
    found = np.take_along_axis(log_probs.reshape(num_beams, -1), flat, 1).astype(float)
    return TopCandidates(parents, tokens, found, np.take_along_axis(sums, flat, 1).astype(float))
