"""Scores given translations in one pass of teacher forcing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.options import SpecialIds


@torch.inference_mode()
def score(
    model: Seq2SeqModel[Any],
    src_ids: Tensor,
    targets: Sequence[Sequence[int]],
    special_ids: SpecialIds,
    *,
    temperature: float = 1.0,
) -> list[list[float]]:
    """Return the log-probability of each id of each target, and of the end symbol after it.

    `src_ids` (B, S) is padded; targets have neither start nor end symbol. A temperature above 1
    lowers the confidence.
    """
    if len(targets) != src_ids.size(0):
        reason = f"{len(targets)} targets for {src_ids.size(0)} sources"
        raise InputError(reason, hint="give one target per source")
    if not targets:
        return []
    checkpoint()
    device = src_ids.device
    longest = max(len(target) for target in targets) + 1
    with_end = [[*target, special_ids.end_id] for target in targets]
    labels = torch.tensor(
        [[*ids, *[special_ids.pad_id] * (longest - len(ids))] for ids in with_end], device=device
    )  # (B, T)
    decoder_input = labels.roll(1, dims=1)
    decoder_input[:, 0] = special_ids.start_id
    lengths = torch.tensor([len(ids) for ids in with_end], device=device)
    # Not computed from the ids: some models start with the padding symbol.
    mask = torch.arange(longest, device=device) < lengths[:, None]
    logits = model.forward(src_ids, decoder_input, tgt_mask=mask[:, None])  # (B, T, V)
    log_probs = (logits.float() / temperature).log_softmax(-1)
    label_log_probs = log_probs.gather(-1, labels[:, :, None])[:, :, 0].tolist()
    return [row[: len(ids)] for row, ids in zip(label_log_probs, with_end, strict=True)]
