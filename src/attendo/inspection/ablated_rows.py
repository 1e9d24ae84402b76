"""A batch in which each row has other heads switched off: many ablations in one pass.

A head is off if the output projection W_O reads zeros instead of its output. That equals zeroing the
head's columns of W_O without changing a weight.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import torch

from attendo.core.errors import InputError
from attendo.inspection.heads import check_head, get_attention

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from attendo.core.protocols import AttentionKind, Explanation, Memory
    from attendo.inspection.heads import Head
    from attendo.model.kv_cache import DecoderState
    from attendo.model.transformer import Transformer

    State = tuple[DecoderState, Tensor]


class BatchedAblation:
    """A model with the protocol of the wrapped one, so that every search works on it.

    Row i of a batch is the model without `choices[i]`. The rows of a decoding state keep track of
    their choice when beams are reordered.
    """

    def __init__(self, model: Transformer, head_sets: Sequence[Iterable[Head]]) -> None:
        self.model, self.num_rows = model, len(head_sets)
        self.masks = head_masks(model, head_sets)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        with self._ablated(src_ids):
            return self.model.encode(src_ids, src_mask)

    def start(self, memory: Memory) -> State:
        """Return the initial state, with the choice of each row."""
        rows = torch.arange(self.num_rows, device=memory.states.device)
        return self.model.start(memory), rows

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Feed one position, ids (N,)."""
        decoder_state, rows = state
        with zero_inputs({projection: mask[rows] for projection, mask in self.masks.items()}):
            logits, decoder_state = self.model.step(ids, decoder_state)
        return logits, (decoder_state, rows)

    def reorder(self, state: State, index: Tensor) -> State:
        """Reorder the rows with their choices."""
        decoder_state, rows = state
        return self.model.reorder(decoder_state, index), rows[index]

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing."""
        with self._ablated(src_ids):
            return self.model.forward(src_ids, tgt_ids, src_mask, tgt_mask)

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same pass with every attention weight kept."""
        with self._ablated(src_ids):
            return self.model.explain(src_ids, tgt_ids, src_mask, tgt_mask)

    @contextmanager
    def _ablated(self, ids: Tensor) -> Iterator[None]:
        if len(ids) != self.num_rows:
            reason = f"a batch of {len(ids)} rows for {self.num_rows} choices of heads"
            raise InputError(reason, hint="pass one row per choice")
        with zero_inputs(self.masks):
            yield


def head_masks(model: Transformer, head_sets: Sequence[Iterable[Head]]) -> dict[nn.Module, Tensor]:
    """Return, for each affected output projection, the mask of hidden inputs per row: (B, 1, H * K)."""
    rows_by_layer: dict[tuple[AttentionKind, int], list[tuple[int, int]]] = defaultdict(list)
    for row, heads in enumerate(head_sets):
        for head in heads:
            check_head(model, head)
            rows_by_layer[head.kind, head.layer].append((row, head.head))
    masks: dict[nn.Module, Tensor] = {}
    for (kind, layer), row_heads in rows_by_layer.items():
        attention = get_attention(model, kind, layer)
        weight = attention.output.weight  # (D, H * K)
        is_ablated = torch.zeros(
            len(head_sets), attention.num_heads, dtype=torch.bool, device=weight.device
        )
        for row, number in row_heads:
            is_ablated[row, number] = True
        head_size = weight.size(1) // attention.num_heads
        masks[attention.output] = is_ablated.repeat_interleave(head_size, dim=1)[:, None]
    return masks


@contextmanager
def zero_inputs(masks: Mapping[nn.Module, Tensor]) -> Iterator[None]:
    """Zero the inputs of each module where its mask is True, within the context."""
    with ExitStack() as stack:
        for module, mask in masks.items():

            def zero_masked(
                _module: nn.Module, given: tuple[Tensor], mask: Tensor = mask
            ) -> Tensor:
                return given[0].masked_fill(mask, 0.0)

            stack.callback(module.register_forward_pre_hook(zero_masked).remove)
        yield
