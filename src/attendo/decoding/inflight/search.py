"""One search with slots: sentences join and leave it between any two steps.

`add` queues a sentence; `step` lets waiting sentences into free slots, appends one token to every
hypothesis, and returns what has finished. Results are those of `attendo.decoding.search`, whatever
else is in the other slots. It knows nothing of threads: one thread at a time may use it.

On a GPU a step is queued while the previous one is still running, so that the GPU never waits for
the host; results come back two steps after the last token. Each step is a CUDA graph for the
smallest of a few numbers of slots. On a CPU a step computes only the slots in use.
"""

from __future__ import annotations

import heapq
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.attention import sdpa_kernel

from attendo.decoding.inflight.steps import Sentence, SlotSteps
from attendo.decoding.limits import max_length_of
from attendo.decoding.static.pool import round_to_bucket
from attendo.decoding.static.search import SDPA_BACKENDS, CompletionPoller

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from contextlib import AbstractContextManager

    from torch import Tensor

    from attendo.core.errors import AttendoError
    from attendo.core.protocols import SupportsSlotDecoding
    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions, SpecialIds
    from attendo.decoding.static.cuda_graphs import CudaGraphs

MAX_ENCODED_TOKENS = {"cpu": 2048, "cuda": 16_384}
"""Source tokens, with padding, that are encoded between two steps."""
COMPACT_SHARE = 0.75
"""Without graphs: the share of used slots below which the last ones move to free ones."""
MIN_SRC_BUCKET = 16
GATHER_SHARE = {"cpu": 16, "cuda": 8}
MAX_GATHER_STEPS = {"cpu": 2, "cuda": 4}
MAX_HELD_STEPS = 3
"""New sentences are encoded together, because it costs less: if they are fewer than this share of
the sentences in slots, they wait for others, for up to this many steps. So do results on a GPU."""


class PendingResults(NamedTuple):
    """Results on their way from the device."""

    sentences: list[Sentence]
    tensors: dict[str, Tensor]
    event: torch.cuda.Event | None


class InflightSearch:
    """Greedy search or beam search of one width, in a fixed number of slots.

    Args:
        model: encodes the sources and makes the decoder; in evaluation mode. Its weights are read
            once, and by `read_weights`.
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
        graphs: CudaGraphs | None = None,
    ) -> None:
        self.special_ids, self.width, self.num_slots = special_ids, width, num_slots
        self.src_length, self.max_length, self.graphs = src_length, max_length, graphs
        self.steps = SlotSteps(
            model,
            special_ids,
            width=width,
            num_slots=num_slots,
            src_length=src_length,
            max_length=max_length,
            graphs=graphs,
        )
        self.device = self.steps.device
        self._poller = CompletionPoller(self.steps.state.is_done)
        self._slots: list[Sentence | None] = [None] * num_slots
        self._launched: list[Sentence | None] = []
        """Who was in each slot at the last step."""
        self._free = list(range(num_slots))
        self._end = 0
        """Slots up to the last one in use."""
        self._waiting: deque[Sentence] = deque()
        self._sentences: dict[Hashable, Sentence] = {}
        """Those that were added and not returned."""
        self._with_rules: set[Sentence] = set()
        """Sentences in slots whose next token may not be chosen as by default."""
        self._num_steps = 0
        """Steps that were queued."""
        self._released: list[int] = []
        """Slots of cancelled sentences."""
        self._broken: list[int] = []
        """Slots that may contain NaN."""
        self._num_gathered = 0
        """Steps for which new sentences have waited for others."""
        self._num_held = 0
        """Steps for which results have waited for others."""
        self._pending: PendingResults | None = None
        self.max_active = num_slots
        """Slots that may be used; fewer after the memory was too small."""

    def __len__(self) -> int:
        """Return the number of sentences that were added and not returned."""
        return len(self._sentences)

    @property
    def num_active(self) -> int:
        """The number of slots in use."""
        return self.num_slots - len(self._free)

    def fits(self, src_ids: Sequence[int], options: DecodingOptions) -> bool:
        """Return whether a sentence fits the buffers."""
        if not src_ids or len(src_ids) > self.src_length or options.beam_size != self.width:
            return False
        return max_length_of(len(src_ids), options) <= self.max_length

    def add(self, ticket: Hashable, src_ids: Sequence[int], options: DecodingOptions) -> None:
        """Queue a sentence that fits; it joins at the next step at which a slot is free."""
        if ticket in self._sentences:
            raise ValueError(f"the ticket {ticket!r} is in use")
        limit = max_length_of(len(src_ids), options)
        is_short = 0 < len(src_ids) <= self.src_length and limit <= self.max_length
        if not is_short or options.beam_size != self.width:
            raise ValueError("the sentence does not fit the buffers")
        sentence = Sentence(ticket, list(src_ids), options, limit)
        self._sentences[ticket] = sentence
        self._waiting.append(sentence)

    def cancel(self, ticket: Hashable) -> None:
        """Forget a sentence, if it is still searched; its slot is free for the next step."""
        sentence = self._sentences.pop(ticket, None)
        if sentence is None:
            return
        if sentence.slot >= 0 and not sentence.is_over:
            self._free_slot(sentence)
            self._released.append(sentence.slot)
        elif sentence in self._waiting:
            self._waiting.remove(sentence)
        sentence.is_over = True

    def step(self) -> list[tuple[Hashable, SearchResult | AttendoError]]:
        """Advance every sentence by one token and return those that finished.

        A sentence whose probabilities are NaN returns an error; the others are not affected.
        """
        with self._context():
            self._admit()
            self._compact()
            has_launched = self._launch()
            ready = self._pending
            self._pending = self._begin_results() if has_launched else None
            found = self._finish_results(ready)
            if not self._poller.is_async:
                found += self._finish_results(self._pending)
                self._pending = None
        return found

    def restart(self) -> None:
        """Search all sentences again from their beginnings, after a step has failed."""
        sentences = [one for one in self._sentences.values() if one not in self._waiting]
        for sentence in sentences:
            sentence.slot, sentence.is_over = -1, False
        self._waiting.extendleft(reversed(sentences))
        self._slots = [None] * self.num_slots
        self._launched, self._pending = [], None
        self._free, self._end = list(range(self.num_slots)), 0
        self._with_rules.clear()
        self._released, self._broken = [], list(range(self.num_slots))

    def drop_all(self) -> list[Hashable]:
        """Forget all sentences and return their tickets."""
        tickets = list(self._sentences)
        self.restart()
        self._sentences.clear()
        self._waiting.clear()
        return tickets

    def read_weights(self) -> None:
        """Read the weights of the model again, after they have changed."""
        with self._context():
            self.steps.read_weights()

    def warm_up(self, *, deadline: float = float("inf")) -> None:
        """Run every shape of a step, and capture it if there are graphs, until a time."""
        if len(self):
            raise RuntimeError("the search is in use")
        with self._context():
            self.steps.warm_up(deadline=deadline)

    def _context(self) -> AbstractContextManager[object]:
        if self.device.type != "cuda":
            return torch.inference_mode()
        stack = ExitStack()
        stack.enter_context(torch.inference_mode())
        stack.enter_context(torch.cuda.device(self.device))
        stack.enter_context(sdpa_kernel(SDPA_BACKENDS))
        return stack

    def _admit(self) -> None:
        """Let waiting sentences into free slots."""
        if self._released:
            self.steps.state.release(self.steps.to_device(torch.tensor(self._released)))
            self._released = []
        if self._broken:
            self.steps.decoder.clear(self.steps.to_device(torch.tensor(self._broken)))
            self._broken = []
        num_new = self._num_admitted()
        if not num_new:
            return
        budget = MAX_ENCODED_TOKENS[self.device.type]
        new_sentences: list[Sentence] = []
        longest = 0
        while len(new_sentences) < num_new:
            longest = max(longest, len(self._waiting[0].src_ids))
            if new_sentences and longest * (len(new_sentences) + 1) > budget:
                break
            sentence = self._waiting.popleft()
            self._occupy_slot(sentence)
            sentence.first_step = self._num_steps
            new_sentences.append(sentence)
            if sentence.options.min_length or sentence.has_unk_rule(self.special_ids):
                self._with_rules.add(sentence)
        self.steps.admit(new_sentences)

    def _num_admitted(self) -> int:
        """Return how many waiting sentences to encode now: none if they should wait for more."""
        num_new = min(len(self._waiting), self.max_active - self.num_active)
        device = self.device.type
        few = self.num_active // GATHER_SHARE[device]
        if num_new < few and self._num_gathered < MAX_GATHER_STEPS[device]:
            self._num_gathered += 1
            return 0
        self._num_gathered = 0
        return self.steps.round_admission(num_new)

    def _compact(self) -> None:
        """Move the last sentences to free slots, if a step is then smaller."""
        num_active = self.num_active
        if self._waiting or not num_active:
            return
        end = self._end_of_slots()
        if self.graphs is not None:
            is_worthwhile = self.steps.bucket(num_active) < self.steps.bucket(end)
        else:
            is_worthwhile = num_active <= COMPACT_SHARE * end
        if not is_worthwhile:
            return
        last = [one for one in self._slots[num_active:end] if one is not None]
        sources, targets = [], []
        for sentence in last:
            sources.append(sentence.slot)
            self._slots[sentence.slot] = None
            heapq.heappush(self._free, sentence.slot)
            self._occupy_slot(sentence)
            targets.append(sentence.slot)
        moved = self.steps.to_device(torch.tensor([sources, targets]))
        self.steps.state.move(moved[0], moved[1], window=self._window())

    def _launch(self) -> bool:
        """Queue one step of all slots in use; return whether there is any."""
        end = self._end_of_slots()
        if not end:
            return False
        self._num_steps += 1
        src_length = self.src_length
        if self.graphs is None:
            longest = max(len(one.src_ids) for one in self._slots[:end] if one is not None)
            src_length = min(round_to_bucket(longest, minimum=MIN_SRC_BUCKET), src_length)
        self.steps.run(
            self.steps.bucket(end),
            src_length=src_length,
            window=self._window(),
            allow_end=not self._has_rules(),
        )
        return True

    def _has_rules(self) -> bool:
        """Return whether the next token of some sentence is not chosen as by default."""
        over = [
            one for one in self._with_rules if not one.has_rules(self._num_steps, self.special_ids)
        ]
        self._with_rules.difference_update(over)
        return bool(self._with_rules)

    def _begin_results(self) -> PendingResults | None:
        """Free the slots of sentences that are done, and start to copy their results."""
        launched, self._launched = self._launched, list(self._slots)
        flags = self._poller.poll()
        if flags is None:
            return None
        if not self._poller.is_async:
            launched = self._launched
        over = flags[: len(launched)].nonzero().flatten().tolist()  # without the spare slot
        done = [one for slot in over if (one := launched[slot]) is not None and not one.is_over]
        if not done or self._should_hold(len(done)):
            return None
        for sentence in done:
            self._free_slot(sentence)
            sentence.is_over = True
        rows = self.steps.to_device(torch.tensor([one.slot for one in done]))
        num_steps = self._num_steps - min(one.first_step for one in done)
        found = self.steps.state.gather_rows(rows, num_steps)
        if self.device.type == "cpu":
            return PendingResults(done, found, None)
        copies = {
            name: torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(
                tensor, non_blocking=True
            )
            for name, tensor in found.items()
        }
        event = torch.cuda.Event()
        event.record()
        return PendingResults(done, copies, event)

    def _should_hold(self, num_done: int) -> bool:
        """Return whether to wait for more results: on a GPU it costs less to copy several."""
        few = self.num_active // GATHER_SHARE[self.device.type] if self._poller.is_async else 0
        if num_done < few and self._num_held < MAX_HELD_STEPS:
            self._num_held += 1
            return True
        self._num_held = 0
        return False

    def _finish_results(
        self, pending: PendingResults | None
    ) -> list[tuple[Hashable, SearchResult | AttendoError]]:
        if pending is None:
            return []
        if pending.event is not None:
            pending.event.synchronize()
        limits = [one.limit for one in pending.sentences]
        options = [one.options for one in pending.sentences]
        results = self.steps.state.make_results(pending.tensors, limits, options)
        found = []
        for sentence, result in zip(pending.sentences, results, strict=True):
            if isinstance(result, Exception):
                self._broken.append(sentence.slot)
            if self._sentences.pop(sentence.ticket, None) is not None:  # else it was cancelled
                found.append((sentence.ticket, result))
        return found

    def _occupy_slot(self, sentence: Sentence) -> None:
        sentence.slot = heapq.heappop(self._free)
        self._slots[sentence.slot] = sentence
        self._end = max(self._end, sentence.slot + 1)

    def _free_slot(self, sentence: Sentence) -> None:
        self._slots[sentence.slot] = None
        self._with_rules.discard(sentence)
        heapq.heappush(self._free, sentence.slot)

    def _end_of_slots(self) -> int:
        """Return the number of slots up to the last one in use."""
        while self._end and self._slots[self._end - 1] is None:
            self._end -= 1
        return self._end

    def _window(self) -> int:
        """Return how many positions the step attends to."""
        if self.graphs is not None or self.device.type == "cuda":
            return self.max_length + 1
        first = min(one.first_step for one in self._slots if one is not None)
        return self._num_steps - first
