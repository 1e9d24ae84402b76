"""Greedy search: the most likely token at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel

StateT = TypeVar("StateT")


@torch.inference_mode()
def greedy(
    model: Seq2SeqModel[StateT],
    src_ids: Tensor,
    *,
    start_id: int,
    end_id: int,
    pad_id: int = 0,
    max_extra: int = 50,
) -> list[list[int]]:
    """Translate a padded batch (B, S); give each row's ids without the start and end symbols.

    A translation has at most `max_extra` tokens more than its own source (section 6.1), however
    long the others in the batch are.
    """
    limits = src_ids.ne(pad_id).sum(1) + max_extra  # (B,)
    state = model.start(model.encode(src_ids))
    ids = torch.full((src_ids.size(0),), start_id, device=src_ids.device)
    is_done = torch.zeros_like(ids, dtype=torch.bool)
    said: list[Tensor] = []
    for position in range(int(limits.max())):
        logits, state = model.step(ids, state)
        ids = logits.argmax(-1).masked_fill(is_done, end_id)
        said.append(ids)
        is_done |= ids.eq(end_id) | (limits <= position + 1)
        if bool(is_done.all()):
            break
    rows = torch.stack(said, dim=1).tolist()
    return [_cut(row, end_id, int(limit)) for row, limit in zip(rows, limits, strict=True)]


def _cut(row: list[int], end_id: int, limit: int) -> list[int]:
    return row[: row.index(end_id)] if end_id in row else row[:limit]
