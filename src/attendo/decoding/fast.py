"""The quick way to what greedy and beam search find: in place, without waiting for the host.

It is for models whose steps can be fixed (`attendo.decoding.fixed_steps`) and for searches without
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

from attendo.core import tf32
from attendo.decoding.beam_desk import BeamDesk
from attendo.decoding.desk import Sizes
from attendo.decoding.fixed_steps import Fixable
from attendo.decoding.greedy_desk import GreedyDesk
from attendo.decoding.options import Demands
from attendo.decoding.rooms import FreshRoom, KeptRoom
from attendo.decoding.rules import find_unwanted, limits_of
from attendo.decoding.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.desk import Desk
    from attendo.decoding.fixed_steps import FixedSteps
    from attendo.decoding.hypothesis import Found
    from attendo.decoding.options import DecodingOptions, Symbols
    from attendo.decoding.rooms import Place, Room

SWITCH = "ATTENDO_FAST_DECODING"
WIDEST = 16
"""Hypotheses of a sentence, above which looking past each other costs more than moving them."""
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""Not cuDNN's, which makes a plan for every new shape."""


def search_fast(
    model: object,
    src_ids: Tensor,
    symbols: Symbols,
    options: DecodingOptions,
    demands: Sequence[Demands] | None = None,
    *,
    shrink: bool = True,
    keep: bool | None = None,
) -> list[Found] | None:
    """Search a padded batch (B, S), or give None where that has to be done the plain way.

    `keep` leaves desks and graphs with the model for the next search, as a GPU does by itself.
    """
    if not isinstance(model, Fixable) or not is_plain(options, demands):
        return None
    host_ids = src_ids.cpu()
    limits = limits_of(host_ids, options, symbols, [Demands()] * len(host_ids))
    is_whole = bool(host_ids.ne(symbols.pad_id).any(1).all())  # no source of padding alone
    has_words = model.tgt_vocab_size > len(find_unwanted(symbols, options)) + 1
    if not (is_whole and has_words and model.can_fix(max(limits))):
        return None

    def make(steps: FixedSteps) -> Desk:
        if options.beam_size == 1:
            return GreedyDesk(steps, symbols, options)
        return BeamDesk(steps, symbols, options, vocab_size=model.tgt_vocab_size)

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if src_ids.is_cuda:
            stack.enter_context(torch.cuda.device(src_ids.device))
            stack.enter_context(sdpa_kernel(KERNELS))
        room: Room = FreshRoom(model, make)
        if src_ids.is_cuda if keep is None else keep:
            kept = KeptRoom(model, make, (symbols, options.unk, options.n_best, tf32.is_on()))
            stack.enter_context(kept.shelf.lock)
            room = kept
        try:
            return FastSearch(room, limits, options).run(host_ids, shrink=shrink)
        except torch.OutOfMemoryError:
            model.kept.clear()
            raise


def is_plain(options: DecodingOptions, demands: Sequence[Demands] | None) -> bool:
    """Tell whether a search asks for nothing that only the reference knows."""
    if os.environ.get(SWITCH, "1") == "0":
        return False
    if options.sample or options.no_repeat_ngram or options.num_groups > 1:
        return False
    if options.beam_size > WIDEST:
        return False
    return not any(demand.prefix or demand.has_phrases for demand in demands or ())


class FastSearch:
    """One batch, from desk to smaller desk."""

    def __init__(self, room: Room, limits: Sequence[int], options: DecodingOptions) -> None:
        self.room, self.options = room, options
        self.limits = torch.tensor(limits)
        self.sentences = torch.arange(len(limits))
        """Which one lies in each row of the desk."""
        self.earliest = min(options.min_length + 1, *limits)
        """No search is over before so many steps."""
        self.found: dict[int, Found] = {}

    def run(self, src_ids: Tensor, *, shrink: bool = True) -> list[Found]:
        """Search to the end."""
        longest = int(self.limits.max())
        sizes = Sizes(len(src_ids), self.options.beam_size, src_ids.size(1), longest)
        place = self.room.open(sizes)
        place.desk.put(src_ids, self.limits.tolist(), self.options)
        place.start()
        watch = Watch(place.desk.is_done)
        num_steps = 0
        while num_steps < longest:
            place.advance(num_steps, may_end=num_steps >= self.options.min_length)
            num_steps += 1
            is_done = watch.look() if num_steps >= self.earliest else None
            if is_done is None:
                continue
            is_open = ~is_done[: len(self.sentences)] & (self.limits > num_steps)
            num_open = int(is_open.sum())
            if not num_open:
                break
            smaller = self.room.shrink(place.desk, num_open) if shrink else None
            if smaller is not None:
                self._move(place, smaller, is_open, num_steps)
                place, watch = smaller, Watch(smaller.desk.is_done)
        self._harvest(place, torch.arange(len(self.sentences)), num_steps)
        return [self.found[number] for number in range(len(src_ids))]

    def _move(self, place: Place, smaller: Place, is_open: Tensor, num_steps: int) -> None:
        """Go on with the open sentences at a smaller desk, whose other rows repeat the last."""
        self._harvest(place, (~is_open).nonzero().squeeze(1), num_steps)
        stay = is_open.nonzero().squeeze(1)
        idle = smaller.desk.steps.num_sentences - len(stay)
        rows = torch.cat((stay, stay[-1:].expand(idle)))
        smaller.desk.take(place.desk, rows.to(place.desk.is_done.device), num_steps=num_steps)
        self.sentences, self.limits = self.sentences[stay], self.limits[stay]

    def _harvest(self, place: Place, rows: Tensor, num_steps: int) -> None:
        found = place.desk.harvest(rows.tolist(), num_steps)
        self.found |= dict(zip(self.sentences[rows].tolist(), found, strict=True))
