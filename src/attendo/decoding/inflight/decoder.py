"""The searches with slots of one model: several beam sizes, short and long sentences.

A sentence goes to the smallest search that it fits. Short sentences share many slots, long ones
have a few of their own, so that the buffers stay small. A step that fails ends only the sentences
that took part in it; where the memory was too small, they start again in fewer slots.
"""

from __future__ import annotations

from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Self

import torch

from attendo.core.logs import get_logger
from attendo.core.protocols import SupportsSlotDecoding
from attendo.decoding.inflight.search import InflightSearch
from attendo.decoding.limits import suppressed_ids
from attendo.decoding.options import DecodingOptions
from attendo.decoding.static.cuda_graphs import CudaGraphs, GraphCaptures
from attendo.decoding.static.pool import uses_cuda_graphs
from attendo.decoding.static.search import supports_options

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import SpecialIds

    Found = list[tuple[Hashable, SearchResult | Exception]]

logger = get_logger(__name__)
DEFAULT_SLOTS = {"cpu": (64, 64), "cuda": (1024, 512)}
"""For short sentences: of greedy search, of beam search."""
STEP_SECONDS = {"cpu": 0.01, "cuda": 0.05}
"""On a CPU a step takes longer with each slot, and all sentences wait for it."""
SHORT_SOURCE = 64
"""The maximum length of a short source."""
MAX_EXTRA_TOKENS = 64
"""Tokens by which a translation in a slot may exceed its source."""
LONG_SHARE = 16
"""Slots for short sentences per slot for a long one."""
MEMORY_FRACTION = 0.25
"""The share of a GPU's memory that the buffers may occupy."""
CPU_BYTES = 2**29
MAX_WARM_UP_SECONDS = 60.0
"""What is not captured by then runs kernel by kernel."""


class WarmUp(NamedTuple):
    """What the warm-up did."""

    num_slots: int
    num_captures: int
    seconds: float


class InflightDecoder:
    """Searches with slots, as one.

    Args:
        searches: the searches, those for short sentences first.
        captures: the counts of the model.
        context: is entered around each step, e.g. to switch TF32 on.

    """

    def __init__(
        self,
        searches: Sequence[InflightSearch],
        captures: GraphCaptures,
        *,
        context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._searches, self.captures, self._context = list(searches), captures, context
        self._owners: dict[Hashable, InflightSearch] = {}
        self.widths = {one.width for one in searches}

    @classmethod
    def for_model(
        cls,
        model: object,
        special_ids: SpecialIds,
        *,
        widths: Iterable[int],
        max_src_length: int,
        num_slots: int | None = None,
        captures: GraphCaptures | None = None,
        context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Self | None:
        """Return the searches of a model in evaluation mode; None if it has no slot decoder.

        Args:
            model: the model.
            special_ids: start, end, padding and unknown.
            widths: the beam sizes, each of which has searches of its own.
            max_src_length: of any source.
            num_slots: for short sentences, per beam size; fewer if the memory is too small.
            captures: counts the graphs; the default is the count of all searches of the model.
            context: is entered around each step.

        """
        if not isinstance(model, SupportsSlotDecoding):
            return None
        captures = captures or GraphCaptures.of_model(model)
        shapes = [
            (length, length + MAX_EXTRA_TOKENS)
            for length in dict.fromkeys((min(SHORT_SOURCE, max_src_length), max_src_length))
            if model.supports_static_decoding(length + MAX_EXTRA_TOKENS + 1)
        ]
        num_suppressed = len(suppressed_ids(special_ids, DecodingOptions()))
        if not shapes or model.tgt_vocab_size <= num_suppressed + 1:
            return None
        probe = model.make_slot_decoder(num_slots=1, width=1, src_length=1, max_length=1)
        device = probe.position.device
        graphs = None
        if uses_cuda_graphs(device):
            pool = torch.cuda.graph_pool_handle()
            graphs = CudaGraphs(memory_pool=pool, captures=captures)
        beams = sorted(set(widths))
        defaults = DEFAULT_SLOTS[device.type]
        searches = [
            _make_search(
                model,
                special_ids,
                width=width,
                wanted=_wanted_slots(num_slots or defaults[width > 1], is_long=index > 0),
                budget=_budget(device) // (len(shapes) * len(beams)),
                src_length=src_length,
                max_length=max_length,
                graphs=graphs,
            )
            for index, (src_length, max_length) in enumerate(shapes)
            for width in beams
        ]
        return cls(searches, captures, context=context)

    def __len__(self) -> int:
        """Return the number of sentences that were added and not returned."""
        return len(self._owners)

    @property
    def num_slots(self) -> int:
        """Sentences of one beam size that are searched at a time."""
        return max(one.max_active for one in self._searches)

    @property
    def step_seconds(self) -> float:
        """The processor time that a step should take at most, with some twenty per sentence."""
        return STEP_SECONDS[self._searches[0].device.type]

    @property
    def num_active(self) -> int:
        """The number of slots in use."""
        return sum(one.num_active for one in self._searches)

    def supports(self, options: DecodingOptions) -> bool:
        """Return whether sentences with these options can be added, unless they are too long."""
        limit = options.max_extra_tokens
        if options.max_length is not None:
            limit = min(limit, options.max_length)
        is_short = max(limit, options.min_length + 1) <= MAX_EXTRA_TOKENS
        return options.beam_size in self.widths and is_short and supports_options(options, None)

    def add(self, ticket: Hashable, src_ids: Sequence[int], options: DecodingOptions) -> bool:
        """Queue a sentence; return whether it fits."""
        if ticket in self._owners:
            raise ValueError(f"the ticket {ticket!r} is in use")
        search = next((one for one in self._searches if one.fits(src_ids, options)), None)
        if search is None:
            return False
        search.add(ticket, src_ids, options)
        self._owners[ticket] = search
        return True

    def cancel(self, ticket: Hashable) -> None:
        """Forget a sentence, if it is still searched."""
        search = self._owners.pop(ticket, None)
        if search is not None:
            search.cancel(ticket)

    def clear(self) -> None:
        """Forget all sentences."""
        for search in self._searches:
            search.drop_all()
        self._owners.clear()

    def read_weights(self) -> None:
        """Read the weights of the model again, after they have changed."""
        for search in self._searches:
            search.read_weights()

    def weights_unchanged(self) -> bool:
        """Return whether the weights of the model still have the same addresses."""
        return all(search.steps.decoder.weights_unchanged() for search in self._searches)

    def step(self) -> Found:
        """Advance every sentence by one token and return those that finished, or failed."""
        found: Found = []
        for search in self._searches:
            if len(search):
                with self._context():
                    found += self._step(search)
        for ticket, _ in found:
            self._owners.pop(ticket, None)
        return found

    def warm_up(self) -> WarmUp:
        """Run every shape once; with graphs, capture it. From now on nothing is captured."""
        start, before = perf_counter(), self.captures.num_captures
        for search in self._searches:
            with self._context():
                search.warm_up(deadline=start + MAX_WARM_UP_SECONDS)
        if self._searches[0].device.type == "cuda":
            torch.cuda.synchronize(self._searches[0].device)
        self.captures.is_warm = True
        num_captures = self.captures.num_captures - before
        return WarmUp(self.num_slots, num_captures, perf_counter() - start)

    def _step(self, search: InflightSearch) -> Sequence[tuple[Hashable, SearchResult | Exception]]:
        try:
            return search.step()
        except torch.OutOfMemoryError as error:
            reason: Exception = error
            is_too_large = True
        except Exception as error:  # noqa: BLE001 - reported to those who wait
            reason, is_too_large = error, False
        if is_too_large and search.max_active > 1:
            # By now the exception, and the tensors it refers to, are gone.
            del reason
            search.max_active //= 2
            logger.warning("the memory is too small: %d slots are left", search.max_active)
            search.restart()
            torch.cuda.empty_cache()
            return []
        logger.error("a step has failed: %s", type(reason).__name__)
        return [(ticket, reason) for ticket in search.drop_all()]


def _make_search(
    model: SupportsSlotDecoding,
    special_ids: SpecialIds,
    *,
    width: int,
    wanted: int,
    budget: int,
    src_length: int,
    max_length: int,
    graphs: CudaGraphs | None,
) -> InflightSearch:
    """Return a search with as many slots as are wanted and fit the budget and the memory."""
    probe = model.make_slot_decoder(
        num_slots=1, width=width, src_length=src_length, max_length=max_length
    )
    bytes_per_slot = probe.num_bytes // 2  # the probe has a spare slot
    del probe
    num_slots = max(1, min(wanted, budget // max(bytes_per_slot, 1)))
    while True:
        try:
            return InflightSearch(
                model,
                special_ids,
                width=width,
                num_slots=num_slots,
                src_length=src_length,
                max_length=max_length,
                graphs=graphs,
            )
        except torch.OutOfMemoryError:
            if num_slots == 1:
                raise
            num_slots //= 2


def _wanted_slots(num_slots: int, *, is_long: bool) -> int:
    return max(1, num_slots // LONG_SHARE) if is_long else num_slots


def _budget(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory * MEMORY_FRACTION)
    return CPU_BYTES
