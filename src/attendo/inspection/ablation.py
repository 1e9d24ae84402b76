"""Head ablation: the translation and its log-probability without some heads.

A head is off if the output projection W_O reads zeros instead of its output. That equals zeroing
the head's columns of W_O without changing a weight. `BatchedAblation` switches off other heads in
each row of a batch, so that many ablations share one pass.

A head whose absence changes little may still matter: others can replace it (Michel et al. 2019,
Voita et al. 2019).
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.checkpoints import checkpoint, without_checkpoints
from attendo.core.device import to_accurate
from attendo.core.errors import InputError
from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.inspection.embeddings import max_positions
from attendo.inspection.heads import (
    Head,
    check_head,
    get_attention,
    list_heads,
    require_transformer,
)
from attendo.inspection.record import KINDS
from attendo.inspection.teacher_forcing import match_model, teacher_force
from attendo.translator.backends.base import SPECIAL_IDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from attendo.core.protocols import AttentionKind, Explanation, Memory
    from attendo.inspection.record import Record
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.kv_cache import DecoderState
    from attendo.model.transformer import Transformer
    from attendo.translator import Translation, Translator

    State = tuple[DecoderState, Tensor]

__all__ = ["BatchedAblation", "Head", "ablate", "ablate_all_heads", "heads_off"]

FEATURE = "head ablation"
SCORING_BATCH_TOKENS = 2048
"""Tokens per batch on either side: 300 MB of logits at a vocabulary of 37,000."""
SEARCH_BATCH_TOKENS = 4096
"""Tokens of all hypotheses in one batch."""
DIGITS = 6


@contextmanager
def heads_off(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Switch heads off within the context; the model is restored afterwards.

    Works in training, in cached decoding and in `explain`, and may be nested.

    >>> import torch
    >>> from attendo import Transformer
    >>> model = Transformer(9, d_model=4, d_ff=4, num_heads=2, num_layers=1).eval()
    >>> ids = torch.tensor([[4, 5, 6]])
    >>> before = model(ids, ids)
    >>> with heads_off(model, [Head("cross", 0, 1)]):
    ...     torch.equal(model(ids, ids), before)
    False
    >>> torch.equal(model(ids, ids), before)
    True
    """
    masks = head_masks(require_transformer(model, feature=FEATURE), [list(heads)])
    with zero_inputs(masks), without_checkpoints():  # others may use the model meanwhile
        yield


def ablate(translator: Translator, text: str, heads: Iterable[Head], **options: Any) -> Translation:
    """Translate without these heads; `options` as for `Translator.translate`."""
    model = require_transformer(translator.model, feature=FEATURE)
    with heads_off(model, heads):
        return translator.translate([text], **options)[0]


def ablate_all_heads(
    translator: Translator,
    record: Record,
    *,
    kinds: Sequence[AttentionKind] = KINDS,
    translate: bool = True,
    beam_size: int | None = None,
) -> dict[str, Any]:
    """Switch each head off, one at a time; return the record's section `ablation`.

    `log_prob` is that of the record's target, `change` its difference without the head.
    With `translate` the sentence is also translated without the head, with the search options of
    the record or with another `beam_size` (1 is greedy and fastest).
    """
    model = match_model(translator, record, feature=FEATURE)
    heads, forced_pass = list_heads(model, kinds), teacher_force(translator, record)
    with translator.backend.eval_mode():
        baseline, *ablated = _score_target(model, forced_pass, [[], *([head] for head in heads)])
        texts: Sequence[str | None] = [None] * len(heads)
        if translate:
            options = _search_options(record, beam_size, max_positions(model))
            output_ids = _translate_without(model, forced_pass.src_ids, heads, options)
            texts = translator.tokenizer.decode_tgt(output_ids)
    return {
        "heads": [
            {
                **head._asdict(),
                "log_prob": round(log_prob, DIGITS),
                "change": round(log_prob - baseline, DIGITS),
                "text": text,
            }
            for head, log_prob, text in zip(heads, ablated, texts, strict=True)
        ],
        "log_prob": round(baseline, DIGITS),
    }


@torch.inference_mode()
def _score_target(
    model: Transformer, forced_pass: TeacherForcedPass, head_sets: list[list[Head]]
) -> list[float]:
    """Return the log-probability of the target without each set of heads."""
    size = max(
        1, SCORING_BATCH_TOKENS // max(forced_pass.src_ids.size(1), len(forced_pass.target_ids))
    )
    log_probs_by_set: list[float] = []
    for first in range(0, len(head_sets), size):
        checkpoint()
        batch = head_sets[first : first + size]
        logits = forced_pass(BatchedAblation(model, batch), num_rows=len(batch))  # (B, T, V)
        targets = forced_pass.target_ids.expand(len(batch), -1)[:, :, None]
        log_probs = logits.float().log_softmax(-1).gather(-1, targets)  # (B, T, 1)
        log_probs_by_set += to_accurate(log_probs).sum((1, 2)).tolist()
    return log_probs_by_set


def _translate_without(
    model: Transformer, src_ids: Tensor, heads: list[Head], options: DecodingOptions
) -> list[list[int]]:
    """Return the translation without each of the heads."""
    size = max(1, SEARCH_BATCH_TOKENS // (src_ids.size(1) * options.beam_size))
    best: list[list[int]] = []
    for first in range(0, len(heads), size):
        batch = [[head] for head in heads[first : first + size]]
        results = search(
            BatchedAblation(model, batch), src_ids.expand(len(batch), -1), SPECIAL_IDS, options
        )
        best += [one.hypotheses[0].ids for one in results]
    return best


def _search_options(
    record: Record, beam_size: int | None, max_length: int | None
) -> DecodingOptions:
    """Return the search options of the record; a given or sampled target has none to repeat."""
    options: dict[str, Any] = {"max_length": max_length}
    if record.search["method"] in ("beam", "greedy"):
        options |= {key: record.search[key] for key in ("beam_size", "alpha")}
    if beam_size is not None:
        options["beam_size"] = beam_size
    return DecodingOptions(**options)


class BatchedAblation:
    """A model with the protocol of the wrapped one, so that every search works on it.

    Row i of a batch is the model without `head_sets[i]`. The rows of a decoding state keep track of
    their head set when beams are reordered.
    """

    def __init__(self, model: Transformer, head_sets: Sequence[Iterable[Head]]) -> None:
        self.model, self.num_rows = model, len(head_sets)
        self.masks = head_masks(model, head_sets)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        with self._ablated(src_ids):
            return self.model.encode(src_ids, src_mask)

    def start(self, memory: Memory) -> State:
        """Return the initial state, with the head set of each row."""
        rows = torch.arange(self.num_rows, device=memory.states.device)
        return self.model.start(memory), rows

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Decode one position, ids (N,)."""
        decoder_state, rows = state
        with zero_inputs({projection: mask[rows] for projection, mask in self.masks.items()}):
            logits, decoder_state = self.model.step(ids, decoder_state)
        return logits, (decoder_state, rows)

    def reorder(self, state: State, index: Tensor) -> State:
        """Reorder the rows with their head sets."""
        decoder_state, rows = state
        return self.model.reorder(decoder_state, index), rows[index]

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Return teacher-forced logits."""
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
            reason = f"a batch of {len(ids)} rows for {self.num_rows} sets of heads"
            raise InputError(reason, hint="pass one row per set")
        with zero_inputs(self.masks):
            yield


def head_masks(model: Transformer, head_sets: Sequence[Iterable[Head]]) -> dict[nn.Module, Tensor]:
    """Return the mask of zeroed inputs of each affected output projection: (B, 1, H * K)."""
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
