"""The device's side of a search with slots: loads sentences, runs steps, captures graphs.

With graphs, a step computes the first slots up to one of a few numbers, and sentences are encoded
in groups of a few sizes, so that a small, fixed set of shapes is captured by the warm-up. Without
graphs, as on a CPU, a step computes exactly the slots in use.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from attendo.decoding.inflight.slots import (
    MAX_PENALTIES,
    NewSentence,
    SlotBeam,
    SlotGreedy,
    make_penalties,
    pack_sentences,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import SupportsSlotDecoding
    from attendo.decoding.inflight.slots import SlotState
    from attendo.decoding.options import DecodingOptions, LengthNorm, SpecialIds
    from attendo.decoding.static.cuda_graphs import CudaGraphs

SLOT_BUCKETS = (1, 4, 16, 64, 128, 256, 512, 1024)
"""With graphs: numbers of slots that a step computes."""
ADMISSION_BUCKETS = (1, 4, 16, 64, 256)
"""With graphs: numbers of sentences that are encoded together."""
MANY_SLOTS = 1024
"""The number of slots from which on more than 64 sentences are encoded together."""
MIN_SHORT_GROUP = 16
"""Groups of at least this size are also captured for sources of a quarter of the length."""
MIN_FULL_ADMISSION = 64
"""Groups of at least this size have no spare rows: the surplus waits for the next step."""

PenaltyKey = tuple[float, "LengthNorm"]
"""What a table of length penalties depends on: alpha and length_norm."""
SPARE_KEY: PenaltyKey = (0.0, "paper")
Row = tuple[list[int], NewSentence]
"""A new sentence: source ids, and numbers."""


@dataclass(eq=False, slots=True)
class Sentence:
    """A sentence that waits, or is in a slot."""

    ticket: Hashable
    src_ids: list[int]
    options: DecodingOptions
    limit: int
    slot: int = -1
    first_step: int = 0
    """Steps of the search that were queued before it joined."""
    is_over: bool = False

    def has_rules(self, num_steps: int, special_ids: SpecialIds) -> bool:
        """Return whether its token at a step of the search is not chosen as by default."""
        is_short = num_steps - self.first_step <= self.options.min_length
        return is_short or self.has_unk_rule(special_ids)

    def has_unk_rule(self, special_ids: SpecialIds) -> bool:
        """Return whether it may have unknown tokens, unlike by default."""
        return special_ids.unk_id is not None and self.options.unk != "avoid"


class SlotSteps:
    """The buffers of a search and what runs on them.

    Args:
        model: encodes the sources and makes the decoder; in evaluation mode.
        special_ids: start, end, padding and unknown.
        width: the beam size; 1 is greedy search.
        num_slots: sentences that are searched at a time.
        src_length: the maximum length of a source.
        max_length: the maximum length of a translation.
        graphs: captures and replays the steps, on a GPU; None runs them kernel by kernel.

    """

    def __init__(
        self,
        model: SupportsSlotDecoding,
        special_ids: SpecialIds,
        *,
        width: int,
        num_slots: int,
        src_length: int,
        max_length: int,
        graphs: CudaGraphs | None,
    ) -> None:
        self.special_ids, self.num_slots = special_ids, num_slots
        self.src_length, self.max_length, self.graphs = src_length, max_length, graphs
        self.decoder = model.make_slot_decoder(
            num_slots=num_slots, width=width, src_length=src_length, max_length=max_length + 1
        )
        make_state = SlotGreedy if width == 1 else SlotBeam
        self.state: SlotState = make_state(
            self.decoder, special_ids, vocab_size=model.tgt_vocab_size
        )
        self.device = self.state.device
        self._views: dict[tuple[int, int], SlotState] = {}
        self._staged: dict[tuple[int, int], Tensor] = {}
        self._penalty_rows: OrderedDict[PenaltyKey, int] = OrderedDict()
        """The table of each kind of penalty, the one that was not used for longest first."""
        self._buckets = [one for one in SLOT_BUCKETS if one < num_slots] + [num_slots]
        self.read_weights()

    def read_weights(self) -> None:
        """Read the weights of the model."""
        self.decoder.refresh()
        if self.device.type == "cpu":
            self.decoder.prepack_weights(self.max_length)

    def bucket(self, num_slots: int) -> int:
        """Return the number of slots that a step computes."""
        if self.graphs is None:
            return num_slots
        return next(one for one in self._buckets if one >= num_slots)

    def admit(self, new_sentences: Sequence[Sentence]) -> None:
        """Encode sentences into their slots."""
        longest = max(len(one.src_ids) for one in new_sentences)
        count, length = len(new_sentences), longest
        if self.graphs is not None:
            shapes = list(self._admission_shapes())
            length = min(one for _, one in shapes if one >= longest)
            count = min((one for one, _ in shapes if one >= count), default=shapes[-1][0])
        rows: list[Row] = [(one.src_ids, self._numbers(one)) for one in new_sentences]
        for first in range(0, len(rows), count):
            part = rows[first : first + count]
            self._load([*part, *[self._spare_row()] * (count - len(part))], length)

    def round_admission(self, num_new: int) -> int:
        """Return how many of the new sentences to encode now: many fill a captured shape."""
        if self.graphs is None:
            return min(num_new, ADMISSION_BUCKETS[-1])
        counts = {count for count, _ in self._admission_shapes() if count >= MIN_FULL_ADMISSION}
        return max((count for count in counts if count <= num_new), default=num_new)

    def run(self, num_slots: int, *, src_length: int, window: int, allow_end: bool) -> None:
        """Run one step of the first slots."""
        view = self._views.get((num_slots, src_length))
        if view is None:
            view = self.state.first(num_slots, src_length)
            self._views[num_slots, src_length] = view
        work = partial(view.step, window=window, allow_end=allow_end)
        if self.graphs is None:
            work()
        else:
            self.graphs.prepare(("step", id(self), num_slots, allow_end), work)()

    def warm_up(self, *, deadline: float) -> None:
        """Run every shape, and capture it if there are graphs, until the deadline."""
        num_runs = 1 if self.graphs is None else 3  # eager, captured, replayed
        all_slots = self._buckets if self.graphs is not None else [1]
        for allow_end in (True, False):
            for num_slots in all_slots:
                for _ in range(num_runs if perf_counter() < deadline else 0):
                    sizes = {"src_length": self.src_length, "window": self.max_length + 1}
                    self.run(num_slots, allow_end=allow_end, **sizes)
            if allow_end:
                for count, length in self._admission_shapes():
                    for _ in range(num_runs if perf_counter() < deadline else 0):
                        self._load([self._spare_row()] * count, length)

    def to_device(self, tensor: Tensor) -> Tensor:
        """Copy a tensor to the device without waiting for it."""
        return self._pin(tensor).to(self.device, non_blocking=True)

    def _pin(self, tensor: Tensor) -> Tensor:
        return tensor if self.device.type == "cpu" else tensor.pin_memory()

    def _admission_shapes(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers and lengths of sentences that are encoded together."""
        if self.graphs is None:
            yield 1, 2
            return
        for count in ADMISSION_BUCKETS:
            if count // 4 < self.num_slots and (count <= 64 or self.num_slots >= MANY_SLOTS):
                shares = (4, 2, 1) if count >= MIN_SHORT_GROUP else (2, 1)
                for share in shares:
                    yield count, max(1, self.src_length // share)

    def _numbers(self, one: Sentence) -> NewSentence:
        options = one.options
        key = (options.alpha, options.length_norm)
        return NewSentence(
            slot=one.slot,
            limit=one.limit,
            min_length=options.min_length,
            avoids_unk=options.unk == "avoid",
            last_rank=options.n_best - 1,
            penalty_row=self._penalty_row(key),
            has_growing_penalty=options.alpha > 0,
        )

    def _penalty_row(self, key: PenaltyKey) -> int:
        """Return the table of penalties."""
        row = self._penalty_rows.get(key)
        if row is None:
            row = len(self._penalty_rows)
            if row == MAX_PENALTIES:
                _, row = self._penalty_rows.popitem(last=False)
            self._penalty_rows[key] = row
            self.state.set_penalties(row, make_penalties(*key, self.max_length + 1))
        self._penalty_rows.move_to_end(key)
        return row

    def _spare_row(self) -> Row:
        """Return a sentence for the spare slot."""
        row = self._penalty_row(SPARE_KEY)
        return [self.special_ids.end_id], NewSentence(self.num_slots, limit=1, penalty_row=row)

    def _load(self, rows: Sequence[Row], length: int) -> None:
        """Copy sentences to the device, and encode them into their slots."""
        packed = pack_sentences(rows, length=length, pad_id=self.special_ids.pad_id)
        if self.graphs is None:
            self.state.admit(self.to_device(packed))
            return
        staged = self._staged.get((len(rows), length))
        if staged is None:
            staged = self._staged[len(rows), length] = torch.empty_like(packed, device=self.device)
        staged.copy_(self._pin(packed), non_blocking=True)
        work = partial(self.state.admit, staged)
        self.graphs.prepare(("admit", id(self), len(rows), length), work)()
