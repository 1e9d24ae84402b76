"""The state of searches that begin at different times: each slot holds one sentence.

The steps are those of `attendo.decoding.static`; position, limit, length penalty and the other
rules are those of each slot. A slot whose sentence is done keeps still: its position, and what it
has found, no longer change.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
import torch

from attendo.core.errors import AttendoError
from attendo.decoding.hypothesis import SearchResult, length_penalty, truncate_hypothesis
from attendo.decoding.limits import NEG_INF, check_finite, suppressed_ids
from attendo.decoding.options import DecodingOptions
from attendo.decoding.static.beam import SearchHistory, StaticBeam
from attendo.decoding.static.greedy import StaticGreedy
from attendo.decoding.static.state import StaticState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import SlotDecoderProtocol
    from attendo.decoding.options import LengthNorm, SpecialIds

MAX_PENALTIES = 512
"""Tables of length penalties: more than the sentences that join together."""
NUM_RULES = 2
"""Tokens that the rules of a sentence may forbid: the end and the unknown symbol."""


class NewSentence(NamedTuple):
    """The numbers of a sentence that joins a search."""

    slot: int
    limit: int
    min_length: int = 0
    avoids_unk: int = 1
    last_rank: int = 0
    """n_best - 1."""
    penalty_row: int = 0
    """Its table of length penalties."""
    has_growing_penalty: int = 0
    """Whether the penalty grows with the length."""


def pack_sentences(
    sentences: Sequence[tuple[Sequence[int], NewSentence]], *, length: int, pad_id: int
) -> Tensor:
    """Return sentences that join a search as one tensor (M, S' + numbers): one copy to a device."""
    packed = np.full((len(sentences), length + len(NewSentence._fields)), pad_id, dtype=np.int64)
    for row, (src_ids, _) in zip(packed, sentences, strict=True):
        row[: len(src_ids)] = src_ids
    packed[:, length:] = [numbers for _, numbers in sentences]
    return torch.from_numpy(packed)


class SlotState(StaticState):
    """The part that greedy and beam search share."""

    decoder: SlotDecoderProtocol
    last: Tensor
    result_buffers: ClassVar[tuple[str, ...]]
    """Names of the tensors (B, ...) that results are made of, besides the steps."""

    def _prepare_slots(self, vocab_size: int) -> None:
        """Allocate what each slot has, besides the buffers of the search."""
        self.vocab_size = vocab_size
        always = suppressed_ids(self.special_ids, self.options.replace(unk="keep"))
        self.always_suppressed = torch.tensor(always, dtype=torch.long, device=self.device)
        self.is_done.fill_(True)
        self.limits = torch.zeros_like(self.decoder.position)
        self.min_lengths = torch.zeros_like(self.limits)
        self.avoids_unk = torch.ones_like(self.is_done)

    def first(self, num_slots: int, src_length: int) -> Self:
        """Return a view of the first slots."""
        view = copy(self)
        view.decoder = self.decoder.first(num_slots, src_length)
        for name in self.row_buffers:
            setattr(view, name, getattr(self, name)[:num_slots])
        for name in self.step_buffers:
            setattr(view, name, getattr(self, name)[:, :num_slots])
        return view

    def admit(self, packed: Tensor) -> None:
        """Encode sentences (see `pack_sentences`) into their slots and reset these."""
        length = packed.size(1) - len(NewSentence._fields)
        numbers = packed[:, length:].T.contiguous()
        slots, limits, min_lengths, avoids_unk, *others = numbers.unbind(0)
        self.decoder.admit(packed[:, :length].contiguous(), slots)
        self.limits.index_copy_(0, slots, limits)
        self.min_lengths.index_copy_(0, slots, min_lengths)
        self.avoids_unk.index_copy_(0, slots, avoids_unk.bool())
        self.is_done.index_fill_(0, slots, False)
        self.last.index_fill_(0, slots, self.special_ids.start_id)
        self._reset(slots, limits, *others)

    def move(self, sources: Tensor, targets: Tensor, *, window: int) -> None:
        """Move sentences, of at most `window` positions, from slots `sources` to `targets`."""
        self.decoder.move(sources, targets, window=window)
        for name in self.row_buffers:
            buffer = getattr(self, name)
            buffer.index_copy_(0, targets, buffer.index_select(0, sources))
        for name in self.step_buffers:
            buffer = getattr(self, name)[:window]
            buffer.index_copy_(1, targets, buffer.index_select(1, sources))
        self.release(sources)

    def release(self, slots: Tensor) -> None:
        """Mark slots as free."""
        self.is_done.index_fill_(0, slots, True)

    def store(self, buffer: Tensor, values: Tensor) -> None:
        """Write values (B, ...) into a buffer (T, B, ...), each at the position of its slot."""
        buffer[self.decoder.position, self.decoder.slots] = values

    def top_tokens(self, x: Tensor, num: int, *, allow_end: bool) -> tuple[Tensor, Tensor]:
        """Return the `num` best log-probabilities after x (N, D), float32, and their tokens.

        With `allow_end` no sentence forbids its end, and all of them avoid the unknown token.
        """
        if allow_end:
            return self.top_unsuppressed(x, num, self.suppressed)
        num_with_spare = min(num + NUM_RULES, self.vocab_size)
        log_probs, tokens = self.top_unsuppressed(x, num_with_spare, self.always_suppressed)
        width = self.decoder.width
        may_not_end = self.decoder.position < self.min_lengths
        is_end = tokens.eq(self.special_ids.end_id)
        is_forbidden = is_end & may_not_end.repeat_interleave(width)[:, None]
        if self.special_ids.unk_id is not None:
            is_unk = tokens.eq(self.special_ids.unk_id)
            is_forbidden |= is_unk & self.avoids_unk.repeat_interleave(width)[:, None]
        best = log_probs.masked_fill(is_forbidden, NEG_INF).topk(num)
        return best.values, tokens.gather(1, best.indices)

    def gather_rows(self, rows: Tensor, num_steps: int) -> dict[str, Tensor]:
        """Return what the results of `rows` (R,) are made of, for up to `num_steps` steps."""
        found = {"position": self.decoder.position.index_select(0, rows)}
        for name in self.result_buffers:
            found[name] = getattr(self, name).index_select(0, rows)
        for name in self.step_buffers:
            found[name] = getattr(self, name)[:num_steps].index_select(1, rows)
        return found

    def make_results(
        self, found: dict[str, Tensor], limits: Sequence[int], options: Sequence[DecodingOptions]
    ) -> list[SearchResult | AttendoError]:
        """Return the results of rows that were gathered and copied to the host."""
        num_steps = found["position"].numpy()
        step_log_probs = (
            found["log_probs"].flatten(2)
            if found["log_probs"].dim() > 2
            else (found["log_probs"][:, :, None])
        )
        is_nan = step_log_probs.isnan().any(2).numpy()  # (T, R)
        broken = [bool(is_nan[:steps, row].any()) for row, steps in enumerate(num_steps)]
        sound = [row for row, is_broken in enumerate(broken) if not is_broken]
        made = iter(self._make_sound_results(found, sound, limits, options))
        return [_nan_error() if is_broken else next(made) for is_broken in broken]

    def _make_sound_results(
        self,
        found: dict[str, Tensor],
        rows: Sequence[int],
        limits: Sequence[int],
        options: Sequence[DecodingOptions],
    ) -> list[SearchResult]:
        raise NotImplementedError

    def set_penalties(self, row: int, penalties: Tensor) -> None:
        """Set a table of length penalties (see `make_penalties`)."""

    def _reset(
        self, slots: Tensor, limits: Tensor, last_ranks: Tensor, rows: Tensor, grows: Tensor
    ) -> None:
        """Reset what only beam search has."""


class SlotGreedy(SlotState, StaticGreedy):
    """Greedy search."""

    row_buffers = ("last", "is_done", "limits", "min_lengths", "avoids_unk")
    result_buffers = ()

    limits: Tensor  # type: ignore[assignment]  # (B,)

    def __init__(
        self, decoder: SlotDecoderProtocol, special_ids: SpecialIds, *, vocab_size: int
    ) -> None:
        super().__init__(decoder, special_ids, DecodingOptions(beam_size=1))
        self._prepare_slots(vocab_size)

    def _update_done(self, log_probs: Tensor) -> None:
        is_open = ~self.is_done
        position = self.decoder.position
        is_over = self.last.eq(self.special_ids.end_id) | (self.limits <= position + 1)
        self.is_done.logical_or_(is_over | log_probs.isnan())
        position.add_(is_open)

    def _make_sound_results(
        self,
        found: dict[str, Tensor],
        rows: Sequence[int],
        limits: Sequence[int],
        options: Sequence[DecodingOptions],
    ) -> list[SearchResult]:
        num_steps = found["position"].tolist()
        all_ids, all_log_probs = found["output_ids"].T.tolist(), found["log_probs"].T.tolist()
        results = []
        for row in rows:
            ids = all_ids[row][: num_steps[row]]
            log_probs = all_log_probs[row][: num_steps[row]]
            end_id = self.special_ids.end_id
            hypothesis = truncate_hypothesis(ids, log_probs, limits[row], end_id, options[row])
            results.append(SearchResult([hypothesis]))
        return results


class SlotBeam(SlotState, StaticBeam):
    """Beam search."""

    row_buffers = (
        *StaticBeam.row_buffers,
        "length_penalties",
        "last_ranks",
        "min_lengths",
        "avoids_unk",
    )
    result_buffers = ("best_scores", "best_candidates")

    def __init__(
        self, decoder: SlotDecoderProtocol, special_ids: SpecialIds, *, vocab_size: int
    ) -> None:
        options = DecodingOptions(beam_size=decoder.width, n_best=decoder.width)
        super().__init__(decoder, special_ids, options, vocab_size=vocab_size)
        self._prepare_slots(vocab_size)
        self.length_penalties = torch.ones_like(self.bound_penalties)  # (B, T)
        self.bound_penalties.fill_(1.0)
        size = self.bound_penalties.size(1) + 1
        self.penalty_tables = self.bound_penalties.new_ones(MAX_PENALTIES, size)
        self.last_ranks = torch.zeros_like(self.limits)
        """The rank of the last finished hypothesis that is asked for."""

    def set_penalties(self, row: int, penalties: Tensor) -> None:
        """Set a table of length penalties."""
        self.penalty_tables[row].copy_(penalties)

    def _reset(
        self, slots: Tensor, limits: Tensor, last_ranks: Tensor, rows: Tensor, grows: Tensor
    ) -> None:
        self.last_ranks.index_copy_(0, slots, last_ranks)
        tables = self.penalty_tables.index_select(0, rows)  # (M, T + 1)
        # The bound of the score of what is alive after a position; if the penalty grows with the
        # length, it is that of the limit.
        at_limits = tables.gather(1, limits[:, None] - 1)
        bounds = torch.where(grows.bool()[:, None], at_limits, tables[:, 1:])
        self.length_penalties.index_copy_(0, slots, tables[:, :-1])
        self.bound_penalties.index_copy_(0, slots, bounds)
        self.totals.index_fill_(0, slots, NEG_INF)
        self.totals[:, 0].index_fill_(0, slots, 0.0)
        self.best_scores.index_fill_(0, slots, NEG_INF)

    def _length_penalty(self) -> Tensor:
        return self.length_penalties.gather(1, self.decoder.position[:, None])

    def _update_done(self) -> None:
        is_open = ~self.is_done
        position = self.decoder.position
        bound = self.totals[:, :1].double() / self.bound_penalties.gather(1, position[:, None])
        may_be_beaten = self.best_scores.gather(1, self.last_ranks[:, None]) < bound
        is_truncated = self.limits <= position + 1
        self.is_done.logical_or_(~may_be_beaten.squeeze(1) | is_truncated)  # NaN ends a search
        position.add_(is_open)

    def _make_sound_results(
        self,
        found: dict[str, Tensor],
        rows: Sequence[int],
        limits: Sequence[int],
        options: Sequence[DecodingOptions],
    ) -> list[SearchResult]:
        row_index = np.array(rows, dtype=np.int64)
        chosen = [options[row] for row in rows]
        history = SearchHistory(
            self.vocab_size, *(found[name].numpy() for name in self.step_buffers)
        )
        scores = found["best_scores"].numpy()[row_index]
        for index, one in enumerate(chosen):
            scores[index, one.n_best :] = NEG_INF
        own_limits = np.array(limits, dtype=np.int64)[row_index]
        return history.results(
            row_index,
            scores,
            found["best_candidates"].numpy()[row_index],
            own_limits,
            chosen,
            reached_limit=found["position"].numpy()[row_index] >= own_limits,
        )


def _nan_error() -> AttendoError:
    try:
        check_finite(has_nan=True)
    except AttendoError as error:
        return error
    raise RuntimeError("NaN was accepted")


def make_penalties(alpha: float, length_norm: LengthNorm, length: int) -> Tensor:
    """Return the penalty (T + 1,) of a hypothesis that ends at each position."""
    penalties = [length_penalty(n, alpha, length_norm) for n in range(1, length + 2)]
    return torch.tensor(penalties, dtype=torch.float64)
